"""What `fairlead serve` and `fairlead operate` have in common: the mirror, the policies that serve, who is answered.

They differ in where policies, certificates and callers come from.
"""

import asyncio
import gc
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from time import perf_counter_ns, thread_time
from typing import Final

from fairlead import __version__
from fairlead.api.v1alpha1 import policy_model
from fairlead.kube.errors import ClusterError
from fairlead.kube.http.client import Client
from fairlead.logs import FaultError, RateLimiter
from fairlead.metrics import PROCESS, Metrics
from fairlead.mirror.mirror import Mirror
from fairlead.policy.compile.compiler import CompileOptions
from fairlead.process.gc_tuning import collect_in_small_steps, keep_heap, tidy_up, tidy_up_all
from fairlead.process.health import Components, Probes, checks, register_gauges
from fairlead.process.settings import ServingSettings
from fairlead.process.tasks import Work, done_before, every, listening, raise_descriptor_limit
from fairlead.strategies.registry import installed
from fairlead.webhook.extender.call import CallClock, Caller, Outcome, Verb
from fairlead.webhook.extender.state import ServingState
from fairlead.webhook.https.bind_client import Binder, BindingClient
from fairlead.webhook.https.dispatch import Dispatcher
from fairlead.webhook.https.server import Page, Stranger, WebhookServer
from fairlead.webhook.https.tls import Tls, TlsError
from fairlead.webhook.https.wall_clock import TimeOfDay
from fairlead.webhook.serving.last_good import LastGoodStore, RevisionClient
from fairlead.webhook.serving.mirror_feed import MirrorFeed
from fairlead.webhook.serving.policy_store import PolicyStore
from fairlead.webhook.serving.reloader import PolicyReloader
from fairlead.webhook.serving.rule_error_totals import RuleErrorTotals

LOG: Final = logging.getLogger(__name__)
AGAIN_S: Final = 1.0
_CERTIFICATES_S: Final = 10.0
_UNDECIDED_S: Final = 5.0
_IDLE_S: Final = 0.05
_COLLECT_S: Final = 60.0
_COLLECT_ALL_S: Final = 6 * 3600.0
_LOOSE: Final = 10_000
_IDLE_NS: Final = 2_000_000


class Replica(ABC):
    """One process."""

    def __init__(self, settings: ServingSettings, client: Client, tls: Tls, source: str) -> None:
        """`source`: where the policies come from, for what is kept of them."""
        self.settings = settings
        self.metrics = Metrics(collectors=PROCESS)
        self.now = TimeOfDay()
        self.strategies: Final = {one.name: one for one in installed()}
        self.model: Final = policy_model(
            {name: one.params for name, one in self.strategies.items() if one.filter},
            {name: one.params for name, one in self.strategies.items() if one.score},
        )
        self.tls = tls
        self.mirror = Mirror(self.now)
        self.watching = MirrorFeed(client, self.mirror)
        self.revisions = LastGoodStore(RevisionClient(client, settings.namespace), source)
        self.policies = PolicyStore(
            self.model,
            CompileOptions(self.strategies, clock=thread_time),
            on_compiled=self.revisions.keep,
            on_removed=self.revisions.forget,
        )
        self.current = PolicyReloader(self.policies, self.mirror, self.watching.set_interest)
        self.now.went_back = self.current.rebuild
        self.port = self.probes_port = 0
        self.api_requests = self.metrics.counter(
            "fairlead_api_requests",
            "Requests to the API server, by the verb and the status of the answer, or unreachable.",
            "verb",
            "code",
        )
        client.on_response = self.api_requests.add
        self.refused = self.metrics.counter(
            "fairlead_webhook_refused", "Connections and calls that were refused, by the reason.", "reason"
        )
        errors = self.metrics.counter(
            "fairlead_rule_errors",
            "Evaluations of a rule that ended with an error; its onError decides then.",
            "policy",
            "rule",
        )
        faults = self.metrics.counter(
            "fairlead_rule_internal_errors",
            "Evaluations of a rule that ended with a fault of Fairlead itself; the log has its traceback once.",
            "policy",
            "rule",
        )
        self.seldom = RateLimiter()
        self.bindings = BindingClient(client)
        calls = Dispatcher(
            Binder(self.bindings),
            self.caller,
            lambda: self.current.state if self.watching.synced else None,
            settings.timeout_s,
            self.metrics,
            self.now,
            self.hears(),
        )
        self.parts = Components(
            server=WebhookServer(
                self.tls,
                calls.routes(),
                calls.authorize,
                self.refuse,
                settings.max_body,
                max(1.0, settings.timeout_s),
                pages=self.pages(),
                stranger=self.stranger(),
            ),
            watching=self.watching,
            policies=self.policies,
            current=self.current,
            revisions=self.revisions,
            tls=self.tls,
            rule_errors=RuleErrorTotals(
                lambda policy, rule, count: errors.add(policy, rule, amount=count),
                lambda policy, rule, count: faults.add(policy, rule, amount=count),
            ),
        )
        self.probes = Probes(lambda: checks(self.parts), self.metrics.exposition, self.refuse)

    @abstractmethod
    def caller(self, name: str, verb: Verb) -> Caller | None:
        """Who has a certificate of this name; None if nothing of that is for him."""

    @abstractmethod
    async def prepare(self) -> None:
        """What has to be there before anybody is answered."""

    @abstractmethod
    def works(self) -> Sequence[Work]:
        """What goes on beside what both do, the serving of policies among it."""

    def pages(self) -> Mapping[str, Page]:
        """What is read on the webhook's port."""
        return {}

    def stranger(self) -> Stranger | None:
        """Who tells whether a certificate is that of its name, where their authority signs for others, too."""
        return None

    def hears(self) -> Callable[[Outcome], None] | None:
        """Who is told what became of each call of filter."""
        return None

    def endings(self) -> Sequence[Work]:
        """What is done while the last calls are answered."""
        return ()

    def idles(self) -> Callable[[ServingState, CallClock], bool] | None:
        """Who else has something to do in idle time."""
        return None

    async def run(self, stop: asyncio.Event) -> None:
        """Until it is told to stop. Raises OSError where it cannot listen, or cannot read what it is told to."""
        settings, server = self.settings, self.parts.server
        register_gauges(self.parts, self.metrics)
        raise_descriptor_limit()
        async with AsyncExitStack() as stack:
            self.probes_port = await listening(self.probes.start, settings.probes)
            stack.push_async_callback(self.probes.stop)
            if not await done_before(stop, self.prepare()):
                return
            self.port = await listening(server.start, settings.listen)
            extra = {"port": self.port, "probes": self.probes_port, "version": __version__}
            LOG.info("server.listening", extra=extra)
            async with asyncio.TaskGroup() as group:
                works: list[Work] = [
                    self.watching.run,
                    self.revisions.run,
                    self._settled,
                    self._idle,
                    every(_CERTIFICATES_S, self.look_for_certificates),
                    every(_UNDECIDED_S, self.look_for_undecided),
                    *self.works(),
                ]
                if settings.verify_s:
                    works.append(every(settings.verify_s, self.verify))
                tasks = [group.create_task(work()) for work in works]
                await stop.wait()
                LOG.info("server.stopping", extra={"drain_s": settings.drain_s})
                await asyncio.gather(server.stop(settings.drain_s), *(one() for one in self.endings()))
                for task in tasks:
                    task.cancel()

    def refuse(self, reason: str, peer: str) -> None:
        """Somebody, or what he asked, was turned away."""
        self.refused.add(reason)
        if (more := self.seldom.about(reason)) is not None:
            LOG.warning("connection.refused", extra={"reason": reason, "peer": peer, **more})

    async def look_for_certificates(self) -> None:
        """Use those that are there now; callers whose own have ended are answered no longer."""
        self.parts.server.end_expired()
        try:
            if self.tls.reload():
                LOG.info("certificates.loaded")
            fault = ""
        except TlsError as error:
            fault = str(error)
            if self.parts.certificates != fault:
                LOG.warning("certificates.unusable", extra={"error": fault})
        self.parts.certificates = fault

    async def look_for_undecided(self) -> None:
        """Add up what rules could not decide."""
        self.add_up()

    def add_up(self) -> None:
        """The same at once."""
        serving = {name: state.serving for name, state in self.policies.states.items()}
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        self.parts.rule_errors.add(self.current.tally.drain(), serving, now)

    async def verify(self) -> None:
        """Count what is held otherwise than it is, and list that again."""
        for one in self.parts.reflectors.values():
            try:
                await one.check()
            except ClusterError as error:
                LOG.info("mirror.verify_failed", extra={"error": str(error)})

    async def _settled(self) -> None:
        """Keep the collector from walking what is there to stay: all of it takes a third of a second."""
        keep_heap()
        gc.set_threshold(50_000, 20, 20)
        seen = -1
        while not (self.watching.synced and self.current.state is not None):
            await asyncio.sleep(_IDLE_S)
            if seen != self.watching.held:  # still being listed
                seen = self.watching.held
                gc.freeze()
        LOG.info("server.ready", extra={"nodes": len(self.mirror.nodes.slots)})
        gc.collect()
        gc.freeze()
        collect_in_small_steps()
        while True:
            for _ in range(round(_COLLECT_ALL_S / _COLLECT_S)):
                await asyncio.sleep(_COLLECT_S)
                tidy_up(_LOOSE)
            tidy_up_all()

    async def _idle(self) -> None:
        """Compute beforehand what the next call will ask for."""
        seen, also = None, self.idles()
        while True:
            await asyncio.sleep(_IDLE_S)
            now = self.now()  # first: where the clock went back, it makes another world
            world = self.current.state
            if world is None or not self.watching.synced:
                continue
            state = (world, self.mirror.nodes.head)
            when = CallClock(now, perf_counter_ns, perf_counter_ns() + _IDLE_NS)
            try:
                if state != seen and not world.precompute(when):
                    continue
                seen = state
                if also is not None:
                    also(world, when)
            except Exception as error:  # a call that meets it is answered with an error; the others are to be, too
                seen = state
                if (more := self.seldom.about("idle")) is not None:
                    LOG.exception("precompute.fault", exc_info=FaultError(error), extra=more)
