"""Which changes of a node matter to which rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.selectors import LabelSelector
from fairlead.strategies.contract import ControllerRef
from fairlead.strategies.reads import (
    ANNOTATIONS,
    CONDITIONS,
    EVERY,
    LABELS,
    NodeChange,
    Path,
    PodOwner,
    PodsRead,
    Reads,
    SystemRead,
    union,
)

_GPU: Path = (*LABELS, "gpu")
_AGENT = ControllerRef("DaemonSet", "agent")


def node(*paths: Path) -> frozenset[Path]:
    return frozenset(paths)


def names(*several: str) -> frozenset[str]:
    return frozenset(several)


_CASES = {
    "the label that is read": (Reads(node=node(_GPU)), NodeChange(node=node(_GPU)), True),
    "another label": (Reads(node=node(_GPU)), NodeChange(node=node((*LABELS, "cpu"))), False),
    "a label whose name begins the same": (Reads(node=node(_GPU)), NodeChange(node=node((*LABELS, "gpu2"))), False),
    "an annotation of the name": (Reads(node=node(_GPU)), NodeChange(node=node((*ANNOTATIONS, "gpu"))), False),
    "a label where all are read": (Reads(node=node(LABELS)), NodeChange(node=node(_GPU)), True),
    "all labels where one is read": (Reads(node=node(_GPU)), NodeChange(node=node(LABELS)), True),
    "a condition": (Reads(node=node((*CONDITIONS, "Ready"))), NodeChange(node=node((*CONDITIONS, "Ready"))), True),
    "another condition": (
        Reads(node=node((*CONDITIONS, "Ready"))), NodeChange(node=node((*CONDITIONS, "Sick"))), False,
    ),
    "nothing": (Reads(node=node(()), data=names(EVERY)), NodeChange(), False),
    "a pod where none are read": (Reads(node=node(_GPU)), NodeChange(pods=(PodOwner("a"),)), False),
    "a pod where all are read": (Reads(pods=frozenset({PodsRead()})), NodeChange(pods=(PodOwner("a"),)), True),
    "a pod of the namespace": (Reads(pods=frozenset({PodsRead("a")})), NodeChange(pods=(PodOwner("a"),)), True),
    "a pod of another": (Reads(pods=frozenset({PodsRead("a")})), NodeChange(pods=(PodOwner("b"),)), False),
    "a pod of the controller": (
        Reads(pods=frozenset({PodsRead("a", _AGENT)})),
        NodeChange(pods=(PodOwner("a", _AGENT),)),
        True,
    ),
    "a pod of no controller": (
        Reads(pods=frozenset({PodsRead("a", _AGENT)})), NodeChange(pods=(PodOwner("a"),)), False,
    ),
    "the data that are read": (Reads(data=names("load")), NodeChange(data=names("load", "heat")), True),
    "other data": (Reads(data=names("load")), NodeChange(data=names("heat")), False),
    "data where all are read": (Reads(data=names(EVERY)), NodeChange(data=names("heat")), True),
    "all data where some are read": (Reads(data=names("load")), NodeChange(data=names(EVERY)), True),
    "all data where none are read": (Reads(), NodeChange(data=names(EVERY)), False),
    "requested where free is read": (Reads(free=names("cpu")), NodeChange(requested=names("cpu")), True),
    "allocatable where free is read": (Reads(free=names("cpu")), NodeChange(allocatable=names("cpu")), True),
    "requested where allocatable is read": (Reads(allocatable=names("cpu")), NodeChange(requested=names("cpu")), False),
    "allocatable where requested is read": (Reads(requested=names("cpu")), NodeChange(allocatable=names("cpu")), False),
    "requested where requested is read": (Reads(requested=names("cpu")), NodeChange(requested=names("cpu")), True),
    "allocatable where it is read": (Reads(allocatable=names(EVERY)), NodeChange(allocatable=names("cpu")), True),
    "another resource": (Reads(free=names("memory")), NodeChange(requested=names("cpu")), False),
}  # fmt: skip


@pytest.mark.parametrize(("reads", "change", "want"), _CASES.values(), ids=_CASES)
def test_a_rule_is_affected_by(reads: Reads, change: NodeChange, want: bool) -> None:
    assert reads.affected_by(change) is want


_SYSTEM = SystemRead(
    ("cpu", "memory"),
    LabelSelector.model_validate(
        {"matchLabels": {"pool": "a"}, "matchExpressions": [{"key": "old", "operator": "DoesNotExist"}]}
    ),
)
_OF_NODE = {
    "what is requested": (NodeChange(requested=names("memory")), True),
    "what is allocatable": (NodeChange(allocatable=names("cpu")), True),
    "another resource": (NodeChange(requested=names("pods"), allocatable=names("pods")), False),
    "a label of the selector": (NodeChange(node=node((*LABELS, "pool"))), True),
    "a label of its expressions": (NodeChange(node=node((*LABELS, "old"))), True),
    "another label": (NodeChange(node=node(_GPU)), False),
    "its condition Ready": (NodeChange(node=node((*CONDITIONS, "Ready", "status"))), True),
    "another condition": (NodeChange(node=node((*CONDITIONS, "Sick"))), False),
    "whether it is cordoned": (NodeChange(node=node(("spec", "unschedulable"))), True),
    "its spec": (NodeChange(node=node(("spec",))), True),
}


@pytest.mark.parametrize(("change", "want"), _OF_NODE.values(), ids=_OF_NODE)
def test_a_system_is_affected_by(change: NodeChange, want: bool) -> None:
    assert _SYSTEM.of_node.affected_by(change) is want


def test_what_depends_on_the_pod_and_on_pods() -> None:
    assert not Reads(node=node(_GPU), now=True, data=names("load")).of_pod
    assert all(one.of_pod for one in (Reads(pod=node(_GPU)), Reads(namespace=node(_GPU)), Reads(request=names("cpu"))))
    assert not Reads(node=node(_GPU), pod=node(_GPU), allocatable=names("cpu")).of_pods
    assert Reads(pods=frozenset({PodsRead()})).of_pods
    assert Reads(free=names("cpu")).of_pods
    assert Reads(requested=names("cpu")).of_pods
    assert Reads(system=frozenset({SystemRead(("cpu",))})).of_pods


_paths = st.frozensets(st.lists(st.sampled_from("ab"), max_size=3).map(tuple), max_size=3)
_names = st.frozensets(st.sampled_from(["cpu", "memory", EVERY]), max_size=2)
_reads = st.builds(Reads, pod=_paths, node=_paths, free=_names, requested=_names, data=_names, now=st.booleans())
_changes = st.builds(NodeChange, node=_paths, requested=_names, allocatable=_names, data=_names)


@given(_reads, _reads, _changes)
def test_together_they_are_affected_by_what_affects_either(one: Reads, other: Reads, change: NodeChange) -> None:
    together = one | other
    assert together.affected_by(change) == (one.affected_by(change) or other.affected_by(change))
    assert together == other | one == union([one, other, one])
    assert together.now is (one.now or other.now)
    assert hash(together) == hash(other | one)
