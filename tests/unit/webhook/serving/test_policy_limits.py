"""Measured entries of all policies together: who takes precedence, who does not compile, and what serves meanwhile."""

from collections.abc import Sequence
from itertools import permutations
from typing import Any, Final

import msgspec
import pytest

from fairlead.policy.compile.compiler import CompileOptions
from fairlead.policy.compile.entry_limits import OTHERS_MAX
from fairlead.webhook.serving.policy_store import PolicyStore
from fairlead.webhook.serving.policy_watch import decode
from support.policy import INSTALLED, MODEL, obj
from support.webhook.policy_stores import put, serving

LIMITS: Final = {"default": 3, "other": 1}


def asking(
    name: str,
    *queries: str,
    priority: int = 0,
    generation: int = 1,
    factors: Sequence[float] = (),
    round: float | None = None,  # noqa: A002 - called as in the API
    **more: Any,
) -> dict[str, Any]:
    data = list[dict[str, Any]]()
    for at, query in enumerate(queries):
        server, _, text = query.rpartition("/")
        data.append({"name": f"e{at}", "prometheus": {"query": text, **({"server": server} if server else {})}})
        data[-1] |= {"factor": factors[at]} if factors else {}
        data[-1] |= {"round": round} if round is not None else {}
    return obj(name, generation=generation, uid=name, priority=priority, data=data, **more)


def store(*objs: dict[str, Any], limits: dict[str, int] | None = None) -> PolicyStore:
    made = PolicyStore(MODEL, CompileOptions(INSTALLED, servers=LIMITS if limits is None else limits))
    for one in objs:
        put(made, one)
    return made


def said(policies: PolicyStore) -> dict[str, str]:
    return {name: f"{one.reason} {one.message}".strip() for name, one in policies.states.items()}


FULL: Final = (
    "NothingServes spec.data[{0}].prometheus: all policies together may have at most {2} different entries of"
    " prometheus {1}, by what is asked, factor and round; share entries between policies, or raise maxEntries of {1} in"
    " the settings"
)


@pytest.mark.parametrize("order", [*permutations(range(3))], ids=str)
def test_the_last_in_precedence_does_not_compile_whichever_came_first(order: tuple[int, ...]) -> None:
    objs = [asking("b", "x", "y"), asking("c", "x", "p", "q"), asking("a", "z")]
    policies = store(*(objs[at] for at in order))
    assert serving(policies) == {"a": "1", "b": "1", "c": "NotCompiled"}
    assert said(policies) == {"a": "Compiled", "b": "Compiled", "c": FULL.format(1, "default", 3)}


CASES: Final[dict[str, tuple[list[dict[str, Any]], dict[str, str]]]] = {
    "as many as there may be": ([asking("a", "x", "y"), asking("b", "z")], {"a": "1", "b": "1"}),
    "equal queries count once": ([asking("a", "x", "y", "z"), asking("b", "z", "x")], {"a": "1", "b": "1"}),
    "one query with several factors": (
        [asking("a", "x"), asking("b", "x", "x", "x", factors=(2.0, 3.0, 4.0))],
        {"a": "1", "b": "NotCompiled"},
    ),
    "one query rounded": (
        [asking("a", "x", "y", "z"), asking("b", "x", factors=(1.0,), round=0.1)],
        {"a": "1", "b": "NotCompiled"},
    ),
    "equal factors count once": (
        [asking("a", "x", "x", "x", factors=(2.0, 3.0, 4.0)), asking("b", "x", "x", factors=(4.0, 2.0))],
        {"a": "1", "b": "1"},
    ),
    "by priority": ([asking("a", "x", "y"), asking("b", "p", "q", priority=1)], {"a": "NotCompiled", "b": "1"}),
    "a smaller one fits after all": (
        [asking("a", "x", "y"), asking("b", "p", "q"), asking("c", "r")],
        {"a": "1", "b": "NotCompiled", "c": "1"},
    ),
    "by server": ([asking("a", "x", "y", "z"), asking("b", "other/x")], {"a": "1", "b": "1"}),
    "too many of another server": ([asking("a", "other/x", "other/y")], {"a": "NotCompiled"}),
    "nothing is asked for what is off": (
        [asking("a", "x", "y", "z", mode="Disabled"), asking("b", "p", "q")],
        {"a": "1", "b": "1"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_entries_are_counted(name: str) -> None:
    objs, want = CASES[name]
    assert serving(store(*objs)) == want


@pytest.mark.parametrize("source", ["nodeMetrics", "configMap"])
def test_sources_that_no_setting_limits_have_a_limit_too(source: str) -> None:
    given = {"nodeMetrics": {"resource": "cpu"}, "configMap": {"name": "prices"}}[source]

    def of(name: str, first: int, count: int) -> dict[str, Any]:
        data = [{"name": f"e{at}", source: given, "factor": float(at)} for at in range(first, first + count)]
        return obj(name, uid=name, data=data)

    full = [of(f"a{at}", 16 * at + 1, 16) for at in range(OTHERS_MAX // 16)]
    policies = store(*full, of("b", 1, 1), of("c", OTHERS_MAX + 1, 1))
    assert {name for name, one in serving(policies).items() if one == "NotCompiled"} == {"c"}
    assert said(policies)["c"] == (
        f"NothingServes spec.data[0].{source}: all policies together may have at most 128 different entries of"
        f" {source}, by what is asked, factor and round; share entries between policies"
    )


@pytest.mark.parametrize("priority", [0, 9])
def test_a_new_policy_takes_no_room_from_an_older_one(priority: int) -> None:
    """Whatever its name and priority."""
    old, new = asking("z", "x", "y"), asking("a", "p", "q", priority=priority)
    old["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    new["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    for objs in ([old, new], [new, old]):
        assert serving(store(*objs)) == {"a": "NotCompiled", "z": "1"}


def test_the_api_server_says_which_one_is_older() -> None:
    policies = PolicyStore(MODEL, CompileOptions(INSTALLED, servers=LIMITS))
    for one, created in ((asking("a", "p", "q"), "2026-01-02"), (asking("z", "x", "y"), "2026-01-01")):
        one["metadata"]["creationTimestamp"] = f"{created}T00:00:00Z"
        policies.put(decode(msgspec.Raw(msgspec.json.encode(one))).obj)
    put(policies)
    assert serving(policies) == {"a": "NotCompiled", "z": "1"}


def test_the_generation_before_it_serves_until_there_is_room() -> None:
    policies = store(asking("a", "x"), asking("b", "y"))
    put(policies, asking("b", "p", "q", "r", generation=2))
    assert serving(policies) == {"a": "1", "b": "1"}
    [status] = [one for one in policies.states.values() if one.name == "b"]
    assert (status.reason, status.generation, status.serving) == ("LastGoodServes", "2", "1")
    policies.remove("a")
    put(policies)
    assert serving(policies) == {"b": "2"}
    assert said(policies) == {"b": "Compiled"}


def test_of_an_edit_that_does_not_compile_after_one_beyond_the_limits_its_own_fault_is_reported() -> None:
    policies = store(asking("a", "x"))
    put(policies, asking("a", "p", "q", "r", "s", generation=2))
    put(policies, asking("a", "x", generation=3, filters={"f": "node.metadata.nam == 'a'"}))
    assert serving(policies) == {"a": "1"}
    status = policies.states["a"]
    assert (status.reason, status.generation, status.serving) == ("LastGoodServes", "3", "1")
    assert "did you mean `name`" in status.message


def test_what_served_before_an_edit_beyond_the_limits_serves_again_after_it_was_off() -> None:
    policies = store(asking("a", "x"))
    for generation, mode in enumerate(("Enforce", "Disabled", "Enforce"), 2):
        put(policies, asking("a", "p", "q", "r", "s", generation=generation, mode=mode))
    assert serving(policies) == {"a": "1"}


def test_a_generation_beyond_the_limits_is_not_stored_in_place_of_the_last_good_one() -> None:
    stored = list[str]()
    policies = store(asking("a", "x"))
    policies.on_good = lambda one: stored.append(one.generation)
    put(policies, asking("a", "p", "q", "r", "s", generation=2))
    assert (serving(policies), stored) == ({"a": "1"}, [])
    put(policies, asking("a", "p", generation=3))
    assert (serving(policies), stored) == ({"a": "3"}, ["3"])


def test_new_limits_count_at_once() -> None:
    policies = store(asking("a", "x"), asking("b", "y", "z"))
    policies.set_compile_options(CompileOptions(INSTALLED, servers={"default": 2}))
    put(policies)
    assert serving(policies) == {"a": "1", "b": "NotCompiled"}
    policies.set_compile_options(CompileOptions(INSTALLED, servers={"default": 3}))
    put(policies)
    assert serving(policies) == {"a": "1", "b": "1"}


def test_without_known_limits_all_compile() -> None:
    policies = PolicyStore(MODEL, CompileOptions(INSTALLED))
    put(policies, asking("a", *"vwxyz"))
    assert serving(policies) == {"a": "1"}
