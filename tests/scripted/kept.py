"""A sink that keeps what it is told, and says when."""

import asyncio
from collections.abc import Callable

import msgspec

from fairlead.kube.watch.store import Key


class Meta(msgspec.Struct, frozen=True):
    """Of a thing."""

    name: str
    namespace: str
    uid: str
    resourceVersion: str  # noqa: N815


class Thing(msgspec.Struct, frozen=True):
    """An object that is not just any: its value must be a number."""

    metadata: Meta
    value: int = 0


decode = msgspec.json.Decoder(Thing).decode


class Kept:
    """What there is, by name, and all that was said."""

    def __init__(self) -> None:
        self.things: dict[str, Thing] = {}
        self.said: list[str] = []
        self._told = asyncio.Event()

    def begin(self) -> None:
        self._say("begin")

    def put(self, item: Thing) -> None:
        name = item.metadata.name
        held = self.things.get(name)
        assert held is None or held.metadata.uid == item.metadata.uid, "another of the same name was not removed"
        self.things[name] = item
        self._say(f"put {name} {item.value}")

    def remove(self, key: Key) -> None:
        del self.things[key[1]]
        self._say(f"remove {key[1]}")

    def end(self) -> None:
        self._say("end")

    async def until(self, wanted: Callable[[], bool]) -> None:
        """Wait until that is so."""
        while not wanted():
            self._told.clear()
            await self._told.wait()

    def _say(self, what: str) -> None:
        self.said.append(what)
        self._told.set()
