"""Filters `topology`: whose group and size count, and what does not compile."""

from typing import Any

import pytest

from fairlead.mirror import decode
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.group_membership import required_groups
from fairlead.policy.evaluate.matching import Matched
from fairlead.policy.views.pod_view import PodView
from policies.good import gang
from support.mirror import written
from support.policy import faults, policy

LEVELS = {"levels": ["block", "rack", "host"], "require": "rack"}
OWNERS = [
    {"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": "owner"},
    {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "job-uid", "controller": True},
]
GANG = gang(group="pod.metadata.labels['job']", size="4")


def racks(gangs: list[dict[str, Any]] | None = None, **more: Any) -> CompiledPolicy:
    binding: Any = {"binding": {"gang": gangs}} if gangs else {}
    return policy("racks", filters=[{"name": "one-rack", "topology": LEVELS | more}], **binding)


def view(**metadata: Any) -> PodView:
    return PodView(decode.pod(written({"metadata": {"namespace": "ml", "name": "w", **metadata}})))


def groups(made: CompiledPolicy, **metadata: Any) -> list[tuple[str, int]]:
    pod = view(**metadata)
    found = required_groups(pod, [Matched(made)])
    assert [one.error for one in found] == [None] * len(found)
    return [(one.key, one.size) for one in found]


@pytest.mark.parametrize(
    ("made", "want"),
    [
        (racks(), [("ml/job-uid", 1)]),
        (racks(size="3"), [("ml/job-uid", 3)]),
        (racks(group="pod.metadata.name"), [("ml/w", 1)]),
        (racks([GANG]), [("ml/train", 4)]),
        (racks([GANG], size="2"), [("ml/train", 2)]),
        (racks([GANG], group="'x'"), [("ml/x", 4)]),
        (racks([GANG, GANG | {"name": "b"}]), [("ml/job-uid", 1)]),
        (racks(group="pod.metadata.annotations[?'a'].orValue('')"), []),
    ],
    ids=["controller", "size", "group", "gang", "size of its own", "group of its own", "two gangs", "in none"],
)
def test_whose_group_and_size_count(made: CompiledPolicy, want: list[tuple[str, int]]) -> None:
    assert groups(made, labels={"job": "train"}, ownerReferences=OWNERS) == want
    assert [one.labels for one in made.domain_rules] == [("block", "rack")]
    assert made.binds


def test_a_pod_that_nothing_controls_is_in_no_group() -> None:
    assert groups(racks()) == []


def test_a_policy_that_is_undecided_or_too_slow_lets_none_of_its_pods_be_bound() -> None:
    pod = view()
    (found,) = required_groups(pod, [Matched(racks(), switched=True)])
    assert str(found.error) == "the policy is too slow"


@pytest.mark.parametrize(
    ("topology", "field", "why"),
    [
        ({"group": "''"}, "group", "is blank for every pod"),
        ({"group": "pod.spec.schedulerName"}, "group", "is not kept of pods on nodes"),
        ({"group": "1"}, "group", "string"),
        ({"size": "0"}, "size", "a group has 1 to 500 members"),
        ({"size": "'a'"}, "size", "int"),
        ({"size": "nothing"}, "size", "nothing"),
    ],
)
def test_what_does_not_compile(topology: dict[str, str], field: str, why: str) -> None:
    found = faults(filters=[{"name": "one-rack", "topology": LEVELS | topology}])
    ((where, said),) = found.items()
    assert where.endswith(f"topology.{field}")
    assert why in str(said)
