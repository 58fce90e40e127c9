"""Checks of provided certificates (`CertManager`, `Provided`). Pure.

Errors name the Secret, the key in it, and what to do.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from fairlead.pki import parsing
from fairlead.pki.issuing import Pair, Purpose, belong_together

_PURPOSES: Final = {
    "server": (ExtendedKeyUsageOID.SERVER_AUTH, "server auth"),
    "client": (ExtendedKeyUsageOID.CLIENT_AUTH, "client auth"),
}


@dataclass(frozen=True, slots=True)
class CertificateRequirements:
    """Requirements on the certificate in a Secret."""

    secret: str
    """Namespace and name of the Secret, for messages."""
    purpose: Purpose
    name: str = ""
    """Common name of a client, which identifies the caller."""
    hosts: frozenset[str] = frozenset()
    """Hosts of a server."""
    otherwise: str = ""
    """Another way to create the Secret, for messages."""


def find_faults(wanted: CertificateRequirements, data: Mapping[str, bytes] | None, now: datetime) -> tuple[str, ...]:
    """Return what is wrong with a Secret; empty if it can be used. `data` is None if it does not exist."""
    where = f"Secret {wanted.secret}"
    if data is None:
        made = f"create it, of type kubernetes.io/tls, with tls.crt, tls.key and ca.crt{wanted.otherwise}"
        return (f"{where} does not exist: {made}",)
    if missing := [name for name in ("tls.crt", "tls.key", "ca.crt") if not data.get(name)]:
        return tuple(f"{where}, {name}: is missing: {_HINTS[name]}" for name in missing)
    found = {name: _read(data[name]) for name in ("tls.crt", "ca.crt")}
    if broken := [name for name, certificates in found.items() if not certificates]:
        return tuple(f"{where}, {name}: holds no certificate in PEM: {_HINTS[name]}" for name in broken)
    return tuple(f"{where}, {fault}" for fault in _of_leaf(wanted, data, found["tls.crt"], found["ca.crt"], now))


_HINTS: Final = {
    "tls.crt": "set it to the certificate, followed by its intermediate certificates",
    "tls.key": "set it to the key of the certificate, in PEM and without a password",
    "ca.crt": "set it to the certificate of the authority that signs both sides",
}


def _of_leaf(
    wanted: CertificateRequirements,
    data: Mapping[str, bytes],
    chain: list[x509.Certificate],
    authorities: list[x509.Certificate],
    now: datetime,
) -> list[str]:
    leaf, info = chain[0], parsing.read_certificate(data["tls.crt"])
    faults = []
    if not belong_together(Pair(data["tls.crt"], data["tls.key"])):
        faults.append("tls.key: is not the key of tls.crt, or has a password: replace both together")
    for name, one in (("tls.crt", leaf), *(("ca.crt", one) for one in authorities)):
        if now < one.not_valid_before_utc:
            faults.append(f"{name}: is not valid before {_day(one.not_valid_before_utc)}: check the clocks")
        if now >= one.not_valid_after_utc and name == "tls.crt":
            faults.append(f"{name}: expired on {_day(one.not_valid_after_utc)}: renew it")
    if all(now >= one.not_valid_after_utc for one in authorities):
        last = max(one.not_valid_after_utc for one in authorities)
        faults.append(f"ca.crt: expired on {_day(last)}: replace the authority")
    elif not parsing.leads(leaf, chain[1:], authorities, now):
        faults.append("tls.crt: is not signed by the authority in ca.crt: add its issuer there, and intermediates here")
    oid, words = _PURPOSES[wanted.purpose]
    if not _serves(leaf, oid):
        faults.append(f"tls.crt: is not for {words}: add it to the usages")
    if wanted.name and info.name != wanted.name:
        faults.append(f"tls.crt: its common name is {info.name or 'missing'}: it must be {wanted.name}")
    if missing := sorted(wanted.hosts - parsing.hosts_of(leaf)):
        faults.append(f"tls.crt: is not for {', '.join(missing)}: add them to its DNS names")
    return faults


def _read(content: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(content)
    except ValueError:
        return []


def _serves(leaf: x509.Certificate, purpose: x509.ObjectIdentifier) -> bool:
    try:
        return purpose in leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True  # it allows every usage


def _day(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M} UTC"
