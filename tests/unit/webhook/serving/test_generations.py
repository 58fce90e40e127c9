"""Generation of each policy that serves."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.data import DataEntry
from fairlead.api.mode import MODES, Mode
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.webhook.serving.generations import Candidates, NotCompiled, PolicyLimits, choose

QUERIES: Final = "wxyz"
ENTRIES: Final = {
    query: DataEntry.model_validate(
        {"name": query, "prometheus": {"query": query}}, by_alias=True, by_name=False, context={}
    )
    for query in QUERIES
}


def generation(number: int, queries: str = "", *, name: str = "p", mode: Mode = "Enforce") -> CompiledPolicy:
    data = tuple(ENTRIES[query] for query in queries)
    return CompiledPolicy(name=name, generation=str(number), scheduler_name="fairlead", data=data, mode=mode)


def candidates(*earlier: CompiledPolicy, newest: CompiledPolicy | NotCompiled | None, **more: Any) -> Candidates:
    return Candidates(**({"name": "p", "newest": newest, "earlier": earlier} | more))


ONE, TWO = generation(1, "w"), generation(2, "xyz")
BROKEN: Final = NotCompiled("3", "filters: no such field")
TWO_ENTRIES: Final = PolicyLimits(entries={"default": 2})
FULL: Final = "spec.data[2].prometheus: all policies together may have at most 2 different entries"

CASES: Final[dict[str, tuple[Candidates, PolicyLimits, str | None, str | None]]] = {
    "the newest that compiles": (candidates(ONE, newest=TWO), PolicyLimits(), "2", "Compiled 2"),
    "nothing was compiled yet": (candidates(newest=None), PolicyLimits(), None, None),
    "a stored one, while the newest is compiled": (candidates(ONE, newest=None), PolicyLimits(), "1", None),
    "a stored one beyond the limits, while the newest is compiled": (
        candidates(TWO, newest=None),
        TWO_ENTRIES,
        None,
        None,
    ),
    "the one before it": (candidates(ONE, newest=BROKEN), PolicyLimits(), "1", f"LastGoodServes 3 {BROKEN.why}"),
    "the one before it that is within the limits": (
        candidates(TWO, ONE, newest=BROKEN),
        TWO_ENTRIES,
        "1",
        f"LastGoodServes 3 {BROKEN.why}",
    ),
    "none compiles": (candidates(newest=BROKEN), PolicyLimits(), None, f"NothingServes 3 {BROKEN.why}"),
    "none is within the limits": (candidates(TWO, newest=BROKEN), TWO_ENTRIES, None, f"NothingServes 3 {BROKEN.why}"),
    "the newest is beyond the limits": (candidates(ONE, newest=TWO), TWO_ENTRIES, "1", f"LastGoodServes 2 {FULL}"),
    "the only one is beyond the limits": (candidates(newest=TWO), TWO_ENTRIES, None, f"NothingServes 2 {FULL}"),
    "the compiler failed": (
        candidates(ONE, newest=replace(BROKEN, is_internal=True)),
        PolicyLimits(),
        "1",
        f"InternalError 3 {BROKEN.why}",
    ),
    "off, and nothing is measured for it": (
        candidates(newest=replace(TWO, mode="Disabled"), mode="Disabled"),
        TWO_ENTRIES,
        "2",
        "Compiled 2",
    ),
    "off, and does not compile": (
        candidates(replace(ONE, mode="Disabled"), newest=BROKEN, mode="Disabled"),
        PolicyLimits(),
        "1",
        f"NotCompiled 3 {BROKEN.why}",
    ),
    "one policy too many": (
        candidates(newest=None, generation="7"),
        PolicyLimits(0),
        None,
        "NothingServes 7 there are more than 0 policies",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_choice(name: str) -> None:
    policy, limits, serving, status = CASES[name]
    choice = choose([policy], limits)["p"]
    assert (None if choice.serving is None else choice.serving.generation) == serving
    assert choice.serving is None or any(choice.serving is one for one in policy.compiled)
    found = choice.status
    if status is None or found is None:
        assert status is None
        assert found is None
    else:
        assert f"{found.reason} {found.generation} {found.message}".startswith(status)
        assert (found.serving, found.mode) == (serving, policy.mode)


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_has_a_status(mode: Mode) -> None:
    [compiled] = choose([candidates(newest=replace(ONE, mode=mode), mode=mode)], PolicyLimits()).values()
    [broken] = choose([candidates(newest=BROKEN, mode=mode)], PolicyLimits()).values()
    assert [str(one.status).partition(": ")[2] != "" for one in (compiled, broken)] == [True, True]


@st.composite
def some_policies(draw: st.DrawFn) -> list[Candidates]:
    found = []
    for name in draw(st.sets(st.sampled_from("abcde"))):
        mode = draw(st.sampled_from(MODES))
        made = [
            generation(number, "".join(sorted(draw(st.sets(st.sampled_from(QUERIES))))), name=name, mode=mode)
            for number in range(9, 9 - draw(st.integers(0, 3)), -1)
        ]
        broken = draw(st.sampled_from([None, NotCompiled("10", "why"), NotCompiled("10", "why", is_internal=True)]))
        newest: CompiledPolicy | NotCompiled | None = broken
        if draw(st.booleans()) and made:
            newest = made.pop(0)
        created = draw(st.sampled_from(["2026-01-01", "2026-01-02"]))
        found.append(Candidates(name=name, created=created, mode=mode, newest=newest, earlier=made))
    return found


LIMITS: Final = st.builds(
    PolicyLimits, st.integers(0, 5), st.builds(lambda count: {"default": count}, st.integers(0, 4))
)


def entries(policies: Sequence[CompiledPolicy]) -> set[str]:
    return {entry.name for one in policies if one.evaluated for entry in one.data}


@given(some_policies(), LIMITS, st.randoms(use_true_random=False))
def test_choices(policies: list[Candidates], limits: PolicyLimits, random: Any) -> None:
    chosen = choose(policies, limits)
    assert chosen.keys() == {one.name for one in policies}
    serving = [one.serving for one in chosen.values() if one.serving is not None]
    assert len(serving) <= limits.policies
    assert limits.entries is not None
    assert len(entries(serving)) <= limits.entries["default"]
    shuffled = [*policies]
    random.shuffle(shuffled)
    assert choose(shuffled, limits) == chosen
    for one in policies:
        choice = chosen[one.name]
        assert choice.serving is None or any(choice.serving is each for each in one.compiled)
        if (status := choice.status) is None:
            assert one.newest is None
            continue
        assert (status.reason == "Compiled") == (choice.serving is not None and choice.serving is one.newest)
        assert (status.reason == "Compiled") == (status.message == "")
        assert status.serving == (None if choice.serving is None else choice.serving.generation)
        if status.reason in ("LastGoodServes", "NothingServes"):
            assert (status.reason == "NothingServes") == (choice.serving is None)
        # one that is preferred to the one that serves does not fit beside those that come before it
        oldest = sorted(policies, key=lambda each: (each.created, each.name))[: limits.policies]
        if one in oldest:
            before = [
                found
                for each in policies
                if each.precedence < one.precedence and (found := chosen[each.name].serving) is not None
            ]
            for preferred in one.compiled:
                if preferred is choice.serving:
                    break
                assert len(entries([*before, preferred])) > limits.entries["default"]


@given(some_policies(), LIMITS)
def test_a_new_policy_changes_nothing_of_older_ones(policies: list[Candidates], limits: PolicyLimits) -> None:
    new = Candidates(name="new", created="2026-01-03", newest=generation(1, QUERIES, name="new"))
    with_new = choose([*policies, new], limits)
    assert {name: one for name, one in with_new.items() if name != "new"} == choose(policies, limits)
