"""Strategy `deviceShare`: judges nodes by an entry of the policy's `binding.deviceShare`."""

from typing import ClassVar

from fairlead.api.params import DeviceShareName, Params
from fairlead.strategies.contract import CompiledShares, Filter, Score, Strategy, Use
from fairlead.strategies.devices.device_rules import DeviceObjective, device_filter, device_score


class DeviceShareFilter(Params):
    """Pass only nodes on which devices have room for the pod.

    Every entry of binding.deviceShare brings this filter. Write it to give it a name or a reason. It always rejects
    nodes about which it cannot decide: onError Pass is not accepted.
    """

    list_keys: ClassVar[tuple[str, ...]] = ()

    name: DeviceShareName
    """Name of an entry of the policy's binding.deviceShare."""


class DeviceShareScore(Params):
    """Prefer nodes by how full the devices are that the pod would get, by the first resource of the entry."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    name: DeviceShareName
    """Name of an entry of the policy's binding.deviceShare."""
    objective: DeviceObjective
    """Preferred nodes: with Pack those whose devices are nearly full, so that others stay free for large pods, with
    Spread those whose devices are nearly empty."""


def _filter(params: DeviceShareFilter, shares: CompiledShares) -> Filter:
    return device_filter(shares[params.name])


def _score(params: DeviceShareScore, shares: CompiledShares) -> Score:
    return device_score(shares[params.name], params.objective)


STRATEGY = Strategy(
    name="deviceShare",
    filter=Use.of_shares(DeviceShareFilter, _filter),
    score=Use.of_shares(DeviceShareScore, _score),
)
