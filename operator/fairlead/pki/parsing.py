"""Reading and verification of certificates. Pure."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID

_LONGEST: Final = 5  # certificates between a leaf and its authority


@dataclass(frozen=True, slots=True)
class CertificateInfo:
    """Content of a certificate."""

    key: str
    """Hash of its public key, which identifies an authority."""
    issuer: str
    """Key of the authority that signed it; empty if none of the hosts ones did."""
    name: str
    hosts: frozenset[str]
    serial: int
    begins: datetime
    ends: datetime


def read_certificate(pem: bytes, authorities: Sequence[bytes] = ()) -> CertificateInfo:
    """Read the first certificate. Raises ValueError if there is none."""
    one = x509.load_pem_x509_certificates(pem)[0]
    names = one.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return CertificateInfo(
        _key(one),
        _issuer(one, authorities),
        str(names[0].value) if len(names) == 1 else "",
        hosts_of(one),
        one.serial_number,
        one.not_valid_before_utc,
        one.not_valid_after_utc,
    )


def hosts_of(certificate: x509.Certificate) -> frozenset[str]:
    """Return the hosts of a certificate: names and addresses."""
    try:
        hosts = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    addresses = (str(address) for address in hosts.get_values_for_type(x509.IPAddress))
    return frozenset((*hosts.get_values_for_type(x509.DNSName), *addresses))


def bundle(certificates: Iterable[bytes]) -> bytes:
    """Return a bundle of certificates, each once and always in the same order."""
    return b"".join(sorted({one.strip() + b"\n" for one in certificates}))


def leads(
    leaf: x509.Certificate,
    between: Sequence[x509.Certificate],
    authorities: Sequence[x509.Certificate],
    now: datetime,
) -> bool:
    """Return whether the chain leads to one of the authorities, without an expired certificate."""
    one = leaf
    for depth in range(_LONGEST):
        if one in authorities or any(_signed(one, authority, depth, now) for authority in authorities):
            return True
        issuer = next((other for other in between if other != one and _signed(one, other, depth, now)), None)
        if issuer is None:
            return False
        one = issuer
    return False


def fingerprint(certificate: bytes) -> str:
    """Return the SHA-256 fingerprint of a certificate in DER, in lower case."""
    return hashlib.sha256(certificate).hexdigest()


def digest(pem: bytes) -> str:
    """Return a digest of the certificates in a PEM text. Raises ValueError if there is none."""
    found = sorted(one.public_bytes(Encoding.DER) for one in x509.load_pem_x509_certificates(pem))
    return hashlib.sha256(b"".join(found)).hexdigest()[:16]


def _key(certificate: x509.Certificate) -> str:
    written = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(written).hexdigest()[:16]


def _issuer(certificate: x509.Certificate, authorities: Sequence[bytes]) -> str:
    for pem in authorities:
        for authority in x509.load_pem_x509_certificates(pem):
            if _is_issuer(authority, certificate):
                return _key(authority)
    return ""


def _signed(certificate: x509.Certificate, issuer: x509.Certificate, depth: int, now: datetime) -> bool:
    if not issuer.not_valid_before_utc <= now < issuer.not_valid_after_utc:
        return False
    return _may_sign(issuer, depth) and _is_issuer(issuer, certificate)


def _may_sign(certificate: x509.Certificate, depth: int) -> bool:
    """Return whether a certificate may sign at this depth above the leaf: path lengths limit that."""
    if certificate.version is x509.Version.v1:  # version 1 has no extensions
        return certificate.issuer == certificate.subject
    try:
        limits = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        if not limits.ca or (limits.path_length is not None and limits.path_length < depth):
            return False
        return certificate.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    except x509.ExtensionNotFound as missing:
        return missing.oid == x509.KeyUsage.oid
    except ValueError:
        return False


def _is_issuer(issuer: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
