"""Creation of authorities and of certificates that they sign: pure except random keys; the time is a parameter."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Final, Literal

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

Purpose = Literal["server", "client"]
EARLIER: Final = timedelta(minutes=5)
"""How far certificates are backdated, because clocks differ."""
_LABEL: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_USES: Final = {"server": ExtendedKeyUsageOID.SERVER_AUTH, "client": ExtendedKeyUsageOID.CLIENT_AUTH}


@dataclass(frozen=True, slots=True)
class Pair:
    """Certificate and its key, in PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


def create_authority(name: str, now: datetime, life: timedelta) -> Pair:
    """Create a self-signed certificate authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(name)
    usage = _usage(signs=True)
    made = (
        _builder(subject, subject, key.public_key(), now, life)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _pair(made, key)


def issue_leaf(
    by: Pair, name: str, purpose: Purpose, now: datetime, life: timedelta, hosts: Iterable[str] = ()
) -> Pair:
    """Create a certificate for a server with these hosts, or for a client with this name."""
    issuer = x509.load_pem_x509_certificate(by.certificate)
    signer = serialization.load_pem_private_key(by.key, None)
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise TypeError("the key of the authority is not an elliptic-curve key")
    if signer.public_key() != issuer.public_key():
        raise ValueError("the key does not belong to the certificate")
    if issuer.not_valid_after_utc <= now:
        raise ValueError(f"it expired on {issuer.not_valid_after_utc:%Y-%m-%d}")
    key = ec.generate_private_key(ec.SECP256R1())
    # It must not outlive its issuer.
    life = min(life, issuer.not_valid_after_utc - now)
    builder = (
        _builder(_subject(name), issuer.subject, key.public_key(), now, life)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([_USES[purpose]]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if names := [_alternative(host) for host in hosts]:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return _pair(builder.sign(signer, hashes.SHA256()), key)


def belong_together(pair: Pair) -> bool:
    """Return whether the key belongs to the certificate."""
    try:
        key = serialization.load_pem_private_key(pair.key, None)
        return x509.load_pem_x509_certificate(pair.certificate).public_key() == key.public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):  # TypeError: the key has a password
        return False


def is_authority(certificate: bytes) -> bool:
    """Return whether a certificate may sign others."""
    try:
        one = x509.load_pem_x509_certificate(certificate)
        return one.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (ValueError, x509.ExtensionNotFound):
        return False


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER)
        .not_valid_after(now + life)
    )


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def is_host(text: str) -> bool:
    """Return whether a text can be a host of a certificate."""
    try:
        ip_address(text)
    except ValueError:
        return all(map(_LABEL.fullmatch, text.removeprefix("*.").split(".")))
    return True


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    written = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Pair(certificate.public_bytes(serialization.Encoding.PEM), written)
