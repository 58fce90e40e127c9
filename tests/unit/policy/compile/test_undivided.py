"""Policies divided by what decides, and put together again."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.mode import MODES, Mode
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import as_enforced, in_mode, undivided
from support.policy import policy

RULE_MODES = st.sampled_from([None, "Enforce", "Shadow"])
EXPRESSIONS = {
    "filters": "node.spec.unschedulable",
    "scores": "1.0",
    "protect": "true",
    "annotations": "'x'",
}


def names(made: CompiledPolicy) -> list[list[str]]:
    return [
        [one.name for one in made.filters],
        [one.name for one in made.scores],
        [one.name for one in made.protections],
        [one.key for one in made.annotations],
    ]


def written(modes: dict[str, list[str | None]], mode: Mode) -> CompiledPolicy:
    rules: dict[str, Any] = {
        kind: {
            f"{'fairlead.dev/' if kind == 'annotations' else kind[0]}{at}": {"expression": EXPRESSIONS[kind]}
            | ({} if one is None else {"mode": one})
            for at, one in enumerate(some)
        }
        for kind, some in modes.items()
    }
    return policy(mode=mode, **rules)


@given(
    modes=st.fixed_dictionaries({kind: st.lists(RULE_MODES, max_size=4) for kind in EXPRESSIONS}),
    mode=st.sampled_from(MODES),
    other=st.sampled_from(MODES),
)
def test_whatever_is_in_shadow_all_rules_are_there_in_their_order(
    modes: dict[str, list[str | None]], mode: Mode, other: Mode
) -> None:
    made = written(modes, mode)
    plain = written({kind: [None for _ in some] for kind, some in modes.items()}, "Enforce")
    assert names(undivided(made)) == names(plain) == names(as_enforced(made))
    assert as_enforced(made).shadow is None
    assert as_enforced(made).mode == ("Disabled" if mode == "Disabled" else "Enforce")
    turned, again = in_mode(made, other), written(modes, other)
    assert (turned.mode, names(turned)) == (other, names(again))
    assert (turned.shadow is None) == (again.shadow is None)
    if turned.shadow is not None and again.shadow is not None:
        assert names(turned.shadow) == names(again.shadow)


def test_a_share_has_one_filter_whether_the_rule_by_its_name_is_in_shadow_or_not() -> None:
    share = {"deviceShare": [{"name": "gpu", "shares": [{"resource": "a.io/mem"}], "layout": {"count": "a.io/n"}}]}
    rule = {"name": "fits", "deviceShare": {"name": "gpu"}}
    in_shadow = policy(binding=share, filters=[rule | {"mode": "Shadow"}])
    assert names(in_shadow)[0] == ["binding/gpu"]
    assert names(as_enforced(in_shadow)) == names(policy(binding=share, filters=[rule]))
    assert names(as_enforced(policy(binding=share)))[0] == ["binding/gpu"]
