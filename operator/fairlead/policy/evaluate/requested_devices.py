"""Devices that the policies of a pod grant when it is bound."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fairlead.grants.commit import Refused
from fairlead.grants.device_usage import Ask, DeviceAsk
from fairlead.grants.entry import Grant, GrantedDevice
from fairlead.policy.compile.model import DeviceShareRule
from fairlead.policy.compile.policy_conflicts import FOR_GPUSHARE, gpushare_too
from fairlead.policy.evaluate.matching import Matched
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.contract import CompiledShare
from fairlead.strategies.devices.choice import Refusal, choose_grants, claims_of, need_of
from fairlead.strategies.facts import Unknown


class RequestedShare(NamedTuple):
    """Device share that grants a pod its devices."""

    policy: str
    share: CompiledShare
    need: DeviceAsk


@dataclass(frozen=True, slots=True)
class RequestedDevices:
    """Devices that a pod requests, by the shares that grant them."""

    pod: PodView
    shares: Sequence[RequestedShare]

    @property
    def policies(self) -> str:
        """Names of the policies that grant them."""
        return ",".join(dict.fromkeys(each.policy for each in self.shares))

    @property
    def ask(self) -> Ask:
        """Needs of the pod."""
        return tuple(each.need for each in self.shares)


def requested_devices(pod: PodView, matched: Sequence[Matched]) -> RequestedDevices | Refused | None:
    """Return the devices that policies grant a pod, or why it cannot be bound; None if it requests none of theirs.

    A resource is granted once, by the first policy that shares it, in the order of the policies. An entry of a later
    policy that names such a resource is left out as a whole: half an entry would not be what its author meant. A pod
    that requests another resource of it is refused, as it would get one of which no policy says which device it is.
    """
    taken, granting, left = set[str](), list[tuple[str, CompiledShare]](), list[tuple[str, DeviceShareRule]]()
    for each in matched:
        for rule in each.policy.device_shares:
            if not any(pod.request.get(name, 0.0) > 0 for name in rule.share.entry.resources):
                continue
            if each.undecided or each.switched:
                why = "is too slow" if each.switched else "cannot be decided"
                return Refused(f"policy {each.policy.name} grants devices, and {why}")
            if taken.isdisjoint(claims := claims_of(rule.share.entry)):
                taken |= claims
                granting.append((each.policy.name, rule.share))
            else:
                left.append((each.policy.name, rule))
    for policy, rule in left:
        if (missing := _not_granted(pod, granting, policy, rule)) is not None:
            return missing
    shares = list[RequestedShare]()
    for policy, share in granting:
        need = need_of(share, pod)
        if isinstance(need, Unknown):
            return Refused(f"policy {policy}, {share.entry.name}: {need}")
        if need is not None:
            shares.append(RequestedShare(policy, share, need))
    return RequestedDevices(pod, shares) if shares else None


def _not_granted(
    pod: PodView, granting: Sequence[tuple[str, CompiledShare]], policy: str, rule: DeviceShareRule
) -> Refused | None:
    """Return which resource of an entry that is left out is not granted by another one either."""
    granted = {resource for _, share in granting for resource in share.entry.resources}
    ungranted = [one for one in rule.share.entry.resources if one not in granted and pod.request.get(one, 0.0) > 0]
    if not ungranted:
        return None
    others = ", ".join(dict.fromkeys(name for name, _ in granting if name != policy))
    why = f"because {others} has an entry of the same name, or for some of the same resources"
    if gpushare_too([share for _, share in granting], rule.share):
        why = f"because {others} {FOR_GPUSHARE}"
    return Refused(f"policy {policy}, {rule.name}: {ungranted[0]} cannot be granted, {why}")


def choose_devices(requested: RequestedDevices, node: NodeView) -> Grant | Refused:
    """Return the devices that a pod gets on a node; `node.granted` is what the newest ledger says.

    Equal arguments give equal devices. The shares are those of all policies that match, so all of them have room or
    none is granted.
    """
    grant = dict[str, tuple[GrantedDevice, ...]]()
    for policy, share, need in requested.shares:
        chosen = choose_grants(share, requested.pod, need, node)
        if isinstance(chosen, Refusal):
            return Refused(f"policy {policy}, {share.entry.name}: {chosen.reason}")
        if isinstance(chosen, Unknown):
            return Refused(f"policy {policy}, {share.entry.name}: {chosen}")
        grant[share.entry.name] = chosen
    return grant
