"""What a process says of itself: on /readyz in words, on /metrics in numbers."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any

from fairlead import __version__
from fairlead.cluster.policies import Policies
from fairlead.cluster.reflector import Reflector
from fairlead.cluster.revisions import Revisions
from fairlead.cluster.watching import Watching
from fairlead.metrics import Labels, Metrics
from fairlead.webhook.current import Current
from fairlead.webhook.pace import REASON, Slow, version
from fairlead.webhook.probes import Check
from fairlead.webhook.server import WebhookServer
from fairlead.webhook.tls import Tls
from fairlead.webhook.undecided import Undecided


@dataclass(slots=True, eq=False, kw_only=True)
class Parts:
    """Those who have something to say."""

    server: WebhookServer
    watching: Watching
    policies: Policies
    current: Current
    revisions: Revisions
    tls: Tls
    undecided: Undecided
    faults: Mapping[str, str] = field(default_factory=dict)
    """What is wrong with files of policies, by their names."""
    certificates: str = ""
    """What is wrong with the certificates that should be used now."""
    leader: Callable[[], str] | None = None
    """Who leads, and what keeps him from it."""
    beside: Mapping[str, Reflector[Any]] = field(default_factory=dict)
    """What is watched beside what the mirror is made of."""

    @property
    def reflectors(self) -> Mapping[str, Reflector[Any]]:
        """All of them."""
        return {**self.watching.reflectors, **self.beside}


def checks(parts: Parts) -> Iterator[Check]:
    """Whether calls can be answered, and then what else there is to know: that holds nobody up."""
    yield Check("serving", ok=not parts.server.draining, text="stopping" if parts.server.draining else "")
    for name, one in parts.reflectors.items():
        text = one.state.trouble
        if one.state.synced:
            text = f"{len(one.objects)}, heard of {one.staleness():.0f} s ago" + (f"; {text}" if text else "")
        yield Check(name, one.state.synced, text or "not listed yet")
    world = parts.current.world
    generation = "none yet" if world is None else f"generation {world.policies.generation}"
    yield Check("policies", world is not None, generation)
    for name, text in _remarks(parts):
        yield Check(name, ok=True, text=text)


def _remarks(parts: Parts) -> Iterator[tuple[str, str]]:
    for state in parts.policies.states.values():
        yield "policy", str(state)
    for slow in _slow(parts):
        yield "policy", f"{slow.policy.name}: {REASON}: {slow}"
    for each, count in parts.current.world.conflicts.items() if parts.current.world else ():
        yield "policy", f"{each.loser}: Conflict: {count} pods have {each.key} from {each.winner}, which comes first"
        yield "policy", f"{each.winner}: Conflict: {each.loser} writes {each.key}, too, and comes later"
    for one in parts.undecided:
        yield "rule", f"{one.policy}/{one.rule}: could not decide {one.count} times, last: {one.last_message}"
    for file, fault in parts.faults.items():
        yield "file", f"{file}: {fault}"
    if parts.leader is not None:
        yield "leader", parts.leader()
    if parts.revisions.fault:
        yield "last good policies", f"kept in memory only: {parts.revisions.fault}"
    expires = parts.tls.expires.values()
    yield "certificates", parts.certificates or (f"expire {min(expires):%Y-%m-%d}" if expires else "there are none yet")


def _slow(parts: Parts) -> list[Slow]:
    """The policies that are switched, of those that serve: another generation starts afresh."""
    world = parts.current.world
    serving = {version(one) for one in world.policies.policies} if world is not None else set()
    return [slow for slow in parts.current.pace.slow(perf_counter_ns()) if slow.policy in serving]


def measure(parts: Parts, metrics: Metrics) -> None:
    """Have these numbers asked for at each scrape."""
    reflectors = parts.reflectors

    def of_each(number: Callable[[str], float]) -> Callable[[], Mapping[Labels, float]]:
        return lambda: {(name,): number(name) for name in reflectors}

    def generation() -> Mapping[Labels, float]:
        world = parts.current.world
        return {} if world is None else {(world.policies.generation,): 1}

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
        grows=True,
    )
    metrics.gauge(
        "fairlead_mirror_differences",
        "Objects that were found to be held otherwise than they are.",
        "kind",
        ask=of_each(lambda name: reflectors[name].state.differences),
        grows=True,
    )
    metrics.gauge(
        "fairlead_certificate_expiry_seconds",
        "When it expires, in seconds since 1970.",
        "certificate",
        ask=lambda: {(name,): when.timestamp() for name, when in parts.tls.expires.items()},
    )
    metrics.gauge("fairlead_policy_set_info", "The policy set that serves.", "generation", ask=generation)
    metrics.gauge(
        "fairlead_policy_state",
        "How it is with each policy: 1 for the reason that holds.",
        "policy",
        "reason",
        ask=lambda: (
            {(one.name, one.reason): 1 for one in parts.policies.states.values()}
            | {(slow.policy.name, REASON): 1 for slow in _slow(parts) if slow.scope == "all"}
        ),
    )
    metrics.gauge(
        "fairlead_policy_slow_classes",
        "Classes of pods of one namespace for which a policy is switched because it is too slow; 4: for all of them.",
        "policy",
        "part",
        ask=lambda: {(slow.policy.name, slow.part): slow.classes for slow in _slow(parts) if slow.scope != "all"},
    )
