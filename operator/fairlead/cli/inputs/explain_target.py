"""Pods that `fairlead explain` explains: one pod, those of a workload, a pod in a file, or all that wait."""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from fairlead.api.closest_name import closest_name
from fairlead.cli.console.exits import CommandError
from fairlead.cli.inputs.cluster_reader import ClusterAccess
from fairlead.cli.inputs.simulation_inputs import (
    Pod,
    is_live,
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
from fairlead.simulation.workloads import Workload, WorkloadKind, WorkloadRef, kind_spelt

POD_KINDS: Final = ("pod", "pods", "po")
_FORMS: Final = "write pod/NAME, deploy/NAME, sts/NAME, ds/NAME, rs/NAME or job/NAME, and its namespace as -n NAME"


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
        if is_live("--snapshot", self.access.options.snapshot):
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


def target_of(options: argparse.Namespace, access: ClusterAccess) -> ExplainTarget:
    """Return the pods to explain; reads those of a file. Raises CommandError and others."""
    namespace: str = options.namespace
    if options.pending:
        _check_pending(options)
        return ExplainTarget(
            access, "" if options.all_namespaces else namespace or _default(options, access), pending=True
        )
    if options.all_namespaces:
        options.parser.error("-A is for --pending: to explain a pod, give its namespace as -n NAME")
    kind, name = _named(options)
    if is_live("--snapshot", options.snapshot):
        namespace = namespace or access.access.namespace
    if options.filename is None:
        return ExplainTarget(access, namespace, name, kind)
    pod = pod_in_file(options.filename, namespace, name)
    return ExplainTarget(access, pod.key[0], pod.key[1], in_file=pod)


def _check_pending(options: argparse.Namespace) -> None:
    if options.pod or options.filename is not None:
        options.parser.error("--pending is for all pods that wait: leave out the pod")
    if options.node:
        options.parser.error("--node is for one pod: leave out --pending")
    if options.namespace and options.all_namespaces:
        options.parser.error("-n and -A contradict each other: leave out one of them")


def _default(options: argparse.Namespace, access: ClusterAccess) -> str:
    """Return the namespace of the kubeconfig; "" for that of files, which are all in what was given."""
    return access.access.namespace if is_live("--snapshot", options.snapshot) else ""


def _named(options: argparse.Namespace) -> tuple[WorkloadKind | None, str]:
    """Return the kind and the name; "" if the file says it. Raises CommandError."""
    words: list[str] = options.pod
    if not words:
        if options.filename is None:
            options.parser.error("the following arguments are required: pod/NAME, or -f FILE, or --pending")
        return None, ""
    *kinds, last = words
    kind, slash, name = last.rpartition("/")
    kinds += [kind] if slash else []
    found = [kind_spelt(one) for one in kinds]
    is_known = all(one in POD_KINDS or workload for one, workload in zip(kinds, found, strict=True))
    if len(kinds) > 1 or not is_known or not name:
        raise CommandError(f"{' '.join(words)!r} is neither a pod nor a workload: {_FORMS}")
    return (found[0] if found else None), name


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
