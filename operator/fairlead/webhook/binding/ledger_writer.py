"""Batches: requests for entries in one ledger that come together share a write.

One task for each ledger with requests takes all that wait, plans, writes, and answers them. A request that is given up,
because its time is over or its caller has gone, is left out of what is planned later; an entry that was already written
for it stays until it is over, like any other.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, Generic

from fairlead.grants.adoption import first_entries
from fairlead.grants.commit import Accepted, Answer, LedgerPlan, LedgerRequest, R, Refused, plan
from fairlead.grants.entry import AnyEntry, LedgerEntry
from fairlead.grants.entry_state import EntryState, PodState, judge, judge_listed, judge_read
from fairlead.grants.ledger import OF_NODES, Ledger, LedgerKind, create_body
from fairlead.resource_versions import is_newer
from fairlead.webhook.binding.api_calls import Failed, LedgerCalls, Missing, TimeLeft, Views

READS_MAX: Final = 16
"""Pods that are read one by one to make room; where more are unclear, two lists tell of all of them."""
BATCH_MAX: Final = 32
"""Requests that share a write: to plan them takes the event loop for some milliseconds."""
BACKGROUND_S: Final = 5.0
"""Time to read pods that no request waits for."""
NO_TIME: Final = Failed("no time was left to write the ledger")


class _Waiting(Generic[R]):
    __slots__ = ("answer", "left_s", "request")

    def __init__(self, request: R, left_s: TimeLeft) -> None:
        self.request, self.left_s = request, left_s
        self.answer: asyncio.Future[Answer | Failed] = asyncio.get_running_loop().create_future()

    def settle(self, answer: Answer | Failed) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)


class LedgerWriter(Generic[R]):
    """Writer of all ledgers of one kind: each has one task while requests wait for it."""

    def __init__(
        self, server: LedgerCalls, views: Views[R], reads_max: int = READS_MAX, *, kind: LedgerKind = OF_NODES
    ) -> None:
        self._server, self._views, self._reads_max, self._kind = server, views, reads_max, kind
        self._writers: dict[str, _OneLedger[R]] = {}

    async def commit(self, subject: str, request: R, left_s: TimeLeft) -> Answer | Failed:
        """Return the answer to a request, once the ledger says so."""
        found = self._writers.get(subject)
        if found is None:
            found = _OneLedger(subject, self._server, self._views, self._reads_max, self._kind)
            self._writers[subject] = found
        waiting = _Waiting(request, left_s)
        found.add(waiting)
        try:
            await asyncio.wait((waiting.answer,), timeout=max(0.0, left_s()))
            return waiting.answer.result() if waiting.answer.done() else NO_TIME
        finally:
            waiting.answer.cancel()

    def drop_shown(self, subject: str) -> None:
        """Drop what is kept of a ledger if a watch shows as much, unless requests wait for it."""
        if (found := self._writers.get(subject)) is not None and found.idle and found.is_shown():
            del self._writers[subject]

    def forget(self, subject: str) -> None:
        """Drop what is kept of a ledger that was deleted."""
        if (found := self._writers.get(subject)) is not None and found.idle:
            del self._writers[subject]


class _OneLedger(Generic[R]):
    """One ledger: the newest version that this process knows, and who waits for a newer one."""

    def __init__(self, subject: str, server: LedgerCalls, views: Views[R], reads_max: int, kind: LedgerKind) -> None:
        self._subject, self._server, self._views = subject, server, views
        self._reads_max, self._kind = reads_max, kind
        self._node = kind.node(subject)
        self._known: Ledger | None = None
        self._queue: list[_Waiting[R]] = []
        self._over: dict[tuple[str, str], EntryState] = {}
        """What reads have told of entries, by UID and version; a fact about an entry stays true."""
        self._checked = set[tuple[str, str]]()
        """Entries whose pods were read since a request was answered."""
        self._confirmed = False
        """True if the API server has told the newest version since requests came in."""
        self._task: asyncio.Task[None] | None = None
        self._unclear: Mapping[str, AnyEntry] = {}
        """Entries whose state the last plan could not tell."""
        self._unclear_before = set[tuple[str, str]]()
        """Those that were unclear when the queue was empty the last time."""
        self._pods_read = set[tuple[str, str]]()
        """Those of them whose pods were read."""
        self._background: asyncio.Task[None] | None = None

    @property
    def idle(self) -> bool:
        return self._task is None

    def is_shown(self) -> bool:
        """Return whether a watch shows all that is known."""
        return self._newest() is self._views.ledger(self._subject) and not (self._over or self._unclear_before)

    def add(self, waiting: _Waiting[R]) -> None:
        self._queue.append(waiting)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._drop_expired():
                await self._round()
            self._read_stale_entries()
            self._newest()  # the watch may have shown the last write before its reply came
        except Exception as error:
            self._settle_all(Failed(f"the ledger was not written because of an error: {error!r}"))
            raise
        finally:
            self._task, self._confirmed = None, False
            self._checked.clear()
            self._settle_all(NO_TIME)
            self._queue.clear()

    def _drop_expired(self) -> list[_Waiting[R]]:
        """Answer those whose time is over; return those that still wait."""
        for one in self._queue:
            if one.left_s() <= 0:
                one.settle(NO_TIME)
        self._queue = [one for one in self._queue if not one.answer.done()]
        return self._queue

    def _left_s(self) -> float:
        return max((one.left_s() for one in self._queue), default=0.0)

    async def _round(self) -> None:
        """Take one step for all that wait: read what is missing, or write, or answer."""
        if (ledger := self._newest()) is None:
            await self._read()
            return
        batch = self._queue[:BATCH_MAX]
        states = {uid: self._state_of(uid, entry) for uid, entry in ledger.all.items()}
        made = plan(ledger, [one.request for one in batch], self._views.facts(self._subject), states)
        self._unclear = made.unclear
        if made.put or not ledger.marked:  # no watch shows one without its marks
            await self._write(made, batch)
        elif not self._confirmed:
            await self._read()  # no answer without a write stands on a watch, which may be behind
        elif made.wants_room and (
            unread := {uid: one for uid, one in made.unclear.items() if (uid, one.rv) not in self._checked}
        ):
            self._checked |= {(uid, one.rv) for uid, one in await self._read_pods(unread, self._left_s())}
        else:
            self._checked.clear()
            for one, answer in zip(batch, made.answers, strict=True):
                one.settle(answer)

    async def _write(self, planned: LedgerPlan, batch: list[_Waiting[R]]) -> None:
        outcome = await self._server.patch_ledger(self._subject, planned.patch, self._left_s())
        if isinstance(outcome, Ledger):
            self._known, self._confirmed = outcome, True
            for one, answer in zip(batch, planned.answers, strict=True):
                if isinstance(answer, Accepted):
                    one.settle(_as_written(outcome, one.request))
                elif not planned.unclear:  # it was the newest version, and no pod that is read would make room
                    one.settle(answer)
        elif isinstance(outcome, Failed):
            self._settle_all(outcome)
        else:
            # What the ledger says is so: an entry that was written is found there, and is the grant.
            await self._read()

    async def _read(self) -> None:
        """Read the newest ledger, and create it if there is none."""
        read = await self._server.read_ledger(self._subject, self._left_s())
        found = await self._create() if isinstance(read, Missing) else read
        self._known = found if isinstance(found, Ledger) else None
        self._confirmed = self._known is not None
        if isinstance(found, Failed):
            self._settle_all(found)

    async def _create(self) -> Ledger | Failed | None:
        """Create the ledger; None if it has to be read again, because it was created by others, or may have been."""
        entries: Mapping[str, LedgerEntry] = {}
        if self._node is not None:  # no annotation of a pod records the domain of its group
            pods = await self._server.list_pods(self._subject, self._left_s())
            if isinstance(pods, Failed):
                return pods
            entries = first_entries(self._node, pods)
        body = create_body(self._subject, entries, self._kind)
        made = await self._server.create_ledger(body, self._left_s())
        if isinstance(made, Ledger | Failed):
            return made
        return Failed("the operator's namespace is missing") if isinstance(made, Missing) else None

    def _newest(self) -> Ledger | None:
        """Return the newest version known, without asking: a write that names an old one is refused.

        Of two copies it is the one that the watch keeps anyway.
        """
        known, shown = self._known, self._views.ledger(self._subject)
        if known is None or (shown is not None and (shown.rv == known.rv or is_newer(shown.rv, known.rv))):
            self._known = shown
        return self._known

    def _state_of(self, uid: str, entry: AnyEntry) -> EntryState:
        if (told := self._over.get((uid, entry.rv))) is not None:
            return told
        return judge(uid, entry, self._node, self._views.seen(uid, entry.pod))

    def _read_stale_entries(self) -> None:
        """Read pods of entries that were unclear the last time, too, so that the next write removes what is over.

        A pod that was just bound is unclear for a moment only; one that ended while this process did not watch always.
        """
        unclear = {(uid, one.rv) for uid, one in self._unclear.items()}
        old = {
            uid: one for uid, one in self._unclear.items() if (uid, one.rv) in self._unclear_before - self._pods_read
        }
        self._unclear_before = unclear
        self._pods_read &= unclear
        if old and (self._background is None or self._background.done()):
            self._background = asyncio.get_running_loop().create_task(self._read_in_background(old))

    async def _read_in_background(self, old: Mapping[str, AnyEntry]) -> None:
        self._pods_read |= {(uid, one.rv) for uid, one in await self._read_pods(old, BACKGROUND_S)}

    async def _read_pods(self, unread: Mapping[str, AnyEntry], left_s: float) -> Sequence[tuple[str, AnyEntry]]:
        """Read the pods of these entries, and return these entries."""
        one_by_one = len(unread) <= self._reads_max and all(one.pod for one in unread.values())
        states = await (self._read_each(unread, left_s) if one_by_one else self._list_all(unread, left_s))
        told = {(uid, unread[uid].rv): state for uid, state in states.items() if state.is_over}
        kept = {} if self._known is None else self._known.all
        self._over = {key: state for key, state in self._over.items() if key[0] in kept} | told
        return [*unread.items()]

    async def _read_each(self, unread: Mapping[str, AnyEntry], left_s: float) -> Mapping[str, EntryState]:
        reads = await asyncio.gather(*(self._server.read_pod(entry.pod, left_s) for entry in unread.values()))
        return {
            uid: judge_read(uid, entry, self._node, found)
            for (uid, entry), found in zip(unread.items(), reads, strict=True)
            if not isinstance(found, Failed)
        }

    async def _list_all(self, unread: Mapping[str, AnyEntry], left_s: float) -> Mapping[str, EntryState]:
        unplaced = await self._server.list_unplaced(left_s)
        here = await self._server.list_pods(self._subject, left_s)
        if isinstance(unplaced, Failed) or isinstance(here, Failed):
            return {}
        by_uid = _by_uid(unplaced), _by_uid(here)
        return {uid: judge_listed(uid, entry, self._node, *by_uid) for uid, entry in unread.items()}

    def _settle_all(self, answer: Failed) -> None:
        for one in self._queue:
            one.settle(answer)


def _by_uid(pods: Sequence[PodState]) -> Mapping[str, PodState]:
    return {one.uid: one for one in pods}


def _as_written(ledger: Ledger, request: LedgerRequest) -> Answer:
    """Return the answer by what the API server has stored."""
    entry = ledger.entries.get(request.uid)
    if entry is None or entry.rv != request.rv:
        return Refused("the ledger does not have the entry that was written")
    return Accepted(entry)
