"""Beginning of a ledger: the entries of a node's pods, by what their annotations say."""

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from fairlead.grants.device_usage import Ask, answers
from fairlead.grants.entry import Entry, decode_copy
from fairlead.grants.entry_state import PodState

COPY: Final = "fairlead.dev/devices"
"""Annotation that a Binding bears: a copy of the entry's grant, for containers, device plugins and people."""
REBUILT: Final = "annotation"
"""Stands for the policy in an entry that was made from an annotation."""

AskOf: TypeAlias = Callable[[PodState], Ask | None]
"""Returns what a pod asks for by the policies, None if it asks for no device."""


def first_entries(node: str, pods: Iterable[PodState], ask_of: AskOf) -> dict[str, Entry]:
    """Return the entries of a new ledger, from a consistent list of the pods on the node.

    An annotation counts if its devices are as many as the pod asks for, and its amounts are the pod's. Other pods that
    ask for devices are foreign: they have no entry, and are charged to every device.
    """
    found = dict[str, Entry]()
    for one in pods:
        if one.node != node or one.ended or one.copy is None:
            continue
        grant, ask = decode_copy(one.copy), ask_of(one)
        if grant and ask and answers(grant, ask):
            found[one.uid] = Entry(one.pod, one.rv, REBUILT, grant, one.order)
    return found
