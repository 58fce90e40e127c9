"""Things that come, change and go, as an API server tells of them, and the faults that may befall it."""

import asyncio
from dataclasses import dataclass, field

from aiohttp import web

from scripted.server import Step
from scripted.steps import Object, answer, bookmark, cut, line, refuse, status_object, thing

_PAGE = 3
_CUT = b""
_HALF = b"half"


@dataclass(eq=False, slots=True)
class _Watch:
    """One that somebody has opened."""

    queue: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)
    stalled: bool = False


class World:
    """Serves lists in small pages, and watches from any version that is not compacted."""

    def __init__(self) -> None:
        self.version = 10
        self.things: dict[str, Object] = {}
        self.faults: list[Step] = []
        """What befalls the next requests."""
        self._history: list[tuple[int, bytes]] = []
        self._compacted = 0
        self._watches: set[_Watch] = set()
        self._lists: dict[str, tuple[int, list[Object]]] = {}
        self._uids = 0

    @property
    def stamps(self) -> dict[tuple[str, str], tuple[str, str]]:
        """What there is: uid and version, by namespace and name."""
        metas = [one["metadata"] for one in self.things.values()]
        return {(meta["namespace"], meta["name"]): (meta["uid"], meta["resourceVersion"]) for meta in metas}

    def put(self, name: str) -> None:
        """It comes, or changes."""
        kind = "MODIFIED" if name in self.things else "ADDED"
        self.version += 1
        if kind == "ADDED":
            self._uids += 1
        uid = self.things[name]["metadata"]["uid"] if kind == "MODIFIED" else f"uid-{self._uids}"
        self.things[name] = thing(name, self.version, uid=uid, value=self.version)
        self._tell(line(kind, self.things[name]))

    def delete(self, name: str) -> None:
        """It goes."""
        if (gone := self.things.pop(name, None)) is None:
            return
        self.version += 1
        last = gone | {"metadata": gone["metadata"] | {"resourceVersion": str(self.version)}}
        self._tell(line("DELETED", last))

    def recreate(self, name: str) -> None:
        """Another takes its name."""
        self.delete(name)
        self.put(name)

    def compact(self) -> None:
        """What was is forgotten: lists under way cannot go on, and nobody can watch from before now."""
        self._compacted = self.version
        self._lists.clear()

    def bookmark(self) -> None:
        """Say how far we are."""
        self._send(bookmark(self.version))

    def repeat(self) -> None:
        """Tell the last event once more."""
        if self._history:
            self._send(self._history[-1][1])

    def expire(self) -> None:
        """Tell those who watch that their version is too old."""
        self._send(line("ERROR", status_object(410, "Expired")), _CUT)

    def break_all(self) -> None:
        """The connections of those who watch break."""
        self._send(_CUT)

    def break_within_a_line(self) -> None:
        """They break, and half a line was sent."""
        self._send(_HALF, _CUT)

    def stall(self) -> None:
        """Those who watch now hear nothing more, and are not told."""
        for watch in self._watches:
            watch.stalled = True

    def fail(self) -> None:
        """The next request is answered with an error that passes."""
        self.faults.append(refuse(500))

    def forbid(self) -> None:
        """The next request is refused."""
        self.faults.append(refuse(403))

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request."""
        if self.faults:
            return await self.faults.pop(0)(request)
        if "watch" in request.query:
            return await self._watch(request)
        return await self._list(request.query.get("continue", ""))(request)

    def _list(self, more: str) -> Step:
        if more and more not in self._lists:
            return refuse(410, "Expired")
        version, rest = self._lists.pop(more) if more else (self.version, [*self.things.values()])
        items, rest = rest[:_PAGE], rest[_PAGE:]
        token = f"c{version}-{len(rest)}" if rest else ""
        if rest:
            self._lists[token] = version, rest
        return answer({"metadata": {"resourceVersion": str(version), "continue": token}, "items": items})

    async def _watch(self, request: web.BaseRequest) -> web.StreamResponse:
        version = int(request.query["resourceVersion"])
        if version < self._compacted:
            return await refuse(410, "Expired")(request)
        watch = _Watch()
        for when, told in self._history:
            if when > version:
                watch.queue.put_nowait(told)
        self._watches.add(watch)
        response = web.StreamResponse()
        try:
            await response.prepare(request)
            while (told := await watch.queue.get()) != _CUT:
                await response.write(told)
            cut(request)
        finally:
            self._watches.discard(watch)
        return response

    def _tell(self, told: bytes) -> None:
        self._history.append((self.version, told))
        self._send(told)

    def _send(self, *told: bytes) -> None:
        for watch in self._watches:
            if not watch.stalled:
                for one in told:
                    watch.queue.put_nowait(one)
