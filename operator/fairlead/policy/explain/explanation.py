"""Model of explanations, which commands print."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

RuleOutcome = Literal["Passed", "Rejected", "Unknown", "Scored", "LeftOut"]
Unit = Literal["", "bytes"]
""""" for a plain number, or anything else."""


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a loop."""

    loop: str
    """Text of the loop's range."""
    position: int
    name: str = ""

    def __str__(self) -> str:
        return f"{self.loop}[{self.position}]{f' ({self.name})' if self.name else ''}"


@dataclass(frozen=True, slots=True)
class Step:
    """A part of an expression with its value; inside a loop, the value for one element."""

    text: str
    value: object
    at: Sequence[Element] = ()
    variable: str = ""
    """The policy's variable that the part belongs to; "" for the rule itself."""
    unit: Unit = ""


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """A comparison that would have to come out otherwise."""

    text: str
    value: object  # the present value; None if it raised
    left: object = None
    right: object = None
    at: Sequence[Element] = ()
    everywhere: bool = False
    """Whether this holds for several elements of its loops, of which `at` is one."""
    unit: Unit = ""
    """Unit of both sides."""


@dataclass(frozen=True, slots=True)
class Items:
    """Notes of a strategy: about the rule as a whole, and about each item that it looked at."""

    values: Mapping[str, object]
    items: Sequence[tuple[str, Mapping[str, object]]]


@dataclass(frozen=True, slots=True)
class RuleExplained:
    """One rule on one node."""

    policy: str
    rule: str
    outcome: RuleOutcome
    reason: str = ""
    resolvable: bool = False
    value: float | None = None  # raw, of a score
    unit: Unit = ""
    """Unit of the value."""
    steps: Sequence[Step] = ()
    changes: Sequence[Counterfactual] = ()
    """The fewest comparisons that would have to come out otherwise for the node to pass."""
    alternatives: Sequence[Sequence[Counterfactual]] = ()
    """Other ways to pass, none of which contains another."""
    noted: Items | None = None
    raised: str = ""
    """What the expression raised, with its values; "" if it did not."""


@dataclass(frozen=True, slots=True)
class ExplainedMatchError:
    """A policy that may apply to the pod, because a condition raised: its filters reject, its scores are left out."""

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
    """The policies that apply to the pod, in order, also those without rules for nodes."""
    match_errors: Sequence[ExplainedMatchError]
    filters: Sequence[RuleExplained]
    scores: Sequence[RuleExplained]


@dataclass(frozen=True, slots=True)
class ScoreExplained:
    """Score of one rule for one of several nodes."""

    policy: str
    rule: str
    value: float | None
    """Raw."""
    why: str
    """Why there is no value."""
    score: float | None
    """From 0 to 100; that of a node without a value is the mean of the others. None: no node has a value."""
    points: float
    """The score times the rule's weight."""


@dataclass(frozen=True, slots=True)
class NodeScored:
    """Scores of all rules for one of several nodes."""

    node: str
    total: float
    sent: int
    """The points that are sent to the scheduler."""
    scores: Sequence[ScoreExplained]
