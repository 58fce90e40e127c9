"""Ledgers: ConfigMaps with one entry for each pod that is granted devices of a node, or that keeps its group's domain.

A ledger is the truth; annotations of pods are copies of it. Every replica may write it, whatever scheduler it serves.
Each write names the resourceVersion that it was decided on, so that the versions of a ledger have one order.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.documents import document_name, subject_hash
from fairlead.grants.entry import (
    AnyEntry,
    LedgerEntry,
    NewerEntry,
    UnreadableEntry,
    decode_domain_entry,
    decode_entry,
    encode_domain_entry,
    encode_entry,
)

PREFIX: Final = "fairlead-grants-"
LABEL: Final = "fairlead.dev/grants"
NODE: Final = "fairlead.dev/node"
GROUPS_PREFIX: Final = "fairlead-groups-"
GROUPS_LABEL: Final = "fairlead.dev/groups"
GROUP: Final = "fairlead.dev/group"


class LedgerKind(Struct, frozen=True, eq=False):
    """Kind of ledgers: of what they are, how their ConfigMaps are found, and what their entries hold."""

    label: str
    annotation: str
    """Annotation with the subject, which the name of the ConfigMap may have in part."""
    name: Callable[[str], str]
    """Returns the name of the ConfigMap of a subject."""
    decode: Callable[[str], AnyEntry]
    encode: Callable[[LedgerEntry], str]
    is_of_node: bool = True
    """Whether an entry is over when its pod is on another node than the subject."""

    def node(self, subject: str) -> str | None:
        """Return the node on which entries hold; None if they hold on any."""
        return subject if self.is_of_node else None


def ledger_name(node: str) -> str:
    """Return the name of a node's ledger; a long one is cut, and ends with a hash."""
    return document_name(PREFIX, node)


def group_ledger_name(group: str) -> str:
    """Return the name of the ledger of a group, which is given as its namespace and value with a slash between them."""
    return GROUPS_PREFIX + subject_hash(group)


OF_NODES: Final = LedgerKind(LABEL, NODE, ledger_name, decode_entry, encode_entry)
OF_GROUPS: Final = LedgerKind(
    GROUPS_LABEL, GROUP, group_ledger_name, decode_domain_entry, encode_domain_entry, is_of_node=False
)


class Ledger(Struct, frozen=True):
    """One version of a ledger."""

    subject: str
    """Name of the node, or namespace and value of the group with a slash between them."""
    uid: str
    rv: str
    entries: Mapping[str, LedgerEntry] = {}
    """By the UID of their pod, as the following two."""
    unreadable: Mapping[str, UnreadableEntry] = {}
    newer: Mapping[str, NewerEntry] = {}
    marked: bool = True
    """Whether it bears the label and the annotation by which watches find it."""
    kind: LedgerKind = OF_NODES

    @property
    def all(self) -> Mapping[str, AnyEntry]:
        """Return the entries of each kind."""
        found: dict[str, AnyEntry] = {**self.entries, **self.unreadable, **self.newer}
        return found


def decode_ledger(config_map: Mapping[str, Any], kind: LedgerKind = OF_NODES) -> Ledger:
    """Read a ledger from its ConfigMap."""
    metadata = config_map["metadata"]
    told = (metadata.get("annotations") or {}).get(kind.annotation)
    subject = told or str(metadata["name"]).removeprefix(PREFIX)
    entries: dict[str, LedgerEntry] = {}
    unreadable: dict[str, UnreadableEntry] = {}
    newer: dict[str, NewerEntry] = {}
    for uid, text in (config_map.get("data") or {}).items():
        match kind.decode(text):
            case LedgerEntry() as entry:
                entries[uid] = entry
            case UnreadableEntry() as entry:
                unreadable[uid] = entry
            case NewerEntry() as entry:
                newer[uid] = entry
    marked = told is not None and kind.label in (metadata.get("labels") or {})
    return Ledger(subject, metadata["uid"], metadata["resourceVersion"], entries, unreadable, newer, marked, kind)


def merge_ledgers(first: Ledger, second: Ledger) -> Ledger:
    """Return the entries of both ledgers of a subject that has them in two namespaces. Never write it."""
    return replace(
        first,
        entries={**first.entries, **second.entries},
        unreadable={**first.unreadable, **second.unreadable},
        newer={**first.newer, **second.newer},
    )


def create_body(subject: str, entries: Mapping[str, LedgerEntry], kind: LedgerKind = OF_NODES) -> dict[str, Any]:
    """Return the ConfigMap to create. Never replace one with it: a create fails where there is one already."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": kind.name(subject),
            "labels": {kind.label: ""},
            "annotations": {kind.annotation: subject},
        },
        "data": {uid: kind.encode(one) for uid, one in entries.items()},
    }


def merge_patch(ledger: Ledger, put: Mapping[str, LedgerEntry], drop: Iterable[str]) -> dict[str, Any]:
    """Return the patch that changes entries of this version of the ledger, and of no other one."""
    kind = ledger.kind
    data: dict[str, str | None] = dict.fromkeys(drop)
    data |= {uid: kind.encode(one) for uid, one in put.items()}
    metadata: dict[str, Any] = {"resourceVersion": ledger.rv, "managedFields": [{}]}
    if not ledger.marked:
        metadata |= {"labels": {kind.label: ""}, "annotations": {kind.annotation: ledger.subject}}
    # Without a list of who manages which key, which has one writer here, the API server needs a sixth less time.
    return {"metadata": metadata, "data": data}


def delete_body(ledger: Ledger, over: Collection[str], *, is_needed: bool) -> dict[str, Any] | None:
    """Return the options that delete this version of a ledger; None if it stays.

    It stays while it is needed, as that of a node that exists, and while an entry is not known to be over.
    """
    if is_needed or not ledger.all.keys() <= {*over}:
        return None
    preconditions = {"uid": ledger.uid, "resourceVersion": ledger.rv}
    return {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
