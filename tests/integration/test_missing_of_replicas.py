"""Where one rule of the operator's roles is missing, the log of every replica says so, and what it tells the leader."""

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.api.names import PLURAL
from fairlead.pki.identities import scheduler_identity
from policies.good import device_share
from support.kube.crd import let_go
from support.kube.service_account import token_of
from support.process.operating import Operating
from support.render.permissions import ACCOUNT, an_account, says, set_rule
from testbed import process
from testbed.api import Api, wait_for
from testbed.fixtures import Cluster
from testbed.layout import free_ports
from testbed.supervisor import Supervisor

IN_THE_LOG = {
    "own: leases": "nobody leads without it, and so nobody is told",
    "kube-system: leases": "nor without this one",
    "own: secrets": "it has nothing to show to whoever asks it",
}


class Replica(Operating):
    """One that has the rights of the account."""

    kubeconfig: Path
    options: tuple[str, ...] = ()

    def begin(self) -> None:
        """Start it, ready or not."""
        component = self._component()
        command = [one for one in component.command if not one.startswith("--kubeconfig=")]
        component = replace(component, command=[*command, f"--kubeconfig={self.kubeconfig}", *self.options])
        Supervisor(self.cluster.folder, list).ensure(component, lambda: True)

    def log(self) -> str:
        """What it has written."""
        return process.log_of(self.cluster.folder, self.name).read_text().replace(r"\"", '"')

    def lacks(self) -> str:
        """What it says to the leader that it lacks."""
        try:
            return self.state().missing_permission
        except (OSError, AssertionError):  # it does not listen yet, or has no authority yet
            return ""


@pytest.fixture
def replica(with_crd: Cluster, tmp_path: Path) -> Iterator[Replica]:
    with an_account(with_crd, tmp_path) as (namespace, kubeconfig):
        made = Replica(with_crd, namespace, tmp_path)
        made.kubeconfig = kubeconfig
        yield made
        made.kill()


@pytest.mark.parametrize(
    "missing",
    [
        *("cluster: nodes, namespaces", "cluster: pods", f"cluster: {PLURAL}", "own: configmaps"),
        *("own: controllerrevisions", "own: secrets", "own: leases", "kube-system: leases"),
    ],
)
def test_what_a_replica_lacks_is_logged_and_told_to_the_leader(missing: str, replica: Replica) -> None:
    set_rule(replica.cluster, replica.namespace, missing, has=False)
    replica.begin()
    wait_for("the rule to be logged", lambda: says(replica.log(), missing, replica.namespace))
    if missing not in IN_THE_LOG:
        wait_for("the rule to be told", lambda: says(replica.lacks(), missing, replica.namespace))


def test_a_replica_that_may_not_bind_says_so(replica: Replica) -> None:
    missing, scheduler = "cluster: pods/binding", replica.namespace
    api = replica.cluster.api
    set_rule(replica.cluster, replica.namespace, missing, has=False)
    replica.begin()
    wait_for("it to be ready", replica.is_ready)
    replica.put("binds", binding={"annotations": [{"key": "fairlead.dev/a", "expression": "'x'"}]})
    pod = waiting(api, scheduler)
    asked = {"PodName": "waits", "PodNamespace": "default", "PodUID": pod, "Node": "n"}
    try:
        _, body = replica.ask(scheduler_identity(scheduler), "/bind", asked)
        said = json.loads(body)["Error"]
        assert says(said, missing, ""), said
        wait_for("the rule to be told", lambda: says(replica.lacks(), missing, ""))
        wait_for("the rule to be logged", lambda: says(replica.log(), missing, ""))
    finally:
        api.delete("/api/v1/namespaces/default/pods/waits", gracePeriodSeconds="0")
        replica.kill()  # one that leads would hold the policy again
        let_go(api, "binds")


@pytest.mark.parametrize("missing", ["cluster: tokenreviews", "cluster: subjectaccessreviews"])
def test_a_replica_that_may_not_ask_who_reads_its_metrics_shows_them_to_no_one(missing: str, replica: Replica) -> None:
    set_rule(replica.cluster, replica.namespace, missing, has=False)
    (port,) = free_ports(1)
    replica.options = (f"--metrics={replica.host}:{port}",)
    replica.begin()
    wait_for("it to be ready", replica.is_ready)
    headers = {"Authorization": f"Bearer {token_of(replica.cluster, replica.namespace, ACCOUNT)}"}
    context = replica.context("prometheus")
    with closing(http.client.HTTPSConnection(replica.host, port, context=context, timeout=30)) as connection:
        connection.request("GET", "/metrics", headers=headers)
        assert connection.getresponse().status == http.client.INTERNAL_SERVER_ERROR
    wait_for("the rule to be logged", lambda: says(replica.log(), missing, ""))
    wait_for("the rule to be shown", lambda: says(replica.probe("readyz")[1], missing, ""))


def test_a_replica_that_may_not_read_the_usage_of_nodes_says_so_of_policies_that_need_it(replica: Replica) -> None:
    missing, api = "cluster: nodes", replica.cluster.api
    set_rule(replica.cluster, replica.namespace, missing, has=False)
    replica.begin()
    wait_for("it to be ready", replica.is_ready)
    assert replica.lacks() == "", "nobody needs it yet"
    replica.put(
        "usage",
        data=[{"name": "busy", "nodeMetrics": {"resource": "cpu"}, "default": 0.5}],
        filters=[{"name": "idle", "expression": "data.busy < 0.9"}],
    )

    def told() -> str:
        return next((one.error for one in replica.state().policies["usage"].data), "")

    try:
        wait_for("the rule to be told", lambda: says(told(), missing, ""))
        wait_for("the rule to be logged", lambda: says(replica.log(), missing, ""))
        set_rule(replica.cluster, replica.namespace, missing, has=True)  # there is no metrics API here
        wait_for("it to be over", lambda: told() and not says(told(), missing, ""), timeout_s=90)
    finally:
        replica.kill()  # one that leads would hold the policy again
        let_go(api, "usage")


def test_a_policy_whose_unhealthy_devices_may_not_be_read_says_so_and_others_do_not(replica: Replica) -> None:
    api, namespace = replica.cluster.api, replica.namespace
    lists = {"configMap": {"namespace": "kube-system", "prefix": "unhealthy-", "key": "ids"}}
    replica.begin()
    wait_for("it to be ready", replica.is_ready)
    replica.put("lists", binding={"deviceShare": [device_share(unhealthy=lists)]})
    replica.put("without", binding={"deviceShare": [device_share()]})

    def lacks(policy: str) -> str:
        return replica.state().policies[policy].missing_permission

    where = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system"
    name = f"unhealthy-devices-{namespace}"
    try:
        wait_for("the rule to be told", lambda: "resources: [configmaps], verbs: [list]}" in lacks("lists"))
        assert "a Role in kube-system or a ClusterRole of that user lacks the rule" in lacks("lists")
        assert (lacks("without"), replica.lacks()) == ("", "")
        rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]
        api.create(f"{where}/roles", {"metadata": {"name": name}, "rules": rules})
        binding = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
        }
        api.create(f"{where}/rolebindings", binding)
        wait_for("it to be over", lambda: not lacks("lists"), timeout_s=90)
    finally:
        replica.kill()  # one that leads would hold the policies again
        for policy in ("lists", "without"):
            let_go(api, policy)
        for kind in ("rolebindings", "roles"):
            if api.exists(f"{where}/{kind}/{name}"):
                api.delete(f"{where}/{kind}/{name}")


def waiting(api: Api, scheduler: str) -> str:
    """A pod that waits for it; its UID."""
    wait_for("a service account", lambda: api.exists("/api/v1/namespaces/default/serviceaccounts/default"))
    spec = {"schedulerName": scheduler, "containers": [{"name": "c", "image": "none.example/none"}]}
    made = api.create("/api/v1/namespaces/default/pods", {"metadata": {"name": "waits"}, "spec": spec})
    return str(made["metadata"]["uid"])
