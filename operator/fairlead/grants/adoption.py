"""Adoption of pods by a new ledger: entries by what the annotations of the pods on its node record."""

from collections.abc import Iterable
from typing import Final

from fairlead.grants.entry import LedgerEntry
from fairlead.grants.entry_state import PodState

REBUILT: Final = "annotation"
"""Stands for the policy in an entry that was made from an annotation."""


def first_entries(node: str, pods: Iterable[PodState]) -> dict[str, LedgerEntry]:
    """Return the entries of a new ledger, from a consistent list of the pods on the node.

    Other pods that request a resource of devices are foreign: they are charged to every device.
    """
    return {
        one.uid: LedgerEntry(one.pod, one.rv, REBUILT, one.recorded, one.order)
        for one in pods
        if one.node == node and not one.ended and one.recorded
    }
