"""What an expression is known to read, and what it may cost."""

import pytest

from fairlead.cel.analysis.cost import BUDGET, ENGINE_BUDGET, engine_time, worst_case
from fairlead.cel.analysis.expression_reads import reads
from fairlead.cel.check import BOOL, VALUE, Environment, check
from fairlead.cel.engine.environment import RULE
from fairlead.cel.syntax.ast import Type

PLAIN = Environment(RULE, {}, ("load",))
WANTS = check("pod.metadata.labels[?'gpu'].orValue('any')", PLAIN, VALUE).checked
BUSY = check("pods.filter(p, p.spec.priority > 10)", PLAIN, VALUE).checked
VARIABLES = {"wants": WANTS, "busy": BUSY}
RULES = Environment(RULE, {"wants": Type("string"), "busy": Type("list", (Type("kubernetes.PlacedPod"),))}, ("load",))

READS: dict[str, tuple[str, set[str]]] = {
    "a label by its key": ("node.metadata.labels['gpu'] == 'a'", {"node.metadata.labels.gpu"}),
    "an optional label": ("node.metadata.labels[?'gpu'].hasValue()", {"node.metadata.labels.gpu"}),
    "a key that is asked for": ("'gpu' in node.metadata.labels", {"node.metadata.labels.gpu"}),
    "presence": ("has(node.spec.unschedulable)", {"node.spec.unschedulable"}),
    "a key that is computed": (
        "node.metadata.labels[pod.metadata.labels['x']] == 'a'",
        {"node.metadata.labels", "pod.metadata.labels.x"},
    ),
    "a loop over a map": (
        "node.metadata.labels.exists(k, k == pod.metadata.name)",
        {"node.metadata.labels", "pod.metadata.name"},
    ),
    "a list stands for its elements": (
        "node.status.conditions.exists(c, c.type == 'Ready' && c.lastTransitionTime < now)",
        {"node.status.conditions", "now"},
    ),
    "an element of a list": ("pod.spec.containers[0].image == ''", {"pod.spec.containers"}),
    "a list filtered and indexed": (
        "node.spec.taints.filter(t, t.key == 'a').map(t, t.value)[0] == ''",
        {"node.spec.taints"},
    ),
    "amounts": ("free['cpu'] > data.load && 'pods' in requested", {"free.cpu", "data.load", "requested.pods"}),
    "pods keep their fields": (
        "pods.exists(p, p.metadata.annotations['a'] == 'b' && p.spec.priority > 1)",
        {"pods", "pods.metadata.annotations.a", "pods.spec.priority"},
    ),
    "pods with their places": ("pods.exists(i, p, i > 1 && p.metadata.name == '')", {"pods", "pods.metadata.name"}),
    "a variable": ("variables.wants == ''", {"pod.metadata.labels.gpu"}),
    "a variable that loops": ("variables.busy.size() > 1", {"pods", "pods.spec.priority"}),
    "what bind names": (
        "cel.bind(m, node.metadata, m.labels['a'] == m.name)",
        {"node.metadata.labels.a", "node.metadata.name"},
    ),
    "a name that is shadowed": ("[1].exists(node, node > 0)", set()),
    "an object as a whole": ("[node].exists(n, n.metadata.name == '')", {"node"}),
    "nothing": ("1 + 1 == 2", set()),
    "the longer path is within the shorter": (
        "node.metadata.labels.size() > 1 && node.metadata.labels['a'] == ''",
        {"node.metadata.labels"},
    ),
}


@pytest.mark.parametrize(("text", "want"), READS.values(), ids=READS)
def test_an_expression_reads(text: str, want: set[str]) -> None:
    found = reads(check(text, RULES, BOOL).checked, VARIABLES)
    assert {".".join(path) for path in found} == want


COSTS: dict[str, tuple[str, int]] = {
    "no loop": ("node.metadata.name == ''", 0),
    "one pass over the pods of each node": ("pods.exists(p, p.spec.priority > 1)", 250 * 5_000),
    "two passes one after the other": (
        "pods.exists(p, p.spec.priority > 1) && pods.all(p, p.spec.priority > 1)",
        2 * 250 * 5_000,
    ),
    "what a pass keeps": ("pods.filter(p, true).all(p, true)", 2 * 250 * 5_000),
    "the containers of pods": ("pods.exists(p, p.spec.containers.exists(c, c.image == ''))", 250 * 6 * 5_000),
    "one nested loop": ("pods.exists(p, pods.exists(q, q == p))", 250 * 251 * 5_000),
    "a variable, each time that it is used": ("variables.busy.size() + variables.busy.size() > 0", 2 * 250 * 5_000),
    "for the pod alone": ("pod.spec.containers.all(c, c.image == '')", 5),
    "a list that is written out": ("['a', 'b', 'c'].exists(z, z == node.metadata.name)", 3 * 5_000),
    "a range": ("lists.range(1000).exists(i, string(i) == node.metadata.name)", 1000 * 5_000),
}


@pytest.mark.parametrize(("text", "want"), COSTS.values(), ids=COSTS)
def test_the_worst_case_is(text: str, want: int) -> None:
    assert worst_case(check(text, RULES, BOOL).checked, VARIABLES) == want


def test_the_budget_lets_one_pass_through_and_no_nested_loop() -> None:
    assert COSTS["the containers of pods"][1] <= BUDGET < COSTS["one nested loop"][1]


ON_THE_ENGINE: dict[str, tuple[str, bool]] = {
    "a computed pattern": ("node.metadata.name.matches(node.metadata.labels['pattern'])", True),
    "text that is formatted for the pod": ("'%s'.format([pod.spec.containers[0].image]) == node.metadata.name", True),
    "a time zone": ("now.getHours('Europe/Berlin') > 3", True),
    "one list of the node": ("'%s'.format([node.spec.taints[0].key]) == ''", True),
    "the pods on the node": ("pods.exists(p, p.metadata.name.matches(node.metadata.name))", False),
    "the whole node": ("'%s'.format([[node].map(n, n.metadata.name)[0]]) == ''", False),
    "a loop over many": ("lists.range(20).exists(i, node.metadata.name.matches(string(i)))", False),
}


@pytest.mark.parametrize(("text", "want"), ON_THE_ENGINE.values(), ids=ON_THE_ENGINE)
def test_the_engine_is_quick_enough_for(text: str, want: bool) -> None:
    checked = check(text, RULES, BOOL).checked
    steps = worst_case(checked, {}) // 5_000
    assert (engine_time(reads(checked, {}), steps) <= ENGINE_BUDGET) is want
