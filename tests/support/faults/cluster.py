"""Cluster around the operator: controllers that run Deployments, schedulers that lead and place pods, a replica."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import msgspec

from fairlead.kube.watch.secrets import Secret, SecretMetadata
from fairlead.pki.authority import Authority
from fairlead.process.replica_certificates import ReplicaCertificates
from fairlead.render.object_names import CONFIG_HASH
from fairlead.replica_state import PolicyState, ReplicaState, RuleState
from support.faults.api import Api, Happened, Key, Object
from support.faults.faults import telling
from support.render.scheduler_bindings import chart_bindings

NAMESPACE, SCHEDULER = "fairlead-system", "s"
SOON_S = 0.5
HASH = CONFIG_HASH
DEPLOYMENT: Key = ("apps", "deployments", NAMESPACE, "kube-scheduler-s")
LEASE: Key = ("coordination.k8s.io", "leases", NAMESPACE, "kube-scheduler-s")
AUTHORITY: Key = ("", "secrets", NAMESPACE, "fairlead-ca")
BINDING: Key = ("rbac.authorization.k8s.io", "clusterrolebindings", "", f"fairlead.{NAMESPACE}.kube-scheduler")
PLACED: Key = ("", "pods", "default", "placed")
READY = [{"type": "Ready", "status": "True"}]
REFUSES = {"terminated": {"exitCode": 1, "reason": "Error", "message": "it does not like that"}}


def binding_key(binding: Object) -> Key:
    """Key of a binding."""
    metadata = binding["metadata"]
    return "rbac.authorization.k8s.io", f"{binding['kind'].lower()}s", metadata.get("namespace", ""), metadata["name"]


@dataclass
class FakeCluster:
    """All of it. What it does is not counted as written."""

    epoch: datetime = datetime(2026, 11, 21, tzinfo=UTC)
    bad: set[str] = field(default_factory=set)
    """What a configuration must not hold."""
    no_image: bool = False
    """Whether its pods wait for what they are made of."""
    material: ReplicaCertificates | None = None
    counted: Callable[[], int] = lambda: 0
    """How often its rule could not decide, and how many pods it alone refuses."""
    admission: Literal["off", "reached", "blocked"] = "off"
    """Whether its replica is to review policies, and the API server reaches it."""
    process: str = ""
    """Its replica's process."""
    api: Api = field(init=False)
    _reviewed: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.api = Api(lambda: f"{self.now():%Y-%m-%dT%H:%M:%SZ}")
        self.api.put(("", "namespaces", "", NAMESPACE), {"metadata": {}})
        for one in chart_bindings(NAMESPACE):
            self.api.put(binding_key(one), one)

    def copy(self) -> "FakeCluster":
        """Another one that is as this one is."""
        made = FakeCluster(self.now(), set(self.bad))
        made.api = self.api.copy()
        made.api.now = lambda: f"{made.now():%Y-%m-%dT%H:%M:%SZ}"
        return made

    def now(self) -> datetime:
        """The time of day."""
        try:
            return self.epoch + timedelta(seconds=asyncio.get_running_loop().time())
        except RuntimeError:
            return self.epoch

    def begin(self) -> Callable[[], None]:
        """From now on; ends when what it gives is called."""
        self.material = ReplicaCertificates(frozenset({"x"}), self.now, lambda _: None)
        if AUTHORITY in self.api.objects:
            self._authority(self.api.objects[AUTHORITY])
        self._soon()
        return telling(self.api, self._hear)

    @property
    def authority(self) -> Authority | None:
        return self.material.authority if self.material else None

    def state(self) -> Mapping[str, ReplicaState | str]:
        """State of the replica, which serves at once all that there is."""
        assert self.material is not None
        taken = self.material.state
        policies = {
            key[3]: _served(one, self.counted(), self._reviewed)
            for key, one in self.api.of("schedulerextenderpolicies")
        }
        state = ReplicaState(
            policy_set="-".join(f"{name}/{one.generation}/{one.serving}" for name, one in policies.items()) or "none",
            policies=policies,
            authorities=taken.trusts if taken else "",
            issuer=taken.issuer if taken else "",
            process=self.process,
            reviews=self.admission != "off",
        )
        return {"fairlead-1": state}

    def _hear(self, happened: Happened) -> None:
        if happened.key == AUTHORITY and happened.type != "DELETED":
            self._authority(happened.obj)
        if happened.key in (DEPLOYMENT, LEASE):
            self._soon()
        if happened.key[1] == "schedulerextenderpolicies" and self.admission == "reached":
            self._reviewed[happened.obj["metadata"]["uid"]] = happened.obj["metadata"]["generation"]

    def _soon(self) -> None:
        asyncio.get_running_loop().call_later(SOON_S, self.run)

    def _authority(self, obj: Object) -> None:
        assert self.material is not None
        meta = SecretMetadata(obj["metadata"]["name"], NAMESPACE, annotations=obj["metadata"].get("annotations", {}))

        self.material.put(Secret(meta, data=msgspec.convert(obj["data"], dict[str, bytes])))

    def run(self) -> None:
        """Do the work of the Deployment's controllers, the nodes and the schedulers."""
        api = self.api
        pods = {key: one for key, one in api.of("pods") if key[2] == NAMESPACE}
        there = api.objects.get(DEPLOYMENT)
        if there is None:
            for key in pods:
                api.delete(key)
            return
        template, wanted = there["spec"]["template"], there["spec"]["replicas"]
        config = template["metadata"]["annotations"][HASH]
        kept = api.objects.get(("", "configmaps", NAMESPACE, f"kube-scheduler-s.{config}"))
        if kept is None:
            return
        fails = any(one in kept["data"]["config.yaml"] for one in self.bad)
        if self.no_image:
            return
        names = {("", "pods", NAMESPACE, f"kube-scheduler-s-{config}-{n}") for n in range(1 if fails else wanted)}
        for key in names:
            status: Object = {"phase": "Pending" if fails else "Running", "podIP": "10.0.0.9"}
            status |= {"initContainerStatuses": [{"state": REFUSES}]} if fails else {"conditions": READY}
            api.put(key, {"metadata": dict(template["metadata"]), "spec": template["spec"], "status": status})
        old = {key for key in pods if key not in names and (not fails or pods[key]["status"]["phase"] != "Running")}
        for key in old:
            api.delete(key)
        left = len(pods.keys() - old - names)
        generation = api.objects[DEPLOYMENT]["metadata"]["generation"]
        counts = {"replicas": left + len(names), "updatedReplicas": len(names)}
        api.edit(DEPLOYMENT, status={"observedGeneration": generation, "availableReplicas": wanted, **counts})
        if not fails:
            self._lead(f"{min(names)[3]}_x")

    def _lead(self, who: str) -> None:
        """One leads, and places a pod."""
        api = self.api
        lease = api.objects.get(LEASE, {"metadata": {}})
        api.put(LEASE, {**lease, "spec": {**lease.get("spec", {}), "holderIdentity": who}})
        pod: dict[str, Any] = {"spec": {"schedulerName": SCHEDULER, "nodeName": "n"}, "status": {"phase": "Running"}}
        api.put(PLACED, {**api.objects.get(PLACED, {"metadata": {}}), **pod})


def _served(policy: Object, counted: int, reviewed: Mapping[str, int]) -> PolicyState:
    metadata, spec = policy["metadata"], policy["spec"]
    generation = str(metadata["generation"])
    leaves = "deletionTimestamp" in metadata
    return PolicyState(
        uid=metadata["uid"],
        generation=generation,
        serving="" if leaves else generation,
        reason="Compiled",
        scheduler=SCHEDULER,
        fails=not leaves,
        scores=not leaves and "scores" in spec,
        binds=not leaves and "binding" in spec,
        rules=(RuleState(kind="Filter", name="f", errors=counted, last_error="no such key" if counted else ""),),
        rejected_pods=counted // 10 % 2,
        reviewed=reviewed.get(metadata["uid"], 0),
    )
