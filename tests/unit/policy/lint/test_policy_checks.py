"""Warnings about policies that compile, and policies without warnings."""

from pathlib import Path

import pytest

from fairlead.policy.lint.codes import LintCode
from fairlead.policy.lint.rule_checks import MEASURED_BURST
from support.policy.compile_warnings import GOOD_FILTER, LABELS, reasons_of, warnings_of, warnings_of_filter

WORDS: dict[str, tuple[str, tuple[int, int], str, str]] = {
    "memory": (
        "node.status.allocatable[?'memory'].orValue('0') > '16Gi'",
        (1, 49),
        "quantities are strings, and `>` compares them character by character",
        (
            "write `quantity(node.status.allocatable[?'memory'].orValue('0')).compareTo(quantity('16Gi')) > 0`, or "
            "`allocatable['memory'] > 17179869184.0`"
        ),
    ),
    "a capacity": (
        "'4' <= node.status.capacity[?'cpu'].orValue('1')",
        (1, 5),
        "quantities are strings, and `<=` compares them character by character",
        "write `quantity('4').compareTo(quantity(node.status.capacity[?'cpu'].orValue('1'))) <= 0`",
    ),
    "a number in an annotation": (
        "node.metadata.annotations['gen'] > '10'",
        (1, 34),
        "annotations are strings, and `>` compares them character by character",
        "write `int(node.metadata.annotations['gen']) > 10`",
    ),
    "a fraction": (
        "'1.5' < node.metadata.annotations['gen']",
        (1, 7),
        "annotations are strings, and `<` compares them character by character",
        "write `1.5 < double(node.metadata.annotations['gen'])`; for versions, compare the parts as numbers",
    ),
}


@pytest.mark.parametrize(("expression", "place", "message", "hint"), WORDS.values(), ids=WORDS)
def test_a_part_is_named_with_its_place_and_its_cure(
    expression: str, place: tuple[int, int], message: str, hint: str
) -> None:
    assert (place, message, hint) in [(one.place, one.message, one.hint) for one in warnings_of_filter(expression)]


def test_of_a_great_deal_only_some_is_said() -> None:
    labels = " && ".join(f"node.metadata.annotations.k{at} != 'x'" for at in range(90))
    assert reasons_of(warnings_of_filter(labels)) == ["AbsentRaises"] * 8


def test_what_a_variable_says_is_said_where_it_stands() -> None:
    found = warnings_of(
        variables=[
            {"name": "old", "expression": "node.metadata.annotations['gen'] > '10'"},
            {"name": "memory", "expression": "node.status.allocatable[?'memory'].orValue('0')"},
        ],
        filters=[{"name": "a", "expression": "variables.old || variables.memory > '16Gi'"}],
    )
    assert [(str(one.reason), one.path) for one in found] == [
        ("ComparedAsText", ("spec", "variables", 0, "expression")),
        ("ComparedAsText", ("spec", "filters", 0, "expression")),
    ]


def test_a_scheduler_that_is_not_ours_is_warned_of() -> None:
    [found] = warnings_of(schedulerName="default-scheduler", filters=[GOOD_FILTER])
    assert (found.reason, found.severity, found.path) == (
        LintCode.DEFAULT_SCHEDULER,
        "warning",
        ("spec", "schedulerName"),
    )


def test_a_filter_that_cannot_decide_may_pass_a_node_all_the_same() -> None:
    [warning] = warnings_of_filter(f"{LABELS}['a'] == 'x' && {LABELS}['a'] == 'y'", onError="Pass")
    assert warning.hint == "only nodes on which it raises an error pass"


def test_what_filters_on_labels_would_be_as_affinity_is_printed() -> None:
    [warning] = warnings_of_filter(f"{LABELS}['a'] == 'x'")
    assert "- key: a\n          operator: In\n          values:\n          - x\n" in warning.hint
    [warning] = warnings_of_filter(f"{LABELS}['a'] == pod.metadata.labels['a']")
    assert "with `publish: NodeAffinity` pods get what it implies" in warning.hint
    [warning] = warnings_of_filter(f"{LABELS}['a'].startsWith('x')")
    assert "no nodeAffinity says the same" in warning.hint
    [warning] = warnings_of_filter(f"{LABELS}['a'] == 'x' && now.getHours() > 3")
    assert "`fairlead affinity` shows it, without `now.getHours() > 3`" in warning.hint


def test_of_what_autoscalers_do_not_see_it_is_said_what_is_read() -> None:
    for expression, want in {
        f"{LABELS}['a'] == 'x'": "this reads only labels of nodes, ",
        "node.metadata.name != 'x'": "this reads only the name of nodes, ",
        f"{LABELS}['a'] == 'x' || node.metadata.name in ['x', 'y']": "this reads only labels and the name of nodes, ",
    }.items():
        [note] = warnings_of_filter(expression)
        assert note.message.startswith(want)


def test_resolvable_has_no_effect_yet() -> None:
    [warning] = warnings_of_filter("node.spec.unschedulable", resolvable=True)
    assert (warning.reason, warning.path) == (LintCode.HAS_NO_EFFECT, ("spec", "filters", 0, "resolvable"))
    assert warnings_of_filter("node.spec.unschedulable", resolvable=False) == []


def test_variables_and_data_that_nothing_uses_are_named() -> None:
    found = warnings_of(
        variables=[
            {"name": "used", "expression": "node.spec.unschedulable"},
            {"name": "through", "expression": "variables.used"},
            {"name": "idle", "expression": "variables.used"},
        ],
        data=[
            {"name": "read", "nodeLabel": {"key": "a"}},
            {"name": "asked", "nodeLabel": {"key": "b"}},
            {"name": "never", "nodeLabel": {"key": "c"}},
        ],
        filters=[{"name": "a", "expression": "variables.through && data.read > 1.0"}],
        scores=[{"name": "b", "expression": "data[?'asked'].orValue(0.0)"}],
    )
    assert [(str(one.reason), one.path) for one in found] == [
        ("UnusedData", ("spec", "data", 2, "name")),
        ("UnusedVariable", ("spec", "variables", 2, "name")),
    ]


def test_data_of_which_all_is_read_is_used() -> None:
    data = [{"name": "a", "nodeLabel": {"key": "a"}}]
    assert warnings_of(data=data, filters=[{"name": "a", "expression": "data.size() == 1"}]) == []


def test_a_variable_that_decides_is_followed() -> None:
    found = warnings_of(
        variables=[{"name": "low", "expression": "allocatable['cpu'] < 2.0"}, {"name": "two", "expression": "2.0"}],
        filters=[{"name": "a", "expression": "variables.low && allocatable['cpu'] > variables.two"}],
    )
    assert reasons_of(found) == ["NeverPasses"]


def test_variables_that_double_at_each_step_are_followed_as_far_as_they_may_be_written() -> None:
    variables = [{"name": "v0", "expression": "node.spec.unschedulable"}]
    variables += [{"name": f"v{at}", "expression": f"variables.v{at - 1} && variables.v{at - 1}"} for at in range(1, 8)]
    found = warnings_of(variables=variables, filters=[{"name": "a", "expression": "variables.v7 && !variables.v0"}])
    assert reasons_of(found) == ["NeverPasses"]


def test_a_policy_that_is_off_or_empty_says_so() -> None:
    [warning] = warnings_of(mode="Disabled", filters=[GOOD_FILTER])
    assert (warning.reason, warning.severity) == (LintCode.DISABLED, "note")
    [warning] = warnings_of()
    assert (warning.reason, warning.severity) == (LintCode.HAS_NO_EFFECT, "warning")


def test_a_strategy_is_looked_at_only_for_what_is_written_beside_it() -> None:
    strategy = {"name": "a", "nodeReadiness": {"conditions": [{"type": "X"}]}}
    assert warnings_of(filters=[strategy]) == []
    assert reasons_of(warnings_of(filters=[{**strategy, "resolvable": True}])) == ["HasNoEffect"]


def test_every_reason_is_explained() -> None:
    page = (Path(__file__).parents[4] / "docs" / "reference" / "lint.md").read_text()
    assert [reason.value for reason in LintCode if f"`{reason.value}`" not in page] == []


ROOT = Path(__file__).parents[4]
COUNTING = [
    *("README.md", "docs/reference/rule-language.md", "docs/guide/write-a-strategy.md"),
    *(f"docs/guide/examples/{name}.md" for name in ("canary-pool", "cost-classes", "licence-nodes", "night-batch")),
    *("docs/guide/examples/noisy-neighbours.md", "examples/noisy-neighbours.yaml", "examples/night-batch.yaml"),
    *("examples/cost-classes.yaml", "examples/canary-pool.yaml", "examples/licence-nodes.yaml"),
]


@pytest.mark.parametrize("page", COUNTING)
def test_the_same_is_said_everywhere_of_a_burst_and_a_limit(page: str) -> None:
    text = " ".join((ROOT / page).read_text().replace("#", " ").split())
    assert MEASURED_BURST in text
    assert "eleven or twelve" not in text
