"""Requests of pods for devices by the policies that serve, and the grants that annotations of placed pods tell."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from fairlead.grants.commit import Refused
from fairlead.grants.device_usage import Ask, DeviceAsk
from fairlead.grants.entry import GrantedDevice, encode_copy
from fairlead.grants.entry_state import PodState
from fairlead.mirror.resource_limits import usage_of
from fairlead.mirror.resource_requests import ENDED, request_of
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.contract import CompiledShare
from fairlead.strategies.devices.choice import Need, need_of
from fairlead.strategies.devices.record import assumed_at, recorded_grants
from fairlead.strategies.devices.taken import Taken
from fairlead.strategies.facts import Unknown
from fairlead.webhook.binding.mirror_views import extended_requests
from fairlead.webhook.extender import requests

ASSUMED_AT: Final = 1_700_000_000_000_000_000
"""Time in nanoseconds to which the order of an entry is added: device plugins of gpushare take pods in that order."""
_LISTED_MAX: Final = 4096


def asked_by(shares: Iterable[CompiledShare], pod: PodView) -> Ask | Refused:
    """Return the devices that a pod asks for by shares that apply to it; or why that cannot be told."""
    asked = list[DeviceAsk]()
    for share in shares:
        need = need_of(share, pod)
        if isinstance(need, Unknown):
            return Refused(str(need))
        if need is not None:
            asked.append(DeviceAsk(share.entry.name, need.cards, need.amounts))
    return tuple(asked)


def metadata_hash(pod: Any) -> int:
    """Return a hash of the labels and annotations of a pod, by which policies decide what it asks for."""
    return hash((frozenset(pod.metadata.labels.items()), frozenset(pod.metadata.annotations.items())))


class ReadPods:
    """Decoder of pods for the ledger, which remembers what those ask for whose annotations record a grant."""

    def __init__(self, shares: Callable[[], Sequence[CompiledShare]], namespace: Callable[[str], Any | None]) -> None:
        self._shares, self._namespace = shares, namespace
        self._asked: dict[str, Ask] = {}

    def read(self, body: bytes | msgspec.Raw) -> PodState:
        """Return the state of a pod. Raises ValueError."""
        pod = requests.decode_pod(body)
        meta, node = pod.metadata, str(pod.spec.nodeName)
        return PodState(
            str(meta.uid),
            f"{meta.namespace}/{meta.name}",
            str(meta.resourceVersion),
            node,
            ended=str(pod.status.phase) in ENDED,
            request=extended_requests(pod),
            copy=self._copy(pod) if node else None,
            metadata_hash=metadata_hash(pod),
            order=max(0, assumed_at(pod.metadata.annotations) - ASSUMED_AT) if node else 0,
        )

    def ask_of(self, state: PodState) -> Ask | None:
        """Return what a pod that was read asks for; None if its annotations record no grant."""
        return self._asked.get(state.uid)

    def _copy(self, pod: Any) -> str | None:
        namespace = self._namespace(str(pod.metadata.namespace))
        view = PodView(pod, namespace, request_of(pod), usage_of)
        grant: dict[str, tuple[GrantedDevice, ...]] = {}
        asked, taken = list[DeviceAsk](), Taken()
        for share in self._shares():
            need, found = need_of(share, view), recorded_grants(share, view)
            if isinstance(need, Need) and found is not None and taken.take(share.entry):
                grant[share.entry.name] = found
                asked.append(DeviceAsk(share.entry.name, need.cards, need.amounts))
        if not grant:
            return None
        if len(self._asked) >= _LISTED_MAX:
            self._asked.clear()
        self._asked[str(pod.metadata.uid)] = tuple(asked)
        return encode_copy(grant)
