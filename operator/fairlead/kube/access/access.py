"""Access to the API server: its address and our credentials, from kubeconfig files or the pod's service account."""

import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from fairlead.kube.access import kubeconfig
from fairlead.kube.access.credentials import Credential, Credentials, ExecCredentials, StaticCredentials
from fairlead.kube.access.exec_plugin import plugin
from fairlead.kube.access.kubeconfig import Chosen, Cluster, ConfigLocation
from fairlead.kube.access.secret_files import FileSecret, InlineSecret, SecretSource, inline_secret
from fairlead.kube.errors import AccessError
from fairlead.pki.tls_context import load_pair

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_ADMIT: Final = "mount one: automountServiceAccountToken must not be false"


@dataclass(frozen=True, slots=True)
class Connection:
    """Credentials and TLS context for one request."""

    credential: Credential
    tls: ssl.SSLContext | None


@dataclass(slots=True)
class Trust:
    """Trusted authority (None: those of the system), and where the client certificate comes from, for errors."""

    authority: SecretSource | None = None
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


@dataclass(frozen=True, slots=True)
class Access:
    """Address of the API server, and the credentials for it."""

    server: str
    credentials: Credentials
    trust: Trust | None = None
    """None: plain HTTP."""
    server_name: str = ""
    proxy: str = ""
    namespace: str = "default"

    async def connection(self) -> Connection:
        """Return the current credentials: tokens and certificates are replaced while the process runs."""
        credential = await self.credentials.current()
        return Connection(credential, self.trust.context(credential) if self.trust else None)

    def renew(self, refused: Connection) -> bool:
        """Drop credentials that got 401; return whether a retry may succeed."""
        return self.credentials.renew(refused.credential)


def find_access(
    file: Path | None = None,
    context: str = "",
    *,
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Access:
    """Return the access from `file`; else KUBECONFIG; else the pod's service account; else ~/.kube/config.

    Raises AccessError.
    """
    home = Path(environment.get("HOME", ""), ".kube", "config")
    if file is not None:
        return from_kubeconfig([file], context)
    if files := kubeconfig.named(environment):
        return from_kubeconfig(files, context)
    if environment.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster(environment, service_account)
    if home.exists():
        return from_kubeconfig([home], context)
    hint = "give --kubeconfig FILE, or set KUBECONFIG"
    raise AccessError("", "", f"no cluster: KUBECONFIG is not set, this is not a pod, and {home} does not exist", hint)


def in_cluster(environment: Mapping[str, str] = os.environ, folder: Path = SERVICE_ACCOUNT) -> Access:
    """Return the access with the pod's service account. Raises AccessError.

    The token file is read again whenever it is replaced, about once an hour.
    """
    host, port = (environment.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
    if not host or not port:
        hint = "run in a pod, or give --kubeconfig FILE"
        raise AccessError("the environment", "KUBERNETES_SERVICE_HOST and _PORT", "are not both set", hint)
    token = FileSecret(folder / "token", "the service account's token", _ADMIT)
    authority = FileSecret(folder / "ca.crt", "the cluster's authority", _ADMIT)
    token.read()
    authority.read()
    try:
        namespace = (folder / "namespace").read_text().strip()
    except OSError:
        namespace = "default"
    address = f"[{host}]" if ":" in host else host
    return Access(f"https://{address}:{port}", StaticCredentials(token), Trust(authority), namespace=namespace)


def from_kubeconfig(files: list[Path], context: str = "") -> Access:
    """Return the access of a context, or of the current one. Raises AccessError."""
    chosen = kubeconfig.choose(files, context)
    cluster, at = chosen.cluster, chosen.cluster_at
    server = _checked_server(cluster, at)
    authority = _secret_source(
        at, "certificate-authority", cluster.certificate_authority, cluster.certificate_authority_data
    )
    if authority and cluster.insecure_skip_tls_verify:
        what = "is set together with certificate-authority"
        raise AccessError(at.file, f"{at.field}.insecure-skip-tls-verify", what, "remove one of the two")
    trust = Trust(authority, not cluster.insecure_skip_tls_verify, (chosen.user_at.file, chosen.user_at.field))
    return Access(
        server,
        _credentials(chosen, authority),
        trust if server.startswith("https://") else None,
        cluster.tls_server_name,
        cluster.proxy_url,
        chosen.namespace,
    )


def _checked_server(cluster: Cluster, at: ConfigLocation) -> str:
    field = f"{at.field}.server"
    if not _is_address(cluster.server):
        raise AccessError(at.file, field, f"{cluster.server!r} is not an address", "it must be https://HOST[:PORT]")
    if cluster.proxy_url and not _is_address(cluster.proxy_url):
        hint = "it must be http://HOST:PORT or https://HOST:PORT"
        raise AccessError(at.file, f"{at.field}.proxy-url", f"{cluster.proxy_url!r} is not a supported proxy", hint)
    return cluster.server.rstrip("/")


def _is_address(text: str) -> bool:
    try:
        address = urlsplit(text)
        host = (address.hostname or "").encode("idna")
        return address.scheme in ("http", "https") and address.port != 0 and bool(host)
    except ValueError:  # an unclosed bracket, an invalid port, two dots in a row
        return False


def _credentials(chosen: Chosen, authority: SecretSource | None) -> Credentials:
    user, at = chosen.user, chosen.user_at
    if user.auth_provider is not None:
        raise AccessError(
            at.file,
            f"{at.field}.auth-provider",
            "is no longer supported",
            "kubectl does not support it either; use exec",
        )
    if user.as_:
        raise AccessError(at.file, f"{at.field}.as", "is not supported", "use a user that has the permissions itself")
    certificate = _secret_source(at, "client-certificate", user.client_certificate, user.client_certificate_data)
    key = _secret_source(at, "client-key", user.client_key, user.client_key_data)
    if bool(certificate) != bool(key):
        raise AccessError(
            at.file, at.field, "has a client-certificate or a client-key without the other", "give both or none"
        )
    if user.username and (user.token or user.token_file):
        raise AccessError(at.file, at.field, "has a token and a username", "keep one of the two")
    token: SecretSource | None = (
        InlineSecret(at.file, f"{at.field}.token", user.token.strip().encode()) if user.token else None
    )
    if user.token_file:  # as in kubectl, it takes precedence
        token = FileSecret(at.folder / user.token_file, f"{at.field}.tokenFile", "name a file that holds a token")
    kept = StaticCredentials(token, f"{user.username}:{user.password}" if user.username else "", certificate, key)
    if user.exec and not token and not user.username:
        return ExecCredentials(plugin(user.exec, at, chosen.cluster, authority), beside=kept)
    return kept


def _secret_source(at: ConfigLocation, field: str, path: str, data: str) -> SecretSource | None:
    """Return the source of a secret; as in kubectl, inline data takes precedence over a path."""
    if data:
        return inline_secret(at.file, f"{at.field}.{field}-data", data)
    name = f"{at.field}.{field} of {at.file}"
    return FileSecret(at.folder / path, name, "name a file that can be read") if path else None
