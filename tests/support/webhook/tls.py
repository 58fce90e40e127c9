"""Certificates for tests, right and wrong ones, and callers that use them."""

import asyncio
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import NameOID

from fairlead.pki.issuing import Pair, create_authority, issue_leaf
from fairlead.webhook.extender.call import Caller
from fairlead.webhook.https.tls import Files

NOW = datetime.now(UTC)
YEAR = timedelta(days=365)
HOSTS = ["localhost", "127.0.0.1", "::1"]
ANYBODY = Caller(schedulers=frozenset({"all"}))


@dataclass(frozen=True)
class Ground:
    """A folder with certificates in it."""

    folder: Path
    ca: Pair = field(default_factory=lambda: create_authority("ca", NOW, YEAR))

    @property
    def files(self) -> Files:
        if not (self.folder / "server.crt").exists():
            self.write("ca", self.ca)
            self.write("server", issue_leaf(self.ca, "fairlead", "server", NOW, YEAR, HOSTS))
        return Files(*(self.folder / name for name in ("server.crt", "server.key", "ca.crt")))

    def write(self, name: str, pair: Pair) -> tuple[Path, Path]:
        certificate, key = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        return certificate, key

    def client(self, name: str | None = "scheduler", by: Pair | None = None, when: datetime = NOW) -> ssl.SSLContext:
        """Return the TLS context of a caller; without a name it has no certificate."""
        context = ssl.create_default_context(cadata=self.ca.certificate.decode())
        if name is not None:
            pair = issue_leaf(by or self.ca, name, "client", when, timedelta(days=1))
            context.load_cert_chain(*self.write(f"client-{name}", pair))
        return context


def signed_by_another(certificate: bytes) -> bytes:
    """The same authority, as one below another that nobody here knows."""
    one = x509.load_pem_x509_certificate(certificate)
    builder = x509.CertificateBuilder(
        issuer_name=x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "above")]),
        subject_name=one.subject,
        public_key=one.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=one.not_valid_before_utc,
        not_valid_after=one.not_valid_after_utc,
    )
    for extension in one.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    return builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256()).public_bytes(Encoding.PEM)


def of_no_version(certificate: bytes) -> bytes:
    """The same with a version that no certificate has."""
    written = ssl.PEM_cert_to_DER_cert(certificate.decode())
    third, sixth = bytes.fromhex("a003020102"), bytes.fromhex("a003020105")
    return ssl.DER_cert_to_PEM_cert(written.replace(third, sixth, 1)).encode()


def between(
    by: Pair | None = None, name: str = "between", *, is_authority: bool = True, days: int = 365, now: datetime = NOW
) -> Pair:
    """An authority that may have others below it: signed by another one, or by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name if by else "root")])
    signer = load_pem_private_key(by.key, None) if by else key
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    issuer = x509.load_pem_x509_certificate(by.certificate).subject if by else own
    begins, ends = now - timedelta(days=1), now + timedelta(days=days)
    made = (
        x509.CertificateBuilder(issuer, own, key.public_key(), x509.random_serial_number(), begins, ends)
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .sign(signer, hashes.SHA256())
    )
    written = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Pair(made.public_bytes(Encoding.PEM), written)


def as_go(path: str, body: bytes, method: str = "POST", **headers: str) -> bytes:
    """A call as Go's client writes it, but for what is said otherwise; a header without a value is left out."""
    plain = {"Host": "x:1", "User-Agent": "Go-http-client/1.1", "Content-Length": str(len(body))}
    given = {**plain, "Content-Type": "application/json", "Accept-Encoding": "gzip", **headers}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items() if value)]
    return "\r\n".join([*lines, "", ""]).encode() + body


@dataclass
class Connection:
    """A connection that is kept."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def call(self, path: str, body: bytes = b"{}", method: str = "POST", **headers: str) -> "Received":
        self.writer.write(as_go(path, body, method, **headers))
        return await self.reply()

    async def reply(self) -> "Received":
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        body = await self.reader.readexactly(int(headers["content-length"]))
        return Received(int(head[0].split()[1]), headers, body)

    async def is_closed(self) -> bool:
        """Return whether the other side closes it."""
        try:
            return await self.reader.read(1) == b""
        except ConnectionError:
            return True

    async def close(self) -> None:
        self.writer.transport.abort()
        with suppress(OSError):
            await self.writer.wait_closed()


@dataclass
class Received:
    status: int
    headers: dict[str, str]
    body: bytes


async def connect(
    port: int, context: ssl.SSLContext | None, host: str = "127.0.0.1", come_from: str | None = None
) -> Connection:
    """Connect; with a certificate that the server refuses, this or the first call raises."""
    local = None if come_from is None else (come_from, 0)
    return Connection(*await asyncio.open_connection(host, port, ssl=context, limit=2**24, local_addr=local))
