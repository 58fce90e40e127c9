"""Login at the API server with the official client's loaders, from a kubeconfig or as the pod's service account.

The loaders go on without credentials where something is missing, so that everything is checked before they are called.
"""

import asyncio
import base64
import os
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from fairlead.kube.access import kubeconfig
from fairlead.kube.access.exec_plugin import run_plugin
from fairlead.kube.access.kubeconfig import Chosen, Entry
from fairlead.kube.access.official_client import (
    ApiClient,
    ConfigException,
    Configuration,
    InClusterConfigLoader,
    KubeConfigLoader,
)
from fairlead.kube.access.proxies import environment_proxy
from fairlead.kube.errors import AccessError

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_ADMIT: Final = "mount one: automountServiceAccountToken must not be false"
_COMPARE: Final = "compare with `kubectl config view`"
_READ_AGAIN_S: Final = 60.0
_NEVER: Final = datetime.max.replace(tzinfo=UTC)


def utc_now() -> datetime:
    """Return the current time: expirations are given as wall-clock time."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, eq=False)
class Connection:
    """Configuration of the official client, with the contents of the files that it names."""

    configuration: Configuration = field(repr=False)
    tls: tuple[bytes, bytes, bytes] = field(default=(b"", b"", b""), repr=False)
    """Authority, certificate and key."""
    certificate_at: tuple[str, str] = ("", "")
    authority_at: tuple[str, str] = ("", "")
    expires: datetime = _NEVER

    @property
    def authorization(self) -> str:
        """Authorization header; may be empty."""
        return str(self.configuration.api_key.get("BearerToken", ""))

    def same(self, other: "Connection") -> bool:
        """Return whether another connection presents the same."""
        return (self.authorization, self.tls) == (other.authorization, other.tls)

    def api_client(self) -> ApiClient:
        """Return a client of the official library for this connection. Raises AccessError."""
        # since Python 3.13 strict means that authorities need a key identifier, which those of clusters may not have
        self.configuration.disable_strict_ssl_verification = True
        try:
            api = ApiClient(self.configuration)
        except (ssl.SSLError, OSError, ValueError) as error:
            raise self._unusable(error) from error
        # as in kubectl: an intermediate authority suffices
        api.rest_client.ssl_context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        return api

    def _unusable(self, error: Exception) -> AccessError:
        if self.tls[0]:
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(
                    cadata=self.tls[0].decode("ascii", "ignore")
                )
            except (ssl.SSLError, ValueError):
                hint = "it must be PEM: -----BEGIN CERTIFICATE-----"
                return AccessError(*self.authority_at, "holds no certificate", hint)
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        what = f"the certificate and the key do not match: {reason}"
        return AccessError(*self.certificate_at, what, "both must be PEM, and the key must have no password")


class Login:
    """Address of the API server, and the current way to log in: files that change are read again each minute."""

    def __init__(
        self,
        server: str,
        load: Callable[[], Connection],
        *,
        namespace: str = "default",
        asks: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """`load` reads what there is; it may take its time if it `asks` a plugin."""
        self.server = server
        self.namespace = namespace
        self._load = load
        self._asks = asks
        self._monotonic = monotonic
        self._now = now
        self._connection: Connection | None = None
        self._read_at = 0.0
        self._running: asyncio.Task[Connection] | None = None

    async def connection(self) -> Connection:
        """Return the current connection. Raises AccessError."""
        connection = self._connection
        if connection is not None and (
            self._now() < connection.expires if self._asks else self._monotonic() < self._read_at + _READ_AGAIN_S
        ):
            return connection
        if not self._asks:
            return self._read()
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._ask())
            self._running.add_done_callback(lambda asking: asking.cancelled() or asking.exception())
        # A caller that times out leaves the run to others and to its own next try: a cloud's token takes a second.
        return await asyncio.shield(self._running)

    def renew(self, refused: Connection) -> bool:
        """Log in again after a refusal; return whether a retry may succeed."""
        if self._asks:
            if self._connection is refused:
                self._connection = None
            return True
        return not self._read().same(refused)

    def read_again(self, used: Connection) -> bool:
        """Read the files again after the server was not trusted; return whether a retry may succeed.

        A plugin is not asked again: the authority is not among what it tells.
        """
        return not self._asks and not self._read().same(used)

    def _read(self) -> Connection:
        before = self._connection
        self._read_at = self._monotonic()
        try:
            found = self._load()
        except AccessError:
            if before is None:
                raise
            return before  # a file is just being replaced
        if before is None or not found.same(before):
            self._connection = found
        return self._connection or found

    async def _ask(self) -> Connection:
        self._connection = await asyncio.to_thread(self._load)
        return self._connection


def log_in(
    file: Path | None = None,
    context: str = "",
    *,
    environment: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
    use_proxy: bool = False,
) -> Login:
    """Return the login of `file`; else of KUBECONFIG; else of the pod's service account; else of ~/.kube/config.

    `use_proxy` follows HTTPS_PROXY and NO_PROXY, as kubectl does. Raises AccessError.
    """
    proxies = environment if use_proxy else {}
    home = Path(environment.get("HOME", ""), ".kube", "config")
    if file is not None:
        return from_kubeconfig([file], context, proxies=proxies)
    if files := kubeconfig.named(environment):
        return from_kubeconfig(files, context, proxies=proxies)
    if environment.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster(environment, service_account)
    if home.exists():
        return from_kubeconfig([home], context, proxies=proxies)
    hint = "give --kubeconfig FILE, or set KUBECONFIG"
    raise AccessError("", "", f"no cluster: KUBECONFIG is not set, this is not a pod, and {home} does not exist", hint)


def in_cluster(environment: Mapping[str, str] = os.environ, folder: Path = SERVICE_ACCOUNT) -> Login:
    """Return the login of the pod's service account. Raises AccessError."""
    host, port = (environment.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
    if not host or not port:
        hint = "run in a pod, or give --kubeconfig FILE"
        raise AccessError("the environment", "KUBERNETES_SERVICE_HOST and _PORT", "are not both set", hint)
    token, authority = folder / "token", folder / "ca.crt"
    try:
        namespace = (folder / "namespace").read_text().strip()
    except OSError:
        namespace = "default"

    def load() -> Connection:
        _file(token, "the service account's token", _ADMIT)
        data = _file(authority, "the cluster's authority", _ADMIT)
        configuration = Configuration()
        loader = InClusterConfigLoader(str(token), str(authority), try_refresh_token=False, environ=environment)
        try:
            loader.load_and_set(configuration)
        except (ConfigException, OSError) as error:
            raise AccessError(str(folder), "", str(error), _ADMIT) from error
        header = configuration.api_key["BearerToken"].split(None, 1)[1].strip()
        configuration.api_key["BearerToken"] = f"Bearer {one_line(header, str(token), 'the service account token')}"
        at = (str(authority), "the cluster's authority")
        return Connection(configuration, (data, b"", b""), authority_at=at)

    server = load().configuration.host
    return Login(server, load, namespace=namespace)


def from_kubeconfig(files: list[Path], context: str = "", *, proxies: Mapping[str, str] | None = None) -> Login:
    """Return the login of a context, or of the current one. Raises AccessError."""
    chosen = kubeconfig.choose(files, context)
    asks = chosen.asks

    def load() -> Connection:
        return _load(chosen, proxies or {})

    return Login(chosen.server, load, namespace=chosen.namespace, asks=asks)


def _load(chosen: Chosen, proxies: Mapping[str, str]) -> Connection:
    cluster, user = dict(chosen.cluster.fields), dict(chosen.user.fields)
    authority = _contents(chosen.cluster, "certificate-authority")
    pair = _contents(chosen.user, "client-certificate"), _contents(chosen.user, "client-key")
    token_file = user.pop("tokenFile", "")
    if token_file:  # as in kubectl, it takes precedence
        path = chosen.user.folder / token_file
        at = f"{chosen.user.field}.tokenFile"
        user["token"] = _file(path, at, "name a file that holds a token").decode(errors="replace")
        user["token"] = one_line(user["token"], str(path), at)
    elif user.get("token"):
        user["token"] = one_line(user["token"].strip(), chosen.user.file, f"{chosen.user.field}.token")
    expires = _NEVER
    if exec_config := user.pop("exec", None):
        answer = run_plugin(exec_config, chosen.user, chosen.cluster, authority)
        expires = answer.expires
        if answer.token:
            user["token"] = answer.token
        if answer.certificate:
            pair = answer.certificate.encode(), answer.key.encode()
            for name, data in zip(("client-certificate", "client-key"), pair, strict=True):
                user.pop(name, None)
                user[f"{name}-data"] = base64.b64encode(data).decode()
    for entry, fields in ((chosen.cluster, cluster), (chosen.user, user)):
        for name in ("certificate-authority", "client-certificate", "client-key"):
            if path_given := fields.get(name):
                fields[name] = str(entry.folder / path_given)
    if user.get("username"):
        user.setdefault("password", "")
    configuration = Configuration()
    names = {"cluster": "login", "user": "login"}
    document = {
        "current-context": "login",
        "contexts": [{"name": "login", "context": names}],
        "clusters": [{"name": "login", "cluster": cluster}],
        "users": [{"name": "login", "user": user}],
    }
    try:
        KubeConfigLoader(document).load_and_set(configuration)
    except (ConfigException, OSError, ValueError) as error:
        raise AccessError(chosen.user.file, chosen.user.field, str(error), _COMPARE) from error
    configuration.refresh_api_key_hook = None  # Login renews
    configuration.host = chosen.server
    configuration.proxy = configuration.proxy or environment_proxy(chosen.server, proxies) or None
    user_at = (chosen.user.file, chosen.user.field)
    where = next((one for one in ("certificate-authority-data", "certificate-authority") if one in cluster), "")
    authority_at = (chosen.cluster.file, f"{chosen.cluster.field}.{where}")
    return Connection(configuration, (authority, *pair), user_at, authority_at, expires)


def _contents(entry: Entry, name: str) -> bytes:
    """Return a certificate or key; as in kubectl, inline data takes precedence over a path."""
    if data := entry.fields.get(f"{name}-data"):
        return base64.b64decode(data)
    path = entry.fields.get(name)
    where = f"{entry.field}.{name} of {entry.file}"
    return _file(entry.folder / path, where, "name a file that can be read") if path else b""


def _file(path: Path, field: str, hint: str) -> bytes:
    try:
        data = path.read_bytes().strip()
    except OSError as error:
        raise AccessError(str(path), field, (error.strerror or str(error)).lower(), hint) from error
    if not data:
        raise AccessError(str(path), field, "is empty", hint)
    return data


def one_line(token: str, file: str, field: str) -> str:
    """Return a token that fits into a header. Raises AccessError."""
    if not token.isprintable():  # a header must be one line
        raise AccessError(file, field, "has more than one line", "a token is one line")
    return token
