"""Gauges of reflectors: how many objects they have, how far they are behind, and what went wrong."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.reflector_status import ReflectorStatus
from fairlead.metrics import Gauges, Labels

Reflectors: TypeAlias = Callable[[], Mapping[str, Reflector[Any]]]


def reflector_gauges(reflectors: Reflectors, deciding: Reflectors) -> Iterator[Gauges]:
    """Yield the gauges of reflectors, by the name of each; how far it is behind only of those that decide calls."""

    def each(
        number: Callable[[Reflector[Any]], float], among: Reflectors = reflectors
    ) -> Callable[[], Mapping[Labels, float]]:
        return lambda: {(name,): number(reflector) for name, reflector in among().items()}

    def by_reason(counts: Callable[[ReflectorStatus], Mapping[Any, int]]) -> Callable[[], Mapping[Labels, float]]:
        return lambda: {
            (name, str(reason)): count
            for name, reflector in reflectors().items()
            for reason, count in counts(reflector.state).items()
        }

    kind, reason = ("kind",), ("kind", "reason")
    yield Gauges("fairlead_mirror_objects", "Objects that the cache holds.", kind, each(lambda one: len(one.objects)))
    yield Gauges(
        "fairlead_mirror_staleness_seconds",
        "Seconds by which the cache may be behind the API server: 0 while its watch works.",
        kind,
        each(lambda one: one.staleness(), deciding),
    )
    yield Gauges(
        "fairlead_mirror_relists",
        "Lists of all objects, by the reason; start is the first one.",
        reason,
        by_reason(lambda status: status.relists),
        grows=True,
    )
    yield Gauges(
        "fairlead_watch_failures",
        "Watches that failed, by the reason: the status of the answer, unreachable, silent, access or fault.",
        reason,
        by_reason(lambda status: status.failures),
        grows=True,
    )
    yield Gauges(
        "fairlead_unreadable_objects",
        "Objects that could not be decoded and were left out.",
        kind,
        each(lambda one: one.state.unreadable),
        grows=True,
    )
    yield Gauges(
        "fairlead_mirror_differences",
        "Cached objects that differed from the API server in a consistency check.",
        kind,
        each(lambda one: one.state.differences),
        grows=True,
    )
