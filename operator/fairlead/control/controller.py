"""What the leader does: a worker for each scheduler, one who asks the replicas, and one who writes what is to be said.

kopf only tells of what happened. Everything is done from what is there, again and again; nothing depends on an event.
"""

import asyncio
import logging
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from fairlead.api.errors import InvalidObjectError
from fairlead.api.names import API_VERSION, GROUP, KIND, PLURAL, VERSION
from fairlead.cluster.errors import ClusterError, ConflictError, ForbiddenError, NotFoundError
from fairlead.cluster.resources import Resource, Where
from fairlead.control.announce import Announcer, transition
from fairlead.control.ever import Ever
from fairlead.control.finalizer import finalizers
from fairlead.control.gathering import Gathered, Obj, paused, scheduler_of
from fairlead.control.lacking import Lacking
from fairlead.control.objects import resource
from fairlead.control.passes import Passed, Passes
from fairlead.control.replicas import Replicas
from fairlead.control.status import COUNTERS_S, About, difference, status
from fairlead.control.waking import Waker
from fairlead.render.facts import Facts
from fairlead.render.names import SCHEDULER_LABEL
from fairlead.render.operator_settings import OperatorSettings
from fairlead.webhook.state import ReplicaState

LOG: Final = logging.getLogger(__name__)
POLICIES: Final = Where(Resource(GROUP, VERSION, PLURAL))
STATUS_MANAGER: Final = "fairlead-status"
RESYNC_S: Final = 300.0
_BUSY_S: Final = 1.0
_QUIET_S: Final = 10.0
_AGAIN_S: Final = 2.0
_MOST_AGAIN_S: Final = 30.0
_NOTHING: Final = Passed()
_LOOKING: Final = "schedulers that have no policies cannot be found"
_FINALIZING: Final = "policies cannot be held until nobody applies them any more"
_BELIEVED: Final = "the API server cannot be told whom to believe"
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(slots=True)
class _Worker:
    due: asyncio.Event
    task: asyncio.Task[None]
    passed: Passed = _NOTHING


@dataclass(slots=True, eq=False, kw_only=True)
class Controller:
    """While this replica leads. All of it runs in one loop, which is not the one that serves."""

    gathered: Gathered
    passes: Passes
    replicas: Replicas
    announcer: Announcer
    waker: Waker
    lacking: Lacking
    settings: Callable[[], OperatorSettings]
    facts: Callable[[str, Mapping[str, str]], Awaitable[Facts]]
    """What is known of the cluster, once certificates are as they have to be; told of a scheduler, of all that there
    are, and of the authorities that these were started with. Raises InvalidObjectError."""
    rotates: Callable[[], bool]
    """Whether the authority is to be replaced, or is being: nothing tells of it when others have done their part."""
    believed: Callable[[], Awaitable[None]]
    """Sees to it that the API server believes us; called while nothing else happens."""
    ever: Ever
    leads: Callable[[], bool]
    warnings: Callable[[Obj], list[tuple[str, str]]]
    """What lint warns of."""
    drift: Callable[[str], None]
    """Told of the kind of each object that somebody had changed."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _workers: dict[str, _Worker] = field(default_factory=dict)
    _ask: asyncio.Event = field(default_factory=asyncio.Event)
    _counted: dict[str, float] = field(default_factory=dict)
    _unsaid: set[str] = field(default_factory=set)
    """Schedulers whose policies have statuses that could not be written."""
    _asked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the replicas were asked: a leader that has just begun says nothing that it does not know yet."""
    _saying: dict[str, asyncio.Lock] = field(default_factory=lambda: defaultdict(asyncio.Lock))
    """Two who write the same statuses at once would tell of one transition twice."""

    def policy(self, kind: str | None, policy: Obj) -> None:
        """Something happened to a policy."""
        before = self.gathered.policies.get(policy["metadata"]["name"])
        scheduler = self.gathered.tell(kind, policy)
        if before is None or kind == "DELETED" or _asked(before) != _asked(policy):
            self.due(scheduler)
            self._ask.set()

    def due(self, scheduler: str) -> None:
        """Look at a scheduler soon."""
        worker = self._workers.get(scheduler)
        if worker is None:
            task = asyncio.get_running_loop().create_task(self._work(scheduler), name=f"scheduler {scheduler}")
            worker = self._workers[scheduler] = _Worker(asyncio.Event(), task)
        worker.due.set()

    async def look(self) -> None:
        """See all that there is, whatever was told: nobody tells what happened while nobody watched.

        It comes before anything else: a scheduler of which only half of the policies is known would be rolled.
        """
        before = dict(self.gathered.policies)
        listed = await self.passes.objects.all(POLICIES)
        found: dict[str, Obj] = {
            one["metadata"]["name"]: {**one, "apiVersion": API_VERSION, "kind": KIND} for one in listed
        }
        for name in before.keys() | found.keys():
            if self.gathered.policies.get(name) is not before.get(name):
                continue  # something was told meanwhile, which is newer
            self.policy(None, found[name]) if name in found else self.policy("DELETED", before[name])
        kept = Where(resource("ConfigMap"), self.passes.namespace)
        try:
            for one in await self.passes.objects.all(kept, labelSelector=SCHEDULER_LABEL):
                self.due(one["metadata"]["labels"][SCHEDULER_LABEL])
        except ForbiddenError as error:  # those that have policies are looked at, and theirs say what is missing
            self.lacking.failed(_LOOKING, error)
        else:
            self.lacking.went(_LOOKING)

    async def run(self) -> None:
        """Until it is cancelled; the schedulers that settings list are there without any policy."""
        for one in self.settings().schedulers:
            self.due(one.name)
        try:
            await self._ask_replicas()
        finally:
            for worker in self._workers.values():
                worker.task.cancel()
            await asyncio.gather(*(worker.task for worker in self._workers.values()), return_exceptions=True)

    async def _work(self, scheduler: str) -> None:
        """Passes over one scheduler, one after the other."""
        again, failures = 0.0, 0
        await self._asked.wait()
        while True:
            worker = self._workers[scheduler]
            try:
                async with asyncio.timeout(again):
                    await worker.due.wait()
            except TimeoutError:
                pass
            worker.due.clear()
            try:
                worker.passed = await self._pass(scheduler)
                again, failures = _rest(worker.passed), 0
            except ClusterError as error:
                if isinstance(error, ForbiddenError):
                    worker.passed = replace(worker.passed, missing=str(error))
                failures += 1
                again = min(_AGAIN_S * 2**failures, _MOST_AGAIN_S) * random.uniform(0.5, 1.0)  # noqa: S311  no secret
                LOG.warning(
                    "a pass failed", extra={"scheduler": scheduler, "why": str(error), "again": f"{again:.0f} s"}
                )
            except Exception:
                failures += 1
                again = _MOST_AGAIN_S
                LOG.exception("a pass failed, and it is a fault of ours", extra={"scheduler": scheduler})
            await self._say(scheduler)
            over = worker.passed.gone or (worker.passed.refused and not self._is_listed(scheduler))
            if over and not self.gathered.of(scheduler) and not worker.due.is_set():
                del self._workers[scheduler]
                return

    async def _pass(self, scheduler: str) -> Passed:
        if not self.leads():
            return self._workers[scheduler].passed
        settings = self.settings()
        try:
            asked = self.gathered.asked(scheduler, settings, self.replicas.answers)
        except InvalidObjectError as error:
            return Passed(refused=str(error))
        held = paused(self.gathered.of(scheduler))
        known = asked.listed or self._was_managed(scheduler) or await self.ever.managed(scheduler)
        passed = await self.passes.run(asked, lambda: self._facts(scheduler), paused=held, known=known)
        if passed.decision is not None and not known:
            await self.ever.note(scheduler, self.now())
        for text in passed.drifted:
            self.drift(text.partition(" ")[0])
            for policy in self.gathered.of(scheduler)[:1]:
                await self.announcer.about(policy, "Warning", "DriftCorrected", text, "Correct", self.now())
        return passed

    async def _facts(self, scheduler: str) -> Facts:
        there = {name: one for name, one in self._workers.items() if not (one.passed.refused or one.passed.gone)}
        return await self.facts(scheduler, {name: one.passed.rolled for name, one in there.items()})

    def _is_listed(self, scheduler: str) -> bool:
        return any(one.name == scheduler for one in self.settings().schedulers)

    def _was_managed(self, scheduler: str) -> bool:
        """Whether a policy says so: its status outlives an operator."""
        return any(one.get("status", {}).get("scheduler", {}).get("configHash") for one in self.gathered.of(scheduler))

    async def _ask_replicas(self) -> None:
        """Often while something is on its way, seldom otherwise."""
        time = asyncio.get_running_loop().time
        looked, settings, lacked = time(), self.settings(), self.lacking.said
        while True:
            self._ask.clear()
            try:
                if time() - looked >= RESYNC_S or _LOOKING in self.lacking:
                    await self.look()
                    looked = time()
                before = self.replicas.answers
                after = await self.replicas.ask()
                await self.waker.heard(after.values())
                await self.announcer.again()
            except ClusterError as error:
                LOG.warning("what there is cannot be listed", extra={"why": str(error)})
            else:
                new = before != after or lacked or self.lacking.said
                lacked = self.lacking.said
                for scheduler in {scheduler_of(one) for one in self.gathered.policies.values()}:
                    if self._asked.is_set() and (new or self._leaves(scheduler) or scheduler in self._unsaid):
                        await self._say(scheduler)
            self._asked.set()
            if self.rotates() or self.settings() is not settings:
                settings = self.settings()
                for name in {*self._workers, *(one.name for one in settings.schedulers)}:
                    self.due(name)
            wait = _BUSY_S if self._is_busy() else _QUIET_S
            if wait == _QUIET_S:
                await self._be_believed()
            try:
                async with asyncio.timeout(wait):
                    await self._ask.wait()
                    await asyncio.sleep(_BUSY_S / 10)  # what comes together is asked about once
            except TimeoutError:
                pass

    async def _be_believed(self) -> None:
        if not self.leads():
            return
        try:
            await self.believed()
        except ClusterError as error:
            self.lacking.failed(_BELIEVED, error)
        else:
            self.lacking.went(_BELIEVED)

    def _is_busy(self) -> bool:
        answers = [one for one in self.replicas.answers.values() if isinstance(one, ReplicaState)]
        return (
            self.waker.owes
            or len(answers) < len(self.replicas.answers)
            or any(
                "deletionTimestamp" in policy["metadata"]
                or any(_seen(one, name) != str(policy["metadata"]["generation"]) for one in answers)
                for name, policy in self.gathered.policies.items()
            )
        )

    def _leaves(self, scheduler: str) -> bool:
        return any("deletionTimestamp" in one["metadata"] for one in self.gathered.of(scheduler))

    async def _say(self, scheduler: str) -> None:
        """Write what became another of the statuses of a scheduler's policies."""
        if not self.leads():
            return
        async with self._saying[scheduler]:
            await self._say_all(scheduler)

    async def _say_all(self, scheduler: str) -> None:
        self._unsaid.discard(scheduler)
        policies = self.gathered.of(scheduler)
        held, passed = paused(policies), self._workers[scheduler].passed if scheduler in self._workers else _NOTHING
        try:
            managed = self.settings().scheduler(scheduler).management == "Managed"
        except InvalidObjectError:
            managed = False
        for name in [one["metadata"]["name"] for one in policies]:
            policy = self.gathered.policies.get(name)
            if policy is None:
                continue
            try:
                await self._finalize(policy)
                if "deletionTimestamp" not in policy["metadata"]:
                    await self._write(policy, passed, managed=managed, held=held)
            except NotFoundError:
                self.policy("DELETED", policy)
            except ConflictError:
                continue  # it has become another: what has happened to it will be told
            except ClusterError as error:
                self._unsaid.add(scheduler)
                LOG.warning("a status cannot be written", extra={"policy": name, "why": str(error)})
            except Exception:  # the scheduler is looked at again, and others have their statuses
                LOG.exception("a status cannot be written, and it is a fault of ours", extra={"policy": name})

    async def _write(self, policy: Obj, passed: Passed, *, managed: bool, held: bool) -> None:
        now = self.now()
        about = About(
            policy=policy,
            answers=self.replicas.answers,
            passed=passed,
            lacking=self.lacking.said,
            managed=managed,
            paused=held,
            warnings=self.warnings(policy),
        )
        name, before, after = policy["metadata"]["name"], policy.get("status", {}), status(about, now)
        differs = difference(before, after)
        if not differs or (differs == "counters" and now.timestamp() - self._counted.get(name, 0.0) < COUNTERS_S):
            return
        body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "status": after}
        at = POLICIES.of("", name, "status")
        made = await self.announcer.client.apply(at, body, _decode, manager=STATUS_MANAGER, force=True)
        self._counted[name] = now.timestamp()
        if self.gathered.policies.get(name) is policy:  # else something was told meanwhile
            self.policy(None, made)
        if (said := transition(before, after)) is not None:
            await self.announcer.about(policy, *said, "Reconcile", now)

    async def _finalize(self, policy: Obj) -> None:
        name, uid = policy["metadata"]["name"], policy["metadata"]["uid"]
        serves = (
            bool((known := one.policies.get(name)) and known.uid == uid and known.serving)
            for one in self.replicas.answers.values()
            if isinstance(one, ReplicaState)
        )
        wanted = finalizers(policy, serves, self.now())
        if wanted is None:
            return
        metadata = {"finalizers": wanted, "resourceVersion": policy["metadata"]["resourceVersion"]}
        try:
            await self.announcer.client.merge(POLICIES.of("", name), {"metadata": metadata}, _decode)
        except ForbiddenError as error:
            self.lacking.failed(_FINALIZING, error)
        else:
            self.lacking.went(_FINALIZING)


def _rest(passed: Passed) -> float:
    """How long nothing has to be looked at."""
    decision = passed.decision
    if passed.refused:
        return _MOST_AGAIN_S
    if decision is not None and (decision.phase == "Rolling" or (decision.fate == "Goes" and not passed.gone)):
        return _AGAIN_S
    if decision is not None and decision.phase == "Steady" and decision.message:
        return _QUIET_S
    if passed.refused:
        return _MOST_AGAIN_S
    resync = RESYNC_S * random.uniform(0.8, 1.2)  # noqa: S311  no secret
    left = decision.again_s if decision is not None else None
    waits = decision is not None and decision.fate == "Waits"
    return min(resync, left + 0.1 if left is not None else resync, _QUIET_S if waits else resync)


def _asked(policy: Obj) -> Mapping[str, Any]:
    """What somebody wrote, and whether it goes."""
    metadata = policy["metadata"]
    kept = {key: metadata.get(key) for key in ("uid", "generation", "annotations", "deletionTimestamp")}
    return {**kept, "spec": policy.get("spec")}


def _seen(state: ReplicaState, name: str) -> str:
    one = state.policies.get(name)
    return one.generation if one is not None else ""
