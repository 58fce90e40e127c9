"""Access to a Prometheus server: what requests present, from files that are read again at each poll."""

import base64
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fairlead.kube.access.secret_files import FileSecret
from fairlead.kube.errors import AccessError
from fairlead.pki.tls_context import load_pair
from fairlead.render.prometheus_settings import PrometheusServer

FOLDER: Final = "prometheus"
"""Folder beside the settings file that has one folder of files for each server."""


@dataclass(frozen=True, slots=True)
class Credential:
    """Authorization header and client certificate; both may be empty."""

    authorization: str = field(default="", repr=False)
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)


@dataclass(slots=True)
class Trust:
    """Trusted authority (None: those of the system), and where the client certificate comes from, for errors."""

    authority: FileSecret | None = None
    verify: bool = True
    certificate_at: tuple[str, str] = ("", "")
    _made_of: tuple[bytes, bytes, bytes] | None = field(default=None, repr=False)
    _context: ssl.SSLContext | None = field(default=None, repr=False)

    def context(self, credential: Credential) -> ssl.SSLContext:
        """Return the TLS context for the current files; a new context means a new connection. Raises AccessError."""
        authority = self.authority.read() if self.authority else b""
        wanted = (authority, credential.certificate, credential.key)
        if self._context is None or wanted != self._made_of:
            self._context, self._made_of = self._make(*wanted), wanted
        return self._context

    def _make(self, authority: bytes, certificate: bytes, key: bytes) -> ssl.SSLContext:
        # not create_default_context: since 3.13 it rejects authorities without a key identifier, which clusters have
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as in kubectl: an intermediate authority suffices
        if not self.verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        elif self.authority:
            try:
                # ignore other text: bundles have names of authorities between the certificates
                context.load_verify_locations(cadata=authority.decode("ascii", "ignore"))
            except (ssl.SSLError, ValueError) as error:
                where = self.authority.file, self.authority.field
                raise AccessError(
                    *where, "holds no certificate", "it must be PEM: -----BEGIN CERTIFICATE-----"
                ) from error
        else:
            context.load_default_certs()
        if certificate:
            self._load_certificate(context, certificate, key)
        return context

    def _load_certificate(self, context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
        try:
            load_pair(context, certificate, key)
        except ssl.SSLError as error:
            what = f"the certificate and the key do not match: {error.reason or error}"
            raise AccessError(
                *self.certificate_at, what, "both must be PEM, and the key must have no password"
            ) from error


class ServerAccess:
    """Address of a server, and the credentials for it."""

    def __init__(self, server: PrometheusServer, folder: Path, token: FileSecret | None = None) -> None:
        """`folder` has the files of this server, with the names that the settings give them.

        `token` is that of a caller without settings.
        """
        self.server = server
        self._folder = folder
        self._token = token
        self._user = self._password = self._certificate = self._key = None
        authority = None
        if (bearer := server.bearer_token) is not None:
            self._token = self._file("token", "bearerToken", _in_secret(bearer.secret, bearer.key))
        elif server.service_account is not None:
            self._token = self._file("token", "serviceAccount", "the chart mounts a token of its ServiceAccount here")
        elif (login := server.basic_auth) is not None:
            self._user = self._file("username", "basicAuth", _in_secret(login.secret, "username"))
            self._password = self._file("password", "basicAuth", _in_secret(login.secret, "password"))
        if (shown := server.client_certificate) is not None:
            self._certificate = self._file("tls.crt", "clientCertificate", _in_secret(shown.secret, "tls.crt"))
            self._key = self._file("tls.key", "clientCertificate", _in_secret(shown.secret, "tls.key"))
        if (ca := server.ca) is not None:
            kind = "Secret" if ca.secret is not None else "ConfigMap"
            authority = self._file("ca.crt", "ca", _in_secret(ca.secret or ca.config_map or "", ca.key, kind))
        certificate_at = (str(folder / "tls.crt"), "clientCertificate")
        has_tls = server.url.startswith("https:")
        self.trust = Trust(authority, certificate_at=certificate_at) if has_tls else None
        """Trusted authority; None for plain HTTP."""

    def credential(self) -> Credential:
        """Return the current credentials. Raises AccessError."""
        header = ""
        if self._token is not None:
            header = f"Bearer {_line(self._token)}"
        elif self._user is not None and self._password is not None:
            user, password = _line(self._user), _line(self._password)
            if ":" in user:
                raise AccessError(self._user.file, self._user.field, "has a ':'", "no user name may have one")
            header = f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
        certificate = self._certificate.read() if self._certificate is not None else b""
        return Credential(header, certificate, self._key.read() if self._key is not None else b"")

    def _file(self, name: str, field: str, hint: str) -> FileSecret:
        return FileSecret(self._folder / name, field, hint)


def _in_secret(name: str, key: str, kind: str = "Secret") -> str:
    return f"it is the key {key} of the {kind} {name}: create it, or correct the settings"


def _line(file: FileSecret) -> str:
    """Return a text for a header. Raises AccessError if it is not one line."""
    text = file.read().decode(errors="replace")
    if not text.isprintable():
        raise AccessError(file.file, file.field, "has more than one line", "it must be one line of text")
    return text
