"""What explanations say: values, for whoever prints them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["Passed", "Rejected", "Unknown", "Scored", "LeftOut"]


@dataclass(frozen=True, slots=True)
class Element:
    """An element that a loop came to."""

    loop: str
    """What the loop goes through."""
    position: int
    name: str = ""

    def __str__(self) -> str:
        return f"{self.loop}[{self.position}]{f' ({self.name})' if self.name else ''}"


@dataclass(frozen=True, slots=True)
class Step:
    """A part of an expression and the value that it had: of what stands in a loop, for one element."""

    text: str
    value: object
    at: Sequence[Element] = ()
    variable: str = ""
    """The policy's variable of whose expression it is a part."""


@dataclass(frozen=True, slots=True)
class Change:
    """A comparison that would have to come out otherwise."""

    text: str
    value: object  # what it is; None where it raised or was not reached
    left: object = None
    right: object = None
    at: Sequence[Element] = ()
    everywhere: bool = False
    """It would have to come out so for all elements of its loops; `at` is one for which it does not."""


@dataclass(frozen=True, slots=True)
class Items:
    """What a strategy noted: of the rule as a whole, and of each thing that it looked at."""

    values: Mapping[str, object]
    items: Sequence[tuple[str, Mapping[str, object]]]


@dataclass(frozen=True, slots=True)
class RuleExplained:
    """One rule on one node."""

    policy: str
    rule: str
    outcome: Outcome
    reason: str = ""
    resolvable: bool = False
    value: float | None = None  # raw, of a score
    steps: Sequence[Step] = ()
    flips: Sequence[Change] = ()
    noted: Items | None = None


@dataclass(frozen=True, slots=True)
class ExplainedMatchError:
    """A policy of which nobody can tell if it is for the pod: its filters refuse, its scores are left out."""

    policy: str
    condition: str
    why: str
    steps: Sequence[Step] = ()


@dataclass(frozen=True, slots=True)
class NodeExplained:
    """All rules on one node."""

    node: str
    known: bool
    passed: bool
    policies: Sequence[str]
    """Those that the pod is subject to, in their order; one may have nothing to say here."""
    doubts: Sequence[ExplainedMatchError]
    filters: Sequence[RuleExplained]
    scores: Sequence[RuleExplained]


@dataclass(frozen=True, slots=True)
class ScoreExplained:
    """What one rule gives one of several nodes."""

    policy: str
    rule: str
    value: float | None
    """Raw."""
    why: str
    """Why there is none."""
    score: float | None
    """From 0 to 100; that of a node without a value is the mean of the others. None: no node has a value."""
    points: float
    """The same with the rule's weight."""


@dataclass(frozen=True, slots=True)
class NodeScored:
    """What all rules give one of several nodes."""

    node: str
    total: float
    sent: int
    """What the scheduler is told."""
    scores: Sequence[ScoreExplained]
