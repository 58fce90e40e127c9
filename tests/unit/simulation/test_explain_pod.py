"""Nodes in groups, what rules compared, and the node that is closest."""

from fairlead.policy.compile.model import CompiledPolicy
from fairlead.simulation.explain_pod import Explanation, explain_node, explanation
from support.policy import policy
from support.simulation.snapshot import Object, node, pod, simulation, written


def _explained(asked: Object, *there: Object, policies: list[CompiledPolicy]) -> Explanation:
    made = simulation(*there, policies=policies)
    return explanation(made, written(asked), made.judge(written(asked)))


CLASS = policy(
    "gpu", filters={"class": "node.metadata.labels[?'gpu'].orValue('') == 't4'", "big": "allocatable['cpu'] > 4.0"}
)
T4 = {"gpu": "t4"}


def test_groups_come_best_first_and_then_by_how_many_they_are() -> None:
    there = [
        node("n1"),
        node("n2"),
        node("n3", labels=T4, room={"cpu": "2"}),
        node("n4", labels=T4),
        node("n5", labels=T4, room={"cpu": "16"}),
        node("n6", labels=T4, unschedulable=True),
        node("n7", labels=T4, room={"cpu": "12"}),
    ]
    scored = policy("s", scores={"s": "allocatable['cpu']"})
    found = _explained(pod(), *there, policies=[CLASS, scored])
    assert [(group.verdict, [one.name for one in group.nodes]) for group in found.groups] == [
        ("Preferred", ["n5"]),
        ("Possible", ["n7", "n4"]),
        ("Rejected", ["n1", "n2"]),
        ("Rejected", ["n3"]),
        ("Unfit", ["n6"]),
    ]


def test_each_rule_that_refuses_is_told_with_one_of_its_nodes() -> None:
    found = _explained(pod(), node("n1"), node("n2", room={"cpu": "2"}), policies=[CLASS])
    assert [(one.explained.rule, one.count, one.node) for one in found.rejecting] == [
        ("big", 1, "n2"),
        ("class", 2, "n1"),
    ]
    assert [change.left for change in found.rejecting[0].explained.changes] == [2.0]


def test_a_rule_that_refuses_for_several_reasons_is_told_once_for_each() -> None:
    entry = {"name": "load", "nodeLabel": {"key": "load"}}
    hot = policy("hot", data=[entry], filters={"cool": {"expression": "data.load < 0.8", "reason": "hot"}})
    found = _explained(pod(), node("n1", labels={"load": "0.9"}), node("n2"), node("n3"), policies=[hot])
    assert [(one.explained.reason, one.count, one.node) for one in found.rejecting] == [
        ("hot", 1, "n1"),
        ("data load is missing", 2, "n2"),
    ]


def test_the_closest_node_is_the_one_with_the_least_in_the_way() -> None:
    there = [
        node("n1", room={"cpu": "2"}),
        node("n2", labels=T4, room={"cpu": "6"}),
        node("n3", labels=T4, room={"cpu": "7"}),
        node("n4", unschedulable=True),
    ]
    found = _explained(pod(asks={"cpu": "8"}), *there, policies=[CLASS])
    assert found.closest is not None
    assert (found.closest.node.name, list(found.closest.rules)) == ("n3", [])
    found = _explained(pod(), *there[:1], *there[3:], policies=[CLASS])
    assert found.closest is not None
    assert (found.closest.node.name, [one.rule for one in found.closest.rules]) == ("n1", ["big", "class"])


def test_of_nodes_that_one_rule_refuses_the_closest_needs_the_fewest_comparisons_to_come_out_otherwise() -> None:
    both = policy("p", filters={"both": "'a' in node.metadata.labels && 'b' in node.metadata.labels"})
    found = _explained(pod(), node("n1"), node("n2", labels={"a": ""}), policies=[both])
    assert found.closest is not None
    assert found.closest.node.name == "n2"


def test_where_all_will_do_none_is_closest() -> None:
    found = _explained(pod(), node("n1", labels=T4), policies=[CLASS])
    assert (found.closest, found.rejecting) == (None, [])


def test_a_policy_of_which_nobody_can_tell_is_told_once() -> None:
    doubtful = policy(
        "d", match={"conditions": {"c": "pod.metadata.labels['no'] == ''"}}, filters={"a": "true", "b": "true"}
    )
    found = _explained(pod(), node("n1"), policies=[doubtful])
    assert [(one.explained.rule, one.explained.reason) for one in found.rejecting] == [
        ("a", "cannot tell whether policy d applies to this pod")
    ]


def test_policies_that_have_no_say_are_told_with_why() -> None:
    found = _explained(pod(), node("n1"), policies=[CLASS, policy("x", match={"namespaces": ["other"]})])
    assert [(one.policy, one.why) for one in found.others] == [("x", "it applies to pods in the namespace other")]


def test_one_node_has_its_points_where_the_scheduler_is_told_any() -> None:
    there = simulation(node("n1", labels=T4), node("n2"), policies=[CLASS, policy("s", scores={"s": "50.0"})])
    judged = there.judge(written(pod()))
    good, bad = (explain_node(there, written(pod()), judged, node) for node in judged.nodes)
    assert (good.verdict, good.scored and good.scored.total) == ("Preferred", 50.0)
    assert (bad.verdict, bad.scored) == ("Rejected", None)
