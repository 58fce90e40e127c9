"""Why a node is refused, or how many points it gets: the same compiled rules, with their trace on.

For a refused node also the smallest set of comparisons whose outcome would have to be another one for the node to
pass; each set was tried by evaluating the rule with these outcomes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any, Final, Literal

from msgspec import Struct

from fairlead.cel.checked import Call, Const, Ident, Node, walk
from fairlead.cel.cost import OF_POD
from fairlead.cel.lowering.builder import NotLoweredError
from fairlead.cel.lowering.leaves import leaves
from fairlead.cel.text import text
from fairlead.policy.compiled import FilterRule, ScoreRule
from fairlead.policy.data import with_data
from fairlead.policy.evaluate import UNDECIDED
from fairlead.policy.expressions import Compiled
from fairlead.policy.facts import NodeView, PodView
from fairlead.policy.nodes import Nodes
from fairlead.policy.rules import Raised, raised
from fairlead.policy.select import Matched
from fairlead.strategies.facts import Unknown
from fairlead.strategies.seam import Pass, Timed

TRIES: Final = 2_000
Outcome = Literal["Passed", "Refused", "Unknown", "Scored"]


@dataclass(frozen=True, slots=True)
class Step:
    """A part of an expression and the value that it had."""

    text: str
    value: object


@dataclass(frozen=True, slots=True)
class Flip:
    """A comparison that would have to come out otherwise."""

    text: str
    value: object  # what it is; None where it raised or was not reached
    left: object = None
    right: object = None


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
    flips: Sequence[Flip] = ()
    noted: Items | None = None


@dataclass(frozen=True, slots=True)
class NodeExplained:
    """All rules on one node."""

    node: str
    passed: bool
    filters: Sequence[RuleExplained]
    scores: Sequence[RuleExplained]


@dataclass(slots=True)
class Notes:
    """The trace of a strategy."""

    values: dict[str, object] = field(default_factory=dict)
    items: list[tuple[str, dict[str, object]]] = field(default_factory=list)

    def note(self, **values: object) -> None:
        """Values of the rule as a whole."""
        self.values.update(values)

    def item(self, name: str, /, **values: object) -> None:
        """Values of one of several things."""
        self.items.append((name, values))


def explain(pod: PodView, matched: Sequence[Matched], nodes: Nodes, name: str, now: int) -> NodeExplained:
    """Everything that the policies say about a pod on a node, in their order."""
    filters: list[RuleExplained] = []
    scores: list[RuleExplained] = []
    node = nodes.view_of(name)
    if node is None:
        raise KeyError(name)
    for each in matched:
        view = with_data(node, each.policy.data, now)
        if each.undecided:
            filters += [
                RuleExplained(
                    each.policy.name, rule.name, "Refused", UNDECIDED, steps=(Step("match", each.undecided.detail),)
                )
                for rule in sorted(each.policy.filters, key=lambda rule: rule.name)[:1]
            ]
            continue
        for rule in sorted(each.policy.filters, key=lambda rule: rule.name):
            filters.append(_filter(each.policy.name, rule, pod, view, now))
        in_order = sorted(each.policy.scores, key=lambda rule: rule.name)
        scores += [_score(each.policy.name, score, pod, view, now) for score in in_order]
    return NodeExplained(name, not any(rule.outcome == "Refused" for rule in filters), filters, scores)


def _filter(policy: str, rule: FilterRule, pod: PodView, view: NodeView, now: int) -> RuleExplained:
    notes = Notes()
    verdict = rule.filter.for_pod(pod)(view, now, notes)
    refusal = rule.refusal(verdict)
    outcome: Outcome = "Refused" if refusal else "Passed" if isinstance(verdict, Pass) else "Unknown"
    reason, resolvable = refusal or (str(verdict) if isinstance(verdict, Unknown) else "", False)
    if rule.expression is None:
        noted = Items(notes.values, notes.items)
        return RuleExplained(policy, rule.name, outcome, reason, resolvable, noted=noted)
    if rule.expression.evaluation == "Engine":
        return RuleExplained(policy, rule.name, outcome, reason, resolvable, steps=_raised(verdict))
    steps = tuple(_steps(rule.expression, pod, view, now))
    flips = tuple(closest(rule.expression, pod, view, now)) if outcome == "Refused" else ()
    return RuleExplained(policy, rule.name, outcome, reason, resolvable, steps=steps, flips=flips)


def _score(policy: str, rule: ScoreRule, pod: PodView, view: NodeView, now: int) -> RuleExplained:
    notes = Notes()
    value = rule.score.for_pod(pod)(view, now, notes)
    noted = None
    steps: Sequence[Step] = ()
    if rule.expression is None:
        noted = Items(notes.values, notes.items)
    elif rule.expression.evaluation == "Engine":
        steps = _raised(value)
    else:
        steps = tuple(_steps(rule.expression, pod, view, now))
    if isinstance(value, Unknown):
        return RuleExplained(policy, rule.name, "Unknown", str(value), steps=steps, noted=noted)
    number = value.value if isinstance(value, Timed) else value
    return RuleExplained(policy, rule.name, "Scored", value=number, steps=steps, noted=noted)


def _raised(verdict: object) -> Sequence[Step]:
    """What an expression raised on the engine, which shows no parts."""
    return (Step("raised", verdict.detail),) if isinstance(verdict, Raised) else ()


def _steps(expression: Compiled, pod: PodView, view: NodeView, now: int) -> Iterator[Step]:
    """The parts of an expression with their values, the whole first; what is written out is no news."""
    result, values = expression.traced(pod, {})(view, now)
    seen = set[str]()
    for node in walk(expression.expression.checked.root):
        if isinstance(node, Const) or _is_macros_own(node):
            continue
        shown = text(node)
        if node.id in values and shown not in seen and _can_be_shown(values[node.id]):
            seen.add(shown)
            yield Step(shown, values[node.id])
    if isinstance(result, Exception):
        yield Step("raised", raised(result).detail)


def _can_be_shown(value: object) -> bool:
    """Whether a value is more than an object that parts of the expression look into."""
    if isinstance(value, list | tuple):
        return all(map(_can_be_shown, value))
    return not isinstance(value, Struct | Mapping)


def _is_macros_own(node: Node) -> bool:
    """Whether a macro wrote it, and not the user."""
    match node:
        case Ident(name=name):
            return name.startswith("@")
        case Call(args=args):
            return any(isinstance(arg, Ident) and arg.name.startswith("@") for arg in args)
    return False


def closest(expression: Compiled, pod: PodView, view: NodeView, now: int) -> list[Flip]:
    """The smallest set of comparisons whose flip makes the rule pass; empty if none was found.

    Of sets of one size those come first that are about the node: a pod is what it is.
    """
    _, values = expression.traced(pod, {})(view, now)
    checked = expression.expression.checked
    candidates = sorted(leaves(checked), key=lambda leaf: not _is_about_node(expression, leaf))
    tries = 0
    for size in range(1, len(candidates) + 1):
        for chosen in combinations(candidates, size):
            for forced in product(*(_other(values.get(node.id)) for node in chosen)):
                tries += 1
                if tries > TRIES:
                    return []
                force = {node.id: value for node, value in zip(chosen, forced, strict=True)}
                if expression.traced(pod, force)(view, now)[0] is True:
                    return [_flip(expression, node, values, (pod, view, now)) for node in chosen]
    return []


def _is_about_node(expression: Compiled, node: Node) -> bool:
    return not {path[0] for path in expression.part(node).paths} <= OF_POD


def _other(value: object) -> tuple[bool, ...]:
    return (not value,) if isinstance(value, bool) else (True, False)


def _flip(expression: Compiled, node: Node, values: Mapping[int, Any], facts: tuple[PodView, NodeView, int]) -> Flip:
    if node.id not in values:  # `&&` and `||` did not come to it
        pod, view, now = facts
        try:
            values = expression.part(node).traced(pod, {})(view, now)[1]
        except NotLoweredError:  # inside of a macro, whose names it lacks
            values = {}
    left = right = None
    match node:
        case Call(args=(first, second)):
            left, right = _value(first, values), _value(second, values)
        case Call(args=(first,)):
            left = _value(first, values)
    return Flip(text(node), values.get(node.id), left, right)


def _value(node: Node, values: Mapping[int, Any]) -> object:
    value = node.value if isinstance(node, Const) else values.get(node.id)
    return value if _can_be_shown(value) else None
