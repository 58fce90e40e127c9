"""Whom we believe to be the API server: TLS contexts, made once, and anew when a file became another."""

import ssl
from dataclasses import dataclass, field

from fairlead.kube.access.credentials import Credential
from fairlead.kube.access.secret_files import SecretSource
from fairlead.kube.errors import AccessError
from fairlead.pki.tls_context import load_pair


@dataclass(slots=True)
class Trust:
    """An authority (None: those of the machine), and what names the client's certificate when it is no good."""

    authority: SecretSource | None = None
    verify: bool = True
    certificate_at: tuple[str, str] = ("", "")
    _made_of: tuple[bytes, bytes, bytes] | None = field(default=None, repr=False)
    _context: ssl.SSLContext | None = field(default=None, repr=False)

    def context(self, credential: Credential) -> ssl.SSLContext:
        """The context for what is on disk now. Another context is another connection."""
        authority = self.authority.read() if self.authority else b""
        wanted = (authority, credential.certificate, credential.key)
        if self._context is None or wanted != self._made_of:
            self._context, self._made_of = self._make(*wanted), wanted
        return self._context

    def _make(self, authority: bytes, certificate: bytes, key: bytes) -> ssl.SSLContext:
        # not create_default_context: since 3.13 it refuses authorities without a key identifier, which clusters have
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # as kubectl: whoever has signed the authority
        if not self.verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        elif self.authority:
            try:
                # bundles have the names of their authorities between the certificates
                context.load_verify_locations(cadata=authority.decode("ascii", "ignore"))
            except (ssl.SSLError, ValueError) as error:
                where = self.authority.file, self.authority.field
                raise AccessError(
                    *where, "holds no certificate", "it must be PEM: -----BEGIN CERTIFICATE-----"
                ) from error
        else:
            context.load_default_certs()
        if certificate:
            self._show(context, certificate, key)
        return context

    def _show(self, context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
        try:
            load_pair(context, certificate, key)
        except ssl.SSLError as error:
            what = f"the certificate and the key do not go together: {error.reason or error}"
            raise AccessError(*self.certificate_at, what, "both must be PEM, and the key without a password") from error
