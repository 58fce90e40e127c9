"""Ledger of a node: one ConfigMap with one entry for each pod that is granted devices there.

The ledger is the truth; annotations of pods are copies of it. Every replica may write it, whatever scheduler it serves.
Each write names the resourceVersion that it was decided on, so that the versions of a ledger have one order.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from fairlead.grants.entry import AnyEntry, LedgerEntry, NewerEntry, UnreadableEntry, decode_entry, encode_entry

PREFIX: Final = "fairlead-grants-"
LABEL: Final = "fairlead.dev/grants"
NODE: Final = "fairlead.dev/node"
_NAME_MAX: Final = 253
_HASH: Final = 16  # hex digits


class Ledger(Struct, frozen=True):
    """One version of the ledger of a node."""

    node: str
    uid: str
    rv: str
    entries: Mapping[str, LedgerEntry] = {}
    """By the UID of their pod, as the following two."""
    unreadable: Mapping[str, UnreadableEntry] = {}
    newer: Mapping[str, NewerEntry] = {}
    marked: bool = True
    """Whether it bears the label and the annotation by which watches find it."""

    @property
    def all(self) -> Mapping[str, AnyEntry]:
        """Return the entries of each kind."""
        found: dict[str, AnyEntry] = {**self.entries, **self.unreadable, **self.newer}
        return found


def ledger_name(node: str) -> str:
    """Return the name of a node's ledger; a long one is cut, and ends with a hash."""
    name = PREFIX + node
    if len(name) <= _NAME_MAX:
        return name
    ending = hashlib.sha256(node.encode()).hexdigest()[:_HASH]
    return f"{name[: _NAME_MAX - _HASH - 1].rstrip('-.')}-{ending}"


def decode_ledger(config_map: Mapping[str, Any]) -> Ledger:
    """Read a ledger from its ConfigMap."""
    metadata = config_map["metadata"]
    told = (metadata.get("annotations") or {}).get(NODE)
    node = told or str(metadata["name"]).removeprefix(PREFIX)
    entries: dict[str, LedgerEntry] = {}
    unreadable: dict[str, UnreadableEntry] = {}
    newer: dict[str, NewerEntry] = {}
    for uid, text in (config_map.get("data") or {}).items():
        match decode_entry(text):
            case LedgerEntry() as entry:
                entries[uid] = entry
            case UnreadableEntry() as entry:
                unreadable[uid] = entry
            case NewerEntry() as entry:
                newer[uid] = entry
    marked = told is not None and LABEL in (metadata.get("labels") or {})
    return Ledger(node, metadata["uid"], metadata["resourceVersion"], entries, unreadable, newer, marked)


def merge_ledgers(first: Ledger, second: Ledger) -> Ledger:
    """Return the entries of both ledgers of a node that has them in two namespaces. It is to be read, never written."""
    return Ledger(
        first.node,
        first.uid,
        first.rv,
        {**first.entries, **second.entries},
        {**first.unreadable, **second.unreadable},
        {**first.newer, **second.newer},
    )


def create_body(node: str, entries: Mapping[str, LedgerEntry]) -> dict[str, Any]:
    """Return the ConfigMap to create. Never replace one with it: a create fails where there is one already."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": ledger_name(node), "labels": {LABEL: ""}, "annotations": {NODE: node}},
        "data": {uid: encode_entry(one) for uid, one in entries.items()},
    }


def merge_patch(ledger: Ledger, put: Mapping[str, LedgerEntry], drop: Iterable[str]) -> dict[str, Any]:
    """Return the patch that changes entries of this version of the ledger, and of no other one."""
    data: dict[str, str | None] = dict.fromkeys(drop)
    data |= {uid: encode_entry(one) for uid, one in put.items()}
    metadata: dict[str, Any] = {"resourceVersion": ledger.rv, "managedFields": [{}]}
    if not ledger.marked:
        metadata |= {"labels": {LABEL: ""}, "annotations": {NODE: ledger.node}}
    # Without a list of who manages which key, which has one writer here, the API server needs a sixth less time.
    return {"metadata": metadata, "data": data}


def delete_body(ledger: Ledger, over: Collection[str], *, node_exists: bool) -> dict[str, Any] | None:
    """Return the options that delete this version of a ledger; None if it is needed.

    It is needed while its node exists, and while an entry is not known to be over.
    """
    if node_exists or not ledger.all.keys() <= {*over}:
        return None
    preconditions = {"uid": ledger.uid, "resourceVersion": ledger.rv}
    return {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
