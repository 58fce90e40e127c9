"""A serving process: its components, and the order in which they start, run and stop.

`fairlead serve` and `fairlead operate` differ in the sources of policies, certificates and callers, which are passed in
as components.
"""

import asyncio
import gc
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, Final, Protocol

from fairlead import __version__
from fairlead.api.field_docs import read_field_docs
from fairlead.api.params import Params
from fairlead.kube.errors import ClusterError
from fairlead.kube.watch.reflector import Reflector
from fairlead.logs import FaultError, RateLimiter
from fairlead.pki.identities import OPERATOR
from fairlead.process.gc_tuning import (
    collect_in_small_steps,
    give_back,
    keep_heap,
    tidy_up,
    tidy_up_all,
    tune_connections,
)
from fairlead.process.health import Components, Probes, checks, gauges
from fairlead.process.serving_core import ServingCore
from fairlead.process.tasks import (
    Work,
    do_nothing,
    done_before,
    endless_strategies_interrupted,
    every,
    listen,
    raise_descriptor_limit,
)
from fairlead.webhook.capability import Capability
from fairlead.webhook.extender.call import CallClock, Caller, Verb
from fairlead.webhook.extender.rejected_pods import RejectedPods
from fairlead.webhook.extender.state import ServingState
from fairlead.webhook.https.dispatch import Dispatcher
from fairlead.webhook.https.pages import pages_for
from fairlead.webhook.https.server import IdentityCheck, RenderPage, WebhookServer
from fairlead.webhook.https.tls import Tls
from fairlead.webhook.readers.decisions_server import DecisionsServer

LOG: Final = logging.getLogger(__name__)
_CERTIFICATES_S: Final = 10.0
_RULE_ERRORS_S: Final = 5.0
_IDLE_S: Final = 0.05
_COLLECT_S: Final = 5.0
_COLLECT_ALL_S: Final = 6 * 3600.0
_COLLECT_MAX: Final = 5_000
_MANY_CHANGES: Final = 50
"""Policies that were compiled or deleted before memory is given back."""
_IDLE_NS: Final = 2_000_000


@dataclass(frozen=True, slots=True)
class Runnable:
    """Component with its own life cycle."""

    run: Work = do_nothing
    """Runs while calls are answered, and is cancelled at the end."""
    begin: Work = do_nothing
    """Completes before the first call is answered."""
    stop: Work = do_nothing
    """Runs during the drain."""


class CallerSource(Protocol):
    """Source of the allowed callers."""

    def caller(self, name: str, verb: Verb) -> Caller | None:
        """Return the caller with this certificate name; None if it may not call that verb."""

    @property
    def identity_error(self) -> IdentityCheck | None:
        """Check that a certificate belongs to its name, if its authority signs for others, too; else None."""


class CertificateSource(Protocol):
    """Source of the server's certificate and of its callers' authorities."""

    @property
    def tls(self) -> Tls:
        """TLS settings of the server."""

    async def refresh(self) -> str:
        """Load the current certificates; return why they cannot be used, or ""."""


class PolicySource(Protocol):
    """Source of policies, which feeds the reloader."""

    @property
    def faults(self) -> Mapping[str, str]:
        """Errors in policy files, by file."""

    async def begin(self) -> None:
        """Read the existing policies, before the first call is answered."""

    async def run(self) -> None:
        """Watch the policies."""


class Replica:
    """A serving process."""

    def __init__(
        self,
        core: ServingCore,
        callers: CallerSource,
        certificates: CertificateSource,
        policies: PolicySource,
        others: Sequence[Runnable] = (),
        *,
        background: Mapping[str, Reflector[Any]] | None = None,
        pages: Mapping[str, RenderPage] | None = None,
        rejected: RejectedPods | None = None,
        faults: Callable[[], Mapping[str, str]] | None = None,
    ) -> None:
        """`background`: reflectors beside those of the mirror; `rejected`: pods for which every node was rejected."""
        self.core, self.certificates, self.policies, self.rejected = core, certificates, policies, rejected
        self.others = [Runnable(policies.run, policies.begin), *others]
        self.port = self.probes_port = 0
        settings = core.settings
        if rejected is not None:
            core.listeners.add(rejected.record)
        calls = Dispatcher(
            core.binder,
            callers.caller,
            core.state,
            settings.timeout_s,
            core.metrics,
            core.now,
            core.listeners,
            prioritize_ahead=settings.prioritize_ahead,
        )
        self.server = WebhookServer(
            certificates.tls,
            calls.routes(),
            calls.authorize,
            core.refusals.add,
            settings.max_body,
            max(1.0, settings.timeout_s),
            pages=pages or {},
            identity_error=callers.identity_error,
        )
        self.parts = Components(
            server=self.server,
            mirror_feed=core.mirror_feed,
            policies=core.policies,
            reloader=core.reloader,
            last_good=core.last_good,
            tls=certificates.tls,
            rule_errors=core.rule_errors,
            faults=faults or (lambda: policies.faults),
            capabilities=core.capabilities,
            background=background or {},
        )
        self.decisions = None if core.decisions is None else DecisionsServer(core.decisions.parts, core.refusals.add)
        self.probes = Probes(lambda: checks(self.parts), core.metrics.exposition, core.refusals.add)

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set. Raises OSError if it cannot listen, or cannot read its files."""
        tune_connections()
        core, server = self.core, self.server
        settings = core.settings
        core.metrics.add(*gauges(self.parts))
        for capability in core.capabilities:
            below = {path: pages_for(OPERATOR, find) for path, find in capability.pages.items()}
            server.pages = {**server.pages, **below}
        raise_descriptor_limit()
        async with AsyncExitStack() as stack:
            if core.strategies.custom:
                stack.enter_context(endless_strategies_interrupted(core.strategies.guard))
            self.probes_port = await listen(self.probes.start, settings.probes)
            stack.push_async_callback(self.probes.stop)
            if not await done_before(stop, self._begin()):
                return
            if self.decisions is not None and settings.decisions is not None:
                await listen(self.decisions.start, settings.decisions)
                stack.push_async_callback(self.decisions.stop)
            self.port = await listen(server.start, settings.listen)
            extra = {"port": self.port, "probes": self.probes_port, "version": __version__}
            LOG.info("server.listening", extra=extra)
            async with asyncio.TaskGroup() as group:
                works: list[Work] = [
                    core.mirror_feed.run,
                    core.last_good.run,
                    self._tune_collector,
                    self._precompute,
                    every(_CERTIFICATES_S, self.refresh_certificates),
                    every(_RULE_ERRORS_S, self._add_rule_errors),
                    *(one.run for one in self.running_parts),
                ]
                if settings.verify_s:
                    works.append(every(settings.verify_s, self.verify))
                tasks = [group.create_task(work()) for work in works]
                await stop.wait()
                LOG.info("server.stopping", extra={"drain_s": settings.drain_s})
                stops = (one.stop() for one in self.running_parts)
                await asyncio.gather(server.stop(settings.drain_s), *stops)
                for task in tasks:
                    task.cancel()

    @property
    def running_parts(self) -> Sequence[Capability | Runnable]:
        """Capabilities, and the components that this kind of process has beside them."""
        return (*self.core.capabilities, *self.others)

    async def refresh_certificates(self) -> None:
        """Load the current certificates, and close connections of callers whose certificates expired."""
        self.server.end_expired()
        self.parts.certificates = await self.certificates.refresh()

    async def verify(self) -> None:
        """Compare the caches with the API server; count the differences, and list those kinds again."""
        for one in self.parts.all_reflectors.values():
            try:
                await one.check()
            except ClusterError as error:
                LOG.info("mirror.verify_failed", extra={"error": str(error)})

    async def _begin(self) -> None:
        await asyncio.to_thread(read_field_docs, Params)  # errors repeat them, and a call waits for no file
        for one in self.running_parts:
            await one.begin()

    async def _add_rule_errors(self) -> None:
        self.core.add_rule_errors()

    async def _tune_collector(self) -> None:
        """Keep the garbage collector from walking long-lived objects, which takes a third of a second."""
        core = self.core
        keep_heap()
        gc.set_threshold(50_000, 20, 20)
        seen = -1
        while core.state() is None:
            await asyncio.sleep(_IDLE_S)
            if seen != core.mirror_feed.object_count:  # still being listed
                seen = core.mirror_feed.object_count
                gc.freeze()
        LOG.info("server.ready", extra={"nodes": len(core.mirror.nodes.slots)})
        gc.collect()
        gc.freeze()
        collect_in_small_steps()
        policies, changes = core.policies, core.policies.changes
        while True:
            for _ in range(round(_COLLECT_ALL_S / _COLLECT_S)):
                await asyncio.sleep(_COLLECT_S)
                tidy_up(_COLLECT_MAX)
                if policies.changes - changes >= _MANY_CHANGES and not policies.waits:
                    changes = policies.changes
                    give_back()
            tidy_up_all()

    async def _precompute(self) -> None:
        """Use idle time to precompute verdicts of the next call, and to recheck rejected pods."""
        core, idle, rate_limiter = self.core, IdleTime(self.rejected), RateLimiter()
        while True:
            await asyncio.sleep(_IDLE_S)
            now = core.now()  # first: a clock that went back makes a new state
            serving = core.state()
            if serving is None:
                continue
            when = CallClock(now, perf_counter_ns, perf_counter_ns() + _IDLE_NS)
            try:
                idle.use(serving, when)
            except Exception as error:  # the call that fails gets an error; the others must still be answered
                if (more := rate_limiter.allow("idle")) is not None:
                    LOG.exception("precompute.fault", exc_info=FaultError(error), extra=more)


@dataclass(slots=True, eq=False)
class IdleTime:
    """Use of idle time: verdicts of the next call are precomputed, and rejected pods rechecked.

    Under load there is always more to precompute, and rejected pods must be woken nevertheless.
    """

    rejected: RejectedPods | None
    _done: tuple[ServingState, tuple[int, int]] | None = None
    """State for which everything is precomputed, with its progress."""

    def use(self, serving: ServingState, when: CallClock) -> None:
        """Precompute unless that is done, then recheck rejected pods. After an error, nothing is tried again."""
        asked = serving, serving.progress
        is_done, self._done = self._done == asked, asked
        done = is_done or serving.precompute(when)
        if self.rejected is not None:
            self.rejected.recheck(serving, when if done else when._replace(deadline_ns=when.clock() + _IDLE_NS))
        if not done:
            self._done = None
