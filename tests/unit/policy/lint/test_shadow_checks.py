"""Notes about what is in shadow, and findings at the places where rules stand, whichever of them are in shadow."""

from itertools import product
from typing import Any

import pytest

from fairlead.policy.lint.codes import LintWarning
from support.policy.compile_warnings import GOOD_FILTER, warnings_of

BAD: dict[str, Any] = {"name": "bad", "expression": "node.spec.unschedulable && !node.spec.unschedulable"}
SHADOW: dict[str, Any] = {"mode": "Shadow"}
ENFORCE: dict[str, Any] = {"mode": "Enforce"}
SCORE = {"name": "s", "expression": "node.spec.unschedulable ? 1.0 : 2.0", "normalize": "MinMax"}
VICTIM = {"name": "p", "expression": "victim.spec.priority > 5"}
NOTE = {"key": "fairlead.dev/a", "expression": "node.metadata.name"}
RACK = {"name": "rack", "topology": {"levels": ["rack"], "require": "rack"}}
GANG = {"gang": [{"name": "job", "group": "pod.metadata.labels[?'j'].orValue('')", "size": "2", "holdFor": "1m"}]}


def at(found: list[LintWarning]) -> list[tuple[str, str, str]]:
    return [(one.severity, str(one.reason), ".".join(map(str, one.path[1:]))) for one in found]


CASES: dict[str, tuple[dict[str, Any], list[tuple[str, str, str]]]] = {
    "a policy": ({"filters": [GOOD_FILTER], **SHADOW}, [("note", "Shadow", "mode")]),
    "no rule": (SHADOW, [("warning", "HasNoEffect", ""), ("note", "Shadow", "mode")]),
    "each kind of rule": (
        {
            "filters": [GOOD_FILTER, GOOD_FILTER | {"name": "other"} | SHADOW],
            "scores": [SCORE | SHADOW],
            "preemption": {"protect": [VICTIM | SHADOW]},
            "binding": {"annotations": [NOTE | SHADOW]},
        },
        [
            ("note", "Shadow", "filters.1.mode"),
            ("note", "Shadow", "scores.0.mode"),
            ("note", "Shadow", "preemption.protect.0.mode"),
            ("note", "Shadow", "binding.annotations.0.mode"),
        ],
    ),
    "enforced below the ceiling": (
        {
            "filters": [GOOD_FILTER | ENFORCE],
            "scores": [SCORE | ENFORCE],
            "preemption": {"protect": [VICTIM | ENFORCE]},
            "binding": {"annotations": [NOTE | ENFORCE]},
            **SHADOW,
        },
        [
            ("note", "Shadow", "mode"),
            ("warning", "HasNoEffect", "filters.0.mode"),
            ("warning", "HasNoEffect", "scores.0.mode"),
            ("warning", "HasNoEffect", "preemption.protect.0.mode"),
            ("warning", "HasNoEffect", "binding.annotations.0.mode"),
        ],
    ),
    "said twice": ({"filters": [GOOD_FILTER | SHADOW], **SHADOW}, [("note", "Shadow", "mode")]),
    "enforced in a policy that is": ({"filters": [GOOD_FILTER | ENFORCE], **ENFORCE}, []),
    "in a policy that is off": (
        {"filters": [GOOD_FILTER | SHADOW, GOOD_FILTER | {"name": "x"} | ENFORCE], "mode": "Disabled"},
        [("note", "Disabled", "mode")],
    ),
    "a domain": (
        {"filters": [GOOD_FILTER, RACK | SHADOW]},
        [("note", "NotCompared", "filters.1.topology")],
    ),
    "a domain beside a rule that is compared": (
        {"filters": [GOOD_FILTER, RACK], **SHADOW},
        [("note", "Shadow", "mode"), ("note", "NotCompared", "filters.1.topology")],
    ),
    "a group": ({"binding": GANG, **SHADOW}, [("note", "NotCompared", "binding.gang")]),
    "a group and a domain": (
        {"binding": GANG, "filters": [RACK], **SHADOW},
        [("note", "NotCompared", "filters.0.topology"), ("note", "NotCompared", "binding.gang")],
    ),
    "a group beside a rule that is compared": (
        {"binding": GANG, "scores": [SCORE], **SHADOW},
        [("note", "Shadow", "mode"), ("note", "NotCompared", "binding.gang")],
    ),
    "a group of an enforced policy": (
        {"binding": GANG, "filters": [GOOD_FILTER | SHADOW]},
        [("note", "Shadow", "filters.0.mode")],
    ),
    "a domain and a group that are off": (
        {"filters": [RACK | SHADOW], "binding": GANG, "mode": "Disabled"},
        [("note", "Disabled", "mode")],
    ),
    "published": (
        {"filters": [GOOD_FILTER | SHADOW], "publish": "NodeAffinity"},
        [("warning", "PublishesNothing", "publish"), ("note", "Shadow", "filters.0.mode")],
    ),
    "not published, as none of it decides": (
        {"filters": [GOOD_FILTER], "publish": "NodeAffinity", **SHADOW},
        [("note", "Shadow", "mode")],
    ),
    "used in shadow only": (
        {
            "variables": [{"name": "v", "expression": "node.spec.unschedulable"}],
            "data": [{"name": "d", "nodeLabel": {"key": "a"}}],
            "filters": [{"name": "f", "expression": "variables.v && data.d > 1.0"} | SHADOW],
        },
        [("note", "Shadow", "filters.0.mode")],
    ),
}


@pytest.mark.parametrize(("spec", "want"), CASES.values(), ids=CASES)
def test_what_is_in_shadow_is_said_where_it_is(spec: dict[str, Any], want: list[tuple[str, str, str]]) -> None:
    found = at(warnings_of(**spec))
    assert sorted(found) == sorted(want)


def test_the_note_says_how_to_look() -> None:
    [of_policy] = warnings_of(filters=[GOOD_FILTER], **SHADOW)
    [of_rule] = warnings_of(filters=[GOOD_FILTER | SHADOW])
    for one in (of_policy, of_rule):
        assert "evaluated for real calls" in one.message
        assert "decide" in one.message
        assert "`fairlead shadow some`" in one.hint


def test_what_publishes_nothing_names_the_cause() -> None:
    [_, published] = warnings_of(filters=[GOOD_FILTER | SHADOW], publish="NodeAffinity")
    assert (published.message, published.hint) == (
        "nothing is published, because all filters are in shadow",
        "enforce one, or remove it until then",
    )
    [note] = warnings_of(filters=[GOOD_FILTER], publish="NodeAffinity", **SHADOW)
    assert note.message.endswith("and nothing is published")


@pytest.mark.parametrize("in_shadow", [*product([True, False], repeat=3)])
def test_a_rule_is_found_where_it_stands(in_shadow: tuple[bool, ...]) -> None:
    """The second rule of each kind is wrong, whichever of them are in shadow."""
    modes = [SHADOW if one else {} for one in in_shadow]
    rules: dict[str, Any] = {
        "filters": [
            BAD | {"name": f"f{at}", **({} if at == 1 else GOOD_FILTER | {"name": f"f{at}"})} for at in range(3)
        ],
        "scores": [{**SCORE, "name": f"s{at}"} | ({"expression": "1.0"} if at == 1 else {}) for at in range(3)],
        "protect": [
            {**VICTIM, "name": f"p{at}"} | ({"expression": "pod.spec.priority > 1"} if at == 1 else {})
            for at in range(3)
        ],
    }
    made = {kind: [rule | mode for rule, mode in zip(some, modes, strict=True)] for kind, some in rules.items()}
    found = warnings_of(filters=made["filters"], scores=made["scores"], preemption={"protect": made["protect"]})
    assert [one[1:] for one in at(found) if one[1] != "Shadow"] == [
        ("NeverPasses", "filters.1.expression"),
        ("HasNoEffect", "scores.1.expression"),
        ("HasNoEffect", "preemption.protect.1.expression"),
    ]
