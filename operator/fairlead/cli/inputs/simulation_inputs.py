"""Inputs of a simulation in files: policies, objects and pods."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import msgspec

from fairlead.api.closest_name import closest_name
from fairlead.api.names import CLUSTERS_OWN_SCHEDULER, KIND
from fairlead.cli.console import exits
from fairlead.cli.console.exits import CommandError
from fairlead.cli.inputs.files import BYTES_MAX, File, files
from fairlead.cli.inputs.strategy_folder import custom_strategies
from fairlead.mirror.resource_requests import ENDED
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import shares_in_force
from fairlead.policy.evaluate.matching import PolicySet, policy_set
from fairlead.policy.lint.codes import LintCode
from fairlead.simulation.simulation import policies_for
from fairlead.simulation.snapshot import GET, Key, Raw, Snapshot, SnapshotObject, spelt
from fairlead.simulation.workloads import Workload, WorkloadRef, workloads

if TYPE_CHECKING:
    from fairlead.cli.inputs.findings import Finding

SNAPSHOT_BYTES_MAX: Final = 4 << 30
_MATCHED_MAX: Final = 20
"""Pods of which each is matched with all policies to find out what has to be measured."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod to simulate."""

    key: Key
    raw: Raw
    file: str
    scheduler: str
    """Name of its scheduler."""
    waits: bool = True
    """True if it has no node."""
    template_of: str = ""
    """The workload of whose template it is made; "" for a pod that exists or is in a file."""
    affinity_added: bool = False
    """True if it was given the node affinity that policies publish, as it would be created now."""


def policies_of(names: Sequence[str]) -> PolicySet:
    """Return the compiled policies of files and directories. Raises CommandError with the first error of lint."""
    from fairlead.cli.inputs.checker import Checker

    checker = Checker(custom=custom_strategies(), errors_only=True)
    for file in files(names):
        if not file.empty:
            checker.check(file.name, _data(file, BYTES_MAX))
    found = checker.finish()
    wrong = [one for one in found.findings if one.severity == "error" or one.reason == LintCode.SAME_NAME]
    if wrong:
        more = f" (`fairlead lint` finds {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise CommandError(_said(wrong[0]) + more, exits.FAILED)
    if not checker.compiled:
        raise CommandError(f"no {KIND} found in {', '.join(names)}; name the files that hold policies")
    return policy_set(checker.compiled)


def snapshot_of(names: Sequence[str]) -> Snapshot:
    """Return the objects in files and directories. Raises CommandError and SnapshotError."""
    snapshot = Snapshot()
    _read_into(snapshot, names)
    return snapshot


def _read_into(snapshot: Snapshot, names: Sequence[str]) -> None:
    for file in files(names, SNAPSHOT_BYTES_MAX):
        if file.empty:
            raise CommandError(f"{file.name}: {file.empty}")
        snapshot.read(file.name, _data(file, SNAPSHOT_BYTES_MAX))


def nodes_of(snapshot: Snapshot, where: str) -> None:
    """Raise CommandError if a snapshot has no nodes."""
    if not snapshot.nodes:
        raise CommandError(f"{where} has no nodes; export them with `{GET}`")


def pods_of(snapshot: Snapshot, where: str) -> list[Pod]:
    """Return all pods that have not ended, and those of workloads without pods, as many as they ask for.

    Raises CommandError if there are none.
    """
    pods = _live_pods(snapshot)
    made = Snapshot()
    for workload in workloads(snapshot):
        if not any(workload.ref.owns(key, held.raw) for key, held in snapshot.pods.items()):
            made.pods.update(workload.template_pods())
    return _any([*pods, *_live_pods(made)], snapshot, where)


def templates_of(snapshot: Snapshot, where: str) -> list[Pod]:
    """Return all pods that have not ended, and one pod of each template. Raises CommandError if there are none."""
    found = _live_pods(snapshot)
    for workload in workloads(snapshot):
        found.append(template_of(workload))
    return _any(found, snapshot, where)


def template_of(workload: Workload) -> Pod:
    """Return a pod of the template of a workload. Raises SnapshotError."""
    held = workload.template_pod()
    return replace(_pod_of(workload.ref.key, held), template_of=str(workload.ref))


def _live_pods(snapshot: Snapshot) -> list[Pod]:
    return [one for one, look in _looked_at(snapshot) if look.status.phase not in ENDED]


def _any(pods: list[Pod], snapshot: Snapshot, where: str) -> list[Pod]:
    if not pods:
        others = ", ".join(f"{count} {kind}" for kind, count in _others(snapshot).items())
        raise CommandError(f"{where} has no pods to simulate{f', only {others}' if others else ''}")
    return pods


def pod_of(snapshot: Snapshot, namespace: str, name: str, where: str) -> Pod:
    """Return the pod with a name; without a namespace the only one with that name. Raises CommandError."""
    found = {key: one for key in snapshot.pods if key[1] == name for one in [snapshot.pods[key]]}
    within = {key: one for key, one in found.items() if not namespace or key[0] == namespace}
    if len(within) > 1:
        raise CommandError(f"there is a pod {name} in {_listed(key[0] for key in within)}: select one with -n")
    if not within:
        raise CommandError(f"there is no pod {spelt((namespace, name))} in {where}{_meant(snapshot, namespace, name)}")
    [(pod, look)] = _looked_at(Snapshot(pods=within))
    if look.status.phase in ENDED:
        raise CommandError(f"the pod {spelt(pod.key)} has ended ({look.status.phase}) and is not placed any more")
    return pod


def pod_in_file(name: str, namespace: str, pod: str) -> Pod:
    """Return the pod of a file, of several the one with a name; of a workload one of its template.

    A pod that names no namespace is in the given one, as if it were applied there. Raises CommandError and
    SnapshotError.
    """
    snapshot = Snapshot(namespace=namespace or "default")
    _read_into(snapshot, [name])
    pods = templates_of(snapshot, name)
    if pod:
        named = [one for one in pods if one.key[1] == pod and (not namespace or one.key[0] == namespace)]
        if not named or len(named) > 1:
            made = Snapshot(pods={one.key: SnapshotObject(one.raw, one.file) for one in pods})
            return pod_of(made, namespace, pod, name)
        return named[0]
    if len(pods) > 1:
        raise CommandError(f"{name} has the pods {_listed(map(_spelt, pods))}: name one of them")
    if namespace and pods[0].key[0] != namespace:
        raise CommandError(f"{name}: the {_named(pods[0])} is not in the namespace {namespace}: leave out -n")
    return pods[0]


def _spelt(pod: Pod) -> str:
    return pod.template_of or spelt(pod.key)


def _named(pod: Pod) -> str:
    return pod.template_of or f"pod {spelt(pod.key)}"


def unknown_node(name: str, names: Iterable[str]) -> CommandError:
    """Return the error for a node that is not there."""
    near = closest_name(name, names)
    return CommandError(f"there is no node {name!r}" + (f": did you mean {near}?" if near else ""))


def _meant(snapshot: Snapshot, namespace: str, name: str) -> str:
    """Return a hint: another namespace or a similar name."""
    elsewhere = [key[0] for key in snapshot.pods if key[1] == name]
    if elsewhere:
        return f"; there is one in {_listed(elsewhere)}: select it with -n"
    near = closest_name(name, (key[1] for key in snapshot.pods if not namespace or key[0] == namespace))
    if near:
        return f": did you mean {near}?"
    return "" if snapshot.pods else f", which has no pods; `{GET}` exports them"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def pods_of_schedulers(snapshot: Snapshot, policies: PolicySet) -> list[Pod]:
    """Return the pods of schedulers that policies name, with and without a node."""
    schedulers = {policy.scheduler_name for policy in policies.policies}
    return [one for one in _live_pods(snapshot) if one.scheduler in schedulers]


def schedulers_of(snapshot: Snapshot) -> Iterator[str]:
    """Yield the scheduler of each pod that has not ended."""
    return (one.scheduler for one in _live_pods(snapshot))


def waiting_pods(snapshot: Snapshot, policies: PolicySet) -> list[Pod]:
    """Return the unplaced pods of schedulers that policies name."""
    return [one for one in pods_of_schedulers(snapshot, policies) if one.waits]


def pods_of_workload(snapshot: Snapshot, ref: WorkloadRef) -> list[Pod]:
    """Return the pods of a workload that have not ended, the newest first: older ones may have an older template."""
    found = [one for one in _live_pods(snapshot) if ref.owns(one.key, one.raw)]
    return sorted(found, key=lambda one: str(_created.decode(one.raw).metadata.creationTimestamp or ""), reverse=True)


def pending_pods(snapshot: Snapshot, namespace: str) -> list[Pod]:
    """Return all pods without a node, of a namespace or, if it is "", of all."""
    return [one for one in _live_pods(snapshot) if one.waits and namespace in ("", one.key[0])]


class _Spec(msgspec.Struct, frozen=True, gc=False):
    nodeName: str | None = None  # noqa: N815 - as in the API
    schedulerName: str | None = None  # noqa: N815


class _Status(msgspec.Struct, frozen=True, gc=False):
    phase: str | None = None


class _Look(msgspec.Struct, frozen=True, gc=False):
    spec: _Spec = _Spec()
    status: _Status = _Status()


class _Metadata(msgspec.Struct, frozen=True, gc=False):
    creationTimestamp: object = None  # noqa: N815 - who judges a pod says what is wrong with it


class _Created(msgspec.Struct, frozen=True, gc=False):
    metadata: _Metadata = _Metadata()


_look: Final = msgspec.json.Decoder(_Look)
_created: Final = msgspec.json.Decoder(_Created)


def _looked_at(snapshot: Snapshot) -> Iterator[tuple[Pod, _Look]]:
    for key, held in snapshot.pods.items():
        try:
            look = _look.decode(held.raw)
        except msgspec.DecodeError as error:
            raise CommandError(f"{held.file}: pod {spelt(key)} cannot be read: {error}") from None
        yield _looked(key, held, look), look


def _looked(key: Key, obj: SnapshotObject, look: _Look) -> Pod:
    scheduler = look.spec.schedulerName or CLUSTERS_OWN_SCHEDULER
    return Pod(key, obj.raw, obj.file, scheduler, waits=not look.spec.nodeName)


def _pod_of(key: Key, obj: SnapshotObject) -> Pod:
    [(found, _)] = _looked_at(Snapshot(pods={key: obj}))
    return found


def _others(snapshot: Snapshot) -> dict[str, int]:
    return {**snapshot.others, **({"Node": len(snapshot.nodes)} if snapshot.nodes else {})}


def _data(file: File, bytes_max: int) -> bytes:
    if file.unreadable:
        raise CommandError(f"{file.name}: cannot be read: {file.unreadable}")
    if file.too_large:
        raise CommandError(f"{file.name}: the file is larger than {bytes_max >> 20} MiB; split it")
    return file.data


def _said(finding: "Finding") -> str:
    what = ": ".join(part for part in (finding.field, finding.message) if part)
    hint = finding.hint.partition("\n")[0]
    return f"{finding.file}:{finding.line}:{finding.column}: {what}" + (f"; {hint}" if hint else "")


def policies_with_devices(policies: Sequence[CompiledPolicy], *_: object) -> Sequence[CompiledPolicy]:
    """Return the policies that share devices."""
    return [one for one in policies if shares_in_force([one])]


def policies_that_learn(policies: Sequence[CompiledPolicy], *_: object) -> Sequence[CompiledPolicy]:
    """Return the policies that have a rule that learns."""
    return [one for one in policies if one.learning or one.demanding]


def policies_of_pods(
    policies: Sequence[CompiledPolicy], pods: Sequence[Pod], snapshot: Snapshot, now: int
) -> Sequence[CompiledPolicy]:
    """Return the policies that match one of the pods, or may match it; of many pods those of their schedulers."""
    if len(pods) > _MATCHED_MAX:
        schedulers = {one.scheduler for one in pods}
        return [one for one in policies if one.scheduler_name in schedulers]
    found = {id(one) for pod in pods for one in policies_for(policies, snapshot, pod.raw, now, pod.file)}
    return [one for one in policies if id(one) in found]
