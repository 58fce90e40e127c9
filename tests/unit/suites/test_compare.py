"""Everything that a case can expect, when it is so and when it is not."""

from typing import Any

import pytest

from support.policy import policy
from support.suites.running import difference_lines, node, result, results, two_disks

NODES = [node("fast", ssd="nvme"), node("full", ssd="sata"), node("slow")]
PODS = [
    {"metadata": {"name": "q"}, "spec": {"nodeName": "full"}, "copies": 3},
    {"metadata": {"name": "r", "labels": {"keep": "yes"}}, "spec": {"nodeName": "fast"}},
    {"metadata": {"name": "s"}, "spec": {"nodeName": "slow"}},
]
RIGHT: dict[str, dict[str, Any]] = {
    "policies": {"policies": ["disks"]},
    "passed": {"passed": ["full", "fast"]},
    "rejected, by its reason": {"rejected": {"slow": "slow disk"}},
    "rejected, by its rule": {"rejected": {"slow": {"rule": "fast"}}},
    "rejected, by policy and rule": {"rejected": {"slow": {"rule": "disks/fast", "resolvable": False}}},
    "rejected, whyever": {"rejected": {"slow": {}}},
    "scores": {"scores": {"fast": 180, "full": 140}},
    "scores, to a hundredth": {"scores": {"fast": 180.004}},
    "order": {"order": ["fast", "full"]},
    "preferred": {"preferred": ["fast"]},
    "protected": {"protected": {"r": "kept"}},
    "evictable": {"evictable": ["q-1", "default/q-2"]},
    "annotations": {"annotations": {"fast": {"fairlead.dev/disk": "nvme"}, "slow": {}}},
    "nothing": {},
}
WRONG: dict[str, tuple[dict[str, Any], list[str]]] = {
    "policies": ({"policies": []}, ["policies: : none | disks"]),
    "passed, one too many": (
        {"passed": ["fast", "full", "slow"]},
        ["passed: slow: passed | rejected: slow disk, by disks/fast"],
    ),
    "passed, one too few": ({"passed": ["fast"]}, ["passed: full: rejected, because it is not in the list | passed"]),
    "rejected, for another reason": (
        {"rejected": {"slow": "too slow"}},
        ["rejected: slow: rejected: too slow | rejected: slow disk, by disks/fast, not resolvable"],
    ),
    "rejected, resolvable": (
        {"rejected": {"slow": {"resolvable": True}}},
        ["rejected: slow: rejected, resolvable | rejected: slow disk, by disks/fast, not resolvable"],
    ),
    "rejected, and it passed": ({"rejected": {"fast": {}}}, ["rejected: fast: rejected | passed"]),
    "both lists, one difference": (
        {"passed": [], "rejected": {"fast": {}, "full": {}}},
        [
            "rejected: fast: rejected | passed",
            "rejected: full: rejected | passed",
        ],
    ),
    "scores": ({"scores": {"fast": 180.1}}, ["scores: fast: score 180.1 | score 180"]),
    "scores of a rejected node": (
        {"scores": {"slow": 0}},
        ["scores: slow: score 0 | no score: rejected: slow disk, by disks/fast"],
    ),
    "order": ({"order": ["full", "fast"]}, ["order: : full > fast | fast > full"]),
    "order, equals": ({"order": [["full", "fast"], "slow"]}, ["order: : fast = full > slow | fast > full"]),
    "preferred": ({"preferred": ["full", "fast"]}, ["preferred: : fast, full | fast"]),
    "protected": ({"protected": {"q-1": "kept"}}, ["protected: q-1: protected by kept | may be evicted"]),
    "evictable": ({"evictable": ["r"]}, ["evictable: r: may be evicted | protected by disks/kept"]),
    "evictable, and of no use": (
        {"evictable": ["s"]},
        [
            (
                "evictable: s: may be evicted | not evicted, because its node would be rejected without it: slow disk, "
                "by disks/fast"
            )
        ],
    ),
    "annotations": (
        {"annotations": {"fast": {"fairlead.dev/disk": "sata"}}},
        ["annotations: fast: fairlead.dev/disk: sata | fairlead.dev/disk: nvme"],
    ),
    "annotations, one too many": (
        {"annotations": {"fast": {}}},
        ["annotations: fast: none | fairlead.dev/disk: nvme"],
    ),
}
UNKNOWN: dict[str, tuple[dict[str, Any], str]] = {
    "a node": ({"passed": ["fats"]}, "passed[0]: there is no node 'fats' in this case; did you mean fast?"),
    "a rejected node": (
        {"rejected": {"x": {}}},
        "rejected.x: there is no node 'x' in this case; there are fast, full, slow",
    ),
    "a node in an order": (
        {"order": ["fast", ["full", "sloww"]]},
        "order[1]: there is no node 'sloww' in this case; did you mean slow?",
    ),
    "a policy": ({"policies": ["disk"]}, "policies[0]: there is no policy 'disk' in this case; did you mean disks?"),
    "a filter": (
        {"rejected": {"slow": {"rule": "fsat"}}},
        "rejected.slow: no policy of this suite has a filter 'fsat'; did you mean fast?",
    ),
    "a protection": (
        {"protected": {"r": "fast"}},
        "protected.r: no policy of this suite has a protection 'fast'; there are kept",
    ),
    "a pod": (
        {"evictable": ["z"]},
        "evictable[0]: there is no pod on a node 'z' in this case; there are q-1, q-2, q-3, r, s",
    ),
}


@pytest.mark.parametrize("expect", RIGHT.values(), ids=RIGHT)
def test_a_case_passes_when_it_is_so(expect: dict[str, Any]) -> None:
    found = result(expect, *two_disks(), nodes=NODES, pods=PODS)
    assert difference_lines(found) == []
    assert found.passed


@pytest.mark.parametrize(("expect", "want"), WRONG.values(), ids=WRONG)
def test_a_case_fails_when_it_is_not(expect: dict[str, Any], want: list[str]) -> None:
    found = result(expect, *two_disks(), nodes=NODES, pods=PODS)
    assert difference_lines(found) == want
    assert not found.passed


@pytest.mark.parametrize(("expect", "want"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_there_is_not_cannot_be_expected(expect: dict[str, Any], want: str) -> None:
    found = result(expect, *two_disks(), nodes=NODES, pods=PODS)
    assert difference_lines(found) == [f"cases[0].expect.{want}"]
    assert not found.passed


def test_a_difference_comes_with_what_the_rule_compared() -> None:
    [difference] = result(
        {"passed": ["slow"], "rejected": {"fast": {}, "full": {}}}, *two_disks(), nodes=NODES
    ).differences[:1]
    assert difference.subject == "slow"
    [rule] = difference.rules
    assert (rule.rule, rule.outcome) == ("fast", "Rejected")
    assert [(step.text, step.value) for step in rule.steps] == [("'ssd' in node.metadata.labels", False)]


def test_a_node_that_does_not_fit_has_no_score_and_it_is_said_why() -> None:
    big = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": 9}}}]}}
    [difference] = result({"scores": {"fast": 1}}, *two_disks(), nodes=NODES, pod=big).differences
    assert difference.got == "no score: the node does not fit: Insufficient cpu (requests 9, 8 is free)"


def test_of_pods_of_one_name_one_has_to_be_meant() -> None:
    spaces = ("ml", "shop")
    pods = [{"metadata": {"name": "q", "namespace": one}, "spec": {"nodeName": "fast"}} for one in spaces]
    found = result({"evictable": ["q"]}, *two_disks(), nodes=NODES, pods=pods)
    assert difference_lines(found) == [
        "cases[0].expect.evictable[0]: several pods have the name q; write one of ml/q and shop/q",
    ]
    assert result({"evictable": ["ml/q", "shop/q"]}, *two_disks(), nodes=NODES, pods=pods).passed


def test_an_annotation_that_cannot_be_computed_can_keep_the_pod_from_being_bound() -> None:
    rule = {"expression": "node.metadata.labels['x']", "onError": "Reject"}
    strict = policy("p", annotations={"fairlead.dev/x": rule})
    [difference] = result({"annotations": {"fast": {}}}, strict, nodes=NODES).differences
    assert difference.got.startswith("not bound: policy p cannot compute the annotation fairlead.dev/x")


def test_policies_of_several_schedulers_need_a_pod_that_says_which() -> None:
    ours, theirs = policy("a", filters={"no": "false"}), policy("b", schedulerName="other", filters={"no": "false"})
    [fault] = difference_lines(result({"passed": []}, ours, theirs, nodes=NODES))
    assert fault.startswith("cases[0].pod.spec.schedulerName: is missing: the policies have several schedulers, ")
    assert fault.endswith("fairlead, other; name one")
    found = result({"policies": ["b"]}, ours, theirs, nodes=NODES, pod={"spec": {"schedulerName": "other"}})
    assert difference_lines(found) == []


def test_a_pod_of_another_scheduler_is_subject_to_nothing() -> None:
    pod = {"spec": {"schedulerName": "default-scheduler"}}
    assert result({"policies": [], "passed": ["fast", "full", "slow"]}, *two_disks(), nodes=NODES, pod=pod).passed


def test_cases_know_nothing_of_each_other() -> None:
    gone = {"name": "one", "pod": {}, "nodes": [{"metadata": {"name": "fast", "labels": {"ssd": None}}}]}
    cases = [
        gone | {"expect": {"passed": ["full"]}},
        {"name": "two", "pod": {}, "expect": {"passed": ["fast", "full"]}},
    ]
    assert [one.passed for one in results({"nodes": NODES, "cases": cases}, *two_disks())] == [True, True]


def test_an_amount_that_is_none_is_a_fault_and_no_failure() -> None:
    bad = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "much"}}}
    [fault] = result({"passed": ["n"]}, *two_disks(), nodes=[bad]).faults
    assert str(fault) == "cases[0]: an object cannot be read: node n cannot be read: 'much' is no quantity"
