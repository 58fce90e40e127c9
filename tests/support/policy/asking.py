"""Some nodes and policies that can be asked about a pod."""

from collections.abc import Iterable, Sequence

from fairlead.policy.columns.column import Rejection
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.class_cache import ENTRIES, Classes
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.evaluate.filter_result import Filtered
from fairlead.policy.evaluate.matching import Matched, policy_set
from fairlead.policy.nodes.journal import ENTRIES_MAX, Journal
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView
from support.policy.building import NOW

NEVER = 1 << 62


class Clock:
    """A clock that advances by a step with each call, and counts the calls."""

    def __init__(self, step: int = 0) -> None:
        self.time = 0
        self.step = step
        self.looks = 0

    def __call__(self) -> int:
        self.looks += 1
        self.time += self.step
        return self.time


class Endless(Clock):
    """A clock that stands still."""


def filtered(
    evaluator: Evaluator,
    pod: PodView,
    names: Sequence[str],
    *,
    now: int = NOW,
    clock: Clock | None = None,
    deadline_ns: int = NEVER,
) -> Filtered:
    """Return what an evaluator passes and rejects, for a pod of the scheduler fairlead."""
    clock = clock or Endless()
    matched = evaluator.matching(pod, "fairlead", now, clock=clock, deadline_ns=deadline_ns)
    return evaluator.filter(pod, matched, names, now=now, clock=clock, deadline_ns=deadline_ns)


def scored(
    evaluator: Evaluator,
    pod: PodView,
    names: Sequence[str],
    *,
    now: int = NOW,
    clock: Clock | None = None,
    deadline_ns: int = NEVER,
) -> list[float]:
    """Return the totals that an evaluator gives nodes, for a pod of the scheduler fairlead."""
    clock = clock or Endless()
    matched = evaluator.matching(pod, "fairlead", now, clock=clock, deadline_ns=deadline_ns)
    return evaluator.score(pod, matched, names, now=now, clock=clock, deadline_ns=deadline_ns)


class Evaluation:
    """An evaluator and its nodes."""

    def __init__(
        self,
        policies: Iterable[CompiledPolicy],
        nodes: Iterable[NodeView] = (),
        *,
        journal: int = ENTRIES_MAX,
        classes: int = ENTRIES,
    ) -> None:
        self.nodes = Nodes(journal=Journal(journal))
        for one in nodes:
            self.nodes.put(one)
        self.evaluator = Evaluator(policy_set(policies), self.nodes, classes=Classes(entries=classes))

    @property
    def names(self) -> list[str]:
        return sorted(self.nodes.slots)

    def matched(self, pod: PodView, now: int = NOW) -> list[Matched]:
        return self.evaluator.policies.matching(pod, "fairlead", now)

    def filter(
        self,
        pod: PodView,
        names: Sequence[str] | None = None,
        now: int = NOW,
        clock: Clock | None = None,
        deadline_ns: int = NEVER,
    ) -> Filtered:
        asked = self.names if names is None else names
        return filtered(self.evaluator, pod, asked, now=now, clock=clock, deadline_ns=deadline_ns)

    def reasons(self, pod: PodView, now: int = NOW) -> dict[str, str]:
        """Return the reasons of rejected nodes, as policy/rule: reason."""
        refused = self.filter(pod, now=now).rejected
        return {name: f"{why.policy}/{why.rule}: {why.reason}" for name, why in refused.items()}

    def refusal(self, pod: PodView, now: int = NOW) -> Rejection | None:
        """Return why the only node is rejected; None if it passes."""
        return next(iter(self.filter(pod, now=now).rejected.values()), None)

    def scores(
        self,
        pod: PodView,
        names: Sequence[str] | None = None,
        now: int = NOW,
        clock: Clock | None = None,
        deadline_ns: int = NEVER,
    ) -> list[float]:
        asked = self.names if names is None else names
        return scored(self.evaluator, pod, asked, now=now, clock=clock, deadline_ns=deadline_ns)
