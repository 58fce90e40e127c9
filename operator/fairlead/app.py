"""The composition root of `fairlead serve`: what there is, and who is told of what."""

import asyncio
import gc
import logging
import signal
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack
from time import perf_counter_ns
from typing import Final

from fairlead import __version__
from fairlead.api.v1alpha1 import policy_model
from fairlead.cluster.access import find_access
from fairlead.cluster.client import Client
from fairlead.cluster.mirror import Mirror
from fairlead.cluster.policies import Policies
from fairlead.cluster.policy_files import PolicyFiles, Scan
from fairlead.cluster.revisions import Revisions
from fairlead.cluster.watching import Watching
from fairlead.cluster.writes import Bindings, RevisionsOf
from fairlead.metrics import Labels, Metrics
from fairlead.policy.compile import Rules
from fairlead.settings import Settings
from fairlead.strategies.registry import installed
from fairlead.webhook.binding import Binder
from fairlead.webhook.calls import Calls, TimeOfDay
from fairlead.webhook.current import Current
from fairlead.webhook.probes import Check, Probes
from fairlead.webhook.server import WebhookServer
from fairlead.webhook.tls import Tls, TlsError
from fairlead.webhook.world import Caller, Moment

LOG: Final = logging.getLogger(__name__)
Work = Callable[[], Coroutine[None, None, None]]
_FILES_S: Final = 1.0
_CERTIFICATES_S: Final = 10.0
_IDLE_S: Final = 0.05
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
        self.revisions = Revisions(RevisionsOf(client, settings.namespace))
        self.policies = Policies(model, Rules(strategies), good=self.revisions.keep, gone=self.revisions.forget)
        self.current = Current(self.policies, self.mirror, self.watching.serve)
        self.files = PolicyFiles(settings.policies)
        self.scan: Scan | None = None
        self.faults: Mapping[str, str] = {}
        self.certificates = ""
        self.refused = self.metrics.counter(
            "fairlead_webhook_refused_connections", "Callers that were not let in.", "reason"
        )
        calls = Calls(
            Binder(Bindings(client)),
            self.caller,
            lambda: self.current.world if self.watching.synced else None,
            settings.timeout_s,
            self.metrics,
            self.now,
        )
        self.server = WebhookServer(self.tls, calls.routes(), calls.allowed, self.refuse, settings.max_body)
        self.probes = Probes(self.checks, self.metrics.exposition)
        self._measure()

    async def run(self, stop: asyncio.Event) -> None:
        """Until it is told to stop. Raises OSError where it cannot listen, or cannot read the policies."""
        settings = self.settings
        self.take(await asyncio.to_thread(self.files.scan))
        probes = await self.probes.start(settings.probes.host or None, settings.probes.port)
        port = await self.server.start(settings.listen.host or None, settings.listen.port)
        LOG.info("listening", extra={"port": port, "probes": probes, "version": __version__})
        self.policies.kept = await self.revisions.found()
        self.files.recall(good.obj for good in self.policies.kept.values() if not good.uid)
        self.take(await asyncio.to_thread(self.files.scan))
        self.current.wake()
        async with asyncio.TaskGroup() as group:
            works: list[Work] = [
                self.watching.run,
                self.current.run,
                self.revisions.run,
                self._settled,
                self._idle,
                _every(_FILES_S, self._look_for_policies),
                _every(_CERTIFICATES_S, self._look_for_certificates),
            ]
            tasks = [group.create_task(work()) for work in works]
            await stop.wait()
            LOG.info("stopping", extra={"drain": settings.drain_s})
            await self.server.stop(settings.drain_s)
            for task in tasks:
                task.cancel()
        await self.probes.stop()

    def caller(self, name: str) -> Caller | None:
        """Who has a certificate of this name."""
        if name not in self.settings.callers:
            return None
        schedulers = self.settings.callers[name]
        return Caller(schedulers=self.current.schedulers if schedulers is None else schedulers, always_reasons=True)

    def refuse(self, reason: str, peer: str) -> None:
        """Somebody was not let in."""
        self.refused.add(reason)
        LOG.warning("a caller was refused", extra={"reason": reason, "peer": peer})

    def take(self, scan: Scan) -> None:
        """Tell of policies that are others than before."""
        before = {} if self.scan is None else self.scan.policies
        for name in before.keys() - scan.policies.keys():
            self.current.remove(name)
        for name, obj in scan.policies.items():
            if before.get(name) is not obj:
                self.current.put(obj)
        for file in scan.faults.keys() - self.faults.keys():
            LOG.warning("a file of policies cannot be used", extra={"file": file, "why": scan.faults[file]})
        self.scan, self.faults = scan, scan.faults

    def checks(self) -> Iterator[Check]:
        """What /readyz says."""
        yield Check("serving", not self.server.draining, "stopping" if self.server.draining else "")
        for name, one in self.watching.reflectors.items():
            text = one.state.trouble
            if one.state.synced:
                text = f"{len(one.objects)}, heard of {one.staleness():.0f} s ago" + (f"; {text}" if text else "")
            yield Check(name, one.state.synced, text)
        world = self.current.world
        generation = "none yet" if world is None else f"generation {world.policies.generation}"
        yield Check("policies", world is not None, generation)
        for state in self.policies.states.values():
            yield Check("policy", True, str(state))  # noqa: FBT003 - the others are served
        for version, part in self.current.pace.slow(perf_counter_ns()):
            what = "filters" if part == "gate" else "scores"
            yield Check("policy", True, f"{version.name}: TooSlow: its {what} are switched to its failurePolicy")  # noqa: FBT003
        for file, fault in self.faults.items():
            yield Check("file", True, f"{file}: {fault}")  # noqa: FBT003
        if self.revisions.fault:
            yield Check("last good policies", True, f"kept in memory only: {self.revisions.fault}")  # noqa: FBT003
        yield Check("certificates", True, self.certificates or f"expire {min(self.tls.expires.values()):%Y-%m-%d}")  # noqa: FBT003

    async def _settled(self) -> None:
        """Once everything is there, the collector need not walk it again and again."""
        while not (self.watching.synced and self.current.world is not None):
            await asyncio.sleep(_IDLE_S)
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        LOG.info("ready", extra={"nodes": len(self.mirror.nodes.slots)})

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

    async def _look_for_policies(self) -> None:
        try:
            self.take(await asyncio.to_thread(self.files.scan))
        except OSError as error:
            folder = str(self.settings.policies)
            if folder not in self.faults:
                LOG.warning("the policies cannot be read", extra={"folder": folder, "why": error.strerror})
            self.faults = {**self.faults, folder: f"cannot be read: {error.strerror}"}

    async def _look_for_certificates(self) -> None:
        try:
            if self.tls.reload():
                LOG.info("new certificates are used")
        except TlsError as error:
            if self.certificates != str(error):
                LOG.warning("the new certificates cannot be used", extra={"why": str(error)})
            self.certificates = str(error)
        else:
            self.certificates = ""

    def _measure(self) -> None:
        metrics = self.metrics
        reflectors = self.watching.reflectors

        def of_each(number: Callable[[str], float]) -> Callable[[], Mapping[Labels, float]]:
            return lambda: {(name,): number(name) for name in reflectors}

        metrics.gauge("fairlead_build_info", "The version.", "version", ask=lambda: {(__version__,): 1})
        metrics.gauge(
            "fairlead_mirror_objects", "Objects held.", "kind", ask=of_each(lambda name: len(reflectors[name].objects))
        )
        metrics.gauge(
            "fairlead_mirror_staleness_seconds",
            "How long ago what is held was surely what there is.",
            "kind",
            ask=of_each(lambda name: reflectors[name].staleness()),
        )
        metrics.gauge(
            "fairlead_mirror_relists",
            "How often everything was listed.",
            "kind",
            ask=of_each(lambda name: sum(reflectors[name].state.relists.values())),
        )
        metrics.gauge(
            "fairlead_certificate_expiry_seconds",
            "When it expires, in seconds since 1970.",
            "certificate",
            ask=lambda: {(name,): when.timestamp() for name, when in self.tls.expires.items()},
        )
        metrics.gauge(
            "fairlead_policy_set_info",
            "The policy set that serves.",
            "generation",
            ask=lambda: {} if (world := self.current.world) is None else {(world.policies.generation,): 1},
        )
        metrics.gauge(
            "fairlead_policy_state",
            "How it is with each policy: 1 for the reason that holds.",
            "policy",
            "reason",
            ask=lambda: {(one.name, one.reason): 1 for one in self.policies.states.values()},
        )


def _every(seconds: float, work: Work) -> Work:
    async def again() -> None:
        while True:
            await asyncio.sleep(seconds)
            await work()

    return again


async def serve(settings: Settings) -> None:
    """Serve until a signal says to stop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(find_access(settings.kubeconfig, settings.context)))
        await App(settings, client).run(stop)
