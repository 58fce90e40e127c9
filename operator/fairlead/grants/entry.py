"""Entries of a ledger: what one pod is granted on one node, as text and as values.

An entry names amounts by the full name of their resource, and devices by their id. Policies may call one kind of device
by different names; a resource has one layout of devices, so that (resource, id) means the same device in all of them.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta, Struct

VERSION: Final = 1
AMOUNT_MAX: Final = (1 << 63) - 1

Resources: TypeAlias = Mapping[str, int]
"""Amounts by resource, in the resource's whole units."""


class GrantedDevice(Struct, frozen=True):
    """Device of a grant, and how much of it."""

    id: str
    amounts: Resources


Grant: TypeAlias = Mapping[str, tuple[GrantedDevice, ...]]
"""Devices by the name that the policy gives their kind."""


class Entry(Struct, frozen=True):
    """Grant of a pod, and the version of the pod that its Binding names."""

    pod: str
    """Namespace and name, with a slash between them."""
    rv: str
    by: str
    """Policy by which it was chosen."""
    grant: Grant
    order: int = 0
    """Greater than that of every entry that stood when it was added, for plugins that take pods in their order."""


class UnreadableEntry(Struct, frozen=True):
    """Entry that this version cannot read, though it should be able to."""

    why: str


class NewerEntry(Struct, frozen=True):
    """Entry of a newer version of Fairlead, which may promise what this version does not know."""

    version: int


_ID: Final = "id"
_V: Final = "v"
_Amount = Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]
_Devices = list[dict[str, str | _Amount]]


class _Version(Struct):
    v: Annotated[int, Meta(ge=1)]


class _Wire(Struct):
    v: int
    pod: Annotated[str, Meta(pattern="^[^/]+/[^/]+$")]
    rv: Annotated[str, Meta(min_length=1)]
    by: str
    g: dict[str, _Devices]
    n: _Amount = 0


_versions: Final = msgspec.json.Decoder(_Version)
_entries: Final = msgspec.json.Decoder(_Wire)
_copies: Final = msgspec.json.Decoder(dict[str, int | _Devices])
_write: Final = msgspec.json.Encoder().encode
_Unreadable = (msgspec.MsgspecError, RecursionError, UnicodeError)


def decode_entry(text: str) -> Entry | UnreadableEntry | NewerEntry:
    """Read the value of a key of a ledger."""
    try:
        if (version := _versions.decode(text).v) > VERSION:
            return NewerEntry(version)
        wire = _entries.decode(text)
        return Entry(wire.pod, wire.rv, wire.by, _grant(wire.g), wire.n)
    except _Unreadable as error:
        return UnreadableEntry(str(error))


def encode_entry(entry: Entry) -> str:
    """Write the value of a key of a ledger."""
    wire = {"pod": entry.pod, "rv": entry.rv, "by": entry.by, "g": _devices(entry.grant), "n": entry.order}
    return _write({_V: VERSION, **wire}).decode()


def decode_copy(text: str) -> Grant | None:
    """Read a grant from the annotation of a pod; None if it is none that this version has written."""
    try:
        found = _copies.decode(text)
        if found.pop(_V, None) != VERSION:
            return None
        return _grant({name: devices for name, devices in found.items() if not isinstance(devices, int)})
    except _Unreadable:
        return None


def encode_copy(grant: Grant) -> str:
    """Write a grant for the annotation of its pod."""
    return _write({_V: VERSION, **_devices(grant)}).decode()


def _grant(wire: Mapping[str, _Devices]) -> Grant:
    return {name: tuple(_device(one) for one in devices) for name, devices in wire.items()}


def _device(wire: dict[str, Any]) -> GrantedDevice:
    found = wire.pop(_ID, None)
    if not isinstance(found, str) or any(isinstance(amount, str) for amount in wire.values()):
        raise msgspec.ValidationError("a device has an id, which is text, and amounts, which are whole numbers")
    return GrantedDevice(found, wire)


def _devices(grant: Grant) -> dict[str, list[dict[str, str | int]]]:
    return {name: [{_ID: one.id, **one.amounts} for one in devices] for name, devices in grant.items()}
