"""Measured values as a replica of the operator has them, for those who may call replicas as the operator does."""

import asyncio
import http.client
import math
import socket
import ssl
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

import msgspec

from fairlead.api.data import DataEntry
from fairlead.api.errors import InvalidObjectError
from fairlead.cli.inputs.data_file import MeasuredInput
from fairlead.cli.inputs.operator_survey import Obj, operator_namespaces
from fairlead.control.certificates.provided_certificates import ProvidedCertificates
from fairlead.control.decide.rollout_observation import is_ready
from fairlead.control.reconcile.object_client import ObjectClient
from fairlead.kube.errors import ClusterError, RequestError
from fairlead.kube.http.client import Client
from fairlead.kube.http.port_forward import port_forward
from fairlead.kube.resources import PODS, ObjectRef
from fairlead.kube.watch.secrets import Secrets
from fairlead.pki.authority import AuthorityError, read
from fairlead.pki.identities import AUTHORITY_SECRET, NAMESPACE, OPERATOR, REPLICAS
from fairlead.pki.issuing import issue_leaf
from fairlead.pki.tls_context import client_context
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.nodes.annotated_values import moment
from fairlead.policy.nodes.measured_table import FUTURE, NO_NUMBER, SEVERAL, STALE
from fairlead.policy.nodes.polls import Poll, Reading, poll_of
from fairlead.replica_state import DATA_PATH

_WITHIN_S: Final = 5.0
_DIRECT_S: Final = 1.0
_PORT: Final = 8443
_PORT_NAME: Final = "webhook"
_SERVICE: Final = "--service="
_LIFE: Final = timedelta(minutes=5)
Pages = Mapping[str, Mapping[str, Any]]
"""Values of entries by the path of their page."""


class SilentError(Exception):
    """No replica was asked; the message says why."""


async def add_replica_values(data: MeasuredInput, client: Client, policies: Sequence[CompiledPolicy]) -> None:
    """Add the values of entries that nothing else has given, as a replica has them."""
    wanted: dict[Poll, tuple[str, DataEntry]] = {}
    for policy in policies:
        for entry in policy.data:
            poll = poll_of(entry)
            if poll is not None and poll not in data.readings and poll not in wanted:
                wanted[poll] = page_of(policy.name, entry.name), entry
    if not wanted:
        return
    try:
        replica, pages = await ask_replica(client, [path for path, _ in wanted.values()])
    except (SilentError, ClusterError) as error:
        data.notes.append(f"the replicas' own values cannot be asked: {error}")
        return
    for poll, (path, entry) in wanted.items():
        if pages.get(path, {}).get("source") == poll.name:  # it may serve another generation
            data.readings[poll] = reading_of(pages[path], entry)
            data.notes.append(f"{poll.name}: values of the replica {replica}")


def page_of(policy: str, entry: str) -> str:
    """Return the path of the page with the values of an entry."""
    return f"{DATA_PATH}{quote(policy, safe='')}/{quote(entry, safe='')}"


def reading_of(page: Mapping[str, Any], entry: DataEntry) -> Reading:
    """Return the values of a page, as they were before the entry's factor."""
    values, times, faults = dict[str, float](), dict[str, int](), dict[str, set[str]]()
    for name, one in page.get("nodes", {}).items():
        if one.get("default"):
            continue  # the entry has it, too
        fault, at = one.get("fault"), moment(one.get("time", ""))
        if at is not None:
            times[name] = at
        if fault is None:
            values[name] = _unscaled(one["value"], entry.factor)
        elif fault in (STALE, FUTURE):
            values[name] = 0.0  # its time keeps it from being used
        else:
            faults.setdefault(fault, set()).add(name)
    return Reading(values, times, frozenset(faults.get(SEVERAL, ())), frozenset(faults.get(NO_NUMBER, ())))


def _unscaled(value: float, factor: float) -> float:
    """Return the number that times the factor is this value, in floating point."""
    near = value / factor
    return next(
        (
            one
            for one in (near, math.nextafter(near, math.inf), math.nextafter(near, -math.inf))
            if one * factor == value
        ),
        near,
    )


async def ask_replica(client: Client, paths: Sequence[str]) -> tuple[str, Pages]:
    """Return the name of the first replica that answers, and its pages."""
    objects = ObjectClient(client)
    homes = await operator_namespaces(objects)
    home = NAMESPACE if NAMESPACE in homes or not homes else homes[0]
    pods = await objects.all(ObjectRef(PODS.resource, home), labelSelector=REPLICAS)
    ready = sorted(filter(is_ready, pods), key=lambda pod: str(pod["metadata"]["name"]))
    if not ready:
        raise SilentError(f"no replica is ready in {home}")
    host = f"{_service(ready[0])}.{home}.svc"
    context = await _context(client, home, host)
    why = ""
    for pod in ready:
        name, port = pod["metadata"]["name"], _port(pod)
        try:
            async with port_forward(client.login, home, name, port, within_s=_WITHIN_S) as forwarded:
                return name, await asyncio.to_thread(_fetch, forwarded, context, host, paths)
        except (RequestError, OSError, http.client.HTTPException, msgspec.DecodeError) as error:
            why = why or f"{name}: {error}"
        try:
            return name, await asyncio.to_thread(_fetch_directly, pod["status"]["podIP"], port, context, host, paths)
        except (KeyError, OSError, http.client.HTTPException, msgspec.DecodeError):
            continue
    raise SilentError(why)


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


def _fetch_directly(address: str, port: int, context: ssl.SSLContext, host: str, paths: Sequence[str]) -> Pages:
    with socket.create_connection((address, port), timeout=_DIRECT_S) as connected:
        return _fetch(connected, context, host, paths)


def _fetch(connected: socket.socket, context: ssl.SSLContext, host: str, paths: Sequence[str]) -> Pages:
    """Return the pages that are there."""
    found: dict[str, Mapping[str, Any]] = {}
    with closing(http.client.HTTPConnection(host)) as connection:
        connection.sock = context.wrap_socket(connected, server_hostname=host)
        for path in paths:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
            if answer.status == http.client.OK:
                found[path] = msgspec.json.decode(body)
            elif answer.status != http.client.NOT_FOUND:
                raise http.client.HTTPException(f"{answer.status}: {body[:200].decode(errors='replace')}")
    return found


def _containers(pod: Obj) -> Sequence[Obj]:
    found: Sequence[Obj] = pod["spec"].get("containers", ())
    return found


def _service(pod: Obj) -> str:
    """Return the name of the Service, which the certificates of replicas are for."""
    arguments = [str(one) for each in _containers(pod) for one in each.get("args") or ()]
    return next((one.removeprefix(_SERVICE) for one in arguments if one.startswith(_SERVICE)), "fairlead")


def _port(pod: Obj) -> int:
    ports = [port for each in _containers(pod) for port in each.get("ports") or ()]
    return next((int(one["containerPort"]) for one in ports if one.get("name") == _PORT_NAME), _PORT)
