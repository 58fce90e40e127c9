"""Calls of the extender to the engine of policies: filter and prioritize, with nothing and with everything kept."""

from dataclasses import replace
from itertools import count
from time import perf_counter_ns
from typing import Final

from bench import cluster
from bench.measure import Benchmark, Benchmarks, Size, timed
from bench.mirror import LARGEST
from bench.report import main
from fairlead.mirror.mirror import Mirror
from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.views.node_view import NodeView
from fairlead.process.replica import IdleTime
from fairlead.strategies.reads import NodeChange
from fairlead.webhook.extender.caches import NodeNameCache
from fairlead.webhook.extender.call import CallClock
from fairlead.webhook.extender.circuit_breaker import CircuitBreaker
from fairlead.webhook.extender.state import build_serving_state


def cold(size: Size) -> list[float]:
    """Time with nothing kept: a pod of a class that was never seen, with `match`, the class and what depends on it."""
    held, pod, policies = cluster.nodes(size.nodes), cluster.pod(), cluster.policies(cluster.FILTERS)
    return timed(
        lambda asked: cluster.ask(Evaluator(policies, held), pod, asked), size.rounds, lambda: cluster.names(size.nodes)
    )


def cold_at_scale(size: Size) -> list[float]:
    """The same in the largest clusters, asked about all nodes."""
    return cold(replace(size, nodes=LARGEST * size.nodes))


def kept(size: Size) -> list[float]:
    """All kept."""
    asking, pod = _asking(size), cluster.pod()
    return timed(lambda asked: cluster.ask(asking, pod, asked), size.rounds, lambda: cluster.names(size.nodes))


def kept_seen(size: Size) -> list[float]:
    """The same with names that were hashed before: the difference is Python's hashing of them."""
    asking, pod, asked = _asking(size), cluster.pod(), cluster.names(size.nodes)
    return timed(lambda _: cluster.ask(asking, pod, asked), size.rounds, lambda: None)


def changed(size: Size) -> list[float]:
    """A label of one node became different."""
    asking, pod = _asking(size), cluster.pod()
    cluster.ask(asking, pod, cluster.names(size.nodes))
    change = NodeChange(node=frozenset({("metadata", "labels", "gpu")}))
    turns = count(step=7)

    def prepare() -> tuple[NodeView, list[str]]:
        return cluster.node(next(turns) % size.nodes), cluster.names(size.nodes)

    def call(given: tuple[NodeView, list[str]]) -> None:
        view, asked = given
        asking.nodes.put(view, change)
        cluster.ask(asking, pod, asked)

    return timed(call, size.rounds, prepare)


def rated(size: Size) -> list[float]:
    """Prioritize, all kept."""
    asking, pod = _asking(size), cluster.pod()
    return timed(lambda asked: cluster.rate(asking, pod, asked), size.rounds, lambda: cluster.names(size.nodes))


def rated_of_a_sample(size: Size) -> list[float]:
    """Prioritize of a tenth of the nodes, of a class that came after the last change, with idle time since."""
    policies, pod = cluster.policies(cluster.FILTERS, cluster.SCORES), cluster.pod()
    state = build_serving_state(
        policies,
        cluster.nodes(size.nodes),
        Mirror(lambda: cluster.NOW),
        CircuitBreaker(),
        NodeNameCache(),
        RuleErrorTally(),
    )
    idle, turns = IdleTime(None), count()

    def use_idle_time() -> None:
        for _ in range(100):
            idle.use(state, CallClock(cluster.NOW, perf_counter_ns, perf_counter_ns() + 2_000_000))

    def sample() -> list[str]:
        at = next(turns) % 10 * (size.nodes // 10)
        return cluster.names(size.nodes)[at : at + size.nodes // 10]

    use_idle_time()
    cluster.rate(state.scores, pod, sample())
    use_idle_time()
    return timed(lambda asked: cluster.rate(state.scores, pod, asked), 10, sample)


def _asking(size: Size) -> Evaluator:
    return cluster.evaluator(cluster.nodes(size.nodes), cluster.FILTERS, cluster.SCORES)


BENCHMARKS: Final[Benchmarks] = {
    "filter-nothing-kept": Benchmark("ms", cold),
    "filter-nothing-kept-15000-nodes": Benchmark("ms", cold_at_scale),
    "filter-all-kept": Benchmark("ms", kept),
    "filter-all-kept-names-seen": Benchmark("ms", kept_seen),
    "filter-one-node-changed": Benchmark("ms", changed),
    "prioritize-all-kept": Benchmark("ms", rated),
    "prioritize-new-class-sampled": Benchmark("ms", rated_of_a_sample),
}

if __name__ == "__main__":
    main(BENCHMARKS)
