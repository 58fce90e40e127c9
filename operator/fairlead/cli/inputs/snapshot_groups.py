"""Groups of the pods in a snapshot, with the turns that are published in it. Pure."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import msgspec

from fairlead.groups.turns import Turns, read_turns, scheduler_of, turns_name
from fairlead.mirror import decode
from fairlead.mirror.resource_requests import ENDED
from fairlead.pki.identities import NAMESPACE
from fairlead.policy.evaluate.matching import PolicySet
from fairlead.policy.explain.group_overview import GroupOverview, group_overview
from fairlead.policy.views.pod_view import PodView
from fairlead.simulation.pod_groups import SharedDomains
from fairlead.simulation.snapshot import Key, Snapshot, SnapshotObject, spelt
from fairlead.simulation.snapshot_error import SnapshotError


@dataclass(slots=True)
class PublishedTurns:
    """Turns and rests that a snapshot has."""

    turns: dict[str, Turns] = field(default_factory=dict)
    """By scheduler."""
    faults: list[str] = field(default_factory=list)
    """ConfigMaps that cannot be read, with the reason and what to do."""
    notes: list[str] = field(default_factory=list)


def published_turns(snapshot: Snapshot) -> PublishedTurns:
    """Return the turns of each scheduler; of several namespaces those of the operator's usual one count.

    Raises SnapshotError.
    """
    found, homes = PublishedTurns(), dict[str, list[str]]()
    for key in sorted(snapshot.turns, key=lambda one: (one[0] != NAMESPACE, one)):
        with _reading("configmap", key, snapshot.turns[key]):
            config_map = msgspec.json.decode(snapshot.turns[key].raw)
            scheduler, document = scheduler_of(config_map), read_turns(config_map)
        if key[1] != turns_name(scheduler):
            continue
        others = homes.setdefault(scheduler, [])
        others.append(key[0])
        if len(others) > 1:
            continue
        if document.value is None:
            found.faults.append(document.fault)
        else:
            found.turns[scheduler] = document.value
    for scheduler, namespaces in homes.items():
        if len(namespaces) > 1:
            said = f"turns of {scheduler} are published in the namespaces {', '.join(namespaces)}"
            found.notes.append(
                f"{said}, and only those in {namespaces[0]} are shown: the others are not the operator's"
            )
    return found


def groups_in(snapshot: Snapshot, policies: PolicySet, turns: Mapping[str, Turns], now: int) -> GroupOverview:
    """Return the groups of the pods of a snapshot. Raises SnapshotError for a pod that cannot be read."""
    if not has_groups(policies):
        return GroupOverview((), ())
    return group_overview(_pods(snapshot), policies, turns, now)


def with_domains(overview: GroupOverview, snapshot: Snapshot, policies: PolicySet) -> GroupOverview:
    """Return the groups with the domains that they share. Raises SnapshotError for a ledger that cannot be read."""
    domains = SharedDomains(policies, snapshot)
    return overview._replace(groups=[replace(one, domain=domains.of(one.name).domain) for one in overview.groups])


def has_groups(policies: PolicySet) -> bool:
    """Return whether policies that serve have groups."""
    return any(one.enforced and one.gangs for one in policies.policies)


def _pods(snapshot: Snapshot) -> Iterator[PodView]:
    namespaces = dict[str, object]()
    for key, held in snapshot.namespaces.items():
        with _reading("namespace", key, held):
            namespaces[key[1]] = decode.namespace(held.raw)
    for key, held in snapshot.pods.items():
        with _reading("pod", key, held):
            pod = decode.pod(held.raw)
        if str(pod.status.phase) not in ENDED:
            yield PodView(pod, namespaces.get(key[0]))


@contextmanager
def _reading(kind: str, key: Key, obj: SnapshotObject) -> Iterator[None]:
    try:
        yield
    except (AttributeError, TypeError, ValueError) as error:  # msgspec's errors are ValueErrors
        where = f"{obj.file}: " if obj.file else ""
        raise SnapshotError(f"{where}{kind} {spelt(key)} cannot be read: {error}") from None
