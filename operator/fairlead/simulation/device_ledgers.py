"""Ledgers of nodes as the annotations of the pods on them tell, for snapshots without ledgers."""

from collections.abc import Sequence
from typing import Any

from fairlead.grants.entry import GrantedDevice
from fairlead.mirror.node_devices import LedgerEntry
from fairlead.mirror.pod_entry import PodEntry
from fairlead.mirror.resource_requests import request_of
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.contract import CompiledShare
from fairlead.strategies.devices.record import recorded_grants
from fairlead.strategies.devices.taken import Taken


def entry_of_pod(pod: Any, namespace: Any, placed: PodEntry, shares: Sequence[CompiledShare]) -> LedgerEntry | None:
    """Return the entry that a ledger would begin with for a placed pod; None if its annotations are not believed.

    Raises ValueError for an unreadable quantity.
    """
    view = PodView(pod, namespace, request_of(pod))
    found, taken = list[GrantedDevice](), Taken()
    for share in shares:
        if (grants := recorded_grants(share, view)) is not None and taken.take(share.entry):
            found += grants
    return LedgerEntry(placed.pod.uid, placed.key, "", tuple(found)) if found else None
