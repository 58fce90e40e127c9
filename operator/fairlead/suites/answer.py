"""What the policies say of one pod, as far as cases compare it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fairlead.policy.explained import NodeExplained, RuleExplained, Step
from fairlead.policy.unmatched import Unmatched


@dataclass(frozen=True, slots=True)
class OnNode:
    """What is said of a node."""

    explained: NodeExplained
    unfit: Sequence[str] = ()
    """Why the scheduler itself would not take it."""
    score: float | None = None
    """The points of all policies, where the node fits and passes."""

    @property
    def refusal(self) -> RuleExplained | None:
        """The rule whose reason is given."""
        return next((rule for rule in self.explained.filters if rule.outcome == "Refused"), None)


@dataclass(frozen=True, slots=True)
class Protecting:
    """What a protection says of a pod on a node."""

    policy: str
    rule: str
    protects: bool
    steps: Sequence[Step] = ()


@dataclass(frozen=True, slots=True)
class Spared:
    """Why a pod is not evicted; no rule: it may be."""

    policy: str = ""
    rule: str = ""
    why: str = ""
    protected: bool = False
    """Whether it is protected itself, and not the node refused after all."""
    protections: Sequence[Protecting] = ()
    """All that were asked."""


@dataclass(frozen=True, slots=True)
class Annotated:
    """What is written when the pod is bound to a node, or why it is not bound."""

    values: Mapping[str, str] = field(default_factory=dict)
    refusal: str = ""


Outcome = tuple[str, str, str, str]
"""Policy, kind of rule, rule, and what it came to."""


@dataclass(frozen=True, slots=True)
class Answer:
    """All of it."""

    policies: Sequence[str]
    nodes: Mapping[str, OnNode]
    preferred: Sequence[str]
    spared: Mapping[str, Spared]
    """By pod on a node, as far as the case speaks of it."""
    annotations: Mapping[str, Annotated]
    """By node, the same."""
    others: Sequence[Unmatched] = ()
    """The policies that are not for the pod, and why."""
    outcomes: Sequence[Outcome] = ()
    """What rules came to, for the coverage."""
