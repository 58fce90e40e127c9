"""Composition root of `fairlead operate`, the same in every replica of the operator.

Policies come from the API server and certificates from our own authority; callers are the existing schedulers. The
leader does more, in its own threads: `leadership` composes that from what this process has.
"""

import asyncio
import ssl
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from time import perf_counter_ns, thread_time
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from fairlead import replica_state
from fairlead.api.names import DEFAULT_SCHEDULER_NAME
from fairlead.control.certificates.provided_certificates import ProvidedCertificates
from fairlead.control.reconcile.managed_schedulers import ManagedSchedulersSink, watch_managed_schedulers
from fairlead.kube.access.login import log_in
from fairlead.kube.http.client import Client
from fairlead.kube.watch.secrets import Secrets
from fairlead.logs import RateLimiter
from fairlead.pki.identities import OPERATOR
from fairlead.policy.compile.compiler import CompileOptions
from fairlead.process.peer_certificates import PeerCertificates
from fairlead.process.replica import Replica, Runnable
from fairlead.process.replica_certificates import (
    CertificateFiles,
    CertificateRefresher,
    OperatorContexts,
    write_previous,
)
from fairlead.process.serving_core import ServingCore
from fairlead.process.settings import OperateSettings
from fairlead.process.settings_file import SETTINGS_S, SettingsFile, SettingsReloader, load_settings
from fairlead.process.tasks import LeaderCandidate, LeaderTasks, do_nothing, every, listen, told_to_stop
from fairlead.webhook.admission.admission_server import AdmissionServer
from fairlead.webhook.admission.received import ReceivedReviews
from fairlead.webhook.admission.review import review_steps
from fairlead.webhook.extender.call import Caller, Verb
from fairlead.webhook.extender.callers import Callers, callers, expected
from fairlead.webhook.extender.rejected_pods import RejectedPods
from fairlead.webhook.https.server import IdentityCheck
from fairlead.webhook.https.tls import Tls, TlsError
from fairlead.webhook.readers.delegated_access import DelegatedAccess
from fairlead.webhook.readers.metrics_server import PATH as METRICS
from fairlead.webhook.readers.metrics_server import MetricsServer
from fairlead.webhook.serving.policy_watch import WatchedPolicies
from fairlead.webhook.serving.replica_report import ReportInputs, report
from fairlead.webhook.serving.step_aside import StepAside

if TYPE_CHECKING:
    from fairlead.kube.watch.reflector import Reflector

SWITCH_S: Final = 0.0005
"""Switch interval of threads: reconciling must not delay serving."""
_REMEMBER_S: Final = 10.0
_ASIDE_S: Final = 1.0


Lead = Callable[["OperatorReplica"], LeaderCandidate]


class SchedulerCallers:
    """Callers of a replica: the schedulers of the settings and the policies, and managed ones that may still run."""

    def __init__(
        self, core: ServingCore, file: SettingsFile, managed: ManagedSchedulersSink, peers: PeerCertificates | None
    ) -> None:
        """`peers`: certificates in the schedulers' Secrets; None if the operator issues them."""
        self._core, self._file, self._managed, self._peers = core, file, managed, peers
        self._namespace = core.settings.namespace
        self._known = Callers(self._schedulers)
        self._callers: tuple[Caller, ...] = ()
        self._made_of: tuple[object, ...] = ()

    def caller(self, name: str, verb: Verb) -> Caller | None:
        """Return the caller with this certificate name: a scheduler, or the operator itself."""
        return self._known(name, verb)

    @property
    def identity_error(self) -> IdentityCheck | None:
        """Check that callers show the certificate in their Secret, because a provided authority may sign for others."""
        return self._why_strange if self._peers is not None else None

    def stays(self, scheduler: str) -> bool:
        """Return whether a scheduler may call although no policy names it."""
        return scheduler in self._managed.names or self._file.settings.lists(scheduler)

    def _schedulers(self) -> Iterable[Caller]:
        """Return the callers, cached until their inputs change."""
        state, settings, known = self._core.reloader.state, self._file.settings, self._managed.names
        made_of = (state, settings, known)
        if len(self._made_of) != len(made_of) or any(a is not b for a, b in zip(made_of, self._made_of, strict=True)):
            names = expected(settings, known, {*self._core.reloader.schedulers, DEFAULT_SCHEDULER_NAME})
            serving = state.policies.policies if state is not None else ()
            self._callers = callers(names, settings, serving, self._namespace)
            self._made_of = made_of
        return self._callers

    def _why_strange(self, name: str, leaf: str) -> str:
        secret = self._known.secret(name, self._namespace)
        if not secret or self._peers is None or self._peers.holds(secret, leaf):
            return ""  # an unknown caller is refused for that reason
        return f"it is not the certificate in Secret {self._namespace}/{secret}"


class OperatorReplica:
    """Components of `fairlead operate`."""

    def __init__(self, settings: OperateSettings, client: Client, file: SettingsFile, lead: Lead | None = None) -> None:
        self.settings, self.file = settings, file
        self.core = core = ServingCore(settings, client, "cluster")
        core.policies.set_compile_options(self._compile_options())
        core.use_settings(file.settings)
        self.own = CertificateRefresher(settings, client) if settings.tls is None else None
        certificates = self.own or CertificateFiles(Tls(settings.tls))  # type: ignore[arg-type]
        self._secrets = Secrets(client, settings.namespace)
        self.peers = PeerCertificates(lambda: datetime.now(UTC))
        self.secrets: Reflector[Any] = self.own.follow() if self.own else self._secrets.follow_shown(self.peers)
        managed = ManagedSchedulersSink()
        self._managed = watch_managed_schedulers(client, settings.namespace, managed)
        callers = SchedulerCallers(core, file, managed, None if self.own else self.peers)
        core.reloader.stays = callers.stays
        policies = WatchedPolicies(client, core.reloader, core.last_good)
        self.rejected = core.affinity_watch.rejected = RejectedPods()
        self._rate_limiter = RateLimiter()
        self.received = ReceivedReviews()
        self.admission = AdmissionServer(
            certificates.tls,
            lambda body: review_steps(
                body, core.strategies.model, core.policies.options, core.policies.serving.policies, self.received
            ),
            core.refusals.add,
            lambda: file.settings.admission.client_ca,
            observe=core.metrics.histogram(
                "fairlead_admission_request_duration_seconds",
                "Time that a review of a policy took, by the result: allowed, denied or failed.",
                "result",
            ).observe,
        )
        self.admission_port = self.metrics_port = 0
        self.settings_reloader = SettingsReloader(file, self._settings_changed)
        self._process = uuid4().hex
        self.replica = Replica(
            core,
            callers,
            certificates,
            policies,
            [
                Runnable(self._managed.run),
                Runnable(self.secrets.run, begin=self.own.begin if self.own else do_nothing),
                Runnable(every(SETTINGS_S, self.settings_reloader.reload)),
                Runnable(every(_ASIDE_S, self._check_aside)),
                Runnable(begin=self._open_ports, stop=self._close_ports),
            ],
            background={"policy objects": policies.objects} | ({} if self.own else {"certificates": self.secrets}),
            pages={
                replica_state.PATH: self._state,
                replica_state.ASIDE_PATH: self._state,
                replica_state.METRICS_PATH: self._metrics_page,
            },
            rejected=self.rejected,
            faults=lambda: self.settings_reloader.faults,
        )
        probes, access = self.replica.probes, DelegatedAccess(client, METRICS)
        self.metrics = MetricsServer(certificates.tls, probes.metrics_page, access.decide, core.refusals.add)
        if settings.metrics is not None:
            probes.metrics_elsewhere = f"at port {settings.metrics.port}, with TLS, for tokens that may get {METRICS}"
            self.replica.parts.remarks = lambda: [("metrics", access.missing)] if access.missing else []
        self.aside = StepAside(self._lacking, self._set_aside)
        if lead is not None:
            self._add_candidate(lead(self))

    def _add_candidate(self, candidate: LeaderCandidate) -> None:
        """Start the candidate with the replica, and stop it during the drain, so that another one can lead at once."""

        async def start() -> None:
            candidate.start()
            while True:
                await asyncio.sleep(_REMEMBER_S)
                if candidate.is_leader:
                    for capability in self.core.capabilities:
                        await capability.tend()
                    if self.own is None and self.secrets.state.synced:
                        await write_previous(self.core.client, self.settings.namespace, self.peers, self._rate_limiter)

        groups = self.core.groups
        # Other replicas pass calls on by the Lease, so one that has it holds them, whichever operator manages policies.
        holding = LeaderTasks([groups], lambda: candidate.has_lease)
        leading = LeaderTasks([one for one in self.core.capabilities if one is not groups], lambda: candidate.is_leader)

        async def stop() -> None:
            await asyncio.gather(holding.stop(), leading.stop())  # while it leads: it writes what it still has to
            await asyncio.to_thread(candidate.stop, max(1.0, self.settings.drain_s))

        host = f"{self.settings.service}.{self.settings.namespace}.svc"
        provided = ProvidedCertificates(self._secrets, host, lambda: datetime.now(UTC))
        contexts = OperatorContexts(self.own, provided)
        groups.pass_on(lambda: candidate.other_leader, contexts.context, host)
        self.replica.parts.leader = candidate.summary
        self.replica.others += [Runnable(start, stop=stop), Runnable(holding.run), Runnable(leading.run)]

    async def _open_ports(self) -> None:
        if self.settings.admission is not None:
            self.admission_port = await listen(self.admission.start, self.settings.admission)
        if self.settings.metrics is not None:
            self.metrics_port = await listen(self.metrics.start, self.settings.metrics)

    async def _close_ports(self) -> None:
        await self.admission.stop()
        await asyncio.sleep(self.settings.drain_s if self.settings.metrics else 0)  # the drain is to be seen
        await self.metrics.stop()

    def _settings_changed(self) -> None:
        policies = self.core.policies
        self.core.use_settings(self.file.settings)
        if self._compile_options() != policies.options:
            policies.set_compile_options(self._compile_options())

    def operator_context(self) -> ssl.SSLContext:
        """Return the TLS context with which the operator calls its replicas. Thread-safe. Raises TlsError."""
        if self.own is None:
            raise TlsError("with provided certificates there is no certificate of the operator's own authority")
        return self.own.client()

    def _compile_options(self) -> CompileOptions:
        prefixes, strategies = self.file.settings.annotation_prefixes, self.core.strategies
        servers = {one.name: one.max_entries for one in self.file.settings.prometheus}
        return CompileOptions(strategies.built_in, prefixes, strategies.custom, servers, clock=thread_time)

    def _state(self, caller: str, path: str) -> bytes | None:
        if caller != OPERATOR:
            return None
        (self.aside.ask if path == replica_state.ASIDE_PATH else self.aside.end)()
        return replica_state.encode(self.report())

    def _metrics_page(self, caller: str, _path: str) -> bytes | None:
        return self.replica.probes.exposition() if caller == OPERATOR else None

    async def _check_aside(self) -> None:
        self.aside.check()

    def _lacking(self) -> Iterator[str]:
        for capability in self.core.capabilities:
            yield from capability.lacking()

    def _set_aside(self, why: str) -> None:
        self.replica.server.aside = why

    def report(self) -> replica_state.ReplicaState:
        """Return the state of this replica. That pods are schedulable again is reported only once."""
        core = self.core
        core.add_rule_errors()
        now, state = perf_counter_ns(), core.reloader.state
        trust = self.own.material.state if self.own is not None else None
        made = report(
            ReportInputs(
                process=self._process,
                states=core.policies.states,
                serving=state.policies if state is not None and core.mirror_feed.synced else None,
                rule_errors=core.rule_errors,
                open_circuits=core.reloader.circuit_breaker.open_circuits(now),
                conflicts=state.conflicts if state is not None else {},
                refused=self.rejected.rejected_alone(),
                missed=self.rejected.missed,
                refused_connections=core.refusals.recent(),
                authorities=trust.trusts if trust is not None else "",
                issuer=trust.issuer if trust is not None else "",
                missing_permissions=self._missing_permission(),
                has_rejected_pods=self.rejected.has_pods,
                schedulable_again=self.rejected.schedulable_again,
                reviewed=self.received.generation,
                reviews=self.settings.admission is not None,
            )
        )
        self.rejected.schedulable_again = False
        for capability in core.capabilities:
            made = capability.report(made)
        return made

    def _missing_permission(self) -> str:
        """Return the first missing permission; "" if there is none."""
        reflectors = [*self.replica.parts.reflectors.values(), self._managed, self.secrets]
        of_watches = (one.state.missing_permission for one in reflectors)
        of_capabilities = (text for one in self.core.capabilities for text in one.missing_permissions())
        return next(filter(None, (*of_watches, self.core.last_good.missing_permission, *of_capabilities)), "")


async def operate(settings: OperateSettings, lead: Lead | None = None) -> None:
    """Serve until a signal. Raises SettingsError if the settings cannot be used."""
    sys.setswitchinterval(SWITCH_S)
    file = load_settings(settings.settings)
    async with Client(log_in(settings.kubeconfig, settings.context)) as client:
        await OperatorReplica(settings, client, file, lead).replica.run(told_to_stop())
