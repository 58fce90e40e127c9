"""Pages of a replica, for those who may call replicas as the operator does, as they may read its authority's Secret."""

import asyncio
import http.client
import socket
import ssl
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fairlead.api.errors import InvalidObjectError
from fairlead.control.certificates.provided_certificates import ProvidedCertificates
from fairlead.kube.errors import RequestError
from fairlead.kube.http.client import Client
from fairlead.kube.http.port_forward import port_forward
from fairlead.kube.watch.secrets import Secrets
from fairlead.pki.authority import AuthorityError, read
from fairlead.pki.identities import AUTHORITY_SECRET, OPERATOR
from fairlead.pki.issuing import issue_leaf
from fairlead.pki.tls_context import client_context

_WITHIN_S: Final = 5.0
_DIRECT_S: Final = 1.0
_PORT: Final = 8443
_PORT_NAME: Final = "webhook"
_SERVICE: Final = "--service="
_LIFE: Final = timedelta(minutes=5)


class SilentError(Exception):
    """No replica was asked, or none answered; the message says why."""


class ReplicaPages:
    """Pages of the replicas in one namespace."""

    def __init__(self, client: Client, home: str) -> None:
        self._client, self._home = client, home
        self._contexts = dict[str, ssl.SSLContext]()

    async def fetch(self, pod: Mapping[str, Any], paths: Sequence[str]) -> Mapping[str, bytes]:
        """Return the pages of a replica that are there, by path. Raises SilentError and ClusterError."""
        name, port, host = pod["metadata"]["name"], _port(pod), f"{_service(pod)}.{self._home}.svc"
        if host not in self._contexts:
            self._contexts[host] = await _context(self._client, self._home, host)
        context = self._contexts[host]
        try:
            async with port_forward(self._client.login, self._home, name, port, within_s=_WITHIN_S) as forwarded:
                return await asyncio.to_thread(_fetch, forwarded, context, host, paths)
        except (RequestError, OSError, http.client.HTTPException) as error:
            why = f"{name}: {error}"
        try:
            return await asyncio.to_thread(_fetch_directly, pod["status"]["podIP"], port, context, host, paths)
        except (KeyError, OSError, http.client.HTTPException):
            raise SilentError(why) from None


async def _context(client: Client, home: str, host: str) -> ssl.SSLContext:
    """Return the TLS context of the operator, with its own authority or with the certificates that it was provided."""
    secrets = Secrets(client, home)
    try:
        secret = await secrets.get(AUTHORITY_SECRET)
        if secret is None:
            return await ProvidedCertificates(secrets, host, lambda: datetime.now(UTC)).context()
        authority = read(secret.data)
        pair = issue_leaf(authority.signing, OPERATOR, "client", datetime.now(UTC), _LIFE)
        return client_context(authority.client_ca_bundle, pair.certificate, pair.key)
    except (AuthorityError, InvalidObjectError, ValueError, TypeError) as error:
        raise SilentError(str(error)) from error


def _fetch_directly(
    address: str, port: int, context: ssl.SSLContext, host: str, paths: Sequence[str]
) -> Mapping[str, bytes]:
    with socket.create_connection((address, port), timeout=_DIRECT_S) as connected:
        return _fetch(connected, context, host, paths)


def _fetch(connected: socket.socket, context: ssl.SSLContext, host: str, paths: Sequence[str]) -> Mapping[str, bytes]:
    """Return the pages that are there."""
    found = dict[str, bytes]()
    with closing(http.client.HTTPConnection(host)) as connection:
        connection.sock = context.wrap_socket(connected, server_hostname=host)
        for path in paths:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
            if answer.status == http.client.OK:
                found[path] = body
            elif answer.status != http.client.NOT_FOUND:
                raise http.client.HTTPException(f"{answer.status}: {body[:200].decode(errors='replace')}")
    return found


def _containers(pod: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = pod["spec"].get("containers", ())
    return found


def _service(pod: Mapping[str, Any]) -> str:
    """Return the name of the Service, which the certificates of replicas are for."""
    arguments = [str(one) for each in _containers(pod) for one in each.get("args") or ()]
    return next((one.removeprefix(_SERVICE) for one in arguments if one.startswith(_SERVICE)), "fairlead")


def _port(pod: Mapping[str, Any]) -> int:
    ports = [port for each in _containers(pod) for port in each.get("ports") or ()]
    return next((int(one["containerPort"]) for one in ports if one.get("name") == _PORT_NAME), _PORT)
