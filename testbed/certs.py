"""The keys of a cluster: its authority, and the certificates that its parts show each other."""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from testbed import cache

_VALID = dt.timedelta(days=3650)
_SKEW = dt.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as files."""

    certificate: Path
    key: Path


class Authority:
    """A certificate authority that lives in a folder and is made there on first use."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pair = _pair(folder, "ca")
        if not _is_there(self.pair):
            key = ec.generate_private_key(ec.SECP256R1())
            name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fairlead-testbed")])
            builder = _builder(name, name, key).add_extension(
                x509.BasicConstraints(ca=True, path_length=0), critical=True
            )
            usage = _usage(key_cert_sign=True, crl_sign=True)
            _write(self.pair, builder.add_extension(usage, critical=True).sign(key, hashes.SHA256()), key)

    @staticmethod
    def is_in(folder: Path) -> bool:
        """Tell whether there is one in the folder already."""
        return _is_there(_pair(folder, "ca"))

    @property
    def certificate(self) -> Path:
        """The certificate to trust."""
        return self.pair.certificate

    def issue(
        self, file: str, common_name: str, *, organizations: Sequence[str] = (), hosts: Sequence[str] = ()
    ) -> Pair:
        """The pair of that file name, issued where it is not there yet; `hosts` makes it a server's as well."""
        pair = _pair(self.folder, file)
        issuer = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        issuer_key = serialization.load_pem_private_key(self.pair.key.read_bytes(), password=None)
        if not isinstance(issuer_key, ec.EllipticCurvePrivateKey):
            raise TypeError(f"{self.pair.key} is not an elliptic curve key")
        if _is_there(pair) and _covers(pair, hosts, issuer):
            return pair
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name(
            [
                *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization) for organization in organizations),
                x509.NameAttribute(NameOID.COMMON_NAME, common_name),
            ]
        )
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if hosts else [])]
        builder = (
            _builder(subject, issuer.subject, key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        )
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False
            )
        _write(pair, builder.sign(issuer_key, hashes.SHA256()), key)
        return pair


def signing_key(folder: Path) -> Pair:
    """The key that signs service account tokens; its certificate's place holds the public key."""
    pair = Pair(folder / "sa.pub", folder / "sa.key")
    if not _is_there(pair):
        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        cache.write(pair.key, _private(key), mode=0o600)
        cache.write(pair.certificate, public)
    return pair


def _pair(folder: Path, file: str) -> Pair:
    return Pair(folder / f"{file}.crt", folder / f"{file}.key")


def _is_there(pair: Pair) -> bool:
    return pair.certificate.exists() and pair.key.exists()


def _covers(pair: Pair, hosts: Sequence[str], issuer: x509.Certificate) -> bool:
    """Tell whether the certificate is of this authority, not of one that was lost, and names the hosts."""
    certificate = x509.load_pem_x509_certificate(pair.certificate.read_bytes())
    try:
        certificate.verify_directly_issued_by(issuer)
    except InvalidSignature:
        return False
    if not hosts:
        return True
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return all(_alternative(host) in names for host in hosts)


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _VALID)
    )


def _usage(*, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def _write(pair: Pair, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    # the key first: a pair is complete when its certificate is there
    cache.write(pair.key, _private(key), mode=0o600)
    cache.write(pair.certificate, certificate.public_bytes(serialization.Encoding.PEM))
