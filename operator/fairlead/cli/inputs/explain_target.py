"""Pods that `fairlead explain` explains: one pod, those of a workload, a pod in a file, or all that wait."""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from fairlead.api.closest_name import closest_name
from fairlead.cli.console.exits import CommandError
from fairlead.cli.inputs.cluster_access import ClusterAccess, objects_are_live
from fairlead.cli.inputs.simulation_inputs import (
    Pod,
    pending_pods,
    pod_in_file,
    pod_of,
    pods_of_workload,
    template_of,
)
from fairlead.kube.errors import ForbiddenError, NotFoundError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef, Page, Resource
from fairlead.policy.evaluate.matching import PolicySet
from fairlead.simulation.snapshot import Key, Snapshot, spelt
from fairlead.simulation.workloads import Workload, WorkloadKind, WorkloadRef


@dataclass(slots=True)
class ExplainTarget:
    """Pods to explain, as the options name them."""

    access: ClusterAccess
    namespace: str
    """"" for that of the only one with the name, or for all."""
    name: str = ""
    kind: WorkloadKind | None = None
    """None for a pod."""
    in_file: Pod | None = None
    pending: bool = False
    workload: Workload | None = field(default=None, init=False)
    """The workload, if its object was read."""
    ref: WorkloadRef | None = field(default=None, init=False)

    @property
    def scope(self) -> Key | None:
        """Namespace and pod that are needed at least; None for everything."""
        if self.in_file is not None:
            return self.in_file.key
        return (self.namespace, "" if self.kind else self.name) if self.namespace else None

    async def select(self, snapshot: Snapshot, where: str, _: PolicySet) -> Sequence[Pod]:
        """Return the pods. Raises CommandError and others."""
        if self.in_file is not None:
            return [self.in_file]
        if self.pending:
            return pending_pods(snapshot, self.namespace)
        if self.kind is None:
            return [pod_of(snapshot, self.namespace, self.name, where)]
        return await self._of_workload(self.kind, snapshot, where)

    async def _of_workload(self, kind: WorkloadKind, snapshot: Snapshot, where: str) -> Sequence[Pod]:
        if objects_are_live(self.access.options):
            self.workload = await self._read(kind)
            self.ref = self.workload.ref
        else:
            self.ref, self.workload = self._in_snapshot(kind, snapshot, where)
        found = pods_of_workload(snapshot, self.ref)
        if found:
            return found
        if self.workload is None:
            raise CommandError(_missing(self.ref, where, ()))
        if self.workload.ended:
            raise CommandError(f"the {self.ref} has ended ({self.workload.ended}): it has no pods to place any more")
        return [template_of(self.workload)]

    async def _read(self, kind: WorkloadKind) -> Workload:
        ref = WorkloadRef(kind, (self.namespace, self.name))
        client, resource = await self.access.client(), Resource(kind.group, "v1", kind.plural)
        try:
            obj = await client.get(ObjectRef(resource, *ref.key), _decode)
        except NotFoundError:
            there = await _names(client, ObjectRef(resource, self.namespace))
            raise CommandError(_missing(ref, "the cluster", there)) from None
        except ForbiddenError as error:
            raise CommandError(f"you may not get the {ref}: {error.message}; explain one of its pods") from None
        return Workload(ref, obj)

    def _in_snapshot(self, kind: WorkloadKind, snapshot: Snapshot, where: str) -> tuple[WorkloadRef, Workload | None]:
        """Return the workload, of which the snapshot may have only the pods."""
        there = snapshot.workloads.get(kind.kind, {})
        namespaces = dict.fromkeys(
            namespace
            for namespace, name in (*there, *((key[0], self.name) for key in snapshot.pods))
            if name == self.name and self.namespace in ("", namespace)
        )
        refs = [WorkloadRef(kind, (namespace, self.name)) for namespace in namespaces]
        found = [one for one in refs if one.key in there or pods_of_workload(snapshot, one)]
        if len(found) > 1:
            where = ", ".join(sorted(one.key[0] for one in found))
            raise CommandError(f"there is a {kind.noun} {self.name} in {where}: select one with -n")
        if not found:
            names = [name for namespace, name in there if self.namespace in ("", namespace)]
            raise CommandError(_missing(WorkloadRef(kind, (self.namespace, self.name)), where, names))
        held = there.get(found[0].key)
        return found[0], None if held is None else Workload(found[0], msgspec.json.decode(held.raw), held.file)


def target_of(access: ClusterAccess, kind: WorkloadKind | None, name: str) -> ExplainTarget:
    """Return the pods to explain, of this kind and name; reads those of a file. Raises CommandError and others."""
    options = access.options
    namespace: str = options.namespace
    if options.pending:
        return ExplainTarget(
            access, "" if options.all_namespaces else namespace or _default(options, access), pending=True
        )
    if not options.filename:
        return ExplainTarget(access, namespace or _default(options, access), name, kind)
    pod = pod_in_file(options.filename[0], namespace or _default(options, access), name)
    return ExplainTarget(access, pod.key[0], pod.key[1], in_file=pod)


def _default(options: argparse.Namespace, access: ClusterAccess) -> str:
    """Return the namespace of the kubeconfig; "" for that of files, which are all in what was given."""
    return access.login.namespace if objects_are_live(options) else ""


def _missing(ref: WorkloadRef, where: str, names: Iterable[str]) -> str:
    near = closest_name(ref.key[1], names)
    cure = ""
    if near:
        cure = f": did you mean {near}?"
    elif where != "the cluster":
        cure = f"; `kubectl get nodes,pods,namespaces,{ref.kind.plural} -A -o json` exports it"
    return f"there is no {ref.kind.noun} {spelt(ref.key)} in {where}{cure}"


async def _names(client: Client, where: ObjectRef) -> list[str]:
    """Return names of objects for a hint; none if they may not be listed."""
    try:
        return [one.metadata.name async for page in client.pages(where, _page) for one in page.items or ()]
    except ForbiddenError:
        return []


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""


class _Object(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


_page: Final = msgspec.json.Decoder(Page[_Object]).decode
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode
