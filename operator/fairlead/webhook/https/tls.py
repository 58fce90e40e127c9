"""Server side of mutual TLS: contexts rebuilt with the certificates, trusted clients, reasons of failed handshakes.

Certificates come from files, or from memory: the operator's own key is never written to a file.
"""

import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

from cryptography import x509

from fairlead.pki import parsing
from fairlead.pki.tls_context import load_pair


class TlsError(Exception):
    """Certificate or key that cannot be used; the message says which, and why."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The server's certificate, its key, and the authorities of clients."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)
    client_ca: bytes = field(repr=False)


class PemSource(Protocol):
    """Source of certificates; each property is its name for error messages."""

    @property
    def certificate(self) -> object: ...  # noqa: D102
    @property
    def key(self) -> object: ...  # noqa: D102
    @property
    def client_ca(self) -> object: ...  # noqa: D102

    def read(self) -> Contents:
        """Return the current certificates. Raises TlsError."""


@dataclass(frozen=True, slots=True)
class Files:
    """Paths of the server's certificate, its key and the authority of clients."""

    certificate: Path
    key: Path
    client_ca: Path

    def read(self) -> Contents:
        """Return the current contents of the files. Raises TlsError."""
        return Contents(*(_read(path) for path in (self.certificate, self.key, self.client_ca)))


@dataclass(slots=True)
class InMemory:
    """Certificates that another part of this process sets; `name` says which part, for error messages."""

    name: str
    contents: Contents | None = None

    @property
    def certificate(self) -> str:
        """Name of the certificate in error messages."""
        return f"the certificate of {self.name}"

    @property
    def key(self) -> str:
        """Name of the key in error messages."""
        return "its key"

    @property
    def client_ca(self) -> str:
        """Name of the authority in error messages."""
        return f"the authority of callers of {self.name}"

    def read(self) -> Contents:
        """Return the certificates. Raises TlsError before they are set."""
        if self.contents is None:
            raise TlsError(f"no certificates from {self.name} yet")
        return self.contents


@dataclass(slots=True)
class Tls:
    """TLS contexts for new connections."""

    source: PemSource
    later: bool = False
    """True if the certificates come later: call `reload` before the first connection."""
    context: ssl.SSLContext = field(init=False)
    server_only_context: ssl.SSLContext = field(init=False)
    """Context for a port that asks for no client certificate."""
    expires: Mapping[str, datetime] = field(default_factory=dict)
    """Expiry of each certificate."""
    distrusted: Callable[[], None] = lambda: None
    """Called when the authorities of clients change."""
    _authorities: Sequence[x509.Certificate] = ()
    _contents: Contents | None = None

    def __post_init__(self) -> None:
        if not self.later:
            self._use(self.source.read())

    def reload(self) -> bool:
        """Use the current certificates; return whether they changed. Raises TlsError and keeps the old ones."""
        contents = self.source.read()
        if contents == self._contents:
            return False
        self._use(contents)
        return True

    def trusts(self, chain: Sequence[bytes], now: datetime) -> bool:
        """Return whether a client with this certificate chain, in DER, would be accepted now."""
        return _trusted(chain, self._authorities, now)

    def context_requiring(self, authority: str) -> ssl.SSLContext:
        """Return a context that requires a client certificate of this authority. Raises TlsError."""
        contents = self._contents if self._contents is not None else self.source.read()
        return _demanding(_server_context(self.source, contents), authority.encode(), "admission.clientCA")

    def _use(self, contents: Contents) -> None:
        # Use only what was read above: the files may be replaced at any moment, and would not match.
        shown = _certificates(contents.certificate, self.source.certificate)
        authorities = _certificates(contents.client_ca, self.source.client_ca)
        self.context, self.server_only_context = _context(self.source, contents), _server_context(self.source, contents)
        self.expires, self._contents = {"server": _expiry(shown), "client-ca": _expiry(authorities)}, contents
        before, self._authorities = self._authorities, authorities
        if {*before} != {*authorities}:
            self.distrusted()


def _trusted(chain: Sequence[bytes], authorities: Sequence[x509.Certificate], now: datetime) -> bool:
    try:
        leaf, *between = map(x509.load_der_x509_certificate, chain)
        return parsing.leads(leaf, between, authorities, now)
    except Exception:  # noqa: BLE001  no certificate, or one that cannot be parsed: the client chooses what it sends
        return False


def is_of(authority: str, chain: Sequence[bytes], now: datetime) -> bool:
    """Return whether the chain, in DER, starts with an unexpired certificate of this authority, in PEM."""
    try:
        ends = x509.load_der_x509_certificate(chain[0]).not_valid_after_utc
        return now < ends and _trusted(chain, x509.load_pem_x509_certificates(authority.encode()), now)
    except Exception:  # noqa: BLE001  as above
        return False


def _context(source: PemSource, contents: Contents) -> ssl.SSLContext:
    return _demanding(_server_context(source, contents), contents.client_ca, source.client_ca)


def _demanding(context: ssl.SSLContext, authority: bytes, where: object) -> ssl.SSLContext:
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as in Go: an intermediate authority suffices
    # No session is resumed: a resumed one shows no certificate again, and the old one may have expired. Up to TLS 1.2
    # a client can also resume by session ID, which Python cannot switch off; TLS 1.3 has tickets only.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    try:
        # Ignore other text: bundles have the names of their authorities between the certificates.
        context.load_verify_locations(cadata=authority.decode("ascii", "ignore"))
    except (ssl.SSLError, ValueError) as error:
        raise TlsError(f"{where} is not the certificate of an authority: {error}") from None
    return context


def _server_context(source: PemSource, contents: Contents) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3  # all clients are Go programs, or the operator
    context.set_alpn_protocols(["http/1.1"])
    # The client chooses the cipher: OpenSSL would choose AES-256, Go chooses AES-128, which is less work.
    context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    try:
        load_pair(context, contents.certificate, contents.key)
    except (ssl.SSLError, OSError) as error:
        raise TlsError(f"{source.certificate} and {source.key} cannot be used together: {error}") from None
    return context


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TlsError(f"{path} cannot be read: {error.strerror}") from None


def _certificates(content: bytes, where: object) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(content)
    except ValueError:
        raise TlsError(f"{where} holds no certificate in PEM") from None


def _expiry(certificates: Sequence[x509.Certificate]) -> datetime:
    """Return the earliest expiry in a bundle."""
    return min(one.not_valid_after_utc for one in certificates).astimezone(UTC)


_REASONS: Final = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "no certificate",
    "HTTP_REQUEST": "plain HTTP",
    "HTTPS_PROXY_REQUEST": "plain HTTP",
    "WRONG_VERSION_NUMBER": "no TLS",
    "UNSUPPORTED_PROTOCOL": "old TLS",
}
DISTRUSTED: Final = "distrusted"
"""Reason of a handshake that the client ended because it does not trust our certificate."""
_FAULTS: Final = {9: "not yet valid", 10: "expired", 26: "not for clients"}


def reason_of(error: Exception) -> str:
    """Return the reason of a failed handshake."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _FAULTS.get(error.verify_code, "unknown authority")
    if isinstance(error, ssl.SSLError):
        reason = error.reason or ""
        if "_ALERT_" in reason and ("CERTIFICATE" in reason or "UNKNOWN_CA" in reason):
            return DISTRUSTED
        return _REASONS.get(reason, "other")
    if isinstance(error, TimeoutError):
        return "timeout"
    return "connection lost"
