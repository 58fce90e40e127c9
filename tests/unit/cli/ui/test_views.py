"""Views of the page, as tables of what they say about a small cluster."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from fairlead.cli.inputs.replica_decisions import ReplicaDecisions
from fairlead.cli.ui.decision_table import OF_FILES, decision_table, decisions_of
from fairlead.cli.ui.matrix import COLUMNS_MAX, GLYPHS, Matrix
from fairlead.cli.ui.page_templates import page_templates
from fairlead.cli.ui.page_view import page_view
from fairlead.cli.ui.shown_pods import ShownPods, one_of_each_first
from support.cli.page import Object, node, page_of, pod, policy, read, write
from support.simulation.created import created, publishing

CLASS: Final = ("node.metadata.labels[?'gpu'].orValue('') == pod.metadata.labels[?'gpu'].orValue('')", "wrong class")
UNFIT: Final = GLYPHS["Unfit"]
WHOLE: Final = ("free['nvidia.com/gpu'] < 8.0", "kept whole")
NODES: Final = [
    node("a", labels={"gpu": "a100"}),
    node("b", labels={"gpu": "a100"}),
    node("c", labels={"gpu": "h100"}),
    node("d", cpu="64", labels={"gpu": "h100"}),
]


def _rows(matrix: Matrix) -> dict[str, str]:
    return {f"{row.pod} x{row.count}": "".join(cell.glyph for cell in row.cells) for row in matrix.rows}


def _columns(matrix: Matrix) -> list[tuple[str, int]]:
    return [(column.name, column.count) for column in matrix.columns]


def test_nodes_that_no_pod_can_tell_apart_share_a_column_and_pods_of_a_workload_a_row(tmp_path: Path) -> None:
    pods = [pod("t-0", job="t", gpu="a100"), pod("t-1", job="t", gpu="a100"), pod("x", gpu="b300")]
    view, _ = page_of(tmp_path, [*NODES, *pods], [policy("class", CLASS)])
    assert _columns(view.matrix) == [("a", 2), ("c", 2)]
    assert _rows(view.matrix) == {"ml/x x1": "✕✕", "ml/t-0 x2": "●✕"}
    assert view.matrix.rows[0].cells[0].text == "rejected by a rule, class/f0: wrong class"


def test_points_alone_split_no_column(tmp_path: Path) -> None:
    """Scores differ on every node, but only the best is told apart."""
    nodes = [node(f"n{at}", cpu=str(8 + at)) for at in range(6)]
    view, _ = page_of(tmp_path, [*nodes, pod("p")], [policy("most", scores=["allocatable['cpu']"])])
    assert _columns(view.matrix) == [("n0", 5), ("n5", 1)]
    assert _rows(view.matrix) == {"ml/p x1": "○●"}


def test_each_sign_stands_for_what_it_says(tmp_path: Path) -> None:
    """Preferred, possible now but not with the rule in shadow, rejected, without room, and there."""
    objects = [*NODES, pod("big", cpu="32", gpu="h100"), pod("there", on="a", gpu="a100"), pod("new", gpu="a100")]
    shadow = policy("whole", WHOLE, mode="Shadow")
    view, _ = page_of(tmp_path, objects, [policy("class", CLASS), shadow])
    assert _columns(view.matrix) == [("a", 1), ("b", 1), ("d", 1), ("c", 1)]
    # Without itself on it, the node of `there` is whole: in shadow it would lose it.
    assert _rows(view.matrix) == {"ml/big x1": f"✕✕◐{UNFIT}", "ml/new x1": "●◐✕✕", "ml/there x1": "◆◐✕✕"}
    there = view.matrix.rows[2].cells[0]
    assert there.text == "is there, preferred, in shadow: whole/f0: kept whole"
    assert view.matrix.glyphs == ["●", "✕", UNFIT, "◐", "◆"]


def test_what_does_not_fit_into_the_matrix_is_counted(tmp_path: Path) -> None:
    nodes = [node(f"n{at:02}", labels={"gpu": f"g{at}"}) for at in range(COLUMNS_MAX + 3)]
    pods = [pod(f"p{at:02}", gpu=f"g{at}") for at in range(COLUMNS_MAX + 3)]
    view, _ = page_of(tmp_path, [*nodes, *pods], [policy("class", CLASS)])
    assert (len(view.matrix.columns), view.matrix.more_columns) == (COLUMNS_MAX, 3)


MIXED: Final = (
    "5 pods wait: 2 have a node that they could use, of 1 it is not known whether it has a node to go to, "
    "2 have scheduling gates"
)
NO_LOAD: Final = ("Behind", "load/load", "has no usable value for 4 nodes that are shown: a, b, c and others")
LOAD: Final = {"matchLabels": {"load": "yes"}}
LOADED: Final = policy("load", ("data.load < 0.5", "hot"), data=[{"name": "load", "prometheus": {"query": "load"}}])


def gated(name: str) -> Object:
    made = pod(name, gpu="a100")
    return {**made, "spec": {**made["spec"], "schedulingGates": [{"name": "example.org/quota"}]}}


GLANCES: dict[str, tuple[Sequence[Object], Sequence[Object], str, list[tuple[str, str, str]]]] = {
    "nothing waits": (
        [pod("p", on="a", gpu="a100")],
        [policy("class", CLASS)],
        "No pod waits",
        [("Plain", "", "4 nodes, 1 pod of fairlead")],
    ),
    "one waits and could go": (
        [pod("p", gpu="a100")],
        [policy("class", CLASS)],
        "1 pod waits, and it has a node that it could use",
        [("Plain", "", "4 nodes, 1 pod of fairlead")],
    ),
    "a policy alone is the cause": (
        [pod("p", gpu="b300"), pod("q", gpu="b300"), pod("r", gpu="a100")],
        [policy("class", CLASS)],
        "2 pods have no node to go to, 1 more waits",
        [
            ("Cause", "class", "alone keeps 2 pods from every node with room for them"),
            ("Plain", "", "4 nodes, 3 pods of fairlead"),
        ],
    ),
    "a pod that fits nowhere is no policy's": (
        [pod("p", cpu="90", gpu="a100")],
        [policy("class", CLASS)],
        "1 pod has no node to go to",
        [("Plain", "", "4 nodes, 1 pod of fairlead")],
    ),
    "two policies that reject the same nodes are neither alone": (
        [pod("p", gpu="b300")],
        [policy("class", CLASS), policy("never", ("false", "never"))],
        "1 pod has no node to go to",
        [("Plain", "", "4 nodes, 1 pod of fairlead")],
    ),
    "shadow": (
        [pod("p", gpu="a100"), pod("q", gpu="a100")],
        [policy("class", CLASS), policy("whole", WHOLE, mode="Shadow")],
        "2 pods wait, and each has a node that it could use",
        [
            ("Shadow", "whole", "would, if enforced, take nodes from 2 of 2 pods, and leave 2 of them without any"),
            ("Plain", "", "4 nodes, 2 pods of fairlead"),
        ],
    ),
    "it is not known whether one could go": (
        [pod("p", gpu="a100")],
        [LOADED],
        "1 pod waits, and it is not known whether it has a node to go to",
        [NO_LOAD, ("Plain", "", "4 nodes, 1 pod of fairlead")],
    ),
    "of none it is known": (
        [pod("p"), pod("q")],
        [LOADED],
        "2 pods wait, and it is not known whether they have a node to go to",
        [NO_LOAD, ("Plain", "", "4 nodes, 2 pods of fairlead")],
    ),
    "one has gates": (
        [gated("p")],
        [policy("class", CLASS)],
        "1 pod waits, and it has scheduling gates",
        [("Plain", "", "4 nodes, 1 pod of fairlead")],
    ),
    "each waits for another reason": (
        [pod("p", gpu="a100"), pod("q", gpu="a100"), pod("r", load="yes", gpu="a100"), gated("s"), gated("t")],
        [policy("class", CLASS), {**LOADED, "spec": LOADED["spec"] | {"match": {"podSelector": LOAD}}}],
        MIXED,
        [NO_LOAD, ("Plain", "", "4 nodes, 5 pods of fairlead")],
    ),
    "a policy that is off says nothing": (
        [pod("p", gpu="a100")],
        [policy("class", CLASS), policy("whole", WHOLE, mode="Disabled")],
        "1 pod waits, and it has a node that it could use",
        [("Plain", "", "4 nodes, 1 pod of fairlead")],
    ),
}


@pytest.mark.parametrize(("pods", "policies", "headline", "facts"), GLANCES.values(), ids=GLANCES)
def test_the_first_glance(
    pods: Sequence[Object],
    policies: Sequence[Object],
    headline: str,
    facts: list[tuple[str, str, str]],
    tmp_path: Path,
) -> None:
    view, _ = page_of(tmp_path, [*NODES, *pods], policies)
    assert view.glance.headline == headline
    assert [(fact.kind, fact.subject, fact.text) for fact in view.glance.facts] == facts


@pytest.mark.parametrize(
    ("selector", "no_room", "alone"), [({}, False, 1), ({"pool": "b"}, True, 0)], ids=["published alone", "its own too"]
)
def test_published_node_affinity_counts_as_its_policys(
    selector: dict[str, str], no_room: bool, alone: int, tmp_path: Path
) -> None:
    waits = created("p", nodeSelector=selector)
    view, _ = page_of(tmp_path, [*NODES, waits], [publishing("pool")])
    assert ([one.no_room for one in view.workloads], [one.alone for one in view.policies]) == ([no_room], [alone])


def test_waiting_workloads_come_worst_first_and_say_what_must_hold(tmp_path: Path) -> None:
    pods = [pod("ok", gpu="a100"), *(pod(f"t-{at}", job="t", gpu="b300") for at in range(3)), pod("big", cpu="90")]
    view, _ = page_of(tmp_path, [*NODES, *pods], [policy("class", CLASS)])
    found = [(one.pod, one.count, one.owner, one.is_stuck, one.no_room, one.why) for one in view.workloads]
    assert found == [
        ("ml/t-0", 3, "Job t", True, False, "none of 4 nodes: 4 wrong class"),
        ("ml/big", 1, "", True, True, "none of 4 nodes: 4 wrong class"),
        ("ml/ok", 1, "", False, False, "2 of 4 nodes are possible now"),
    ]
    closest = view.workloads[0].closest
    assert closest is not None
    assert (closest.node, closest.changes[0][1]) == ("a", "'a100' against 'b300'")
    assert view.workloads[0].command.startswith("fairlead explain pod/t-0 -n ml --policies ")


def test_a_policy_row_says_the_mode_of_each_rule_and_what_it_reads(tmp_path: Path) -> None:
    spec: dict[str, Any] = {
        "filters": [
            {"name": "class", "expression": CLASS[0], "reason": "wrong class"},
            {"name": "whole", "expression": WHOLE[0], "reason": "kept whole", "mode": "Shadow"},
        ]
    }
    view, _ = page_of(tmp_path, [*NODES, pod("p", gpu="a100")], [policy("both", **spec)])
    [row] = view.policies
    assert (row.mode, row.matches, row.fault) == ("Enforce", 1, "")
    assert [(rule.name, rule.in_shadow) for rule in row.rules] == [("class", False), ("whole", True)]
    assert row.effects is not None
    assert (row.effects.compared, row.effects.restricted, row.effects.unschedulable) == (1, 1, 1)
    [effect] = row.effects.rows()
    assert (effect.pod, effect.lost, effect.before, effect.after, effect.rules) == (
        "ml/p",
        ["a", "b"],
        2,
        0,
        ["both/whole"],
    )


def test_each_policy_in_shadow_is_judged_by_itself(tmp_path: Path) -> None:
    """Together they would leave no node; alone each leaves some."""
    first = policy("first", ("node.metadata.name != 'a'", "not a"), mode="Shadow")
    second = policy("second", ("node.metadata.name == 'a'", "only a"), mode="Shadow")
    view, _ = page_of(tmp_path, [*NODES, pod("p")], [first, second])
    effects = {row.name: row.effects for row in view.policies}
    numbers = {name: (one.restricted, one.unschedulable) for name, one in effects.items() if one is not None}
    assert numbers == {"first": (1, 0), "second": (1, 0)}


def _scored(name: str, best: str, *, weight: int = 1, shadow: bool = True) -> Object:
    scores = [f"node.metadata.name == '{best}' ? 100.0 : 0.0"]
    made = policy(name, scores=scores, mode="Shadow" if shadow else "Enforce")
    made["spec"]["scores"][0]["weight"] = weight
    return made


_BEST_A: Final = _scored("now", "a", shadow=False)
ALONE: dict[str, tuple[list[Object], dict[str, str]]] = {
    "a score that agrees, beside one that does not": (
        [_BEST_A, _scored("other", "b", weight=10), _scored("same", "a")],
        {
            "other": "would, if enforced, make 1 pod prefer other nodes",
            "same": "would, if enforced, change nothing for 1 pod",
        },
    ),
    "a score, beside a filter that leaves no other": (
        [
            _BEST_A,
            _scored("other", "b", weight=10),
            policy("only", ("node.metadata.name == 'a'", "only a"), mode="Shadow"),
        ],
        {
            "other": "would, if enforced, make 1 pod prefer other nodes",
            "only": "would, if enforced, take nodes from 1 of 1 pod, and leave each of them at least one",
        },
    ),
    "a filter that takes the best node": (
        [_BEST_A, policy("not-a", ("node.metadata.name != 'a'", "not a"), mode="Shadow")],
        {
            "not-a": "would, if enforced, take nodes from 1 of 1 pod, and leave each of them at least one; "
            "and make 1 pod prefer other nodes"
        },
    ),
    "what is not evaluated": (
        [
            policy(
                "load",
                ("data.load < 0.5", "busy"),
                mode="Shadow",
                data=[{"name": "load", "prometheus": {"query": "load"}}],
            ),
            _scored("other", "b"),
        ],
        {
            "load": "has rules in shadow that are not evaluated: what they would change for 1 pod is not known",
            "other": "would, if enforced, change nothing for 1 pod",
        },
    ),
    "too many": (
        [policy(f"p{at}", ("node.metadata.name != 'a'", "not a"), mode="Shadow") for at in range(9)],
        {
            f"p{at}": "would, if enforced, take nodes from 1 of 1 pod, and leave each of them at least one"
            for at in range(8)
        }
        | {"p8": "has rules in shadow that are not judged here: only 8 policies are, each by itself"},
    ),
}


@pytest.mark.parametrize(("policies", "said"), ALONE.values(), ids=ALONE)
def test_the_first_glance_says_what_each_policy_alone_would_do(
    policies: list[Object], said: dict[str, str], tmp_path: Path
) -> None:
    view, _ = page_of(tmp_path, [*NODES, pod("p")], policies)
    assert {fact.subject: fact.text for fact in view.glance.facts if fact.kind == "Shadow"} == said
    html = page_templates().get_template("page.html").render(view=view)
    assert ("not all known" in html) == ("load" in said)
    assert ("not judged here" in html) == ("p8" in said)


def test_a_score_in_shadow_makes_pods_prefer_other_nodes(tmp_path: Path) -> None:
    shadow = policy("most", scores=["allocatable['cpu']"], mode="Shadow")
    first = policy("first", scores=["node.metadata.name == 'a' ? 1.0 : 0.0"])
    view, _ = page_of(tmp_path, [*NODES, pod("p")], [first, shadow])
    effects = next(row.effects for row in view.policies if row.name == "most")
    assert effects is not None
    assert (effects.restricted, effects.reordered) == (0, 1)


def test_nodes_show_what_is_free_what_rules_read_and_measured_values_with_their_age(tmp_path: Path) -> None:
    at = {"load": "0.5", "load-at": "2027-01-15T21:58:30Z"}
    nodes = [node("a", labels={"gpu": "a100"}, annotations=at), node("b", unschedulable=True)]
    data = [{"name": "load", "maxAge": "1h", "nodeAnnotation": {"key": "load", "timeKey": "load-at"}}]
    rules = policy("load", ("data.load < 0.9", "busy"), CLASS, data=data)
    options = write(tmp_path, [*nodes, pod("p", 2, on="a", gpu="a100")], [rules])
    view, _ = page_view(read([*options, "--now", "2027-01-15T22:00:00Z"]))
    table = view.nodes
    assert (table.labels, table.resources, table.entries) == (["gpu"], ["cpu", "memory"], ["load/load"])
    first, second = table.rows
    assert [(one.free, one.total, one.percent_used) for one in first.capacities] == [
        ("7", "8", 12),
        ("32Gi", "32Gi", 0),
    ]
    assert [(cell.text, cell.age, cell.is_missing) for row in table.rows for cell in row.measured] == [
        ("0.5", "90s", False),
        ("data load is missing", "", True),
    ]
    assert (first.labels, second.labels, first.is_cordoned, second.is_cordoned) == (["a100"], [""], False, True)
    behind = [fact for fact in view.glance.facts if fact.kind == "Behind"]
    assert [(fact.subject, fact.text) for fact in behind] == [
        ("load/load", "has no usable value for 1 node that is shown: b")
    ]


def test_of_many_placed_pods_one_of_each_workload_comes_first(tmp_path: Path) -> None:
    pods = [*(pod(f"t-{at}", job="t", on="a") for at in range(4)), pod("other", on="b")]
    shown: ShownPods
    _, shown = page_of(tmp_path, [*NODES, *pods], [policy("class", CLASS)])
    every = [each.pod for each in shown.pods]
    assert [one.key[1] for one in one_of_each_first(every, 3)] == ["t-0", "other", "t-1"]
    assert one_of_each_first(every, 5) is every


@pytest.mark.parametrize("field", ["kind", "name"])
def test_a_pod_whose_owner_is_not_named_is_a_workload_of_its_own(tmp_path: Path, field: str) -> None:
    one = pod("one", job="t", gpu="a100")
    one["metadata"]["ownerReferences"][0][field] = None
    view, _ = page_of(tmp_path, [*NODES, one], [policy("class", CLASS)])
    assert [found.pod for found in view.workloads] == ["ml/one"]


def test_live_sums_are_part_of_the_first_glance(tmp_path: Path) -> None:
    found = read(write(tmp_path, [*NODES, pod("p")], [policy("whole", WHOLE, mode="Shadow")]))
    sums = {"status": {"shadow": {"calls": 10, "skipped": 1, "pods": 7, "restricted": 3}}}
    view, _ = page_view(replace(found, stored={"whole": sums}))
    facts = [fact.text for fact in view.glance.facts if fact.kind == "Shadow"]
    assert "on live calls: 9 of 10 calls compared; pods: 7 compared, 3 would lose nodes" in facts


def test_counts_of_live_calls_have_the_meaning_of_the_status(tmp_path: Path) -> None:
    """A score takes no node from a pod, and being slow is counted in times."""
    found = read(write(tmp_path, [*NODES, pod("p")], [policy("whole", WHOLE, mode="Shadow")]))
    score = {"kind": "Score", "name": "s", "pods": 4, "unschedulable": 0}
    counts = {"calls": 10, "pods": 7, "evictions": 2, "tooSlow": 3, "rules": [score]}
    view, _ = page_view(replace(found, stored={"whole": {"status": {"shadow": counts}}}))
    page = page_templates().get_template("page.html").render(view=view)
    for said in (
        "3 times the rules took too long for a class of pods.",
        "<b>2</b> would be offered fewer nodes for preemption",
        '<th scope="col">pods for which it would change something</th>',
        '<th scope="col">pods that it would leave without a node</th>',
    ):
        assert said in page


def test_decisions_say_why_there_are_none(tmp_path: Path) -> None:
    view, _ = page_of(tmp_path, [*NODES, pod("p")], [policy("class", CLASS)])
    assert view.decisions.unread == OF_FILES


def test_decisions_are_shown_newest_first_and_what_cannot_be_read_is_said() -> None:
    rule = {"policy": "p", "rule": "r", "reason": "wrong", "nodes": 3, "examples": ["a"]}
    effect = {"policy": "s", "effects": ["Restricted"], "rules": ["f"]}
    old = {"time": "2027-01-01T00:00:00Z", "pod": {"namespace": "ml", "name": "old"}, "candidates": 3, "rules": [rule]}
    new = {"time": "2027-01-02T00:00:00Z", "pod": {"namespace": "ml", "name": "new"}, "node": "a", "effects": [effect]}
    replicas = [
        ReplicaDecisions(
            "one", "2027-01-01T00:00:00Z", [old | {"waits": True, "attempts": 2}, {"time": 7}], unreadable=2
        ),
        ReplicaDecisions("two", "2027-01-01T00:00:00Z", [new | {"candidates": 1, "passed": 1, "error": None}]),
        ReplicaDecisions("three", unread="it is silent"),
    ]
    table = decision_table(decisions_of(replicas))
    assert [(row.pod, row.outcome, row.reasons, row.effects, row.attempts) for row in table.rows] == [
        ("ml/new", "placed on a; 1 of 1 node passed", [], ["in shadow: s Restricted"], 0),
        ("ml/old", "waits; 0 of 3 nodes passed", ["p/r: wrong, on 3 nodes"], [], 2),
    ]
    assert table.notes == [
        "three could not be read: it is silent",
        "one: 2 records cannot be read by this version",
        "one remembers since 2027-01-01T00:00:00Z",
        "two remembers since 2027-01-01T00:00:00Z",
        "1 record cannot be read by this version",
    ]


def test_without_the_right_to_read_decisions_the_view_says_so() -> None:
    replicas = [ReplicaDecisions(name, unread="bind the Role") for name in ("one", "two")]
    table = decision_table(decisions_of(replicas))
    assert (table.rows, table.unread) == ([], "bind the Role")
