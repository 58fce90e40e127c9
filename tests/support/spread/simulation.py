"""Simulated load of nodes: pure.

Each node has a base load, of what no request tells, and the load of its pods, which use more or less than they request.
Usage is smoothed, as that of every agent is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from random import Random
from statistics import fmean, pvariance

NODES = 40
CORES = 16.0
RATE = 20
"""Pods a second."""
LIFE_S = 20.0
"""So long a pod stays on its node."""
REQUEST = "500m"
USES = (0.1, 0.3, 0.6, 1.4)
"""Cores that pods really use, each as many of them."""
BASE = (0.05, 0.55)
SMOOTHED_S = 2.0
HOT = 0.9
"""Load from which on a node slows its pods down."""
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Look:
    """The load of all nodes at a moment, of a clock that never goes back."""

    at: float
    loads: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Spread:
    """Spread of load over some time."""

    mean: float
    variance: float
    """Between the nodes, the mean of all moments."""
    highest: float
    """Load of the node with the highest, the mean of all moments."""
    hot: float
    """Share of nodes and moments above `HOT`."""
    by_node: Mapping[str, float]


class SimulatedLoad:
    """Load of each node, from 0 to 1."""

    def __init__(self, nodes: Iterable[str], seed: int = 0) -> None:
        chance = Random(seed)  # noqa: S311  a simulation
        self.base = {name: chance.uniform(*BASE) for name in nodes}
        self.loads = dict(self.base)

    def advance(self, cores: Mapping[str, float], seconds: float) -> None:
        """Let time pass while the pods of each node use so many cores."""
        part = 1.0 - exp(-seconds / SMOOTHED_S)
        for name, base in self.base.items():
            now = min(1.0, base + cores.get(name, 0.0) / CORES)
            self.loads[name] += part * (now - self.loads[name])

    def text(self) -> str:
        """Write it as an exporter does."""
        return "".join(f'node_load{{node="{name}"}} {round(load, _DIGITS)}\n' for name, load in self.loads.items())


def cores_of(number: int) -> float:
    """Return how many cores the pod of a number uses: any order, but always the same."""
    return Random(number).choice(USES)  # noqa: S311  a simulation


def spread(looks: Sequence[Look]) -> Spread:
    """Sum up what was seen."""
    loads = [[*one.loads.values()] for one in looks]
    names = looks[0].loads
    return Spread(
        mean=fmean(fmean(each) for each in loads),
        variance=fmean(pvariance(each) for each in loads),
        highest=fmean(max(each) for each in loads),
        hot=fmean(fmean(load > HOT for load in each) for each in loads),
        by_node={name: fmean(one.loads[name] for one in looks) for name in names},
    )
