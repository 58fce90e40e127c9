"""Health of a process: checks on /readyz and gauges on /metrics."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from fairlead import __version__
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.reflector_gauges import reflector_gauges
from fairlead.metrics import Gauges
from fairlead.webhook.capability import Capability, ReadinessCheck
from fairlead.webhook.extender.circuit_breaker import REASON
from fairlead.webhook.https.connection_limits import IDLE_S, PROBES, ConnectionLimits
from fairlead.webhook.https.http_port import HttpPort
from fairlead.webhook.https.listener import NoteRefused
from fairlead.webhook.https.server import WebhookServer
from fairlead.webhook.https.tls import Tls
from fairlead.webhook.serving.last_good import LastGoodStore
from fairlead.webhook.serving.mirror_feed import MirrorFeed
from fairlead.webhook.serving.policy_store import PolicyStore
from fairlead.webhook.serving.reloader import PolicyReloader
from fairlead.webhook.serving.rule_error_totals import RuleErrorTotals
from fairlead.webhook.serving.serving_gauges import serving_gauges

_HTTP: Final = logging.getLogger(f"{__name__}.http")
FRESH_S: Final = 1.0
"""How long metrics are cached: writing them takes time from schedulers' calls."""
_FAULTS_MAX: Final = 3
READY_S: Final = 0.2
"""How long the page of /readyz is cached: with many policies it is long."""


@dataclass(slots=True, eq=False)
class Probes:
    """Server of /livez and /readyz, and of /metrics unless that has a port of its own."""

    checks: Callable[[], Iterable[ReadinessCheck]]
    metrics: Callable[[], bytes]
    refused: NoteRefused = lambda _reason, _peer: None
    limits: ConnectionLimits = PROBES
    idle_s: float = IDLE_S
    clock: Callable[[], float] = monotonic
    metrics_elsewhere: str = ""
    """Where /metrics is instead; "" if it is here."""
    _page: tuple[float, bytes] | None = None
    _ready: tuple[float, bool, bytes] | None = None
    _port: HttpPort | None = None

    async def start(self, host: str | None, port: int) -> int:
        """Listen; return the port."""
        self._port = HttpPort(
            name="probes",
            handle=self._handle,
            refused=self.refused,
            limits=self.limits,
            logger=_HTTP,
            idle_s=self.idle_s,
        )
        return await self._port.start(host, port)

    async def stop(self) -> None:
        """Close all connections."""
        if self._port is not None:
            await self._port.stop()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        page = {"/livez": self._livez, "/readyz": self._readyz, "/metrics": self._metrics}.get(request.path)
        if page is None:
            return web.Response(status=404, text="not found: only /livez, /readyz and /metrics exist\n")
        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405, text="method not allowed: use GET\n", headers={"Allow": "GET, HEAD"})
        return page()

    def _livez(self) -> web.Response:
        return web.Response(text="ok\n")

    def _readyz(self) -> web.Response:
        now = self.clock()
        if self._ready is None or now - self._ready[0] >= READY_S:
            checks = list(self.checks())
            ready = all(check.ok for check in checks)
            text = "".join(f"{check}\n" for check in checks) + ("ready\n" if ready else "not ready\n")
            self._ready = now, ready, text.encode()
        _, ready, page = self._ready
        return web.Response(body=page, content_type="text/plain", charset="utf-8", status=200 if ready else 503)

    def _metrics(self) -> web.Response:
        if self.metrics_elsewhere:
            return web.Response(status=404, text=f"not found: metrics are {self.metrics_elsewhere}\n")
        return self.metrics_page()

    def metrics_page(self) -> web.Response:
        """Return the metrics, also for the port that they have of their own."""
        return web.Response(body=self.exposition(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    def exposition(self) -> bytes:
        """Return the metrics as text, cached for a moment."""
        now = self.clock()
        if self._page is None or now - self._page[0] >= FRESH_S:
            self._page = now, self.metrics()
        return self._page[1]


@dataclass(slots=True, eq=False, kw_only=True)
class Components:
    """Components that contribute to /readyz and to the gauges."""

    server: WebhookServer
    mirror_feed: MirrorFeed
    policies: PolicyStore
    reloader: PolicyReloader
    last_good: LastGoodStore
    tls: Tls
    rule_errors: RuleErrorTotals
    faults: Callable[[], Mapping[str, str]]
    """Returns the errors in files of policies or settings, by file name."""
    capabilities: Sequence[Capability]
    certificates: str = ""
    """Why the current certificates cannot be used; empty if they can."""
    leader: Callable[[], str] | None = None
    """Returns who leads, and what keeps this replica from leading."""
    remarks: Callable[[], Iterable[tuple[str, str]]] = tuple
    """Returns remarks of this kind of process: a name and a text."""
    background: Mapping[str, Reflector[Any]] = field(default_factory=dict)
    """Reflectors other than those of the mirror and of capabilities."""

    @property
    def reflectors(self) -> Mapping[str, Reflector[Any]]:
        """Reflectors without which no call can be answered, by name."""
        found = {**self.mirror_feed.reflectors, **self.background}
        for capability in self.capabilities:
            found |= capability.reflectors
        return found

    @property
    def on_demand(self) -> Mapping[str, Reflector[Any]]:
        """Reflectors that policies ask for, by name."""
        return {name: one for capability in self.capabilities for name, one in capability.on_demand.items()}

    @property
    def all_reflectors(self) -> Mapping[str, Reflector[Any]]:
        """All reflectors, which have metrics and are verified, by name."""
        return {**self.reflectors, **self.on_demand}


def checks(parts: Components) -> Iterator[ReadinessCheck]:
    """Yield the checks that decide whether calls can be answered, then remarks, which never fail."""
    why_not = "stopping" if parts.server.draining else parts.server.aside
    yield ReadinessCheck("serving", ok=not why_not, text=why_not)
    for name, one in parts.reflectors.items():
        yield ReadinessCheck(name, one.state.synced, _watched(one))
    state = parts.reloader.state
    generation = "none yet" if state is None else f"generation {state.policies.generation}"
    yield ReadinessCheck("policies", state is not None, generation)
    for capability in parts.capabilities:
        yield from capability.checks()
    for status in parts.policies.states.values():
        yield ReadinessCheck("policy", ok=True, text=str(status))
    for name, one in parts.on_demand.items():
        yield ReadinessCheck(name, ok=True, text=_watched(one))
    for capability in parts.capabilities:
        yield from capability.remarks()
    for name, text in _remarks(parts):
        yield ReadinessCheck(name, ok=True, text=text)


def _watched(reflector: Reflector[Any]) -> str:
    """Return how many objects a reflector has, and what is wrong with it."""
    state, wrong = reflector.state, []
    if state.synced:
        behind = f", {lag:.0f} s behind" if (lag := reflector.staleness()) else ""
        wrong.append(f"{len(reflector.objects)}{behind}")
    if state.last_error:
        wrong.append(state.last_error)
    for key, fault in [*state.faults.items()][:_FAULTS_MAX]:
        wrong.append(f"an internal fault ({fault}) with {'/'.join(filter(None, key))}; the log says where")
    return "; ".join(wrong) or "not listed yet"


def _remarks(parts: Components) -> Iterator[tuple[str, str]]:
    for slow in parts.reloader.open_circuits():
        yield "policy", f"{slow.policy.name}: {REASON}: {slow}"
    for each, count in parts.reloader.state.conflicts.items() if parts.reloader.state else ():
        yield "policy", f"{each.loser}: Conflict: {count} pods have {each.key} from {each.winner}, which comes first"
        yield "policy", f"{each.winner}: Conflict: {each.loser} also writes {each.key}, and comes later"
    for one in parts.rule_errors:
        yield "rule", f"{one.policy}/{one.rule}: {one.count} errors, last: {one.last_message}"
    for file, fault in parts.faults().items():
        yield "file", f"{file}: {fault}"
    if parts.leader is not None:
        yield "leader", parts.leader()
    if parts.last_good.fault:
        yield "last good policies", f"kept in memory only: {parts.last_good.fault}"
    yield from parts.remarks()
    expires = parts.tls.expires.values()
    yield "certificates", parts.certificates or (f"expire {min(expires):%Y-%m-%d}" if expires else "none yet")


def gauges(parts: Components) -> Iterator[Gauges]:
    """Yield the gauges that all replicas have, which are computed at each scrape."""
    yield Gauges("fairlead_build_info", "Version of the operator.", ("version",), lambda: {(__version__,): 1})
    yield from reflector_gauges(lambda: parts.all_reflectors, lambda: parts.reflectors)
    yield Gauges(
        "fairlead_certificate_expiration_timestamp_seconds",
        "Time at which a certificate expires, in seconds since 1970.",
        ("certificate",),
        lambda: {(name,): when.timestamp() for name, when in parts.tls.expires.items()},
    )
    yield from serving_gauges(parts.policies, parts.reloader)
