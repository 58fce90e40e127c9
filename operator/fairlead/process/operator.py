"""The composition root of `fairlead operate`: what every replica of the operator is.

Policies come from the API server, certificates from our own authority, callers are the schedulers that there are. Who
leads does more, in threads of its own: that is somebody else's, who is handed what this process knows.
"""

import asyncio
import logging
import ssl
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from time import perf_counter_ns, thread_time
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import uuid4

import msgspec

from fairlead import replica_state
from fairlead.api.names import DEFAULT_SCHEDULER_NAME
from fairlead.control.reconcile import managed_schedulers
from fairlead.kube.access.access import find_access
from fairlead.kube.errors import ClusterError
from fairlead.kube.http.client import Client
from fairlead.kube.watch.secrets import Secrets
from fairlead.pki.identities import OPERATOR
from fairlead.policy.compile.compiler import CompileOptions
from fairlead.process.peer_certificates import REMEMBERED, PeerCertificates
from fairlead.process.replica import AGAIN_S, Replica
from fairlead.process.replica_certificates import CertificateRefresher
from fairlead.process.settings import OperateSettings
from fairlead.process.settings_file import SettingsError, SettingsFile
from fairlead.process.tasks import Work, every, listening, told_to_stop
from fairlead.webhook.admission.admission_server import AdmissionServer
from fairlead.webhook.admission.review import review_steps
from fairlead.webhook.extender.call import CallClock, Caller, Outcome, Verb
from fairlead.webhook.extender.callers import Callers, RefusedConnections, callers, expected
from fairlead.webhook.extender.rejected_pods import RejectedPods
from fairlead.webhook.extender.state import ServingState
from fairlead.webhook.https.server import Stranger
from fairlead.webhook.https.tls import Tls, TlsError
from fairlead.webhook.serving.policy_watch import watch_policies
from fairlead.webhook.serving.replica_report import ReportInputs, report

if TYPE_CHECKING:
    from fairlead.kube.watch.reflector import Reflector

LOG: Final = logging.getLogger(__name__)
SWITCH_S: Final = 0.0005
"""How long a thread may keep others from running: those who reconcile must not hold up those who serve."""
_SETTINGS_S: Final = 2.0


class LeaderCandidate(Protocol):
    """Whoever holds the Lease, and does what only its holder may do, in threads of its own."""

    def start(self) -> None:
        """Become a candidate."""

    def stop(self, within_s: float) -> None:
        """Stop leading and release the Lease. Waits."""

    @property
    def is_leader(self) -> bool:
        """Whether it does now."""

    def summary(self) -> str:
        """How it is with that, for people."""


Lead = Callable[["OperatorReplica"], LeaderCandidate]


class OperatorReplica(Replica):
    """One replica."""

    settings: OperateSettings

    def __init__(self, settings: OperateSettings, client: Client, told: SettingsFile, lead: Lead | None = None) -> None:
        self.own = CertificateRefresher(settings, client) if settings.tls is None else None
        super().__init__(settings, client, self.own.tls if self.own else Tls(settings.tls), "cluster")  # type: ignore[arg-type]
        self.told = told
        self.policies.set_compile_options(self._rules())
        self.callers = Callers(self._schedulers)
        self.waiting, self.turned_away, self.ever = (
            RejectedPods(),
            RefusedConnections(),
            managed_schedulers.ManagedSchedulersSink(),
        )
        self.admission = AdmissionServer(
            self.tls,
            lambda body: review_steps(body, self.model, self.policies.options),
            self.refuse,
            lambda: self.told.settings.admission.client_ca,
            observe=self.metrics.histogram(
                "fairlead_admission_request_duration_seconds",
                "Time that a review of a policy took, by the result: allowed, denied or failed.",
                "result",
            ).observe,
        )
        self.admission_port = 0
        self.current.stays = self._stays
        self.objects = watch_policies(client, self.current)
        self._known = managed_schedulers.watch_managed_schedulers(client, settings.namespace, self.ever)
        self.leaves = PeerCertificates(lambda: datetime.now(UTC))
        self._secrets = Secrets(client, settings.namespace)
        self._followed: Reflector[Any] = self.own.follow() if self.own else self._secrets.follow_shown(self.leaves)
        certificates = {} if self.own else {"certificates": self._followed}
        self.parts.background = {"policy objects": self.objects} | certificates
        self._callers: tuple[Caller, ...] = ()
        self._made_of: tuple[object, ...] = ()
        self._process = uuid4().hex
        self._candidate = lead(self) if lead is not None else None
        if self._candidate is not None:
            self.parts.leader = self._candidate.summary

    def caller(self, name: str, verb: Verb) -> Caller | None:
        """The scheduler that has a certificate of this name, or the operator itself."""
        return self.callers(name, verb)

    def hears(self) -> Callable[[Outcome], None]:
        """Pods that are refused are remembered."""
        return lambda outcome: self.waiting.record_filtered(outcome, perf_counter_ns())

    def pages(self) -> Mapping[str, Callable[[str], bytes | None]]:
        """What this replica says of itself."""
        return {replica_state.PATH: self._state}

    def stranger(self) -> Stranger | None:
        """Others sign names for others, too: who calls shows what is in the Secret of his name."""
        return self._stranger if self.own is None else None

    def idles(self) -> Callable[[ServingState, CallClock], bool]:
        """Whether pods that were refused could be placed by now."""
        return self.waiting.recheck

    def refuse(self, reason: str, peer: str) -> None:
        """Somebody, or what he asked, was turned away."""
        self.turned_away.add(peer, reason, perf_counter_ns())
        super().refuse(reason, peer)

    async def prepare(self) -> None:
        """Have certificates, for which the API server is needed."""
        self.policies.warm()
        if self.own is not None:
            await self.own.begin()
        if self.settings.admission is not None:
            self.admission_port = await listening(self.admission.start, self.settings.admission)

    def works(self) -> Sequence[Work]:
        """What is watched, and read again."""
        found: list[Work] = [
            self._serve_policies,
            self._known.run,
            self._followed.run,
            every(_SETTINGS_S, self.look_for_settings),
        ]
        if self._candidate is not None:
            self._candidate.start()
        return found

    def endings(self) -> Sequence[Work]:
        """Another one may lead at once."""
        return [self._retire, self.admission.stop]

    async def _retire(self) -> None:
        if self._candidate is not None:
            await asyncio.to_thread(self._candidate.stop, max(1.0, self.settings.drain_s))

    async def look_for_certificates(self) -> None:
        """Sign anew what it is time for."""
        if self.own is not None:
            self.own.material.renew()
        await super().look_for_certificates()
        if self.own is not None:
            self.parts.certificates = self.parts.certificates or self.own.fault or self.own.material.fault
        elif self._candidate is not None and self._candidate.is_leader:
            await self.remember_leaves()

    async def remember_leaves(self) -> None:
        """Write down which certificates were there before, for replicas that start now."""
        before = self.leaves.before()
        if before == self.leaves.written or not self._followed.state.synced:
            return
        data = {"before": msgspec.json.encode(before)}
        try:
            seen = await self._secrets.ensure(REMEMBERED, lambda: data, kind="Opaque")
            if seen.data != data:
                await self._secrets.replace(seen, data)
        except ClusterError as error:  # it is tried again soon
            if (more := self.seldom.about(REMEMBERED)) is not None:
                extra = {"secret": REMEMBERED, "error": str(error), **more}
                LOG.warning("certificates_before.write_failed", extra=extra)

    async def look_for_settings(self) -> None:
        """Use those that are in the file now."""
        file = str(self.told.path)
        try:
            if self.told.reload():
                LOG.info("settings.loaded")
                if self._rules() != self.policies.options:
                    self.policies.set_compile_options(self._rules())
                    self.current.wake()
        except SettingsError as error:
            if self.parts.faults.get(file) != str(error):
                LOG.warning("settings.invalid", extra={"error": str(error)})
            self.parts.faults = {file: str(error)}
        else:
            self.parts.faults = {}

    async def _serve_policies(self) -> None:
        """What was good serves before anything else is compiled; what is not compiled yet has its failure policy."""
        while (kept := await self.revisions.load()) is None:
            await asyncio.sleep(AGAIN_S)
        self.policies.last_good = kept
        async with asyncio.TaskGroup() as group:
            group.create_task(self.objects.run())
            await self.objects.listed()
            there = {name for _, name in self.objects.objects}
            for name in {name for name, _ in kept} - there:  # they went while nobody was there
                self.revisions.forget(name)
            self.current.wake()
            await self.current.run()

    def operator_context(self) -> ssl.SSLContext:
        """What the operator shows to its replicas, and whom it believes. From any thread. Raises TlsError."""
        if self.own is None:
            raise TlsError("certificates that others make hold none of the operator's own")
        return self.own.client()

    def _rules(self) -> CompileOptions:
        return CompileOptions(self.strategies, self.told.settings.annotation_prefixes, clock=thread_time)

    def _schedulers(self) -> Iterable[Caller]:
        """The same as before while nothing that they are made of is another."""
        world, settings, known = self.current.state, self.told.settings, self.ever.names
        made_of = (world, settings, known)
        if len(self._made_of) != len(made_of) or any(a is not b for a, b in zip(made_of, self._made_of, strict=True)):
            names = expected(settings, known, {*self.current.schedulers, DEFAULT_SCHEDULER_NAME})
            serving = world.policies.policies if world is not None else ()
            self._callers = callers(names, settings, serving, self.settings.namespace)
            self._made_of = made_of
        return self._callers

    def _stranger(self, name: str, leaf: str) -> str:
        secret = self.callers.secret(name, self.settings.namespace)
        if not secret or self.leaves.holds(secret, leaf):
            return ""  # who is not known at all is refused for that
        return f"it is not the one in Secret {self.settings.namespace}/{secret}"

    def _stays(self, scheduler: str) -> bool:
        """Whether it may call though no policy names it."""
        return scheduler in self.ever.names or self.told.settings.lists(scheduler)

    def _state(self, caller: str) -> bytes | None:
        return replica_state.encode(self.say()) if caller == OPERATOR else None

    def say(self) -> replica_state.ReplicaState:
        """How it is with this replica; who asks is told of pods that could be placed, and nobody after him."""
        self.add_up()
        now, world = perf_counter_ns(), self.current.state
        taken = self.own.material.state if self.own is not None else None
        said = report(
            ReportInputs(
                process=self._process,
                states=self.policies.states,
                serving=world.policies if world is not None and self.watching.synced else None,
                rule_errors=self.parts.rule_errors,
                open_circuits=self.current.circuit_breaker.open_circuits(now),
                conflicts=world.conflicts if world is not None else {},
                refused=self.waiting.record_rejected(),
                missed=self.waiting.missed,
                refused_connections=self.turned_away.recent(now),
                authorities=taken.trusts if taken is not None else "",
                issuer=taken.issuer if taken is not None else "",
                missing_permissions=self._missing(),
                schedulable_again=self.waiting.schedulable_again,
            )
        )
        self.waiting.schedulable_again = False
        return said

    def _missing(self) -> str:
        """The first right that is found to be."""
        watched = [*self.parts.reflectors.values(), self._known, self._followed]
        of_watches = (one.state.missing_permission for one in watched)
        return next(filter(None, (*of_watches, self.revisions.missing_permission, self.bindings.missing)), "")


async def operate(settings: OperateSettings, lead: Lead | None = None) -> None:
    """Serve until a signal says to stop. Raises SettingsError where the settings cannot be used."""
    sys.setswitchinterval(SWITCH_S)
    told = SettingsFile(settings.settings)
    try:
        told.reload()
    except SettingsError as error:
        raise SettingsError(f"{told.path}: {error}") from None
    async with Client(find_access(settings.kubeconfig, settings.context)) as client:
        await OperatorReplica(settings, client, told, lead).run(told_to_stop())
