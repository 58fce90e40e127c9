"""The chart as people install it in a cluster, and what they look at afterwards."""

import json
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psutil
import yaml

from extender import Stage
from fairlead.pki.identities import REPLICAS
from fairlead.process.health import FRESH_S
from support.chart.chart import CHART, NAMESPACE
from support.kube.crd import POLICIES
from testbed import build, node_template, nodes
from testbed.api import Api, Object, wait_for
from testbed.errors import ClusterError
from testbed.fixtures import Cluster, Kubectl, caller
from testbed.node_template_file import default_template
from testbed.versions import program

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/fairlead"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/kube-scheduler-fairlead"
OPERATOR = REPLICAS
SCHEDULER = "fairlead.dev/scheduler=fairlead,app.kubernetes.io/component=scheduler"
_TAINT = {"key": "fairlead.dev/testbed", "value": "kwok", "effect": "NoSchedule"}
_PASSING = ("events", "events.events.k8s.io", "componentstatuses", "apiservices.apiregistration.k8s.io")
"""Kinds that come and go by themselves; an APIService goes some time after the definition that it is of."""
_COLUMNS = "custom-columns=K:.kind,S:.metadata.namespace,N:.metadata.name"


def kwok_nodes(cluster: Cluster, count: int, extended: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """Nodes that only pods of tests get to; every other one in one pool, and the later the better."""
    made = node_template.make(count, default_template(), seed=0)
    for number, node in enumerate(made):
        for amounts in (node["status"]["capacity"], node["status"]["allocatable"]):
            amounts.update(extended)
        node["metadata"]["labels"] |= {"pool": "ab"[number % 2], "points": str(10 * number)}
        node["spec"] = node.get("spec", {}) | {"taints": [_TAINT]}
    nodes.ensure(cluster.folder, cluster.kubeconfig, made)
    return [str(node["metadata"]["name"]) for node in made]


def document(name: str, **spec: object) -> str:
    """A policy as people write it."""
    kind = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy"}
    return yaml.safe_dump({**kind, "metadata": {"name": name}, "spec": spec})


@dataclass
class Release:
    """One, with the nodes of its tests."""

    cluster: Cluster
    image: str
    nodes: list[str]
    before: set[tuple[str, ...]] = field(default_factory=set)
    """What there was before it."""
    inside: Sequence[str] = ()
    """Command that enters the network in which Helm finds the chart."""
    own_values: dict[str, object] = field(default_factory=dict)
    """Values of each install."""

    @cached_property
    def kubectl(self) -> Kubectl:
        """Call it; what it printed."""
        command = build.build([program("kubectl", self.cluster.kubernetes)])["kubectl"]
        return caller(command, self.cluster.kubeconfig)

    @cached_property
    def helm(self) -> Kubectl:
        """Call it; what it printed."""
        return caller(build.build([program("helm")])["helm"], self.cluster.kubeconfig, inside=self.inside)

    @cached_property
    def helm_3(self) -> Kubectl:
        """Call Helm 3; what it printed."""
        return caller(build.build([program("helm-3")])["helm-3"], self.cluster.kubeconfig, inside=self.inside)

    @property
    def api(self) -> Api:
        """The cluster's."""
        return self.cluster.api

    def install(
        self, *schedulers: Object, chart: Path | str = CHART, helm: Kubectl | None = None, **more: object
    ) -> None:
        """Have it, with these schedulers listed in its settings and with more values, from a folder or a registry."""
        where = (f"--namespace={NAMESPACE}", "--create-namespace", "--wait", "--timeout=120s")
        source = [str(chart), *(["--plain-http"] if str(chart).startswith("oci://127.0.0.1:") else [])]
        (helm or self.helm)("upgrade", "--install", "fairlead", *source, *where, *self.values(*schedulers, **more))

    def manifests(self) -> str:
        """Installed manifests, as they are kept in Git, without hooks."""
        where = (f"--namespace={NAMESPACE}", "--no-hooks")
        return self.helm("template", "fairlead", str(CHART), *where, *self.values())

    def values(self, *schedulers: Object, **more: object) -> Sequence[str]:
        """Options of helm: the image of these tests, schedulers to list, and more values."""
        repository, _, tag = self.image.rpartition(":")
        image = {"registry": "", "repository": repository, "tag": tag}
        values = {"image": image, "drainSeconds": 2, "schedulers": [*schedulers], **self.own_values, **more}
        return [f"--set-json={key}={json.dumps(value)}" for key, value in values.items()]

    def uninstall(self, helm: Kubectl | None = None) -> str:
        """Have it no more; what helm said."""
        where = (f"--namespace={NAMESPACE}", "--wait", "--timeout=300s")
        return (helm or self.helm)("uninstall", "fairlead", *where, aside=True)

    def delete_crd(self) -> None:
        """Delete the definition of policies, and with it all policies."""
        self.kubectl("delete", "crd", "schedulerextenderpolicies.fairlead.dev", "--ignore-not-found")

    def put(self, name: str, **spec: object) -> None:
        """Apply a policy."""
        self.kubectl("apply", "-f", "-", stdin=document(name, **spec))

    def remove(self, names: Iterable[str]) -> None:
        """Have policies no more, nor anything that still holds on to them."""
        for name in names:
            self.kubectl("delete", "sep", name, "--ignore-not-found", "--timeout=60s")

    def ready(self, name: str, within: str = "120s", kind: str = "Ready") -> None:
        """Wait until a policy says that it is, or that another condition is True."""
        try:
            self.kubectl("wait", f"--for=condition={kind}", f"sep/{name}", f"--timeout={within}")
        except ClusterError as error:
            raise ClusterError(f"{error}: {json.dumps(self.api.get(f'{POLICIES}/{name}').get('status'))}") from error

    def condition(self, name: str, kind: str) -> tuple[str, str, str]:
        """Status, reason and message of this generation."""
        policy = self.api.get(f"{POLICIES}/{name}")
        for one in policy.get("status", {}).get("conditions", []):
            if one["type"] == kind and one["observedGeneration"] == policy["metadata"]["generation"]:
                return one["status"], one["reason"], one["message"]
        return "", "", ""

    def until(self, name: str, kind: str, reason: str, timeout_s: float = 120) -> str:
        """Wait until a condition has this reason; its message."""

        def said() -> str | None:
            found = self.condition(name, kind)
            if found[1] == reason:
                return found[2]
            raise ClusterError(f"{kind} of {name} is {found}")

        return wait_for(f"{kind} of {name} to be {reason}", said, timeout_s=timeout_s)

    def pods(self, selector: str) -> list[Object]:
        """Pods of our namespace that stay."""
        found = self.api.items(PODS, labelSelector=selector)
        return [one for one in found if "deletionTimestamp" not in one["metadata"]]

    def uids(self, selector: str) -> set[str]:
        """Of all pods, also of those that are about to end."""
        return {one["metadata"]["uid"] for one in self.api.items(PODS, labelSelector=selector)}

    def runs(self, count: int, *, but: Collection[str] = ()) -> None:
        """Wait until there are just so many replicas, all ready, none of those before, and none about to end."""

        def they_run() -> bool:
            found = self.api.items(PODS, labelSelector=OPERATOR)
            return len(found) == count and all(is_ready(one) and one["metadata"]["uid"] not in but for one in found)

        wait_for(f"{count} replicas", they_run, timeout_s=120)

    def leader(self) -> str:
        """The pod that holds the Lease; empty if none does."""
        holder: str = self.api.get(LEASE)["spec"].get("holderIdentity") or ""
        return holder.partition("_")[0]

    def rolled(self) -> object:
        """Values that change when the scheduler rolls, or when one of its pods starts anew."""
        pods = [(one["metadata"]["uid"], _restarts(one)) for one in self.pods(SCHEDULER)]
        return self.api.get(DEPLOYMENT)["metadata"]["generation"], sorted(pods)

    def counted(self, metric: str) -> dict[str, float]:
        """A counter over all replicas, by what stands in its braces."""
        time.sleep(FRESH_S)  # what was told to somebody else may be that old
        found: dict[str, float] = {}
        for pod in self.pods(OPERATOR):
            page = self.api.text(f"{PODS}/{pod['metadata']['name']}:8080/proxy/metrics")
            for labels, value in re.findall(rf"^{metric}_total{{(.*)}} (\S+)$", page, re.MULTILINE):
                found[labels] = found.get(labels, 0.0) + float(value)
        return found

    def events(self, policy: str, reason: str) -> list[str]:
        """Events of a policy."""
        found = self.api.items(EVENTS, fieldSelector=f"regarding.name={policy},reason={reason}")
        return sorted(one["note"] for one in found)

    def everything(self) -> set[tuple[str, ...]]:
        """Kind, namespace and name of each object of the cluster, but of those that pass by themselves."""
        kinds = self.kubectl("api-resources", "--verbs=list", "--output=name").split()
        asked = ",".join(sorted({*kinds} - {*_PASSING}))
        rows = self.kubectl("get", asked, "-A", "--ignore-not-found", "--no-headers", "-o", _COLUMNS).splitlines()
        return {tuple(row.split()) for row in rows}


@contextmanager
def released(
    cluster: Cluster, image: str, count: int, extended: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Release]:
    """A release that is not installed yet, with so many nodes; in the end nothing of it is left, whatever fails."""
    home = f"/api/v1/namespaces/{NAMESPACE}"
    _wait_until_gone(cluster, home)  # of the tests before
    made = Release(cluster, image, [])
    with ExitStack() as stack:  # each step is taken, though one before it fails
        stack.callback(_wait_until_gone, cluster, home)
        stack.callback(nodes.ensure, cluster.folder, cluster.kubeconfig, [])
        stack.callback(cluster.api.delete, home)
        stack.callback(made.delete_crd)
        stack.callback(refused, made.uninstall)  # a test may have done it
        made.nodes = kwok_nodes(cluster, count, extended)
        made.before = made.everything()
        yield made


def _wait_until_gone(cluster: Cluster, path: str) -> None:
    wait_for(f"{path} to be gone", lambda: not cluster.api.exists(path), timeout_s=120)


@contextmanager
def pods_of_one_test(release: Release, namespace: str) -> Iterator[Stage]:
    """Pods for a scheduler of the release; they and all policies are gone in the end."""
    stage = Stage(api=release.api, name=namespace, start_scheduler=lambda _: str)
    stage.open()
    try:
        yield stage
    finally:
        release.remove(one["metadata"]["name"] for one in release.api.items(POLICIES))
        release.api.delete(stage.path)


def processes(*pods: str, variable: str = "POD_NAME") -> Sequence[psutil.Process]:
    """Processes of these pods, of which some may have none, on the node that is this machine."""

    def is_one(process: psutil.Process) -> bool:
        try:
            return process.environ().get(variable) in pods
        except psutil.Error:
            return False

    found = [*filter(is_one, psutil.process_iter())]
    assert found, f"{', '.join(pods)}: no process here"
    return found


def is_ready(pod: Object) -> bool:
    """Return whether its Ready condition is True."""
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", []))


def refused(call: Callable[[], Any]) -> str:
    """Text that a call was refused with; empty if it was not."""
    try:
        call()
    except ClusterError as error:
        return str(error)
    return ""


def _restarts(pod: Object) -> int:
    return sum(one["restartCount"] for one in pod["status"].get("containerStatuses", []))
