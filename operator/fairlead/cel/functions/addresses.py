"""IP addresses and networks, as in the Kubernetes CEL library: without zones, and no IPv4 address written as IPv6."""

from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import ClassVar, Final

from fairlead.cel.values.errors import CelError, Kind

ADDRESS_MAX: Final = 45
"""Characters of the longest address, an IPv6 address that ends as an IPv4 address."""
NETWORK_MAX: Final = ADDRESS_MAX + len("/128")

_BITS: Final = {4: 32, 6: 128}
_BROADCAST: Final = 0xFFFF_FFFF


class IP:
    """IP address as a number, and its family: 4 or 6."""

    __slots__ = ("family", "number")

    cel_type: ClassVar[str] = "net.IP"

    def __init__(self, family: int, number: int) -> None:
        self.family = family
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IP) and self.family == other.family and self.number == other.number

    def __hash__(self) -> int:
        return hash((self.family, self.number))

    def __repr__(self) -> str:
        return f"ip({ip_to_string(self)!r})"


class CIDR:
    """Network: an address, whose last bits need not be zero, and the length of the prefix."""

    __slots__ = ("address", "length")

    cel_type: ClassVar[str] = "net.CIDR"

    def __init__(self, address: IP, length: int) -> None:
        self.address = address
        self.length = length

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CIDR) and self.length == other.length and self.address == other.address

    def __hash__(self) -> int:
        return hash((self.address, self.length))

    def __repr__(self) -> str:
        return f"cidr({cidr_to_string(self)!r})"


def parse_ip(text: str) -> IP | None:
    """Read an address, or None if the text is not one."""
    if len(text) > ADDRESS_MAX or "%" in text:
        return None
    try:
        if ":" not in text:
            return IP(4, int(IPv4Address(text)))
        address = IPv6Address(text)
    except AddressValueError:
        return None
    return IP(6, int(address)) if address.ipv4_mapped is None else None


def parse_cidr(text: str) -> CIDR | None:
    """Read a network, or None if the text is not one."""
    if len(text) > NETWORK_MAX:
        return None
    before, slash, digits = text.rpartition("/")
    address = parse_ip(before) if slash else None
    if address is None or not (digits.isascii() and digits.isdecimal()) or (digits[0] == "0" and digits != "0"):
        return None
    length = int(digits)
    return CIDR(address, length) if length <= _BITS[address.family] else None


def string_to_ip(text: str) -> IP:
    """Read an address."""
    if (address := parse_ip(text)) is None:
        raise CelError(Kind.CONVERSION, "cannot convert string to IP address")
    return address


def string_to_cidr(text: str) -> CIDR:
    """Read a network."""
    if (network := parse_cidr(text)) is None:
        raise CelError(Kind.CONVERSION, "cannot convert string to CIDR")
    return network


def is_ip(text: str) -> bool:
    """Return whether a text is an address."""
    return parse_ip(text) is not None


def is_cidr(text: str) -> bool:
    """Return whether a text is a network."""
    return parse_cidr(text) is not None


def ip_is_canonical(text: str) -> bool:
    """Return whether an address is written in the one way that `string` writes it."""
    return ip_to_string(string_to_ip(text)) == text


def ip_to_string(value: IP) -> str:
    """Write an address, IPv6 as short as it can be."""
    return str(IPv4Address(value.number) if value.family == 4 else IPv6Address(value.number))


def cidr_to_string(value: CIDR) -> str:
    """Write a network."""
    return f"{ip_to_string(value.address)}/{value.length}"


def family(value: IP) -> int:
    """Return 4 or 6."""
    return value.family


def is_unspecified(value: IP) -> bool:
    """Return whether an address is `0.0.0.0` or `::`."""
    return value.number == 0


def is_loopback(value: IP) -> bool:
    """Return whether an address is in `127.0.0.0/8`, or is `::1`."""
    return cidr_contains_ip(_LOOPBACK[value.family], value)


def is_link_local_multicast(value: IP) -> bool:
    """Return whether an address is a multicast address of the link: `224.0.0.0/24`, or `ff02::` of any flags."""
    if value.family == 4:
        return cidr_contains_ip(_LINK_MULTICAST, value)
    return value.number >> 112 & 0xFF0F == 0xFF02


def is_link_local_unicast(value: IP) -> bool:
    """Return whether an address is in `169.254.0.0/16` or `fe80::/10`."""
    return cidr_contains_ip(_LINK_UNICAST[value.family], value)


def is_global_unicast(value: IP) -> bool:
    """Return whether an address is of one host, and of more than a link; private addresses are, too."""
    return not (
        value.number in (0, _BROADCAST if value.family == 4 else 0)
        or is_loopback(value)
        or is_link_local_unicast(value)
        or cidr_contains_ip(_MULTICAST[value.family], value)
    )


def cidr_contains_ip(value: CIDR, address: IP) -> bool:
    """Return whether an address is in a network."""
    return value.address.family == address.family and not (value.address.number ^ address.number) >> _host_bits(value)


def cidr_contains_ip_string(value: CIDR, text: str) -> bool:
    """Return whether an address that is written as a text is in a network."""
    return cidr_contains_ip(value, string_to_ip(text))


def cidr_contains_cidr(value: CIDR, other: CIDR) -> bool:
    """Return whether all addresses of another network are in a network."""
    return value.length <= other.length and cidr_contains_ip(value, other.address)


def cidr_contains_cidr_string(value: CIDR, text: str) -> bool:
    """Return whether all addresses of a network that is written as a text are in another."""
    return cidr_contains_cidr(value, string_to_cidr(text))


def cidr_ip(value: CIDR) -> IP:
    """Return the address of a network as it was written."""
    return value.address


def cidr_masked(value: CIDR) -> CIDR:
    """Return a network with the bits of its hosts set to zero."""
    bits = _host_bits(value)
    return CIDR(IP(value.address.family, value.address.number >> bits << bits), value.length)


def cidr_prefix_length(value: CIDR) -> int:
    """Return the length of the prefix."""
    return value.length


def _host_bits(value: CIDR) -> int:
    return _BITS[value.address.family] - value.length


_LOOPBACK: Final = {4: string_to_cidr("127.0.0.0/8"), 6: string_to_cidr("::1/128")}
_LINK_UNICAST: Final = {4: string_to_cidr("169.254.0.0/16"), 6: string_to_cidr("fe80::/10")}
_LINK_MULTICAST: Final = string_to_cidr("224.0.0.0/24")
_MULTICAST: Final = {4: string_to_cidr("224.0.0.0/4"), 6: string_to_cidr("ff00::/8")}
READERS: Final = (string_to_ip, string_to_cidr, is_ip, is_cidr, ip_is_canonical)
"""Functions whose work depends on the length of their text."""
