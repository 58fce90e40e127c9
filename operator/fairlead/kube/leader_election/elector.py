"""Elector: holds the Lease, in a thread with its own event loop and client, so that a busy process does not lose it.

`election` decides the next step. Losing the Lease stops the leader's work, never the process.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from math import ceil
from typing import Any, Final, Protocol

import msgspec

from fairlead.kube.access.login import Login
from fairlead.kube.errors import ClusterError, ConflictError, NotFoundError
from fairlead.kube.http.client import Client, Clock
from fairlead.kube.leader_election.election import (
    Done,
    Election,
    ElectionStep,
    LeaseTimings,
    Read,
    Record,
    Release,
    Resign,
    Wait,
    Write,
)
from fairlead.kube.resources import ObjectRef, Resource

LOG: Final = logging.getLogger(__name__)
LEASES: Final = ObjectRef(Resource("coordination.k8s.io", "v1", "leases"))
ADDRESS: Final = "fairlead.dev/address"
"""Annotation of a Lease with the address at which other replicas call its holder."""
_NEVER: Final = float("-inf")


class LeaderTask(Protocol):
    """Work of the leader. Its methods are called in the elector's thread and never wait."""

    def start(self) -> None:
        """Start to lead. Every write from now on checks `Elector.is_leader` first."""

    def stop(self) -> None:
        """Stop, whether or not it has started."""

    @property
    def stopped(self) -> bool:
        """Return whether all work has stopped; only then does this replica lead again, or release the Lease."""


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: float | None = None
    lease_transitions: int | None = None


class _Lease(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()


_decoder: Final = msgspec.json.Decoder(_Lease)


def record_of(body: bytes) -> Record:
    """Decode a Lease."""
    lease = _decoder.decode(body)
    spec = lease.spec
    return Record(
        lease.metadata.resource_version,
        spec.holder_identity or "",
        spec.lease_duration_seconds or 0,
        spec.lease_transitions or 0,
        (lease.metadata.annotations or {}).get(ADDRESS, "") if spec.holder_identity else "",
    )


def identity(pod: str, uid: str) -> str:
    """Return the identity of a holder: the pod's name for people, its UID because names are reused."""
    return f"{pod}_{uid}"


class Elector:
    """Leader election of one replica."""

    def __init__(
        self,
        access: Callable[[], Login],
        where: ObjectRef,
        me: str,
        task: LeaderTask,
        *,
        terms: LeaseTimings | None = None,
        clock: Clock | None = None,
        today: Callable[[], datetime] = lambda: datetime.now(UTC),
        releases: bool = True,
        name: str = "lease",
        met: Callable[[str], object] = lambda _: None,
        over: Callable[[], object] = lambda: None,
        check: Callable[[Client], Awaitable[None]] | None = None,
        address: str = "",
    ) -> None:
        """`access` is called in the elector's thread; its result belongs to that thread's event loop.

        `releases`: whether to release the Lease at shutdown. The thread is called `name`; it calls `met` with each
        other holder that it finds, and `over` at its end. A request for the Lease is sent only if `check` raises no
        ClusterError before it. `address` is told to the others while this replica holds the Lease.
        """
        self.fault = ""
        """Why the Lease cannot be taken or renewed; "" if it can."""
        self.holder = ""
        """Holder of the Lease when it was last seen."""
        self.other_address = ""
        """Its address, if it is another replica, and has named one."""
        self._access, self._where, self._me, self._task = access, where, me, task
        self._terms, self._clock, self._today = terms or LeaseTimings(), clock or Clock(), today
        self._releases, self._met, self._over, self._check = releases, met, over, check
        self._address = address
        self._until = _NEVER
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken = asyncio.Event()

    @property
    def is_leader(self) -> bool:
        """Return whether this replica leads now. Works in any thread, even while the elector's thread is blocked."""
        return self.left_s > 0

    @property
    def left_s(self) -> float:
        """Return for how long this replica leads without another renewal; 0 if it does not lead."""
        return max(0.0, self._until - self._clock.now())

    @property
    def ended(self) -> bool:
        """Return whether the thread has ended."""
        return not self._thread.is_alive()

    def start(self) -> None:
        """Start the thread: become a candidate."""
        self._thread.start()

    def stop(self, within_s: float) -> None:
        """Stop the leader's work, wait for its end, and release the Lease. Blocks: not for event loops."""
        self.leave()
        if self._thread.is_alive():
            self._thread.join(within_s)

    def leave(self) -> None:
        """Start what `stop` waits for."""
        self._stopping.set()
        self.wake()

    def wake(self) -> None:
        """Check the next step at once, because the leader's work has ended."""
        loop, woken = self._loop, self._woken
        if loop is not None:
            with suppress(RuntimeError):  # the loop was closed just now
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
        """Run the election until it is stopped."""
        self._loop, self._woken = asyncio.get_running_loop(), asyncio.Event()
        election, task_stopped = Election(self._me, self._terms), False
        try:
            async with Client(self._access(), clock=self._clock, deadline_s=self._terms.request_s) as client:
                while True:
                    stopping = self._stopping.is_set()
                    if stopping and not task_stopped:
                        task_stopped = True
                        self._task.stop()
                    step = election.next(self._clock.now(), ended=self._task.stopped, stopping=stopping)
                    if isinstance(step, Done) or (isinstance(step, Release) and not self._releases):
                        return
                    election = await self._take(step, election, client)
        finally:
            self._loop = None
            self._until = _NEVER
            if not task_stopped:
                self._task.stop()

    async def _take(self, step: ElectionStep, election: Election, client: Client) -> Election:
        if isinstance(step, Wait):
            await self._rest(step.seconds)
            return election
        if isinstance(step, Resign):
            self._until = _NEVER
            LOG.warning("leader.lost", extra={"lease": str(self._where), "holder": self.holder, "error": self.fault})
            self._task.stop()
            return election.resigned(self._clock.now())
        if isinstance(step, Release):
            self._until = _NEVER
        try:
            after = await self._ask(step, election, client)
        except (ClusterError, TimeoutError) as error:
            if isinstance(error, ConflictError) and election.until is None:  # another candidate was faster
                LOG.debug("leader.lease_taken", extra={"lease": str(self._where), "error": str(error)})
            else:
                self._failed(error)
            after = election.failed(self._clock.now())
        else:
            if after.record is not None:  # a missing Lease does not prove that one can be created
                self.fault = ""
        if isinstance(step, Release):
            return after.resigned(self._clock.now())  # if the release failed, the Lease expires
        if after.record is not None:
            self._set_holder(after.record)
        if after.until is not None:
            self._until = after.until
            if election.until is None:
                LOG.info("leader.acquired", extra={"lease": str(self._where)})
                self._task.start()
        return after

    async def _ask(self, step: ElectionStep, election: Election, client: Client) -> Election:
        """Send a request; a leader waits for it no longer than it leads."""
        sent = self._clock.now()
        left = self._terms.request_s if election.until is None else election.until - sent
        async with asyncio.timeout(min(self._terms.request_s, left)):
            if self._check is not None:
                await self._check(client)
            if isinstance(step, Write) and not step.version:
                collection = self._where.named(self._where.namespace, "")
                written = await client.create(collection, self._body(step), record_of)
                return election.after_write(written, sent, self._clock.now())
            try:
                if isinstance(step, Read):
                    return election.after_read(await client.get(self._where, record_of), self._clock.now())
                written = await client.merge(self._where, self._body(step), record_of)
            except NotFoundError:
                return election.after_read(None, self._clock.now())
        return election.after_write(written, sent, self._clock.now())

    def _body(self, step: ElectionStep) -> dict[str, Any]:
        """Return the Lease to write; with a version, the API server rejects a write that replaces another one."""
        now = self._today().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        metadata: dict[str, Any] = {"name": self._where.name, "namespace": self._where.namespace}
        spec: dict[str, Any] = {"renewTime": now}
        if isinstance(step, Write):
            spec["holderIdentity"], spec["leaseDurationSeconds"] = self._me, ceil(self._terms.lease_s)
            spec["leaseTransitions"] = step.transitions
            if self._address:
                metadata["annotations"] = {ADDRESS: self._address}
            if step.taking or not step.version:
                spec["acquireTime"] = now
        elif isinstance(step, Release):
            spec["holderIdentity"], spec["leaseDurationSeconds"] = "", 1
        if isinstance(step, Write | Release) and step.version:
            metadata["resourceVersion"] = step.version
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}

    async def _rest(self, seconds: float) -> None:
        """Sleep, or until `wake` is called."""
        waits = asyncio.ensure_future(self._clock.sleep(seconds)), asyncio.ensure_future(self._woken.wait())
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
        self._woken.clear()

    def _set_holder(self, record: Record) -> None:
        before, holder = self.holder, record.holder
        self.holder, self.other_address = holder, record.address if holder != self._me else ""
        if holder not in (before, self._me, ""):
            self._met(holder)

    def _failed(self, error: Exception) -> None:
        message = str(error) or "the API server did not reply in time"
        if message != self.fault:
            LOG.warning("leader.lease_failed", extra={"error": message})
        self.fault = message
