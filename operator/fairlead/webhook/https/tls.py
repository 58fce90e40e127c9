"""The server's side of mutual TLS: contexts, made anew when what they are made of changes, and who is trusted by them.

What they are made of comes from files, or from memory: who signs his own certificate never writes it down.
"""

import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from cryptography import x509

from fairlead.pki import parsing
from fairlead.pki.tls_context import load_pair


class TlsError(Exception):
    """A certificate or a key cannot be used; says which and why."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The server's certificate, its key and the authorities of its clients."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)
    client_ca: bytes = field(repr=False)


class Source(Protocol):
    """Where they come from; each is called by what it is to be found under."""

    @property
    def certificate(self) -> object: ...  # noqa: D102
    @property
    def key(self) -> object: ...  # noqa: D102
    @property
    def client_ca(self) -> object: ...  # noqa: D102

    def read(self) -> Contents:
        """As they are now. Raises TlsError."""


@dataclass(frozen=True, slots=True)
class Files:
    """Where the server's certificate, its key and the authority of its clients are."""

    certificate: Path
    key: Path
    client_ca: Path

    def read(self) -> Contents:
        """What is in them now."""
        return Contents(*(_read(path) for path in (self.certificate, self.key, self.client_ca)))


@dataclass(slots=True)
class InMemory:
    """What somebody in this process has put there; `name` says who."""

    name: str
    contents: Contents | None = None

    @property
    def certificate(self) -> str:
        """The name of what is wrong if it is."""
        return f"the certificate of {self.name}"

    @property
    def key(self) -> str:
        """The name of what is wrong if it is."""
        return "its key"

    @property
    def client_ca(self) -> str:
        """The name of what is wrong if it is."""
        return f"the authority of callers of {self.name}"

    def read(self) -> Contents:
        """What is there now."""
        if self.contents is None:
            raise TlsError(f"there is nothing from {self.name} yet")
        return self.contents


@dataclass(slots=True)
class Tls:
    """The context for connections that come now."""

    source: Source
    later: bool = False
    """There is nothing yet: `reload` before anybody comes."""
    context: ssl.SSLContext = field(init=False)
    server_only_context: ssl.SSLContext = field(init=False)
    """The same for a port on which nobody has to say who he is."""
    expires: Mapping[str, datetime] = field(default_factory=dict)
    """When which of the certificates expires."""
    distrusted: Callable[[], None] = lambda: None
    """Told when other authorities than before are those of callers."""
    _authorities: Sequence[x509.Certificate] = ()
    _contents: Contents | None = None

    def __post_init__(self) -> None:
        if not self.later:
            self._use(self.source.read())

    def reload(self) -> bool:
        """Use what is there now, if it is something else. Raises TlsError and goes on with what it had."""
        contents = self.source.read()
        if contents == self._contents:
            return False
        self._use(contents)
        return True

    def trusts(self, chain: Sequence[bytes], now: datetime) -> bool:
        """Whether that would be let in now: the certificate of a caller, and what he sent with it, in DER."""
        return _trusted(chain, self._authorities, now)

    def asking(self, authority: str) -> ssl.SSLContext:
        """As for anyone, but he has to show a certificate of this authority. Raises TlsError."""
        contents = self._contents if self._contents is not None else self.source.read()
        return _demanding(_server_context(self.source, contents), authority.encode(), "admission.clientCA")

    def _use(self, contents: Contents) -> None:
        # What was read is what is used: a file may be replaced at any moment, and then they do not go together.
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
    except Exception:  # noqa: BLE001  nothing, or whatever it is that cannot be read: it is his to choose
        return False


def is_of(authority: str, chain: Sequence[bytes], now: datetime) -> bool:
    """Whether a certificate of this authority, in PEM, leads the chain, in DER, and has not ended."""
    try:
        ends = x509.load_der_x509_certificate(chain[0]).not_valid_after_utc
        return now < ends and _trusted(chain, x509.load_pem_x509_certificates(authority.encode()), now)
    except Exception:  # noqa: BLE001  as above
        return False


def _context(source: Source, contents: Contents) -> ssl.SSLContext:
    return _demanding(_server_context(source, contents), contents.client_ca, source.client_ca)


def _demanding(context: ssl.SSLContext, authority: bytes, where: object) -> ssl.SSLContext:
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as with Go: whoever has signed the authority itself
    # A session that is resumed is not asked for its certificate again, which may have expired meanwhile. Up to 1.2 a
    # client can resume by the session's number, and Python has no word against it; in 1.3 there are tickets alone.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    try:
        # What stands between certificates is nobody's business: bundles have the names of their authorities there.
        context.load_verify_locations(cadata=authority.decode("ascii", "ignore"))
    except (ssl.SSLError, ValueError) as error:
        raise TlsError(f"{where} is no certificate of an authority: {error}") from None
    return context


def _server_context(source: Source, contents: Contents) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3  # all who call are programs in Go, and the operator
    context.set_alpn_protocols(["http/1.1"])
    # All that both know is good; the caller says which is fast. Ours would be AES-256; Go's is AES-128, less work.
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


def _expiry(found: Sequence[x509.Certificate]) -> datetime:
    """Of the first that expires: a bundle is as good as that."""
    return min(one.not_valid_after_utc for one in found).astimezone(UTC)
