"""Views of ledgers, pods and devices as the mirror shows them, for binds that grant devices."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from fairlead.grants.commit import NodeInventory, Refused
from fairlead.grants.entry_state import Gone, PodState
from fairlead.grants.ledger import Ledger
from fairlead.mirror.mirror import Mirror
from fairlead.mirror.pod_entry import PodEntry, key_of, text_of
from fairlead.mirror.resource_requests import request_of
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import shares_in_force
from fairlead.strategies.devices.layout import layout_of
from fairlead.strategies.facts import Amounts, Unknown

UNKNOWN_NODE: Final = "the node is not known yet"


class MirrorViews:
    """Views of what the mirror shows."""

    def __init__(self, mirror: Mirror, policies: Callable[[], Iterable[CompiledPolicy]]) -> None:
        """`policies` returns those that serve."""
        self._mirror, self._policies = mirror, policies
        self.ledgers: Final[dict[str, Ledger]] = {}
        """Ledgers by node, as a watch has shown them."""

    def ledger(self, node: str) -> Ledger | None:
        """Return a version of the ledger of a node; None if no watch has shown one."""
        return self.ledgers.get(node)

    def pod(self, pod: str) -> PodState | None:
        """Return what is shown under this name, placed or not."""
        return self._mirror.devices.shown(key_of(pod))

    def seen(self, uid: str, pod: str) -> PodState | Gone | None:
        """Return that a UID's deletion or end was heard, what is shown of it, or else what is shown under the name."""
        return self._mirror.devices.seen(uid, key_of(pod))

    def facts(self, node: str) -> NodeInventory:
        """Return the devices of a node by all policies that serve, and the pods on it."""
        view = self._mirror.nodes.view_of(node)
        if view is None:
            return NodeInventory(Refused(UNKNOWN_NODE))
        capacity: dict[str, dict[str, int]] = {}
        for _, share in shares_in_force(self._policies()):
            if not isinstance(devices := layout_of(share.entry, view), Unknown):
                for resource in share.entry.resources:
                    capacity.setdefault(resource, {one.id: one.capacity[resource] for one in devices})
        return NodeInventory(capacity, [_placed_state(one) for one in self._mirror.placed_on(node)])


def extended_requests(pod: Any) -> dict[str, int]:
    """Return the requests of an unplaced pod for extended resources. Raises ValueError for an unreadable quantity."""
    return _whole(request_of(pod))


def _placed_state(entry: PodEntry) -> PodState:
    pod = entry.pod
    return PodState(pod.uid, text_of(entry.key), "", entry.node, request=_whole(entry.request.amounts))


def _whole(amounts: Amounts) -> dict[str, int]:
    """Return the amounts of extended resources, which are whole numbers."""
    return {name: int(amount) for name, amount in amounts.items() if "/" in name and amount > 0}
