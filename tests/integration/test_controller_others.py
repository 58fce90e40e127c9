"""The leader on a real API server, and what is somebody else's: schedulers, Deployments, certificates."""

from base64 import b64encode
from collections.abc import Callable

from crdkit import POLICIES
from fairlead.control.leader import now
from fairlead.control.leaves import own_leaf, server_hosts
from fairlead.identities import OPERATOR, SERVER, scheduler_identity
from fairlead.render.operator_settings import parse_settings
from operatorkit import ADDRESSES, SERVICE, Ground
from schedulerkit import FILTER, child, run_until_ready, versions
from testbed.api import wait_for


def test_a_deployment_that_is_not_ours_is_left_alone(at_work: Callable[..., Ground]) -> None:
    ground = at_work()
    labels = {"matchLabels": {"a": "b"}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
    body = {"metadata": {"name": "kube-scheduler-s"}, "spec": {"selector": labels, "template": template, "replicas": 0}}
    ground.cluster.api.create(f"/apis/apps/v1/namespaces/{ground.namespace}/deployments", body)
    before = ground.cluster.api.get(child(ground, "deployments"))["spec"]
    ground.apply("p", schedulerName="s", filters=FILTER)
    wait_for("refused", lambda: ground.condition("p", "Accepted") == ("False", "SchedulerRefused"))
    assert ground.cluster.api.get(child(ground, "deployments"))["spec"] == before


def test_a_scheduler_that_somebody_else_runs_is_refused_until_it_is_listed(at_work: Callable[..., Ground]) -> None:
    ground = at_work()
    api = ground.cluster.api
    spec = {"schedulerName": "s", "nodeName": "n", "containers": [{"name": "x", "image": "x"}]}
    api.create(f"/api/v1/namespaces/{ground.namespace}/pods", {"metadata": {"name": "theirs"}, "spec": spec})
    ground.apply("p", schedulerName="s", filters=FILTER)
    wait_for("refused", lambda: ground.condition("p", "Accepted") == ("False", "SchedulerRefused"))
    assert not versions(ground)
    ground.apply("d", schedulerName="default-scheduler", filters=FILTER)
    wait_for("refused", lambda: ground.condition("d", "Accepted") == ("False", "SchedulerRefused"))
    ground.settings = parse_settings("schedulers: [{name: s}]")
    run_until_ready(ground)
    # else the next test's scheduler of this name is refused, too
    api.delete(f"/api/v1/namespaces/{ground.namespace}/pods/theirs", gracePeriodSeconds="0")


def test_certificates_of_others_are_asked_for_and_used(at_work: Callable[..., Ground]) -> None:
    ground = at_work("tls: {mode: Provided}")
    ground.apply("p", schedulerName="o", filters=FILTER)

    def message() -> str:
        found = ground.cluster.api.get(f"{POLICIES}/p").get("status", {}).get("conditions", [])
        return next((one["message"] for one in found if one["type"] == "Accepted"), "")

    wait_for("what is missing", lambda: "kube-scheduler-o-tls is not there" in message())
    authority, hosts = ground.stub.authority, server_hosts(SERVICE, ground.namespace, ADDRESSES)
    shown = {
        "kube-scheduler-o-tls": own_leaf(authority, scheduler_identity("o"), "client", frozenset(), now(), None),
        "fairlead-operator-tls": own_leaf(authority, OPERATOR, "client", frozenset(), now(), None),
        "fairlead-webhook-tls": own_leaf(authority, SERVER, "server", hosts, now(), None),
    }
    for name, pair in shown.items():
        data = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority.trusted}
        written = {key: b64encode(value).decode() for key, value in data.items()}
        body = {"metadata": {"name": name}, "type": "kubernetes.io/tls", "data": written}
        ground.cluster.api.create(f"/api/v1/namespaces/{ground.namespace}/secrets", body)
    ground.cluster.api.patch(f"{POLICIES}/p", {"metadata": {"annotations": {"look": "again"}}})
    run_until_ready(ground, "p", "o")
