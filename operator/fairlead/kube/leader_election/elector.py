"""Holds the Lease, in a thread with a loop and a client of its own, so that nothing that is busy ever loses it.

What is next is decided in `election`. Losing the Lease ends what only a leader may do, and never the process.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from math import ceil
from typing import Any, Final, Protocol

import msgspec

from fairlead.kube.access.access import Access
from fairlead.kube.errors import ClusterError, NotFoundError
from fairlead.kube.http.client import Client, Clock
from fairlead.kube.leader_election.election import (
    Done,
    Election,
    LeaseTimings,
    Read,
    Record,
    Release,
    Resign,
    Step,
    Wait,
    Write,
)
from fairlead.kube.resources import ObjectRef, Resource

LOG: Final = logging.getLogger(__name__)
LEASES: Final = ObjectRef(Resource("coordination.k8s.io", "v1", "leases"))
_NEVER: Final = float("-inf")


class LeaderTask(Protocol):
    """What only the leader does. It is called in the Lease's thread, and never waits there."""

    def start(self) -> None:
        """We lead. Whatever is written from now on asks `Elector.leads` before."""

    def stop(self) -> None:
        """Stop, whether or not it has begun."""

    @property
    def stopped(self) -> bool:
        """Whether nothing of it goes on: until then we do not lead again, and the Lease is not released."""


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: float | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()


_decoder: Final = msgspec.json.Decoder(_Lease)


def record_of(body: bytes) -> Record:
    """What counts of a Lease."""
    lease = _decoder.decode(body)
    spec = lease.spec
    return Record(
        lease.metadata.resource_version,
        spec.holder_identity or "",
        spec.lease_duration_seconds or 0,
        spec.lease_transitions or 0,
    )


def identity(pod: str, uid: str) -> str:
    """Who holds it: the name for people, the UID because names come back."""
    return f"{pod}_{uid}"


class Elector:
    """One replica's part in it."""

    def __init__(
        self,
        access: Callable[[], Access],
        where: ObjectRef,
        me: str,
        duty: LeaderTask,
        *,
        terms: LeaseTimings | None = None,
        clock: Clock | None = None,
        today: Callable[[], datetime] = lambda: datetime.now(UTC),
        releases: bool = True,
        name: str = "lease",
        met: Callable[[str], object] = lambda _: None,
        over: Callable[[], object] = lambda: None,
    ) -> None:
        """`access` is asked in the thread: what it gives belongs to that loop alone.

        `releases`: whether another may have it at once when we leave. The thread, which is called `name`, tells `met`
        of each other holder that it finds, and calls `over` last.
        """
        self.fault = ""
        """Why the Lease cannot be had or held, where that is so."""
        self.holder = ""
        """Who had it when it was last seen."""
        self._access, self._where, self._me, self._duty = access, where, me, duty
        self._terms, self._clock, self._today = terms or LeaseTimings(), clock or Clock(), today
        self._releases, self._met, self._over = releases, met, over
        self._until = _NEVER
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken = asyncio.Event()

    @property
    def is_leader(self) -> bool:
        """Whether we lead at this moment; from any thread. It holds even where the Lease's own thread is held up."""
        return self.left_s > 0

    @property
    def left_s(self) -> float:
        """For how long we lead if it is not renewed; 0 if we do not."""
        return max(0.0, self._until - self._clock.now())

    @property
    def ended(self) -> bool:
        """Whether nothing of it goes on."""
        return not self._thread.is_alive()

    def start(self) -> None:
        """Become a candidate."""
        self._thread.start()

    def stop(self, within_s: float) -> None:
        """End the duty, wait until it has ended, release the Lease. Waits: not for a thread whose loop serves."""
        self.leave()
        if self._thread.is_alive():
            self._thread.join(within_s)

    def leave(self) -> None:
        """Begin what `stop` waits for."""
        self._stopping.set()
        self.wake()

    def wake(self) -> None:
        """Look again at once: the duty has ended."""
        loop, woken = self._loop, self._woken
        if loop is not None:
            with suppress(RuntimeError):  # it has just been closed
                loop.call_soon_threadsafe(woken.set)

    def _live(self) -> None:
        while not self._stopping.is_set():
            try:
                asyncio.run(self.run())
            except ClusterError as error:
                self._failed(error)
            except Exception:
                LOG.exception("leader.election_fault")
            self._stopping.wait(self._terms.retry_s)
        self._over()

    async def run(self) -> None:
        """Until it is told to stop."""
        self._loop, self._woken = asyncio.get_running_loop(), asyncio.Event()
        election, told = Election(self._me, self._terms), False
        try:
            async with Client(self._access(), clock=self._clock, deadline_s=self._terms.request_s) as client:
                while True:
                    stopping = self._stopping.is_set()
                    if stopping and not told:
                        told = True
                        self._duty.stop()
                    step = election.next(self._clock.now(), ended=self._duty.stopped, stopping=stopping)
                    if isinstance(step, Done) or (isinstance(step, Release) and not self._releases):
                        return
                    election = await self._take(step, election, client)
        finally:
            self._loop = None
            self._until = _NEVER
            if not told:
                self._duty.stop()

    async def _take(self, step: Step, election: Election, client: Client) -> Election:
        if isinstance(step, Wait):
            await self._rest(step.seconds)
            return election
        if isinstance(step, Resign):
            self._until = _NEVER
            LOG.warning("leader.lost", extra={"lease": str(self._where), "holder": self.holder, "error": self.fault})
            self._duty.stop()
            return election.resigned(self._clock.now())
        if isinstance(step, Release):
            self._until = _NEVER
        try:
            after = await self._ask(step, election, client)
        except (ClusterError, TimeoutError) as error:
            self._failed(error)
            after = election.failed(self._clock.now())
        else:
            if after.record is not None:  # that there is none yet says nothing of whether one can be made
                self.fault = ""
        if isinstance(step, Release):
            return after.resigned(self._clock.now())  # if it could not be released, it runs out
        if after.record is not None:
            self._held_by(after.record.holder)
        if after.until is not None:
            self._until = after.until
            if election.until is None:
                LOG.info("leader.acquired", extra={"lease": str(self._where)})
                self._duty.start()
        return after

    async def _ask(self, step: Step, election: Election, client: Client) -> Election:
        """One request, which a leader does not wait for longer than it leads."""
        sent = self._clock.now()
        left = self._terms.request_s if election.until is None else election.until - sent
        async with asyncio.timeout(min(self._terms.request_s, left)):
            if isinstance(step, Write) and not step.version:
                collection = self._where.named(self._where.namespace, "")
                made = await client.create(collection, self._body(step), record_of)
                return election.after_write(made, sent, self._clock.now())
            try:
                if isinstance(step, Read):
                    return election.after_read(await client.get(self._where, record_of), self._clock.now())
                made = await client.merge(self._where, self._body(step), record_of)
            except NotFoundError:
                return election.after_read(None, self._clock.now())
        return election.after_write(made, sent, self._clock.now())

    def _body(self, step: Step) -> dict[str, Any]:
        """With a version in it the API server refuses what replaces another one."""
        now = self._today().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        metadata: dict[str, Any] = {"name": self._where.name, "namespace": self._where.namespace}
        spec: dict[str, Any] = {"renewTime": now}
        if isinstance(step, Write):
            spec["holderIdentity"], spec["leaseDurationSeconds"] = self._me, ceil(self._terms.lease_s)
            spec["leaseTransitions"] = step.transitions
            if step.taking or not step.version:
                spec["acquireTime"] = now
        elif isinstance(step, Release):
            spec["holderIdentity"], spec["leaseDurationSeconds"] = "", 1
        if isinstance(step, Write | Release) and step.version:
            metadata["resourceVersion"] = step.version
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}

    async def _rest(self, seconds: float) -> None:
        """Or until somebody wakes us."""
        waits = asyncio.ensure_future(self._clock.sleep(seconds)), asyncio.ensure_future(self._woken.wait())
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
        self._woken.clear()

    def _held_by(self, holder: str) -> None:
        before, self.holder = self.holder, holder
        if holder not in (before, self._me, ""):
            self._met(holder)

    def _failed(self, error: Exception) -> None:
        why = str(error) or "the API server does not answer in time"
        if why != self.fault:
            LOG.warning("leader.lease_failed", extra={"error": why})
        self.fault = why
