"""Client that polls the state of each replica of the operator, at the addresses of their pods."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import aiohttp
import msgspec

from fairlead import replica_state
from fairlead.api.errors import InvalidObjectError
from fairlead.control.decide.replicas_to_exclude import replicas_to_exclude
from fairlead.control.decide.rollout_observation import find_condition, is_ready
from fairlead.control.reconcile.object_client import ObjectClient
from fairlead.kube.resources import PODS, ObjectRef
from fairlead.replica_state import ReplicaState, ReplicaStates

TIMEOUT_S: Final = 1.0
STARTING: Final = timedelta(minutes=2)
"""How long a replica that was never ready counts as starting, and is not polled."""


@dataclass(slots=True, eq=False, kw_only=True)
class ReplicaClient:
    """Client of one operator's replicas."""

    objects: ObjectClient
    namespace: str
    selector: str
    """Label selector of their pods."""
    host: str
    """Host name of their certificates."""
    port: int
    context: Callable[[], Awaitable[ssl.SSLContext]]
    """Returns the TLS context of the leader. Raises InvalidObjectError if its certificate cannot be used."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    states: ReplicaStates = field(default_factory=dict)
    """State of each replica by the name of its pod, or why it is unknown."""
    aside: frozenset[str] = frozenset()
    """Replicas that the next poll asks to step aside."""

    async def poll(self) -> ReplicaStates:
        """Poll all replicas, ready or not, except those that are still starting: no scheduler calls them."""
        pods = await self.objects.all(ObjectRef(PODS.resource, self.namespace), labelSelector=self.selector)
        living = {
            pod["metadata"]["name"]: pod["status"].get("podIP", "")
            for pod in pods
            if "deletionTimestamp" not in pod["metadata"]
            and pod["status"].get("phase") in ("Pending", "Running")
            and not is_starting(pod, self.now())
        }
        try:
            context = await self.context()
        except InvalidObjectError as error:
            self.states = dict.fromkeys(living, f"it cannot be polled: {error}")
            return self.states
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        connector = aiohttp.TCPConnector(ssl=context, force_close=True)
        async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
            states = await asyncio.gather(
                *(self._poll_one(session, address, name in self.aside) for name, address in living.items())
            )
        self.states = dict(zip(living, states, strict=True))
        self.aside = replicas_to_exclude(self.states, {one["metadata"]["name"] for one in pods if is_ready(one)})
        return self.states

    async def _poll_one(self, session: aiohttp.ClientSession, address: str, aside: bool) -> ReplicaState | str:  # noqa: FBT001
        if not address:
            return "it has no address yet"
        host = f"[{address}]" if ":" in address else address
        try:
            path = replica_state.ASIDE_PATH if aside else replica_state.PATH
            async with session.get(f"https://{host}:{self.port}{path}", server_hostname=self.host) as answer:
                body = await answer.read()
                return (
                    replica_state.decode(body) if answer.status == 200 else f"it answered with status {answer.status}"
                )
        except TimeoutError:
            return f"no answer within {TIMEOUT_S:g} s"
        except (aiohttp.ClientError, msgspec.DecodeError) as error:
            return str(error) or type(error).__name__

    def refused_callers(self, addresses: list[str]) -> str:
        """Return why a replica refused one of these addresses lately; "" if none did."""
        for name, one in self.states.items():
            if isinstance(one, ReplicaState):
                for address in addresses:
                    if why := one.refused_connections.get(address):
                        return f"{name} refused {address}: {why}"
        return ""


def is_starting(pod: Mapping[str, Any], now: datetime) -> bool:
    """Return whether a pod started a moment ago and was not ready since."""
    status = pod["status"]
    ready = find_condition(status, "Ready")
    if ready is not None and ready["status"] == "True":
        return False
    started = [one.get("state", {}).get("running", {}).get("startedAt") for one in status.get("containerStatuses", ())]
    if not started or not all(started):
        return now - datetime.fromisoformat(pod["metadata"]["creationTimestamp"]) < STARTING
    last = max(map(datetime.fromisoformat, started), default=None)
    if last is None or now - last >= STARTING:
        return False
    return ready is None or datetime.fromisoformat(ready["lastTransitionTime"]) <= last
