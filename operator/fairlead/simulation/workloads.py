"""Workloads, such as Deployments: how they are spelt, which pods are theirs, and pods of their templates. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from fairlead.simulation.snapshot import Key, Raw, Snapshot, SnapshotObject, reading, spelt
from fairlead.simulation.snapshot_error import SnapshotError

REPLICAS_MAX: Final = 100_000
"""Most pods of one template that are simulated."""
_CRON: Final = re.compile(r"-\d+")
_HASH: Final = "pod-template-hash"
_JOB_NAME: Final = ("batch.kubernetes.io/job-name", "job-name")
"""Labels that pods get from their Job."""


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """A kind of objects that have a template of pods."""

    kind: str
    group: str
    plural: str
    short: str
    """Abbreviation that kubectl takes, too."""

    @property
    def noun(self) -> str:
        """The kind in lower case, as kubectl spells it."""
        return self.kind.lower()

    def is_spelt(self, text: str) -> bool:
        """Return whether kubectl takes a text for the kind: also `deployment.apps` and `deployments.v1.apps`."""
        name, _, rest = text.lower().partition(".")
        return name in (self.noun, self.plural, self.short) and rest in ("", self.group, f"v1.{self.group}")


DEPLOYMENT: Final = WorkloadKind("Deployment", "apps", "deployments", "deploy")
STATEFUL_SET: Final = WorkloadKind("StatefulSet", "apps", "statefulsets", "sts")
DAEMON_SET: Final = WorkloadKind("DaemonSet", "apps", "daemonsets", "ds")
REPLICA_SET: Final = WorkloadKind("ReplicaSet", "apps", "replicasets", "rs")
JOB: Final = WorkloadKind("Job", "batch", "jobs", "job")
CRON_JOB: Final = WorkloadKind("CronJob", "batch", "cronjobs", "cj")
KINDS: Final = (DEPLOYMENT, STATEFUL_SET, DAEMON_SET, REPLICA_SET, JOB, CRON_JOB)


def kind_spelt(text: str) -> WorkloadKind | None:
    """Return the kind that kubectl takes a text for; None if it is none of these."""
    return next((one for one in KINDS if one.is_spelt(text)), None)


@dataclass(frozen=True, slots=True)
class WorkloadRef:
    """Kind, namespace and name of a workload."""

    kind: WorkloadKind
    key: Key

    def __str__(self) -> str:
        return f"{self.kind.noun} {spelt(self.key)}"

    def owns(self, key: Key, raw: Raw) -> bool:
        """Return whether a pod is one of the workload, by its controller."""
        if key[0] != self.key[0]:
            return False
        with reading("pod", key, SnapshotObject(raw, "")):
            metadata = _pod.decode(raw).metadata
        controller = next((one for one in metadata.ownerReferences or () if one.controller), None)
        if controller is None:
            return False
        name = self.key[1]
        if self.kind is DEPLOYMENT:
            labels = metadata.labels or {}
            return (controller.kind, controller.name) == ("ReplicaSet", f"{name}-{labels.get(_HASH)}")
        if self.kind is CRON_JOB:
            rest = controller.name.removeprefix(name)
            return controller.kind == "Job" and rest != controller.name and _CRON.fullmatch(rest) is not None
        return (controller.kind, controller.name) == (self.kind.kind, name)


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload with its object."""

    ref: WorkloadRef
    obj: Mapping[str, Any]
    file: str = ""

    @property
    def replicas(self) -> int | None:
        """Number of pods that it asks for; None of a DaemonSet: that depends on the nodes."""
        spec, kind = self._spec, self.ref.kind
        if kind is DAEMON_SET:
            return None
        is_job = kind in (JOB, CRON_JOB)
        wanted = [spec.get(name) for name in (("parallelism", "completions") if is_job else ("replicas",))]
        counts = [one for one in wanted if one is not None]
        if any(not isinstance(one, int) or isinstance(one, bool) or not 0 <= one <= REPLICAS_MAX for one in counts):
            raise SnapshotError(f"{self._where}: the number of its pods is not one from 0 to {REPLICAS_MAX:,}")
        if is_job and wanted[0] is None:
            return 1
        return min(counts, default=1)

    @property
    def ended(self) -> str:
        """Return how a Job has ended; "" if it has not."""
        return next((one for one in ("Complete", "Failed") if self._condition(one)), "") if self.ref.kind is JOB else ""

    @property
    def fault(self) -> str:
        """Return why its controller creates no pods, as far as it says; "" if it does."""
        said = self._condition("ReplicaFailure")
        return str(said.get("message", "")) if said else ""

    @property
    def is_controlled(self) -> bool:
        """Return whether another workload has created it."""
        owners = (self.obj.get("metadata") or {}).get("ownerReferences") or ()
        return any(isinstance(one, Mapping) and one.get("controller") for one in owners)

    def template_pod(self) -> SnapshotObject:
        """Return a pod of the template, with the name of the workload. Raises SnapshotError."""
        return self._stored(self.ref.key[1], {})

    def template_pods(self) -> Iterator[tuple[Key, SnapshotObject]]:
        """Yield as many pods of the template as it asks for; of a DaemonSet one. Raises SnapshotError."""
        replicas = self.replicas
        for at in range(1 if replicas is None else replicas):
            name = f"{self.ref.key[1]}-{at}"
            labels = {"apps.kubernetes.io/pod-index": str(at), "statefulset.kubernetes.io/pod-name": name}
            yield (
                (self.ref.key[0], name),
                self._stored(name, labels if self.ref.kind is STATEFUL_SET else {}),
            )

    @property
    def _where(self) -> str:
        return f"{self.file}: {self.ref}" if self.file else str(self.ref)

    @property
    def _spec(self) -> Mapping[str, Any]:
        spec = self.obj.get("spec") or {}
        if self.ref.kind is CRON_JOB and isinstance(spec, Mapping):
            spec = (spec.get("jobTemplate") or {}).get("spec") or {}
        return spec if isinstance(spec, Mapping) else {}

    def _condition(self, kind: str) -> Mapping[str, Any] | None:
        conditions = (self.obj.get("status") or {}).get("conditions") or ()
        return next((one for one in conditions if (one.get("type"), one.get("status")) == (kind, "True")), None)

    def _stored(self, name: str, labels: Mapping[str, str]) -> SnapshotObject:
        """Return a pod as the API server would store it."""
        template = self._spec.get("template")
        if not isinstance(template, Mapping) or not isinstance(template.get("spec"), Mapping):
            raise SnapshotError(f"{self._where}: has no spec.template with a spec")
        metadata = template.get("metadata") or {}
        owner = {DEPLOYMENT: REPLICA_SET, CRON_JOB: JOB}.get(self.ref.kind, self.ref.kind)
        if owner is JOB:
            labels = {**dict.fromkeys(_JOB_NAME, self.ref.key[1]), **labels}
        reference = {
            "apiVersion": f"{owner.group}/v1",
            "kind": owner.kind,
            "name": self.ref.key[1],
            "uid": "",
            "controller": True,
        }
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": self.ref.key[0],
                "labels": {**(metadata.get("labels") or {}), **labels},
                "annotations": metadata.get("annotations") or {},
                "ownerReferences": [reference],
            },
            "spec": template["spec"],
        }
        made = Snapshot()
        made.put(pod, self.file)
        return made.pods[self.ref.key[0], name]


def workloads(snapshot: Snapshot) -> Iterator[Workload]:
    """Yield the workloads of a snapshot that no other workload has created, each with its object."""
    for kind in KINDS:
        for key, held in snapshot.workloads.get(kind.kind, {}).items():
            found = Workload(WorkloadRef(kind, key), msgspec.json.decode(held.raw), held.file)
            if not found.is_controlled:
                yield found


class _Owner(msgspec.Struct, gc=False):
    kind: str = ""
    name: str = ""
    controller: bool | None = None


class _Metadata(msgspec.Struct, gc=False):
    labels: dict[str, str] | None = None
    ownerReferences: list[_Owner] | None = None  # noqa: N815 - as in the API


class _Pod(msgspec.Struct, gc=False):
    metadata: _Metadata


_pod: Final = msgspec.json.Decoder(_Pod)
