"""What the extender asks the engine of policies: filter and prioritize, with nothing kept and with everything kept."""

from time import perf_counter
from typing import Final

from bench import cluster
from bench.measure import MILLI, Benchmark, Benchmarks, Size, steady, timed
from bench.report import main
from fairlead.policy.evaluate import Evaluator
from fairlead.strategies.reads import Change


def cold(size: Size) -> list[float]:
    """Nothing kept: a pod of a class that was never seen. `match`, the class and what depends on the pod included."""
    held, pod, policies = cluster.nodes(size.nodes), cluster.pod(), cluster.policies(cluster.FILTERS)
    return timed(
        lambda asked: cluster.ask(Evaluator(policies, held), pod, asked), size.rounds, lambda: cluster.names(size.nodes)
    )


def kept(size: Size) -> list[float]:
    """All kept."""
    asking, pod = _asking(size), cluster.pod()
    return timed(lambda asked: cluster.ask(asking, pod, asked), size.rounds, lambda: cluster.names(size.nodes))


def changed(size: Size) -> list[float]:
    """A label of one node became different."""
    asking, pod = _asking(size), cluster.pod()
    cluster.ask(asking, pod, cluster.names(size.nodes))
    change = Change(node=frozenset({("metadata", "labels", "gpu")}))
    samples = []
    for at in range(size.rounds):
        view, asked = cluster.node(at * 7 % size.nodes), cluster.names(size.nodes)
        with steady():
            start = perf_counter()
            asking.nodes.put(view, change)
            cluster.ask(asking, pod, asked)
            samples.append((perf_counter() - start) * MILLI)
    return samples


def rated(size: Size) -> list[float]:
    """Prioritize, all kept."""
    asking, pod = _asking(size), cluster.pod()
    return timed(lambda asked: cluster.rate(asking, pod, asked), size.rounds, lambda: cluster.names(size.nodes))


def _asking(size: Size) -> Evaluator:
    return cluster.evaluator(cluster.nodes(size.nodes), cluster.FILTERS, cluster.SCORES)


BENCHMARKS: Final[Benchmarks] = {
    "filter-nothing-kept": Benchmark("ms", cold),
    "filter-all-kept": Benchmark("ms", kept),
    "filter-one-node-changed": Benchmark("ms", changed),
    "prioritize-all-kept": Benchmark("ms", rated),
}

if __name__ == "__main__":
    main(BENCHMARKS)
