"""The composition root of `fairlead serve`: what there is, and who is told of what."""

import asyncio
import gc
import logging
import signal
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from time import perf_counter_ns
from typing import Any, Final

from fairlead import __version__
from fairlead.allocator import keep_heap
from fairlead.api.names import DEFAULT_SCHEDULER_NAME
from fairlead.api.v1alpha1 import policy_model
from fairlead.cluster.access import find_access
from fairlead.cluster.client import Client
from fairlead.cluster.errors import ClusterError
from fairlead.cluster.mirror import Mirror
from fairlead.cluster.policies import Policies
from fairlead.cluster.policy_files import PolicyFiles, Scan
from fairlead.cluster.revisions import Revisions
from fairlead.cluster.watching import Watching
from fairlead.cluster.writes import Bindings, RevisionsOf
from fairlead.logs import Seldom
from fairlead.metrics import Metrics
from fairlead.policy.compile import Rules
from fairlead.settings import Address, Settings
from fairlead.strategies.registry import installed
from fairlead.telling import Parts, checks, measure
from fairlead.webhook.binding import Binder
from fairlead.webhook.calls import Calls, TimeOfDay
from fairlead.webhook.current import Current
from fairlead.webhook.probes import Probes
from fairlead.webhook.server import WebhookServer
from fairlead.webhook.tls import Tls, TlsError
from fairlead.webhook.undecided import Undecided
from fairlead.webhook.world import Caller, Moment, Verb

LOG: Final = logging.getLogger(__name__)
Work = Callable[[], Coroutine[None, None, None]]
_FILES_S: Final = 1.0
_CERTIFICATES_S: Final = 10.0
_UNDECIDED_S: Final = 5.0
_AGAIN_S: Final = 1.0
_IDLE_S: Final = 0.05
_COLLECT_S: Final = 60.0
_IDLE_NS: Final = 2_000_000


class App:
    """One process."""

    def __init__(self, settings: Settings, client: Client) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.now = TimeOfDay()
        strategies = {one.name: one for one in installed()}
        model = policy_model(
            {name: one.params for name, one in strategies.items() if one.filter},
            {name: one.params for name, one in strategies.items() if one.score},
        )
        self.tls = Tls(settings.tls)
        self.mirror = Mirror(self.now)
        self.watching = Watching(client, self.mirror)
        self.revisions = Revisions(RevisionsOf(client, settings.namespace), "files")
        self.policies = Policies(model, Rules(strategies), good=self.revisions.keep, gone=self.revisions.forget)
        self.current = Current(self.policies, self.mirror, self.watching.serve)
        self.files = PolicyFiles(settings.policies)
        self.scan = Scan({}, {})
        self.lost: Mapping[str, Any] = {}
        self.port = self.probes_port = 0
        self.refused = self.metrics.counter(
            "fairlead_webhook_turned_away", "Connections and calls that were turned away.", "reason"
        )
        errors = self.metrics.counter(
            "fairlead_rule_errors", "How often a rule could not decide about a node or a pod.", "policy", "rule"
        )
        self.seldom = Seldom()
        calls = Calls(
            Binder(Bindings(client)),
            self.caller,
            lambda: self.current.world if self.watching.synced else None,
            settings.timeout_s,
            self.metrics,
            self.now,
        )
        self.parts = Parts(
            server=WebhookServer(
                self.tls, calls.routes(), calls.allowed, self.refuse, settings.max_body, max(1.0, settings.timeout_s)
            ),
            watching=self.watching,
            policies=self.policies,
            current=self.current,
            revisions=self.revisions,
            tls=self.tls,
            undecided=Undecided(lambda policy, rule, count: errors.add(policy, rule, amount=count)),
        )
        measure(self.parts, self.metrics)
        self.probes = Probes(lambda: checks(self.parts), self.metrics.exposition)

    async def run(self, stop: asyncio.Event) -> None:
        """Until it is told to stop. Raises OSError where it cannot listen, or cannot read the policies."""
        settings, server = self.settings, self.parts.server
        self.take(await asyncio.to_thread(self.files.scan))
        self.policies.warm()
        async with AsyncExitStack() as stack:
            self.probes_port = await _listen(self.probes.start, settings.probes)
            stack.push_async_callback(self.probes.stop)
            self.port = await _listen(server.start, settings.listen)
            extra = {"port": self.port, "probes": self.probes_port, "version": __version__}
            LOG.info("listening", extra=extra)
            async with asyncio.TaskGroup() as group:
                works: list[Work] = [
                    self.watching.run,
                    self._serve_policies,
                    self.revisions.run,
                    self._settled,
                    self._idle,
                    _every(_FILES_S, self.look_for_policies),
                    _every(_CERTIFICATES_S, self.look_for_certificates),
                    _every(_UNDECIDED_S, self.look_for_undecided),
                ]
                if settings.verify_s:
                    works.append(_every(settings.verify_s, self.verify))
                tasks = [group.create_task(work()) for work in works]
                await stop.wait()
                LOG.info("stopping", extra={"drain": settings.drain_s})
                await server.stop(settings.drain_s)
                for task in tasks:
                    task.cancel()

    def caller(self, name: str, verb: Verb) -> Caller | None:
        """Who has a certificate of this name; None if nothing of that is for him."""
        if name not in self.settings.callers:
            return None
        allowed = self.settings.callers[name]
        if allowed is None:
            # Also without a policy: pods of a scheduler that is wired to us must be bound when its last policy went.
            schedulers = self.current.schedulers | {DEFAULT_SCHEDULER_NAME}
        else:
            schedulers = frozenset(one for one, verbs in allowed.items() if verb in verbs)
        return Caller(schedulers=schedulers, always_reasons=True) if schedulers else None

    def refuse(self, reason: str, peer: str) -> None:
        """Somebody, or what he asked, was turned away."""
        self.refused.add(reason)
        if (more := self.seldom.about(reason)) is not None:
            LOG.warning("a caller was turned away", extra={"reason": reason, "peer": peer, **more})

    def take(self, scan: Scan) -> None:
        """Tell of policies that are others than before."""
        before, known, faults = self.scan.policies, self.parts.faults, scan.faults
        for name in before.keys() - scan.policies.keys():
            self.current.remove(name)
        for name, obj in scan.policies.items():
            if before.get(name) is not obj:
                self.current.put(obj)
        for file, fault in faults.items():
            if known.get(file) != fault:
                LOG.warning("a file of policies cannot be used", extra={"file": file, "why": fault})
        for file in known.keys() - faults.keys():
            LOG.info("a file of policies can be used again", extra={"file": file})
        self.scan, self.parts.faults = scan, faults

    async def look_for_policies(self) -> None:
        """Read the folder again."""
        try:
            scan = await asyncio.to_thread(self.files.scan)
        except OSError as error:
            folder, fault = str(self.settings.policies), f"cannot be read: {error.strerror}"
            scan = Scan(self.scan.policies, {**self.scan.faults, folder: fault})
        self.take(self._with_lost(scan))

    async def look_for_certificates(self) -> None:
        """Use those that are in the files."""
        try:
            if self.tls.reload():
                LOG.info("new certificates are used")
            fault = ""
        except TlsError as error:
            fault = str(error)
            if self.parts.certificates != fault:
                LOG.warning("the new certificates cannot be used", extra={"why": fault})
        self.parts.certificates = fault

    async def look_for_undecided(self) -> None:
        """Add up what rules could not decide."""
        serving = {name: state.serving for name, state in self.policies.states.items()}
        self.parts.undecided.take(self.current.tally.drain(), serving)

    async def _serve_policies(self) -> None:
        """Those that were kept have to be known before one is met that does not compile."""
        while (kept := await self.revisions.found()) is None:
            await asyncio.sleep(_AGAIN_S)
        self.policies.kept = kept
        elsewhere = {name: one.obj for (name, _), one in kept.items() if name not in self.scan.policies}
        if not self.scan.faults:  # they went while nobody was there
            for name in elsewhere:
                self.revisions.forget(name)
        elif elsewhere:  # nobody knows what those files held
            self.lost = elsewhere
            LOG.warning("policies that were kept serve", extra={"policies": sorted(elsewhere)})
        self.take(self._with_lost(self.scan))
        self.current.wake()
        await self.current.run()

    def _with_lost(self, scan: Scan) -> Scan:
        """With what serves in place of files that could never be used; until all can be."""
        if not scan.faults:
            self.lost = {}
        return Scan({**self.lost, **scan.policies}, scan.faults)

    async def _settled(self) -> None:
        """Keep the collector from walking what is there to stay: all of it takes a third of a second."""
        keep_heap()
        gc.set_threshold(50_000, 20, 20)
        seen = -1
        while not (self.watching.synced and self.current.world is not None):
            await asyncio.sleep(_IDLE_S)
            if seen != self.watching.held:  # still being listed
                seen = self.watching.held
                gc.freeze()
        LOG.info("ready", extra={"nodes": len(self.mirror.nodes.slots)})
        while True:
            gc.collect()  # of what came since the last time
            gc.freeze()
            await asyncio.sleep(_COLLECT_S)

    async def verify(self) -> None:
        """Count what is held otherwise than it is, and list that again."""
        for one in self.watching.reflectors.values():
            try:
                await one.check()
            except ClusterError as error:
                LOG.info("what is held cannot be compared with what there is", extra={"why": str(error)})

    async def _idle(self) -> None:
        """Compute beforehand what the next call will ask for."""
        seen = None
        while True:
            await asyncio.sleep(_IDLE_S)
            world = self.current.world
            state = (world, self.mirror.nodes.head)
            if world is not None and self.watching.synced and state != seen:
                when = Moment(self.now(), perf_counter_ns, perf_counter_ns() + _IDLE_NS)
                seen = state if world.catch_up(when) else None


def _every(seconds: float, work: Work) -> Work:
    async def again() -> None:
        while True:
            await asyncio.sleep(seconds)
            await work()

    return again


async def _listen(start: Callable[[str | None, int], Awaitable[int]], address: Address) -> int:
    try:
        return await start(address.host or None, address.port)
    except OSError as error:
        why = error.strerror or str(error)
        raise OSError(error.errno, f"cannot listen on {address}: {why}") from error


async def serve(settings: Settings) -> None:
    """Serve until a signal says to stop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with Client(find_access(settings.kubeconfig, settings.context)) as client:
        await App(settings, client).run(stop)
