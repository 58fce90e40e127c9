"""Turns as the replica that holds publishes them, and as each replica sees them."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

import msgspec

from fairlead.groups.turns import LABEL, NO_TURNS, SCHEDULER, Turns, read_turns, turns_body, turns_name
from fairlead.kube.errors import ClusterError, ForbiddenError, NotFoundError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef, decode_object
from fairlead.kube.watch.config_maps import CONFIG_MAPS
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.reflector_set import ReflectorSet
from fairlead.kube.watch.store import EventSink, Key, Meta
from fairlead.logs import RateLimiter

LOG: Final = logging.getLogger(__name__)
PAUSE_S: Final = 0.2
"""Time between two writes of what a scheduler's holder publishes."""
AGAIN_S: Final = 2.0
"""Time after which a write is tried again that has failed."""
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class ListedTurns(msgspec.Struct, frozen=True):
    """A ConfigMap of turns; those that cannot be read are no turns."""

    metadata: Meta
    scheduler: str
    turns: Turns


def _listed(raw: bytes | msgspec.Raw) -> ListedTurns:
    obj = _decode(raw)
    scheduler = (obj["metadata"].get("annotations") or {}).get(SCHEDULER, "")
    return ListedTurns(msgspec.convert(obj["metadata"], Meta), str(scheduler), read_turns(obj).value or NO_TURNS)


class TurnsSink(EventSink):
    """Sink of turns."""

    def __init__(self) -> None:
        self.turns: Final[dict[str, Turns]] = {}
        """Turns by scheduler."""
        self._schedulers: dict[Key, str] = {}

    def put(self, item: ListedTurns, /) -> None:
        """Add or update the turns of a scheduler."""
        if item.scheduler and item.metadata.name == turns_name(item.scheduler):
            self._schedulers[item.metadata.namespace, item.metadata.name] = item.scheduler
            self.turns[item.scheduler] = item.turns

    def remove(self, key: Key, /) -> None:
        """Remove the turns of a scheduler."""
        if (scheduler := self._schedulers.pop(key, None)) is not None:
            self.turns.pop(scheduler, None)


class TurnsFeed:
    """Watch of the turns in the operator's namespace, from the first policy with groups on."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.sink: Final = TurnsSink()
        self._watches = ReflectorSet()
        self._reflector: Final[Reflector[ListedTurns]] = Reflector(
            client,
            ObjectRef(CONFIG_MAPS.resource, namespace),
            decode=_listed,
            sink=self.sink,
            query={"labelSelector": LABEL},
        )

    @property
    def reflectors(self) -> Mapping[str, Reflector[Any]]:
        """Return the watch by its name, once a policy that serves, or has served, has groups."""
        return self._watches.reflectors

    def want(self) -> None:
        """Watch from now on."""
        self._watches.want({"turns": lambda: self._reflector})

    async def wait_until_listed(self) -> None:
        """Return once all is listed."""
        await self._reflector.wait_until_listed()

    async def run(self) -> NoReturn:
        """Watch until cancelled."""
        await self._watches.run()


class TurnsPublisher:
    """Writer of the turns of each scheduler, at most five times a second, on the replica that holds."""

    def __init__(self, client: Client, namespace: str, turns: Callable[[str], Turns | None]) -> None:
        """Begin; `turns` returns what is to be published of a scheduler, None if nothing is."""
        self._client, self._namespace, self._turns = client, namespace, turns
        self._changed: dict[str, list[Callable[[], None]]] = {}
        self._wake = asyncio.Event()
        self._rate_limiter = RateLimiter()
        self.missing = ""
        """Missing permission that the last write was refused for want of."""

    def publish(self, scheduler: str, then: Callable[[], None] | None = None) -> None:
        """Publish soon, and call a function after that."""
        self._changed.setdefault(scheduler, []).extend([] if then is None else [then])
        self._wake.set()

    async def run(self) -> NoReturn:
        """Write what has changed, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            changed, self._changed = self._changed, {}
            for scheduler, waiting in changed.items():
                if not await self._write(scheduler):
                    asyncio.get_running_loop().call_later(AGAIN_S, self.publish, scheduler)
                for then in waiting:  # written or not: pods must not wait for advice
                    then()
            await asyncio.sleep(PAUSE_S)

    async def _write(self, scheduler: str) -> bool:
        """Write the turns of a scheduler; return whether there is nothing more to be done."""
        turns = self._turns(scheduler)
        if turns is None:
            return True
        body = turns_body(scheduler, turns)
        where = ObjectRef(CONFIG_MAPS.resource, self._namespace)
        try:
            try:
                await self._client.merge(where.named(self._namespace, body["metadata"]["name"]), body, decode_object)
            except NotFoundError:
                await self._client.create(where, body, decode_object)
        except ClusterError as error:
            self.missing = str(error) if isinstance(error, ForbiddenError) else self.missing
            if (more := self._rate_limiter.allow("write")) is not None:
                LOG.warning("turns.write_failed", extra={"error": str(error), **more})
            return False
        self.missing = ""
        return True
