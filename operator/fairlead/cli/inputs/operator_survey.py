"""Survey of Fairlead in a cluster, read with the user's permissions; names what may not be read."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from fairlead.control.reconcile.object_client import ObjectClient, resource
from fairlead.kube.errors import ClusterError, ForbiddenError, NotFoundError, RequestError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import PODS, POLICIES, ObjectRef
from fairlead.pki.identities import NAMESPACE, REPLICAS
from fairlead.plain_data import document
from fairlead.render.object_names import SCHEDULER_LABEL
from fairlead.replica_state import METRICS_PATH

Obj = Mapping[str, Any]
_PROBES: Final = "probes"
_METRICS: Final = "metrics"
_MEASURED: Final = ("prometheus", "nodeMetrics", "configMap")
_WITHIN_S: Final = 3.0
_SETTINGS_MAX: Final = 100_000
"""Most values of settings."""


Part = Literal[
    "pods of the operator", "pods of schedulers", "deployments", "configmaps", "leases", "metrics", "pods of others"
]


@dataclass(frozen=True, slots=True)
class Unread:
    """A part of the cluster that could not be read."""

    part: Part
    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Survey of an installed operator: what was read of it."""

    namespace: str
    """Namespace of the operator, as far as known."""
    policies: Sequence[Obj]
    others: Sequence[str] = ()
    """Other namespaces that have pods of an operator."""
    operator: Sequence[Obj] = ()
    """Pods of the operator."""
    own_deployments: Sequence[Obj] = ()
    """Deployment of the operator."""
    listed: Sequence[str] = ()
    """Schedulers that the operator's settings list; they exist without policies."""
    deployments: Sequence[Obj] = ()
    pods: Sequence[Obj] = ()
    """Pods of schedulers."""
    config_maps: Sequence[Obj] = ()
    leases: Sequence[Obj] = ()
    metrics: Mapping[str, str] = field(default_factory=dict)
    """Metrics of the replicas, by pod."""
    unread: Sequence[Unread] = ()


class _Metrics(ObjectRef):
    """Metrics endpoint of a pod, proxied by the API server."""

    @property
    def path(self) -> str:
        """Path of the request."""
        return f"/api/v1/namespaces/{self.namespace}/pods/{self.name}/proxy/metrics"


async def survey(client: Client, namespace: str = "") -> Survey:
    """Read everything. Raises ClusterError if the policies cannot be read."""
    objects = ObjectClient(client)
    policies = await objects.all(POLICIES)
    unread = list[Unread]()

    async def read(part: Part, at: ObjectRef, selector: str) -> list[Obj]:
        try:
            return [*await objects.all(at, labelSelector=selector)]
        except RequestError as error:
            unread.append(Unread(part, f"{part} in {at.namespace}", error.message))
            return []

    homes = await operator_namespaces(objects)
    home = namespace or home_of(homes)
    operator, own_deployments, settings, pods, deployments, config_maps, leases = await asyncio.gather(
        read("pods of the operator", ObjectRef(PODS.resource, home), REPLICAS),
        read("deployments", ObjectRef(resource("Deployment"), home), REPLICAS),
        read("configmaps", ObjectRef(resource("ConfigMap"), home), REPLICAS),
        read("pods of schedulers", ObjectRef(PODS.resource, home), SCHEDULER_LABEL),
        read("deployments", ObjectRef(resource("Deployment"), home), SCHEDULER_LABEL),
        read("configmaps", ObjectRef(resource("ConfigMap"), home), SCHEDULER_LABEL),
        read("leases", ObjectRef(resource("Lease"), home), ""),
    )
    metrics = await _all_metrics(client, operator, unread.append)
    return Survey(
        namespace=home,
        policies=policies,
        others=[one for one in homes if one != home],
        operator=operator,
        own_deployments=own_deployments,
        listed=[name for one in settings for name in _listed(one)],
        pods=pods,
        deployments=deployments,
        config_maps=config_maps,
        leases=leases,
        metrics=metrics,
        unread=sorted({one.what: one for one in unread}.values(), key=lambda one: one.what),
    )


async def operator_namespaces(objects: ObjectClient) -> list[str]:
    """Return the namespaces of operators, also without replicas; empty if there is none or none may be listed."""
    for at in (PODS, ObjectRef(resource("Deployment"))):
        with suppress(ForbiddenError, NotFoundError):
            if found := await objects.all(at, labelSelector=REPLICAS):
                return sorted({one["metadata"]["namespace"] for one in found})
    return []


def home_of(homes: Sequence[str]) -> str:
    """Return the namespace of the operator that is looked at, of those that have one."""
    return NAMESPACE if NAMESPACE in homes or not homes else homes[0]


def _listed(settings: Obj) -> list[str]:
    """Return the schedulers that the settings in a ConfigMap list; none if it holds no settings.

    Nothing else of the settings is read, so that they may be those of another version.
    """
    try:
        schedulers = document(settings["data"]["settings.yaml"].encode(), _SETTINGS_MAX)["schedulers"]
        return [one["name"] for one in schedulers]
    except (AttributeError, KeyError, TypeError, ValueError):
        return []


def select_measured(policy: Obj) -> list[Obj]:
    """Return the entries of a policy that are measured; others are read from annotations and labels of nodes."""
    entries: Sequence[Obj] = (policy.get("spec") or {}).get("data") or ()
    return [entry for entry in entries if any(source in entry for source in _MEASURED)]


async def _all_metrics(client: Client, pods: Sequence[Obj], unread: Callable[[Unread], None]) -> dict[str, str]:
    running = [pod for pod in pods if pod["status"].get("phase") == "Running"]
    answers = await asyncio.gather(*(_metrics(client, pod) for pod in running))
    by_pod = {pod["metadata"]["name"]: answer for pod, answer in zip(running, answers, strict=True)}
    silent = {name: one.why for name, one in by_pod.items() if isinstance(one, _Silent)}
    if silent:
        unread(Unread("metrics", f"metrics of {', '.join(silent)}", next(iter(silent.values()))))
    return {name: one for name, one in by_pod.items() if isinstance(one, str)}


@dataclass(frozen=True, slots=True)
class _Silent:
    why: str


async def _metrics(client: Client, pod: Obj) -> str | _Silent:
    ports = {port.get("name"): port for one in pod["spec"]["containers"] for port in one.get("ports", ())}
    if _METRICS in ports:
        return await _secured(client, pod)
    port = ports.get(_PROBES, {}).get("containerPort", 8080)
    metadata = pod["metadata"]
    try:
        at = _Metrics(PODS.resource, metadata["namespace"], f"{metadata['name']}:{port}", "proxy")
        return (await client.read(at, within_s=_WITHIN_S)).decode(errors="replace")
    except RequestError as error:
        return _Silent(error.message)


async def _secured(client: Client, pod: Obj) -> str | _Silent:
    """Return the metrics of a replica that asks others for a token: it gives them to the operator without one.

    No token of the user is sent to a pod.
    """
    from fairlead.cli.inputs.replica_pages import ReplicaPages, SilentError

    try:
        pages = await ReplicaPages(client, pod["metadata"]["namespace"]).fetch(pod, [METRICS_PATH])
    except (ClusterError, SilentError) as error:
        return _Silent(f"{error} (with metrics.secure, this needs the Secret of the operator's authority)")
    page = pages.get(METRICS_PATH)
    return _Silent("it has no such page") if page is None else page.decode(errors="replace")
