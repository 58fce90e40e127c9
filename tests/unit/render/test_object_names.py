import re
from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fairlead.control.reconcile.managed_schedulers import NAME as EVER
from fairlead.pki.identities import AUTHORITY_SECRET as AUTHORITY
from fairlead.render.object_names import OPERATOR_SECRET, SERVER_SECRET, ObjectNames, digest
from fairlead.render.scheduler_bindings import SCHEDULER_BINDINGS
from support.render.schedulers import LONGEST, SCENES

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
CHILDREN: Mapping[str, str] = {
    "fairlead": "kube-scheduler-fairlead",
    "a": "kube-scheduler-a",
    "my-scheduler": "kube-scheduler-my-scheduler",
    "x" * 30: "kube-scheduler-" + "x" * 30,
    "x" * 31: "kube-scheduler-" + "x" * 18 + "-" + digest("x" * 31),
    "x" * 63: "kube-scheduler-" + "x" * 18 + "-" + digest("x" * 63),
    "x" * 17 + "-" + "y" * 45: "kube-scheduler-" + "x" * 17 + "--" + digest("x" * 17 + "-" + "y" * 45),
}
labels = st.from_regex(LABEL, fullmatch=True)


@pytest.mark.parametrize("scheduler", CHILDREN)
def test_what_children_are_called(scheduler: str) -> None:
    assert ObjectNames(scheduler, "ns").object_name == CHILDREN[scheduler]


@given(labels, labels)
@example(LONGEST, LONGEST)
@example("x" * 63, "0")
def test_names_and_labels_are_ones_that_kubernetes_takes(scheduler: str, namespace: str) -> None:
    names = ObjectNames(scheduler, namespace)
    assert LABEL.fullmatch(names.object_name)
    # a pod's host, by whose name the scheduler's Lease is held, is called as the pod is
    assert len(f"{names.object_name}-1234567890-12345") <= 63
    assert len(names.certificate) <= 253
    for binding in SCHEDULER_BINDINGS:
        elsewhere = binding.name(namespace)
        assert len(elsewhere) <= 253
        assert all(LABEL.fullmatch(part) for part in elsewhere.split("."))
    assert all(LABEL.fullmatch(value) for value in names.labels.values())
    assert names.selector.items() <= names.labels.items()


@given(st.sets(labels, min_size=2, max_size=2))
@example({"a" * 31, "a" * 32})
@example({"x" * 31, "x" * 18 + "-" + digest("x" * 31)})
def test_two_schedulers_have_no_name_in_common(two: set[str]) -> None:
    one, other = (ObjectNames(name, "ns") for name in two)
    assert one.object_name != other.object_name
    # neither is the beginning of the other's ConfigMaps, nor its Secret
    assert one.object_name != other.certificate


HASH = digest("a configuration")


def made_in_our_namespace(scheduler: str) -> set[tuple[str, str]]:
    """Whatever a scheduler may have there, whether we run it or others do: of what kind it is, and how it is called."""
    names = ObjectNames(scheduler, "ns")
    kinds = {"Deployment", "ServiceAccount", "Lease", "NetworkPolicy", "PodDisruptionBudget", "Role", "RoleBinding"}
    found = {(kind, names.object_name) for kind in kinds}
    found |= {("ConfigMap", one) for one in (names.object_name, names.state, names.configuration(HASH))}
    return found | {("Secret", names.certificate)}


OPERATORS: set[tuple[str, str]] = {
    *(("ConfigMap", name) for name in (EVER, "fairlead-settings")),
    *(("Secret", name) for name in (AUTHORITY, SERVER_SECRET, OPERATOR_SECRET)),
    *((kind, "fairlead") for kind in ("Lease", "Deployment", "ServiceAccount", "NetworkPolicy", "PodDisruptionBudget")),
}
"""What the operator has there itself."""


@given(labels, labels)
@example("batch", "batch-state")
@example("batch", f"batch-{HASH}")
@example("batch", "batch-tls")
@example("x" * 31, "x" * 18)
@example("x" * 18, f"{'x' * 18}-{HASH}")
def test_no_two_objects_have_a_name_in_common(scheduler: str, other: str) -> None:
    ours = made_in_our_namespace(scheduler)
    assert not ours & OPERATORS
    assert scheduler == other or not ours & made_in_our_namespace(other)
    assert len({name for kind, name in ours if kind == "ConfigMap"}) == 3


@pytest.mark.parametrize("scene", SCENES)
def test_all_that_a_scheduler_is_made_of_is_called_so(scene: str) -> None:
    plan = SCENES[scene]
    names = plan.names
    may_be = made_in_our_namespace(names.scheduler) | {("ConfigMap", names.configuration(plan.config_hash))}
    assert {one["metadata"].get("namespace") for one in plan.objects} == {names.namespace}
    assert {(one["kind"], one["metadata"]["name"]) for one in plan.objects} <= may_be


@given(st.sets(labels, min_size=2, max_size=2))
def test_two_operators_have_no_name_in_common_outside_their_namespaces(two: set[str]) -> None:
    one, other = ({binding.name(namespace) for binding in SCHEDULER_BINDINGS} for namespace in two)
    assert not one & other


def test_how_texts_are_divided_counts() -> None:
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("ab", "c") == digest("ab", "c")
