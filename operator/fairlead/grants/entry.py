"""Entries of a ledger: what one pod is granted on one node, or the domain that its group keeps, as text and as values.

An entry names amounts by the full name of their resource, and devices by their id. Policies may call one kind of device
by different names; a resource has one layout of devices, so that (resource, id) means the same device in all of them.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import Annotated, Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct

VERSION: Final = 1
COPY: Final = "fairlead.dev/devices"
"""Annotation that a Binding bears: a copy of the entry's grant, for containers, device plugins and people."""
AMOUNT_MAX: Final = (1 << 63) - 1
ORDER_MAX: Final = 1 << 62
"""Greatest order that is believed: a greater one was written by others, and would leave none for those that follow."""

Resources: TypeAlias = Mapping[str, int]
"""Amounts by resource, in the resource's whole units."""


class GrantedDevice(Struct, frozen=True, gc=False):
    """Device of a grant, and how much of it."""

    id: str
    amounts: Resources


Grant: TypeAlias = Mapping[str, tuple[GrantedDevice, ...]]
"""Devices by the name that the policy gives their kind."""
Domain: TypeAlias = Mapping[str, str]
"""Values of the labels that tell one domain of nodes from others."""


def all_devices(grant: Grant) -> tuple[GrantedDevice, ...]:
    """Return the devices of each kind."""
    kinds = grant.values()
    if len(kinds) == 1:
        (devices,) = kinds
        return devices
    return tuple(chain.from_iterable(kinds))


class LedgerEntry(Struct, frozen=True, gc=False):
    """Grant of a pod or domain of its group, and the version of the pod that its Binding names."""

    pod: str
    """Namespace and name, with a slash between them."""
    rv: str
    by: str
    """Policy by which it was chosen."""
    grant: Grant = {}
    order: int = 0
    """Greater than that of every entry that stood when it was added, for plugins that take pods in their order."""
    domain: Domain = {}


class UnreadableEntry(Struct, frozen=True):
    """Entry that this version cannot read, though it should be able to."""

    why: str
    pod: str = ""
    """Namespace and name, if these can be read all the same."""

    @property
    def rv(self) -> str:
        """Return nothing: a version is not believed where the rest is wrong."""
        return ""


class NewerEntry(Struct, frozen=True):
    """Entry of a newer version of Fairlead, which may promise what this version does not know.

    The fields below mean the same in every version, so that each can tell of every entry whether it is over.
    """

    version: int
    pod: str = ""
    rv: str = ""


AnyEntry: TypeAlias = LedgerEntry | UnreadableEntry | NewerEntry

_ID: Final = "id"
_V: Final = "v"
_Amount = Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]
_Devices = list[dict[str, str | _Amount]]


class _Version(Struct):
    v: Annotated[int, Meta(ge=1)]


_Pod = Annotated[str, Meta(pattern="^[^/]+/[^/]+$")]


class _Wire(Struct):
    v: int
    pod: _Pod
    rv: Annotated[str, Meta(min_length=1)]
    by: str
    g: msgspec.Raw
    n: int = 0


class _DomainWire(Struct):
    v: int
    pod: _Pod
    rv: Annotated[str, Meta(min_length=1)]
    by: str
    d: Annotated[dict[str, str], Meta(min_length=1)]
    n: int = 0


class _WirePod(Struct):
    pod: _Pod


class _WireVersion(Struct):
    rv: str


_Text = TypeVar("_Text", str, bytes)
_Read = TypeVar("_Read")
_SHARED: Final = 2048
_SHARED_BYTES_MAX: Final = 256
_grants: Final = msgspec.json.Decoder(dict[str, _Devices])
_versions: Final = msgspec.json.Decoder(_Version)
_pods: Final = msgspec.json.Decoder(_WirePod)
_pod_versions: Final = msgspec.json.Decoder(_WireVersion)
_entries: Final = msgspec.json.Decoder(_Wire)
_domains: Final = msgspec.json.Decoder(_DomainWire)
_copies: Final = msgspec.json.Decoder(dict[str, Any])
_write: Final = msgspec.json.Encoder().encode
_Unreadable = (msgspec.MsgspecError, RecursionError, UnicodeError)


def decode_entry(text: str) -> AnyEntry:
    """Read the value of a key of a node's ledger."""
    return _decoded(text, _with_grant)


def decode_domain_entry(text: str) -> AnyEntry:
    """Read the value of a key of a group's ledger."""
    return _decoded(text, _with_domain)


def _decoded(text: str, decode: Callable[[str], LedgerEntry]) -> AnyEntry:
    try:
        if (version := _versions.decode(text).v) > VERSION:
            return NewerEntry(version, _pod_in(text), _pod_version_in(text))
        return decode(text)
    except _Unreadable as error:
        return UnreadableEntry(str(error), _pod_in(text))


def _with_grant(text: str) -> LedgerEntry:
    wire = _entries.decode(text)
    return LedgerEntry(wire.pod, wire.rv, _policy_name(wire.by), _grant(bytes(wire.g)), _order(wire.n))


def _with_domain(text: str) -> LedgerEntry:
    wire = _domains.decode(text)
    return LedgerEntry(wire.pod, wire.rv, _policy_name(wire.by), order=_order(wire.n), domain=wire.d)


def _order(number: int) -> int:
    return number if 0 <= number <= ORDER_MAX else 0


def _pod_in(text: str) -> str:
    try:
        return _pods.decode(text).pod
    except _Unreadable:
        return ""


def _pod_version_in(text: str) -> str:
    try:
        return _pod_versions.decode(text).rv
    except _Unreadable:
        return ""


def encode_entry(entry: LedgerEntry) -> str:
    """Write the value of a key of a node's ledger."""
    return _encoded(entry, "g", _devices(entry.grant))


def encode_domain_entry(entry: LedgerEntry) -> str:
    """Write the value of a key of a group's ledger."""
    return _encoded(entry, "d", entry.domain)


def _encoded(entry: LedgerEntry, key: str, promised: object) -> str:
    wire = {"pod": entry.pod, "rv": entry.rv, "by": entry.by, key: promised, "n": entry.order}
    return _write({_V: VERSION, **wire}).decode()


def decode_copy(text: str) -> Grant | None:
    """Read a grant from the annotation of a pod; None if it is none that this version has written."""
    try:
        found = _copies.decode(text)
    except _Unreadable:
        return None
    if found.pop(_V, None) != VERSION:
        return None
    grant = {name: [_copied(one) for one in devices] for name, devices in found.items() if isinstance(devices, list)}
    if any(one is None for devices in grant.values() for one in devices):
        return None
    return {name: tuple(one for one in devices if one is not None) for name, devices in grant.items()}


def _copied(wire: Any) -> GrantedDevice | None:
    """Return a device of a copy, with what is an amount: others may have written more."""
    if not isinstance(wire, dict) or not isinstance(found := wire.pop(_ID, None), str):
        return None
    amounts = {name: one for name, one in wire.items() if type(one) is int and 0 <= one <= AMOUNT_MAX}
    return GrantedDevice(found, amounts)


def copies(grant: Grant) -> dict[str, str]:
    """Return the annotations that copy a grant: all of it, and the ids of each kind of device for a container."""
    return {COPY: encode_copy(grant), **{ids_key(name): ids_of(devices) for name, devices in grant.items()}}


def ids_key(name: str) -> str:
    """Return the annotation with the ids of a kind of device."""
    return f"{COPY}.{name}"


def ids_of(devices: Iterable[GrantedDevice]) -> str:
    """Return the ids of devices as a container reads them."""
    return ",".join(one.id for one in devices)


def encode_copy(grant: Grant) -> str:
    """Write a grant for the annotation of its pod."""
    return _write({_V: VERSION, **_devices(grant)}).decode()


def _read_grant(text: bytes) -> Grant:
    return {name: tuple(_device(one) for one in devices) for name, devices in _grants.decode(text).items()}


def _shared(read: Callable[[_Text], _Read]) -> Callable[[_Text], _Read]:
    """Return a function whose results equal texts share, unless they are long: in ledgers most are equal."""
    kept = lru_cache(_SHARED)(read)
    return lambda text: kept(text) if len(text) <= _SHARED_BYTES_MAX else read(text)


_grant: Final = _shared(_read_grant)
_policy_name: Final[Callable[[str], str]] = _shared(str)


def _device(wire: dict[str, Any]) -> GrantedDevice:
    found = wire.pop(_ID, None)
    if not isinstance(found, str) or any(isinstance(amount, str) for amount in wire.values()):
        raise msgspec.ValidationError("a device has an id, which is text, and amounts, which are whole numbers")
    return GrantedDevice(found, wire)


def _devices(grant: Grant) -> dict[str, list[dict[str, str | int]]]:
    return {name: [{_ID: one.id, **one.amounts} for one in devices] for name, devices in grant.items()}
