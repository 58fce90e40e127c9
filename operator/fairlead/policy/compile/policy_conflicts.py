"""Conflicts between policies: annotations, device shares, layouts of devices and groups."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from fairlead.api.devices import RecordDevices
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.strategies.contract import CompiledShare

GPUSHARE: Final[RecordDevices] = "Gpushare"
FOR_GPUSHARE: Final = "also records for gpushare, whose annotations have room for one grant"


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two policies that write the same annotation; the loser's is not written."""

    key: str
    winner: str
    loser: str


def conflicts(policies: Sequence[CompiledPolicy]) -> list[Conflict]:
    """Return the annotation keys that several policies of one scheduler write, whichever pods they match."""
    found: list[Conflict] = []
    owner: dict[tuple[str, str], str] = {}
    for policy in sorted((policy for policy in policies if policy.enforced), key=lambda policy: policy.order):
        for rule in policy.annotations:
            key = (policy.scheduler_name, rule.key)
            if key in owner:
                found.append(Conflict(rule.key, owner[key], policy.name))
            else:
                owner[key] = policy.name
    return found


def gpushare_too(earlier: Iterable[CompiledShare], later: CompiledShare) -> bool:
    """Report whether a device share of other resources would overwrite what an earlier one records for gpushare."""
    return later.entry.record == GPUSHARE and any(
        one.entry.record == GPUSHARE and {*one.entry.resources}.isdisjoint(later.entry.resources) for one in earlier
    )


class ShareCollision(NamedTuple):
    """Device share of a policy beside one of an earlier policy: a pod that asks for both is not bound."""

    at: int
    """Its index in the later policy."""
    why: str
    """What the earlier policy does, and what follows."""
    cure: str


def share_collisions(earlier: CompiledPolicy, later: CompiledPolicy) -> Iterator[ShareCollision]:
    """Yield the device shares of a later policy of which an earlier one grants a part, or that it would overwrite."""
    before = [rule.share for rule in earlier.device_shares]
    taken = {resource for share in before for resource in share.entry.resources}
    for at, rule in enumerate(later.device_shares):
        resources = rule.share.entry.resources
        common, missing = ([one for one in resources if (one in taken) is want] for want in (True, False))
        if common and missing:
            why = f"grants {common[0]}, but not {missing[0]}: a pod that both match and that asks for both is not bound"
            yield ShareCollision(at, why, "grant each resource by one of them, or let no pod match both")
        elif gpushare_too(before, rule.share):
            why = f"{FOR_GPUSHARE}: a pod that both match and that asks for the resources of both is not bound"
            yield ShareCollision(at, why, "record Fairlead in one of them, or let no pod match both")


@dataclass(frozen=True, slots=True)
class LayoutConflict:
    """Two policies that read the devices with a resource in different ways; both grant from the same ledgers."""

    resource: str
    winner: str
    loser: str


def layout_conflicts(policies: Sequence[CompiledPolicy]) -> list[LayoutConflict]:
    """Return the resources to which policies give different layouts, whatever schedulers and pods they are for."""
    found = list[LayoutConflict]()
    owner: dict[str, tuple[CompiledPolicy, CompiledShare]] = {}
    for policy in sorted((policy for policy in policies if policy.enforced), key=lambda policy: policy.order):
        for rule in policy.device_shares:
            for resource in rule.share.entry.resources:
                first, its_share = owner.setdefault(resource, (policy, rule.share))
                if its_share.entry.layout != rule.share.entry.layout:
                    found.append(LayoutConflict(resource, first.name, policy.name))
    return found


@dataclass(frozen=True, slots=True)
class GangConflict:
    """Two policies that may give one pod a group; that of the winner counts."""

    winner: str
    loser: str


def gang_conflicts(policies: Iterable[CompiledPolicy]) -> list[GangConflict]:
    """Return for each policy with gangs the first one of its scheduler that may match the same pods before it.

    Namespaces and the values of labels that both want tell policies apart; lint looks closer. Conditions do not: they
    are taken as true for pods on nodes.
    """
    found = list[GangConflict]()
    before = dict[str, list[tuple[CompiledPolicy, _Wanted]]]()
    for policy in sorted((one for one in policies if one.enforced and one.gangs), key=lambda one: one.order):
        wanted = _wanted(policy)
        earlier = before.setdefault(policy.scheduler_name, [])
        if first := next((one for one, its_wanted in earlier if not _differ(wanted, its_wanted)), None):
            found.append(GangConflict(first.name, policy.name))
        earlier.append((policy, wanted))
    return found


_Wanted = Mapping[tuple[str, str], frozenset[str]]


def _wanted(policy: CompiledPolicy) -> _Wanted:
    """Return the values of which a pod must have one, by what has them: the pod's namespace, or the label of either."""
    match = policy.match.written
    found = dict[tuple[str, str], frozenset[str]]()
    if match.namespaces is not None:
        found["namespace", ""] = frozenset(match.namespaces)
    for of, selector in (("namespace label", match.namespace_selector), ("pod label", match.pod_selector)):
        if selector is not None:
            found |= {(of, key): values for key, values in selector.wanted_values()}
    return found


def _differ(wanted: _Wanted, by_other: _Wanted) -> bool:
    return any(key in by_other and by_other[key].isdisjoint(values) for key, values in wanted.items())
