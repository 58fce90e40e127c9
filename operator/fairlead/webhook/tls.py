"""The server's side of mutual TLS: contexts from files, made anew when the files change, and who a caller is."""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography import x509


class TlsError(Exception):
    """The files cannot be used; says which and why."""


@dataclass(frozen=True, slots=True)
class Files:
    """Where the server's certificate, its key and the authority of its clients are."""

    certificate: Path
    key: Path
    client_ca: Path

    def read(self) -> "Contents":
        """What is in them now."""
        return Contents(*(_read(path) for path in (self.certificate, self.key, self.client_ca)))


@dataclass(frozen=True, slots=True)
class Contents:
    """What was in the files."""

    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)
    client_ca: bytes = field(repr=False)


@dataclass(slots=True)
class Tls:
    """The context for connections that come now."""

    files: Files
    context: ssl.SSLContext = field(init=False)
    expires: Mapping[str, datetime] = field(init=False)
    """When which of the certificates expires."""
    _contents: Contents = field(init=False)

    def __post_init__(self) -> None:
        self._use(self.files.read())

    def reload(self) -> bool:
        """Use what is in the files, if it is something else. Raises TlsError and goes on with what it had."""
        contents = self.files.read()
        if contents == self._contents:
            return False
        self._use(contents)
        return True

    def _use(self, contents: Contents) -> None:
        # What was read is what is loaded: a file may be replaced at any moment.
        expires = {
            "server": _expiry(contents.certificate, self.files.certificate),
            "client-ca": _expiry(contents.client_ca, self.files.client_ca),
        }
        self.context = _context(self.files, contents)
        self.expires, self._contents = expires, contents


def _context(files: Files, contents: Contents) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    context.set_alpn_protocols(["http/1.1"])
    # A session that is resumed is not asked for its certificate again, which may have expired meanwhile.
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    try:
        context.load_verify_locations(cadata=contents.client_ca.decode())
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise TlsError(f"{files.client_ca} is no certificate of an authority: {error}") from None
    try:
        # an encrypted key is an error, and no question on the terminal
        context.load_cert_chain(files.certificate, files.key, password="")
    except (ssl.SSLError, OSError) as error:
        raise TlsError(f"{files.certificate} and {files.key} cannot be used together: {error}") from None
    if files.read() != contents:
        raise TlsError("the files changed while they were read")
    return context


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TlsError(f"{path} cannot be read: {error.strerror}") from None


def _expiry(pem: bytes, path: Path) -> datetime:
    """Of the first that expires: a bundle is as good as that."""
    try:
        found = x509.load_pem_x509_certificates(pem)
    except ValueError:
        raise TlsError(f"{path} holds no certificate in PEM") from None
    return min(one.not_valid_after_utc for one in found).astimezone(UTC)


def common_name(peer: Mapping[str, Any] | None) -> str | None:
    """The name of the caller, from its certificate as Python gives it; None if it has none, or several."""
    subject: Sequence[Sequence[tuple[str, str]]] = (peer or {}).get("subject", ())
    names = [value for part in subject for key, value in part if key == "commonName"]
    return names[0] if len(names) == 1 else None
