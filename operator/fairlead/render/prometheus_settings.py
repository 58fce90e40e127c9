"""Settings of the Prometheus servers that policies may name."""

from collections.abc import Callable
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from fairlead.api.params import FieldCheck, Listed, Params, exactly_one_of
from fairlead.api.values import Duration, Name, ObjectName, Shape, within

_URL: Final = Shape(
    r"""https?://([-.A-Za-z0-9]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[!-"$->@-~]*)?""",
    "write http:// or https://, a host and, if there is one, a port and a path, such as "
    "https://prometheus.monitoring.svc:9091; no query and no fragment",
)
_HOST: Final = Shape("([A-Za-z0-9]([-.:A-Za-z0-9]*[A-Za-z0-9])?)?", "write a name such as prometheus.example.com")
_KEY: Final = Shape("[-._a-zA-Z0-9]+", "write a key of the object, such as ca.crt: letters, digits, '-', '_' and '.'")
_HEADER: Final = Shape("[A-Za-z0-9][-_A-Za-z0-9]*", "write the name of a header, such as X-Scope-OrgID")
_LINE: Final = Shape("[!-~]([ -~]*[!-~])?", "write one line of ASCII, without spaces at its ends")
_OURS: Final = frozenset(
    {
        *("accept", "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "expect"),
        *("host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "user-agent"),
    }
)


def offline_check(holds: Callable[[Any], bool], message: str, field: str) -> FieldCheck:
    """Return a check without a rule for the API server, which never reads settings."""
    return FieldCheck("", holds, message, field)


def _without_user(url: str) -> str:
    """Return the URL; raise if it has a user or an impossible port. The error never repeats a password."""
    try:
        parts = urlsplit(url)
        has_user, _ = "@" in parts.netloc, parts.port
    except ValueError:
        return _failed("has no valid host and port: write a URL such as https://prometheus.monitoring.svc:9091")
    return _failed("must not have a user or a password: give basicAuth") if has_user else url


def _failed(message: str) -> str:
    raise PydanticCustomError("failed_checks", "not possible", {"failed": [((), message)]})


class SecretKey(Params):
    """Key of a Secret in the operator's namespace."""

    secret: ObjectName
    """Name of the Secret."""
    key: Annotated[str, Field(max_length=253), _KEY]
    """Key that holds the value."""


class AuthorityKey(Params):
    """Key of a Secret or a ConfigMap in the operator's namespace, with certificates in PEM."""

    secret: ObjectName | None = None
    """Name of the Secret."""
    config_map: ObjectName | None = None
    """Name of the ConfigMap."""
    key: Annotated[str, Field(max_length=253), _KEY]
    """Key that holds the certificates."""

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Require one source."""
        return (exactly_one_of("secret", "configMap"),)


class AccountToken(Params):
    """Token of the operator's own ServiceAccount, which the kubelet renews."""

    audience: Annotated[str, Field(max_length=253)] = ""
    """Audience of the token. Empty: the API server's, which servers that ask the API server accept."""


class SecretName(Params):
    """Secret in the operator's namespace, whose keys have fixed names."""

    secret: ObjectName
    """Name of the Secret."""


class PrometheusHeader(Params):
    """Header of each request, which is no secret: settings are in a ConfigMap."""

    name: Annotated[str, Field(max_length=128), _HEADER]
    """Name of the header, such as X-Scope-OrgID."""
    value: Annotated[str, Field(max_length=1024), _LINE]
    """Value of the header."""

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Return the checks: credentials are in Secrets, and some headers belong to the request."""
        return (
            offline_check(
                lambda self: self.name.lower() not in ("authorization", "proxy-authorization", "cookie"),
                "must not hold credentials: give bearerToken, serviceAccount or basicAuth",
                "name",
            ),
            offline_check(lambda self: self.name.lower() not in _OURS, "is set by the operator: leave it out", "name"),
        )


class PrometheusServer(Params):
    """Prometheus server, or another one that has its API. Its certificate is always verified.

    Credentials are files that are read again at each poll, so that they may be rotated. Those of the server NAME are in
    the folder prometheus/NAME beside the settings file, where the chart mounts them.
    """

    name: Name
    """Name that policies give as server. Policies that give none use the server named default."""
    url: Annotated[str, Field(min_length=1, max_length=1024), AfterValidator(_without_user), _URL]
    """URL without /api/v1, such as https://prometheus.monitoring.svc:9091."""
    ca: AuthorityKey | None = None
    """Authority of its certificate, mounted as ca.crt. Absent: the authorities of the operator's image."""
    server_name: Annotated[str, Field(max_length=253), _HOST] = ""
    """Name in its certificate. Empty: the host of the URL."""
    bearer_token: SecretKey | None = None
    """Secret with a bearer token, mounted as token."""
    service_account: AccountToken | None = None
    """Send a token of the operator's own ServiceAccount, mounted as token."""
    basic_auth: SecretName | None = None
    """Secret with the keys username and password, mounted under these names."""
    client_certificate: SecretName | None = None
    """Secret with a client certificate and its key, tls.crt and tls.key, mounted under these names."""
    headers: Annotated[Listed[PrometheusHeader], Field(max_length=16)] = ()
    """Further headers of each request, such as the tenant of Mimir. Never credentials."""
    timeout: Annotated[Duration, within("1s", "30s")] = Duration("5s")
    """Time after which a poll has failed; at most its interval."""
    max_entries: Annotated[int, Field(ge=1, le=512)] = 64
    """Maximum number of entries of all policies together that differ in query, factor or round. Policies with more do
    not compile."""

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Return the checks: one login, and TLS only where there is TLS."""
        return (
            offline_check(
                lambda self: sum(map(bool, (self.bearer_token, self.service_account, self.basic_auth))) < 2,
                "bearerToken, serviceAccount and basicAuth exclude each other: give one of them",
                "",
            ),
            *(_only_with_tls(name, field) for name, field in _OF_TLS.items()),
        )


_OF_TLS: Final = {"ca": "ca", "server_name": "serverName", "client_certificate": "clientCertificate"}


def _only_with_tls(name: str, field: str) -> FieldCheck:
    def holds(server: PrometheusServer) -> bool:
        return server.url.startswith("https:") or not getattr(server, name)

    return offline_check(holds, "is for https: write https:// in url, or leave this out", field)
