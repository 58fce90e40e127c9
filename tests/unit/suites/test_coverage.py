"""Each rule is counted by what it came to."""

from typing import Any

from fairlead.suites.coverage import Coverage
from support.policy import policy
from support.suites.running import node, results, two_disks

NODES = [node("fast", ssd="nvme"), node("slow")]
PODS = [
    {"metadata": {"name": "q"}, "spec": {"nodeName": "fast"}},
    {"metadata": {"name": "r", "labels": {"keep": "yes"}}, "spec": {"nodeName": "fast"}},
]


def covered(*expects: dict[str, Any], pod: dict[str, Any] | None = None) -> dict[str, dict[str, int]]:
    policies = two_disks()
    coverage = Coverage()
    coverage.expect(policies)
    cases = [{"name": f"case {at}", "pod": pod or {}, "expect": one} for at, one in enumerate(expects)]
    for one in results({"nodes": NODES, "pods": PODS, "cases": cases}, *policies) if cases else ():
        assert not one.faults
        coverage.see(policies, one.outcomes)
    return {f"{one.kind} {one.rule}": one.outcomes for one in coverage.rules()}


def test_who_asks_nothing_sees_nothing() -> None:
    assert covered() == {
        "Match match": {"matched": 0, "not matched": 0},
        "Filter fast": {"passed": 0, "rejected": 0},
        "Score empty": {"scored": 0},
        "Protection kept": {"protected": 0, "evictable": 0},
        "Annotation fairlead.dev/disk": {"written": 0},
    }


def test_each_outcome_is_counted() -> None:
    expects: list[dict[str, Any]] = [
        {"protected": {"r": "kept"}, "evictable": ["q"]},
        {"annotations": {"fast": {}, "slow": {}}},
    ]
    assert covered(*expects) == {
        "Match match": {"matched": 2, "not matched": 0},
        "Filter fast": {"passed": 2, "rejected": 2},
        "Score empty": {"scored": 2},
        "Protection kept": {"protected": 1, "evictable": 1},
        "Annotation fairlead.dev/disk": {"written": 1},
    }


def test_a_pod_that_is_left_alone_asks_no_rule() -> None:
    found = covered({}, pod={"metadata": {"labels": {"app": "other"}}})
    assert found["Match match"] == {"matched": 0, "not matched": 1}
    assert found["Filter fast"] == {"passed": 0, "rejected": 0}


def test_a_refusal_behind_another_does_not_count() -> None:
    policies = [policy("p", filters={"a": "'ssd' in node.metadata.labels", "b": "'ssd' in node.metadata.labels"})]
    coverage = Coverage()
    coverage.expect(policies)
    [one] = results({"nodes": NODES, "cases": [{"name": "x", "pod": {}, "expect": {}}]}, *policies)
    coverage.see(policies, one.outcomes)
    first, second = coverage.rules()
    assert (first.outcomes, first.missing) == ({"passed": 1, "rejected": 1}, [])
    assert (second.outcomes, second.missing) == ({"passed": 1, "rejected": 0}, ["rejected"])


def test_a_policy_that_is_off_is_not_counted() -> None:
    coverage = Coverage()
    coverage.expect([policy("p", mode="Disabled", filters={"a": "false"})])
    assert coverage.rules() == []


def test_two_policies_of_one_name_are_counted_apart() -> None:
    base, overlay = (policy("p", filters={"a": expression}) for expression in ("true", "'ssd' in node.metadata.labels"))
    coverage = Coverage()
    for one in (base, overlay):
        coverage.expect([one])
        [found] = results({"nodes": NODES, "cases": [{"name": "x", "pod": {}, "expect": {}}]}, one)
        coverage.see([one], found.outcomes)
    assert [one.outcomes for one in coverage.rules()] == [{"passed": 2, "rejected": 0}, {"passed": 1, "rejected": 1}]
