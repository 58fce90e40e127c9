"""Functions that the engine does not have: each is declared once, for its checker, its runtime and lowered code.

The functions of quantities, addresses and versions have the names and operands of the Kubernetes CEL library.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fairlead.cel.functions import addresses, quantity, semver

Function = Callable[..., Any]

INT: Final = "int"
DOUBLE: Final = "double"
STRING: Final = "string"
BOOL: Final = "bool"
QUANTITY: Final = quantity.Quantity.cel_type
IP: Final = addresses.IP.cel_type
CIDR: Final = addresses.CIDR.cel_type
SEMVER: Final = semver.Semver.cel_type


@dataclass(frozen=True, slots=True)
class Opaque:
    """Type whose values the engine has as messages of one text, the same for equal values."""

    shown: str
    """A value of the type as users call it."""
    function: str
    """One of its functions."""
    write: Callable[[Any], str]
    read: Callable[[str], Any]


OPAQUE: Final[Mapping[str, Opaque]] = {
    QUANTITY: Opaque("a quantity", "isGreaterThan()", quantity.canonical, quantity.from_canonical),
    IP: Opaque("an IP address", "family()", addresses.ip_to_string, addresses.string_to_ip),
    CIDR: Opaque("a CIDR", "containsIP()", addresses.cidr_to_string, addresses.string_to_cidr),
    SEMVER: Opaque("a version", "isGreaterThan()", semver.semver_text, semver.string_to_semver),
}


@dataclass(frozen=True, slots=True)
class Declaration:
    """An overload of a function."""

    name: str
    overload_id: str
    parameters: tuple[str, ...]
    result: str
    is_member: bool
    implementation: Function


def exp(value: float) -> float:
    """Raise e to a power; infinity if the result is too large."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def log2(value: float) -> float:
    """Return the logarithm to base 2: minus infinity of zero, NaN below zero."""
    if value == 0:
        return -math.inf
    return math.log2(value) if not value < 0 else math.nan


def _member(
    of: str, name: str, overload_id: str, operands: tuple[str, ...], result: str, function: Function
) -> Declaration:
    return Declaration(name, overload_id, (of, *operands), result, is_member=True, implementation=function)


def _plain(name: str, overload_id: str, operands: tuple[str, ...], result: str, function: Function) -> Declaration:
    return Declaration(name, overload_id, operands, result, is_member=False, implementation=function)


_TEXT: Final = (STRING,)
_OTHERS: Final = (
    _plain("exp", "exp_double", (DOUBLE,), DOUBLE, exp),
    _plain("log2", "log2_double", (DOUBLE,), DOUBLE, log2),
)
_OF_QUANTITIES: Final = (
    _plain("quantity", "string_to_quantity", _TEXT, QUANTITY, quantity.quantity),
    _plain("isQuantity", "is_quantity_string", _TEXT, BOOL, quantity.is_quantity),
    _member(QUANTITY, "sign", "quantity_sign", (), INT, quantity.sign),
    _member(QUANTITY, "isInteger", "quantity_is_integer", (), BOOL, quantity.is_integer),
    _member(QUANTITY, "asInteger", "quantity_get_int", (), INT, quantity.as_integer),
    _member(QUANTITY, "asApproximateFloat", "quantity_get_float", (), DOUBLE, quantity.as_approximate_float),
    _member(QUANTITY, "add", "quantity_add", (QUANTITY,), QUANTITY, quantity.add),
    _member(QUANTITY, "add", "quantity_add_int", (INT,), QUANTITY, quantity.add_integer),
    _member(QUANTITY, "sub", "quantity_sub", (QUANTITY,), QUANTITY, quantity.sub),
    _member(QUANTITY, "sub", "quantity_sub_int", (INT,), QUANTITY, quantity.subtract_integer),
    _member(QUANTITY, "isGreaterThan", "quantity_is_greater_than", (QUANTITY,), BOOL, quantity.is_greater_than),
    _member(QUANTITY, "isLessThan", "quantity_is_less_than", (QUANTITY,), BOOL, quantity.is_less_than),
    _member(QUANTITY, "compareTo", "quantity_compare_to", (QUANTITY,), INT, quantity.compare_to),
)
_OF_ADDRESSES: Final = (
    _plain("ip", "string_to_ip", _TEXT, IP, addresses.string_to_ip),
    _plain("isIP", "is_ip", _TEXT, BOOL, addresses.is_ip),
    _plain("ip.isCanonical", "ip_is_canonical", _TEXT, BOOL, addresses.ip_is_canonical),
    _plain("string", "ip_to_string", (IP,), STRING, addresses.ip_to_string),
    _member(IP, "family", "ip_family", (), INT, addresses.family),
    _member(IP, "isUnspecified", "ip_is_unspecified", (), BOOL, addresses.is_unspecified),
    _member(IP, "isLoopback", "ip_is_loopback", (), BOOL, addresses.is_loopback),
    _member(IP, "isLinkLocalMulticast", "ip_is_link_local_multicast", (), BOOL, addresses.is_link_local_multicast),
    _member(IP, "isLinkLocalUnicast", "ip_is_link_local_unicast", (), BOOL, addresses.is_link_local_unicast),
    _member(IP, "isGlobalUnicast", "ip_is_global_unicast", (), BOOL, addresses.is_global_unicast),
    _plain("cidr", "string_to_cidr", _TEXT, CIDR, addresses.string_to_cidr),
    _plain("isCIDR", "is_cidr", _TEXT, BOOL, addresses.is_cidr),
    _plain("string", "cidr_to_string", (CIDR,), STRING, addresses.cidr_to_string),
    _member(CIDR, "containsIP", "cidr_contains_ip_string", _TEXT, BOOL, addresses.cidr_contains_ip_string),
    _member(CIDR, "containsIP", "cidr_contains_ip_ip", (IP,), BOOL, addresses.cidr_contains_ip),
    _member(CIDR, "containsCIDR", "cidr_contains_cidr_string", _TEXT, BOOL, addresses.cidr_contains_cidr_string),
    _member(CIDR, "containsCIDR", "cidr_contains_cidr", (CIDR,), BOOL, addresses.cidr_contains_cidr),
    _member(CIDR, "ip", "cidr_ip", (), IP, addresses.cidr_ip),
    _member(CIDR, "prefixLength", "cidr_prefix_length", (), INT, addresses.cidr_prefix_length),
    _member(CIDR, "masked", "cidr_masked", (), CIDR, addresses.cidr_masked),
)
_OF_VERSIONS: Final = (
    _plain("semver", "string_to_semver", _TEXT, SEMVER, semver.string_to_semver),
    _plain("semver", "string_bool_to_semver", (STRING, BOOL), SEMVER, semver.string_bool_to_semver),
    _plain("isSemver", "is_semver_string", _TEXT, BOOL, semver.is_semver_string),
    _plain("isSemver", "is_semver_string_bool", (STRING, BOOL), BOOL, semver.is_semver_string_bool),
    _member(SEMVER, "major", "semver_major", (), INT, semver.major),
    _member(SEMVER, "minor", "semver_minor", (), INT, semver.minor),
    _member(SEMVER, "patch", "semver_patch", (), INT, semver.patch),
    _member(SEMVER, "isGreaterThan", "semver_is_greater_than", (SEMVER,), BOOL, semver.is_later),
    _member(SEMVER, "isLessThan", "semver_is_less_than", (SEMVER,), BOOL, semver.is_earlier),
    _member(SEMVER, "compareTo", "semver_compare_to", (SEMVER,), INT, semver.compare_versions),
)
DECLARATIONS: Final = (*_OTHERS, *_OF_QUANTITIES, *_OF_ADDRESSES, *_OF_VERSIONS)
