"""Where one rule of the operator's roles is missing, the leader's log and the status of policies name what to add."""

import logging
import uuid
from collections.abc import Callable, Iterator

import pytest

from fairlead.api.names import GROUP, PLURAL
from support.control.leader import LeaderSetup, ground
from support.control.scheduler import FILTER, SCORE, child, message, rolled, run_until_ready
from support.kube.crd import POLICIES, let_go
from support.render.permissions import RULES, an_account, says, set_rule
from testbed.api import wait_for
from testbed.fixtures import Cluster

ELSEWHERE = {
    "cluster: nodes, namespaces": "every replica's mirror is made of them",
    "cluster: nodes": "every replica asks for the usage of nodes",
    "cluster: pods/binding": "every replica binds",
    "cluster: subjectaccessreviews": "every replica is asked for its metrics",
    "cluster: tokenreviews": "every replica is asked for its metrics",
    "own: controllerrevisions": "every replica keeps what was good",
    "kube-system: leases": "nobody leads without it",
}
"""Rules that only replicas need, which test_missing_of_replicas.py is about."""
STATUS = f"cluster: {PLURAL}/status"


@pytest.fixture(scope="module")
def leader(with_crd: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LeaderSetup]:
    """One that has all rights, and a scheduler as it has to be."""
    with (
        an_account(with_crd, tmp_path_factory.mktemp("account")) as (namespace, kubeconfig),
        ground(with_crd, namespace, kubeconfig=kubeconfig) as made,
    ):
        made.apply("p", schedulerName="s", filters=FILTER)
        run_until_ready(made)
        yield made
    let_go(with_crd.api, "p")


@pytest.fixture
def without_another(leader: LeaderSetup) -> Iterator[None]:
    """What comes of one rule is nothing to the next: the other policy goes, though the test failed."""
    yield
    if leader.cluster.api.exists(f"{POLICIES}/q"):
        leader.stub.policies.pop("q", None)
        leader.cluster.api.delete(f"{POLICIES}/q")
        wait_for("the other to go", lambda: not leader.cluster.api.exists(f"{POLICIES}/q"))


def touch(ground: LeaderSetup) -> None:
    """Have its scheduler looked at."""
    ground.cluster.api.patch(f"{POLICIES}/p", {"metadata": {"annotations": {"touched": uuid.uuid4().hex}}})


def unbinds(path: str) -> Callable[[LeaderSetup], None]:
    def unbind(ground: LeaderSetup) -> None:
        ground.cluster.api.patch(path.format(namespace=ground.namespace), {"subjects": None})
        touch(ground)

    return unbind


def rewire(ground: LeaderSetup) -> None:
    spec = ground.cluster.api.get(f"{POLICIES}/p")["spec"]
    ground.apply("p", **(spec | {"scores": None if "scores" in spec else SCORE}))


def another(ground: LeaderSetup) -> None:
    body = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": "q"}}
    ground.serve(ground.cluster.api.create(POLICIES, body | {"spec": {"schedulerName": "s", "filters": FILTER}}))


def unseen(ground: LeaderSetup) -> None:
    """Have a replica serve what nobody has told the leader of: it lists all policies."""
    metadata = {"name": "unseen", "uid": "u", "generation": 1}
    ground.serve({"metadata": metadata, "spec": {"schedulerName": "s", "filters": FILTER}})


def drift(ground: LeaderSetup) -> None:
    ground.cluster.api.patch(child(ground, "deployments"), {"spec": {"replicas": 5}})


def serve_others(ground: LeaderSetup) -> None:
    """Have a replica that has rejected pods serve another set, so that they are woken."""
    ground.stub.has_rejected_pods = True
    ground.stub.policy_set = uuid.uuid4().hex
    touch(ground)


def new_name(ground: LeaderSetup) -> None:
    body = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "SchedulerExtenderPolicy", "metadata": {"name": "q"}}
    spec = {"schedulerName": f"n-{uuid.uuid4().hex[:8]}", "filters": FILTER}
    ground.serve(ground.cluster.api.create(POLICIES, body | {"spec": spec}))


_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_UNBOUND = unbinds(f"{_RBAC}/clusterrolebindings/fairlead.{{namespace}}.kube-scheduler")
_UNBOUND_IN_KUBE_SYSTEM = unbinds(
    f"{_RBAC}/namespaces/kube-system/rolebindings/fairlead.{{namespace}}.authentication-reader"
)
PROVOKED: dict[str, Callable[[LeaderSetup], None]] = {
    "cluster: leases": new_name,
    "cluster: deployments, statefulsets, daemonsets": new_name,
    "cluster: clusterroles": _UNBOUND,
    "cluster: clusterrolebindings": _UNBOUND,
    "kube-system: roles": _UNBOUND_IN_KUBE_SYSTEM,
    "kube-system: rolebindings": _UNBOUND_IN_KUBE_SYSTEM,
    "cluster: clusterrolebindings of its own": LeaderSetup.restart,
    "kube-system: rolebindings of its own": LeaderSetup.restart,
    "own: pods/log": rewire,
    "own: csistoragecapacities": serve_others,
    f"cluster: {PLURAL}": unseen,
    STATUS: another,
    "default: events": drift,
    "default: rolebindings of its own": LeaderSetup.restart,
    "cluster: mutatingadmissionpolicies, mutatingadmissionpolicybindings": LeaderSetup.restart,
}


@pytest.mark.usefixtures("without_another")
@pytest.mark.parametrize("missing", sorted(RULES.keys() - ELSEWHERE.keys()))
def test_what_the_leader_lacks_is_named_and_once_it_has_it_all_is_well(
    missing: str, leader: LeaderSetup, caplog: pytest.LogCaptureFixture
) -> None:
    set_rule(leader.cluster, leader.namespace, missing, has=False)
    PROVOKED.get(missing, touch)(leader)

    def named() -> bool:
        rolled(leader)
        return says(message(leader, "p", "Programmed"), missing, leader.namespace)

    if missing != STATUS:  # there is none without it
        wait_for("the rule to be named", named)
    wait_for("the rule to be logged", lambda: any(logs(one, missing, leader) for one in caplog.records))

    leader.stub.policies.pop("unseen", None)
    set_rule(leader.cluster, leader.namespace, missing, has=True)
    touch(leader)
    wait_for("all to be well", lambda: rolled(leader) and leader.condition("p") == ("True", "Ready"))


def logs(record: logging.LogRecord, missing: str, leader: LeaderSetup) -> bool:
    return says(str(vars(record)), missing, leader.namespace)


def test_no_rule_is_forgotten() -> None:
    assert {*ELSEWHERE, *PROVOKED, STATUS} <= {*RULES}
