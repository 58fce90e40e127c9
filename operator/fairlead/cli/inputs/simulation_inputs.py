"""Inputs of a simulation: policies in files, objects in files or in a cluster, and the time."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from fairlead.api.closest_name import closest_name
from fairlead.api.names import CLUSTERS_OWN_SCHEDULER, KIND
from fairlead.cel.functions.time_text import timestamp_to_string
from fairlead.cli.console import exits
from fairlead.cli.console.exits import CommandError
from fairlead.cli.inputs.checker import Checker
from fairlead.cli.inputs.files import BYTES_MAX, File, files
from fairlead.cli.inputs.findings import Finding
from fairlead.cli.inputs.strategy_folder import custom_strategies
from fairlead.mirror.resource_requests import ENDED
from fairlead.policy.evaluate.matching import PolicySet, policy_set
from fairlead.policy.lint.codes import LintCode
from fairlead.policy.nodes.annotated_values import moment
from fairlead.simulation.snapshot import GET, Key, Raw, Snapshot, spelt

LIVE: Final = "live"
SNAPSHOT_BYTES_MAX: Final = 4 << 30
_TEMPLATED: Final = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob"})


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod to simulate."""

    key: Key
    raw: Raw
    file: str
    scheduler: str
    """Name of its scheduler."""


def policies_of(names: Sequence[str]) -> PolicySet:
    """Return the compiled policies of files and directories. Raises CommandError with the first error of lint."""
    checker = Checker(custom=custom_strategies())
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
    """Return all pods that have not ended. Raises CommandError if there are none."""
    pods = [one for one, look in _looked_at(snapshot) if look.status.phase not in ENDED]
    if not pods:
        others = ", ".join(f"{count} {kind}" for kind, count in _others(snapshot).items())
        cure = "; write a Pod with the metadata and the spec of the template" if _TEMPLATED & {*snapshot.others} else ""
        raise CommandError(f"{where} has no pods to simulate{f', only {others}' if others else ''}{cure}")
    return pods


def pod_of(snapshot: Snapshot, namespace: str, name: str, where: str) -> Pod:
    """Return the pod with a name; without a namespace the only one with that name. Raises CommandError."""
    found = {key: one for key in snapshot.pods if key[1] == name for one in [snapshot.pods[key]]}
    within = {key: one for key, one in found.items() if not namespace or key[0] == namespace}
    if len(within) > 1:
        raise CommandError(f"there is a pod {name} in {_listed(key[0] for key in within)}: select one with -n")
    if not within:
        raise CommandError(f"there is no pod {spelt((namespace, name))} in {where}{_meant(snapshot, namespace, name)}")
    [(key, held)] = within.items()
    look = _look.decode(held.raw)
    if look.status.phase in ENDED:
        raise CommandError(f"the pod {spelt(key)} has ended ({look.status.phase}) and is not placed any more")
    return Pod(key, held.raw, held.file, look.spec.schedulerName or CLUSTERS_OWN_SCHEDULER)


def pod_in_file(name: str, namespace: str, pod: str) -> Pod:
    """Return the pod of a file, of several the one with a name. Raises CommandError and SnapshotError.

    A pod that names no namespace is in the given one, as if it were applied there.
    """
    snapshot = Snapshot(namespace=namespace or "default")
    _read_into(snapshot, [name])
    pods = pods_of(snapshot, name)
    if pod:
        return pod_of(snapshot, namespace, pod, name)
    if len(pods) > 1:
        raise CommandError(f"{name} has the pods {_listed(spelt(one.key) for one in pods)}: name one of them")
    if namespace and pods[0].key[0] != namespace:
        raise CommandError(f"{name}: the pod {spelt(pods[0].key)} is not in the namespace {namespace}: leave out -n")
    return pods[0]


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


def waiting_pods(snapshot: Snapshot, policies: PolicySet) -> list[Pod]:
    """Return the unplaced pods of schedulers that policies name."""
    schedulers = {policy.scheduler_name for policy in policies.policies}
    return [
        one
        for one, look in _looked_at(snapshot)
        if not look.spec.nodeName and look.status.phase not in ENDED and one.scheduler in schedulers
    ]


def moment_of(text: str | None) -> int:
    """Return the time of --now in nanoseconds. Raises CommandError."""
    if text is None:
        return time.time_ns()
    found = moment(text)
    if found is None:
        raise CommandError(
            f"--now {text!r} is not a time; write it as {timestamp_to_string(time.time_ns() // 10**9 * 10**9)}"
        )
    return found


class _Spec(msgspec.Struct, frozen=True, gc=False):
    nodeName: str | None = None  # noqa: N815 - as in the API
    schedulerName: str | None = None  # noqa: N815


class _Status(msgspec.Struct, frozen=True, gc=False):
    phase: str | None = None


class _Look(msgspec.Struct, frozen=True, gc=False):
    spec: _Spec = _Spec()
    status: _Status = _Status()


_look: Final = msgspec.json.Decoder(_Look)


def _looked_at(snapshot: Snapshot) -> Iterator[tuple[Pod, _Look]]:
    for key, held in snapshot.pods.items():
        try:
            look = _look.decode(held.raw)
        except msgspec.DecodeError as error:
            raise CommandError(f"{held.file}: pod {spelt(key)} cannot be read: {error}") from None
        yield Pod(key, held.raw, held.file, look.spec.schedulerName or CLUSTERS_OWN_SCHEDULER), look


def _others(snapshot: Snapshot) -> dict[str, int]:
    return {**snapshot.others, **({"Node": len(snapshot.nodes)} if snapshot.nodes else {})}


def _data(file: File, bytes_max: int) -> bytes:
    if file.unreadable:
        raise CommandError(f"{file.name}: cannot be read: {file.unreadable}")
    if file.too_large:
        raise CommandError(f"{file.name}: the file is larger than {bytes_max >> 20} MiB; split it")
    return file.data


def _said(one: Finding) -> str:
    what = ": ".join(part for part in (one.field, one.message) if part)
    hint = one.hint.partition("\n")[0]
    return f"{one.file}:{one.line}:{one.column}: {what}" + (f"; {hint}" if hint else "")
