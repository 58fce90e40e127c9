"""Addresses and networks are what Kubernetes says, and the same in the engine.

`kubernetes_library.json` holds answers of the CEL library of Kubernetes 1.37.1.
"""

import json
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cel.functions import addresses, extensions
from fairlead.cel.values.errors import CelError
from oracle import literal, outcome_of
from oracle.comparison import thorough
from oracle.engine import Outcome
from oracle.own import ask_with_own

FACTS = json.loads((Path(__file__).parents[3] / "data/cel/kubernetes_library.json").read_text())
OF_IP = (
    addresses.ip_to_string,
    lambda value: addresses.ip_is_canonical(addresses.ip_to_string(value)),
    addresses.family,
    addresses.is_unspecified,
    addresses.is_loopback,
    addresses.is_link_local_multicast,
    addresses.is_link_local_unicast,
    addresses.is_global_unicast,
)
OF_CIDR = (
    addresses.cidr_to_string,
    lambda value: addresses.ip_to_string(addresses.cidr_ip(value)),
    addresses.cidr_prefix_length,
    lambda value: addresses.cidr_to_string(addresses.cidr_masked(value)),
)
TEXTS = [text for kind in ("ip", "cidr") for text, _ in FACTS[kind]]
ips = st.one_of(
    st.ip_addresses(v=4).map(str),
    st.integers(0, 2**128 - 1)
    .filter(lambda number: number >> 32 != 0xFFFF)
    .map(lambda number: str(IPv6Address(number))),
    st.sampled_from([text for text, facts in FACTS["ip"] if facts]),
)
cidrs = st.one_of(
    st.tuples(st.ip_addresses(v=4), st.integers(0, 32)).map(lambda parts: f"{parts[0]}/{parts[1]}"),
    st.sampled_from([text for text, facts in FACTS["cidr"] if facts]),
)
IMPLEMENTATIONS = {(d.name, d.parameters): d.implementation for d in extensions.DECLARATIONS}


@pytest.mark.parametrize(("text", "want"), FACTS["ip"])
def test_an_address_is_what_kubernetes_says(text: str, want: list[object] | None) -> None:
    value = addresses.parse_ip(text)
    assert addresses.is_ip(text) is (want is not None)
    if want is None:
        assert value is None
        with pytest.raises(CelError):
            addresses.string_to_ip(text)
        with pytest.raises(CelError):
            addresses.ip_is_canonical(text)
        return
    assert value is not None
    written, is_canonical, *others = want
    assert [of(value) for of in OF_IP] == [written, True, *others]
    assert addresses.ip_is_canonical(text) is is_canonical


@pytest.mark.parametrize(("text", "want"), FACTS["cidr"])
def test_a_network_is_what_kubernetes_says(text: str, want: list[object] | None) -> None:
    value = addresses.parse_cidr(text)
    assert addresses.is_cidr(text) is (want is not None)
    if want is None:
        assert value is None
        with pytest.raises(CelError):
            addresses.string_to_cidr(text)
        return
    assert value is not None
    assert [of(value) for of in OF_CIDR] == want


@pytest.mark.parametrize(("network", "want"), FACTS["contains"])
def test_a_network_contains_what_kubernetes_says(network: str, want: list[str]) -> None:
    value = addresses.string_to_cidr(network)

    def contains(text: str) -> bool:
        if "/" in text:
            assert addresses.cidr_contains_cidr_string(value, text) is addresses.cidr_contains_cidr(
                value, addresses.string_to_cidr(text)
            )
            return addresses.cidr_contains_cidr_string(value, text)
        return addresses.cidr_contains_ip_string(value, text)

    assert [text for text in FACTS["others"] if contains(text)] == want


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**128 - 1))
def test_an_address_is_read_as_it_was_written(four: int, six: int) -> None:
    assert addresses.parse_ip(str(IPv4Address(four))) == addresses.IP(4, four)
    mapped = IPv6Address(six).ipv4_mapped is not None
    assert addresses.parse_ip(str(IPv6Address(six))) == (None if mapped else addresses.IP(6, six))


@pytest.mark.parametrize("text", ["1" * 46, ":" * 46, "1.2.3.4/" + "0" * 50, "/" * 5_000, "0" * 5_000])
def test_what_is_too_long_to_be_one_is_none(text: str) -> None:
    assert addresses.parse_ip(text) is None
    assert addresses.parse_cidr(text) is None


@pytest.mark.parametrize("name", ["isIP", "isCIDR", "ip.isCanonical"])
def test_texts_are_the_same_in_the_engine(name: str) -> None:
    for text in [text for text in TEXTS if "\0" not in text]:  # the wrapper cuts texts there
        assert outcome_of(IMPLEMENTATIONS[name, ("string",)], text) == ask_with_own(f"{name}({literal(text)})"), text


UNARY = [
    (d.name, "ip" if d.parameters == (extensions.IP,) else "cidr", d.is_member)
    for d in extensions.DECLARATIONS
    if d.parameters in ((extensions.IP,), (extensions.CIDR,))
]


@pytest.mark.parametrize(("name", "kind", "is_member"), UNARY)
def test_functions_of_one_are_the_same_in_the_engine(name: str, kind: str, is_member: bool) -> None:
    texts = ips if kind == "ip" else cidrs

    @thorough
    @given(texts)
    def compare(text: str) -> None:
        value: Any = (addresses.string_to_ip if kind == "ip" else addresses.string_to_cidr)(text)
        expression = f"{kind}({literal(text)})"
        expression = f"{expression}.{name}()" if is_member else f"{name}({expression})"
        assert outcome_of(IMPLEMENTATIONS[name, (value.cel_type,)], value) == ask_with_own(expression)

    compare()


@thorough
@given(cidrs, st.one_of(ips, cidrs))
def test_contains_is_the_same_in_the_engine(network: str, other: str) -> None:
    value = addresses.string_to_cidr(network)
    name, kind = ("containsCIDR", "cidr") if "/" in other else ("containsIP", "ip")
    ours = outcome_of(IMPLEMENTATIONS[name, (extensions.CIDR, "string")], value, other)
    assert ours == ask_with_own(f"cidr({literal(network)}).{name}({literal(other)})")
    assert ours == ask_with_own(f"cidr({literal(network)}).{name}({kind}({literal(other)}))")


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ("ip('2001:DB8::1') == ip('2001:db8:0::1')", True),
        ("ip('0.0.0.1') == ip('::1')", False),
        ("cidr('10.1.2.3/8') == cidr('10.0.0.0/8')", False),
        ("cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')", True),
        ("type(ip('::1')) == net.IP && type(cidr('::1/1')) == net.CIDR", True),
        ("dyn(ip('::1')) == dyn(cidr('::1/128'))", False),
        ("optional.ofNonZeroValue(ip('0.0.0.0')).hasValue()", True),
        ("string(dyn(ip('::0'))) == '::' && string(dyn(cidr('1.2.3.4/8'))) == '1.2.3.4/8'", True),
        ("string(1) + string(1u) + string(1.5) + string(true) + string('x') + string(b'y') == '111.5truexy'", True),
        ("string(duration('90s')) + string(timestamp(0)) == '90s1970-01-01T00:00:00Z'", True),
    ],
)
def test_they_behave_as_values_do(expression: str, want: bool) -> None:
    assert ask_with_own(expression) == Outcome(value=f"bool {want}")


@pytest.mark.parametrize(
    "expression",
    [
        "dyn(cidr('10.0.0.0/8')).family()",
        "dyn(ip('::1')).isGreaterThan(dyn(semver('1.2.3')))",
        "dyn(quantity('1')).isGreaterThan(dyn(semver('1.2.3')))",
        "cidr('10.0.0.0/8').containsIP(dyn(cidr('10.0.0.0/8')))",
    ],
)
def test_a_value_of_another_type_is_no_argument(expression: str) -> None:
    assert str(ask_with_own(expression).error) == "NoSuchOverload"
