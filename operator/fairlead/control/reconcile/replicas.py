"""What each replica of the operator says of itself: asked one by one, by the addresses of their pods."""

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
from fairlead.control.reconcile.object_client import ObjectClient
from fairlead.kube.resources import PODS, ObjectRef
from fairlead.replica_state import ReplicaState

WITHIN_S: Final = 1.0
STARTING: Final = timedelta(minutes=2)
"""A replica that was never ready in this time has something to say, or to hide."""


@dataclass(slots=True, eq=False, kw_only=True)
class ReplicaClient:
    """Those of one operator."""

    objects: ObjectClient
    namespace: str
    selector: str
    """The labels of their pods."""
    host: str
    """What their certificates are for."""
    port: int
    context: Callable[[], Awaitable[ssl.SSLContext]]
    """What is shown to them. Raises InvalidObjectError where that cannot be used."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    states: Mapping[str, ReplicaState | str] = field(default_factory=dict)
    """By the pod: what it said, or why it did not."""

    async def poll(self) -> Mapping[str, ReplicaState | str]:
        """Ask all that there are, ready or not; but those that have not begun yet: nobody calls them."""
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
        timeout = aiohttp.ClientTimeout(total=WITHIN_S)
        connector = aiohttp.TCPConnector(ssl=context, force_close=True)
        async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
            said = await asyncio.gather(*(self._poll_one(session, address) for address in living.values()))
        self.states = dict(zip(living, said, strict=True))
        return self.states

    async def _poll_one(self, session: aiohttp.ClientSession, address: str) -> ReplicaState | str:
        if not address:
            return "it has no address yet"
        host = f"[{address}]" if ":" in address else address
        try:
            async with session.get(
                f"https://{host}:{self.port}{replica_state.PATH}", server_hostname=self.host
            ) as answer:
                body = await answer.read()
                return (
                    replica_state.decode(body) if answer.status == 200 else f"it answered with status {answer.status}"
                )
        except TimeoutError:
            return f"no answer within {WITHIN_S:g} s"
        except (aiohttp.ClientError, msgspec.DecodeError) as error:
            return str(error) or type(error).__name__

    def refused_callers(self, addresses: list[str]) -> str:
        """Why one of these addresses was turned away lately; empty if none was."""
        for name, one in self.states.items():
            if isinstance(one, ReplicaState):
                for address in addresses:
                    if why := one.turned_away.get(address):
                        return f"{name} refused {address}: {why}"
        return ""


def is_starting(pod: Mapping[str, Any], now: datetime) -> bool:
    """Whether it has started a moment ago, and was never ready since."""
    status = pod["status"]
    ready = next((one for one in status.get("conditions", ()) if one["type"] == "Ready"), None)
    if ready is not None and ready["status"] == "True":
        return False
    started = [one.get("state", {}).get("running", {}).get("startedAt") for one in status.get("containerStatuses", ())]
    if not started or not all(started):
        return now - datetime.fromisoformat(pod["metadata"]["creationTimestamp"]) < STARTING
    last = max(map(datetime.fromisoformat, started), default=None)
    if last is None or now - last >= STARTING:
        return False
    return ready is None or datetime.fromisoformat(ready["lastTransitionTime"]) <= last
