"""Devices that the policies of a pod grant when it is bound."""

from collections.abc import Iterator, Sequence

from fairlead.grants.commit import Refused
from fairlead.grants.entry import Grant, GrantedDevice
from fairlead.policy.compile.policy_conflicts import FOR_GPUSHARE, gpushare_too
from fairlead.policy.evaluate.matching import Matched
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.contract import CompiledShare
from fairlead.strategies.devices.choice import Refusal, choose_grants
from fairlead.strategies.devices.taken import Taken
from fairlead.strategies.facts import Unknown


def choose_devices(pod: PodView, matched: Sequence[Matched], node: NodeView) -> Grant | Refused:
    """Return the devices that a pod gets on a node; `node.granted` is what the newest ledger says.

    Equal arguments give equal devices. The shares are those of all policies that match, so all of them have room or
    none is granted.
    """
    grant = dict[str, tuple[GrantedDevice, ...]]()
    for policy, share in shares_for_pod(pod, matched):
        chosen = choose_grants(share, pod, node)
        if isinstance(chosen, Refusal):
            return Refused(f"policy {policy}, {share.entry.name}: {chosen.reason}")
        if isinstance(chosen, Unknown):
            return Refused(f"policy {policy}, {share.entry.name}: {chosen}")
        if chosen:
            grant[share.entry.name] = chosen
    return grant


def requests_share(pod: PodView, share: CompiledShare) -> bool:
    """Report whether a pod requests a resource of a device share."""
    return any(pod.request.get(name, 0.0) > 0 for name in share.entry.resources)


def shares_for_pod(pod: PodView, matched: Sequence[Matched]) -> Iterator[tuple[str, CompiledShare]]:
    """Yield the device shares whose resources a pod requests, with their policies; a resource is granted once.

    That is by the first policy that shares it, in the order of the policies. An entry of a later policy that names such
    a resource is left out as a whole, and its other resources, too, if it has any: half an entry would not be what its
    author meant.
    """
    taken = Taken()
    for each in matched:
        for rule in () if each.undecided else each.policy.device_shares:
            if requests_share(pod, rule.share) and taken.take(rule.share.entry):
                yield each.policy.name, rule.share


def left_out(pod: PodView, matched: Sequence[Matched]) -> str | None:
    """Return why a pod cannot have all shares of its policies: it requests a resource of one that is left out.

    To bind it without would give it a resource of which nobody says which device it is.
    """
    chosen = [*shares_for_pod(pod, matched)]
    granted = {resource for _, share in chosen for resource in share.entry.resources}
    for each in matched:
        for rule in () if each.undecided else each.policy.device_shares:
            ungranted = [
                one for one in rule.share.entry.resources if one not in granted and pod.request.get(one, 0.0) > 0
            ]
            if ungranted:
                others = ", ".join(dict.fromkeys(name for name, _ in chosen if name != each.policy.name))
                why = f"because {others} has an entry of the same name, or for some of the same resources"
                if gpushare_too([share for _, share in chosen], rule.share):
                    why = f"because {others} {FOR_GPUSHARE}"
                return f"policy {each.policy.name}, {rule.name}: {ungranted[0]} cannot be granted, {why}"
    return None
