"""Decisions of all replicas, read through port-forwards with the user's permissions."""

import asyncio
import http.client
import socket
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from fairlead.cli.console.exits import CommandError
from fairlead.cli.console.output import pluralize
from fairlead.cli.inputs.operator_survey import home_of, operator_namespaces
from fairlead.control.reconcile.object_client import ObjectClient
from fairlead.kube.errors import ForbiddenError, RequestError
from fairlead.kube.http.client import Client
from fairlead.kube.http.port_forward import port_forward
from fairlead.kube.resources import PODS, ObjectRef
from fairlead.pki.identities import REPLICAS

_WITHIN_S: Final = 10.0
_OPTION: Final = "--decisions="
_PATH: Final = "/decisions"
_BUSY_S: Final = 1.0
_TRIES: Final = 3
ROLE: Final = "the Role of the chart whose name ends in -decisions has the permissions; bind it to yourself"


class _Pod(msgspec.Struct):
    namespace: str
    name: str
    uid: str


class _Policy(msgspec.Struct):
    name: str
    generation: str


class _Rule(msgspec.Struct):
    policy: str
    rule: str
    reason: str
    nodes: int
    examples: list[str] = []


class _Best(msgspec.Struct):
    node: str
    points: int


class _Effect(msgspec.Struct):
    policy: str
    effects: list[str]
    rules: list[str] = []


class _Line(msgspec.Struct):
    """Fields of a decision that are shown; another version may have more."""

    time: datetime
    scheduler: str
    pod: _Pod
    policies: list[_Policy]
    candidates: int
    passed: int
    rules: list[_Rule]
    error: str | None
    best: list[_Best]
    node: str | None
    waits: bool
    attempts: int
    effects: list[_Effect]
    milliseconds: float


_check: Final = msgspec.json.Decoder(_Line).decode
"""Raises msgspec.ValidationError for what is no decision."""


@dataclass(frozen=True, slots=True)
class ReplicaDecisions:
    """Decisions of a replica, or why they could not be read."""

    replica: str
    since: str = ""
    """Time at which it began to keep them: a restart forgets."""
    decisions: Sequence[Mapping[str, Any]] = ()
    unread: str = ""
    unreadable: int = 0
    """Number of its records that are left out, as this version cannot read them."""


def unreadable_records(count: int) -> str:
    """Return the note on records that are left out."""
    return f"{pluralize(count, 'record')} cannot be read by this version"


async def read_decisions(client: Client, home: str, cure: str = "") -> list[ReplicaDecisions]:
    """Return the decisions of each replica that runs. Raises CommandError if there is none, ClusterError otherwise.

    `cure` says how a caller is given another namespace than `home`; "" if it cannot be.
    """
    objects = ObjectClient(client)
    if not home:
        home = home_of(await operator_namespaces(objects))
    try:
        pods = await objects.all(ObjectRef(PODS.resource, home), labelSelector=REPLICAS)
    except ForbiddenError as error:
        raise CommandError(f"{error}; {ROLE}") from None
    running = [pod for pod in pods if pod["status"].get("phase") == "Running"]
    if not running:
        raise CommandError(f"no pod of the operator runs in {home}{cure and f'; {cure}'}")
    running.sort(key=lambda pod: str(pod["metadata"]["name"]))
    return list(await asyncio.gather(*(_read(client, pod) for pod in running)))


async def _read(client: Client, pod: Mapping[str, Any]) -> ReplicaDecisions:
    metadata = pod["metadata"]
    name, port = str(metadata["name"]), _port(pod)
    if port is None:
        return ReplicaDecisions(name, unread="it keeps none: decisions.enabled of the chart is false, or it is older")
    try:
        status, body = await _fetch_within(client, metadata["namespace"], name, port)
    except ForbiddenError as error:
        return ReplicaDecisions(name, unread=f"{error}; {ROLE}")
    except (RequestError, OSError, http.client.HTTPException) as error:
        return ReplicaDecisions(name, unread=str(error) or type(error).__name__)
    if status != http.client.OK:
        return ReplicaDecisions(name, unread=f"{status}: {body[:200].decode(errors='replace').strip()}")
    return _parsed(name, body)


async def _fetch_within(client: Client, namespace: str, name: str, port: int) -> tuple[int, bytes]:
    """Return the answer of a replica; while others read, it is asked again a few times."""
    for _ in range(_TRIES - 1):
        status, body = await _fetch(client, namespace, name, port)
        if status != http.client.SERVICE_UNAVAILABLE:
            return status, body
        await asyncio.sleep(_BUSY_S)
    return await _fetch(client, namespace, name, port)


async def _fetch(client: Client, namespace: str, name: str, port: int) -> tuple[int, bytes]:
    async with port_forward(client.login, namespace, name, port, within_s=_WITHIN_S) as connected:
        return await asyncio.to_thread(_get, connected)


def _parsed(name: str, body: bytes) -> ReplicaDecisions:
    try:
        head, *lines = body.splitlines()
        since = msgspec.json.decode(head)["since"]
    except (ValueError, TypeError, KeyError) as error:
        return _unreadable(name, error)
    decisions, wrong = [], list[ValueError]()
    for line in lines:
        try:
            _check(line)
            decisions.append(msgspec.json.decode(line))
        except ValueError as error:
            wrong.append(error)
    if wrong and not decisions:
        return _unreadable(name, wrong[0])
    return ReplicaDecisions(name, since, decisions, unreadable=len(wrong))


def _unreadable(name: str, error: Exception) -> ReplicaDecisions:
    return ReplicaDecisions(name, unread=f"its answer cannot be read: {error}")


def _get(connected: socket.socket) -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1")) as connection:
        connection.sock = connected
        connection.request("GET", _PATH)
        answer = connection.getresponse()
        return answer.status, answer.read()


def _port(pod: Mapping[str, Any]) -> int | None:
    """Return the port on which a replica serves decisions; None if it does not."""
    arguments = [str(one) for each in pod["spec"].get("containers", ()) for one in each.get("args") or ()]
    served = [one.rpartition(":")[2] for one in arguments if one.startswith(_OPTION)]
    return int(served[0]) if served and served[0].isdigit() else None
