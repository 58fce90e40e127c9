"""Pods as ledgers see them: what they request, and the grants that annotations of placed ones record."""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from fairlead.grants.entry import Grant
from fairlead.grants.entry_state import PodState
from fairlead.mirror.resource_limits import usage_of
from fairlead.mirror.resource_requests import ENDED, request_of
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import shares_in_force
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.devices.record import assumed_at, recorded_by_shares
from fairlead.webhook.binding.mirror_views import extended_requests
from fairlead.webhook.extender import requests

ASSUMED_AT: Final = 1_700_000_000_000_000_000
"""Time in nanoseconds to which the order of an entry is added: device plugins of gpushare take pods in that order."""


def metadata_hash(pod: Any) -> int:
    """Return a hash of the labels and annotations of a pod, by which policies decide what it asks for."""
    return hash((frozenset(pod.metadata.labels.items()), frozenset(pod.metadata.annotations.items())))


class PodDecoder:
    """Decoder of pods for the ledger, with the grants that their annotations record."""

    def __init__(
        self, policies: Callable[[], Iterable[CompiledPolicy]], namespace: Callable[[str], Any | None]
    ) -> None:
        """`policies` returns those that serve."""
        self._policies, self._namespace = policies, namespace

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
            recorded=self._recorded(pod) if node else {},
            metadata_hash=metadata_hash(pod),
            order=max(0, assumed_at(pod.metadata.annotations) - ASSUMED_AT) if node else 0,
        )

    def _recorded(self, pod: Any) -> Grant:
        view = PodView(pod, self._namespace(str(pod.metadata.namespace)), request_of(pod), usage_of)
        return recorded_by_shares((share for _, share in shares_in_force(self._policies())), view)
