"""The comparisons that would have to come out otherwise for a rule to pass: each way, the shortest first.

An evaluation stops at the first operand, or element of a loop, that decides; the rest has no value then. So the
comparisons are evaluated a second time, all of them: each becomes `(comparison || true)`, which absorbs its errors
and decides nothing. With every value known, one walk over the expression finds the ways; nothing has to be tried.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol, TypeAlias

from fairlead.cel.analysis.cost import OF_POD
from fairlead.cel.analysis.node_facts import VARIABLES
from fairlead.cel.analysis.static_types import BOOL
from fairlead.cel.analysis.trace import is_loop
from fairlead.cel.syntax.ast import Call, Checked, Comprehension, Const, Ident, Node, walk
from fairlead.cel.syntax.unparse import text
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.explain.explanation import Counterfactual, Element
from fairlead.policy.explain.trace_steps import At, ExpressionTrace, trace_loop
from fairlead.policy.explain.units import compared_unit

_LOGIC: Final = frozenset({"_&&_", "_||_", "!_", "_?_:_", "@not_strictly_false"})
_OPERANDS: Final = 2
_EVERYTHING: Final = "everything"
WAYS_MAX: Final = 32
"""Greatest number of ways that are kept; longer ones are dropped."""

Comparisons: TypeAlias = Sequence[tuple[Node, At]]
"""Comparisons that would have to come out otherwise, each with the elements of the loops around it."""
Ways: TypeAlias = Sequence[Comparisons]
"""Ways to a wanted value, the shortest first. None: it cannot be had. An empty way: it is had already."""
_HAD: Final[Ways] = [()]
_NEVER: Final[Ways] = []


class PartValues(Protocol):
    """Values of an expression's parts, for one pod and one node."""

    def raw_value(self, node: Node, at: At) -> object:
        """Return the value of a part; anything that is no bool if it has none."""

    def value(self, node: Node, at: At) -> object:
        """Return the value of a part as it is shown, or None if it has none."""

    def elements(self, node: Node, at: At) -> Sequence[Element]:
        """Return the elements of the loops around a part, the outermost first."""

    def length(self, loop: Comprehension, at: At) -> int | None:
        """Return how many elements a loop has; None if only the loop as a whole has a value."""


def lowered_values(expression: CompiledExpression, pod: Any, view: Any, now: int) -> ExpressionTrace:
    """Return the values of all comparisons of a lowered expression, also of those that it does not reach.

    Raises Abort if evaluating all of them costs too much.
    """
    if _EVERYTHING not in expression.derived:
        expression.derived[_EVERYTHING] = _everything(expression)
    result, trace = expression.derived[_EVERYTHING].traced(pod)(view, now)
    if isinstance(result, Exception):
        raise result
    return ExpressionTrace(expression.expression.checked, trace)


def _everything(expression: CompiledExpression) -> CompiledExpression:
    """Return an expression that is true, and evaluates every comparison of this one on the way."""
    checked = expression.expression.checked
    rewriter = _Everything(checked, max(node.id for node in walk(checked.root)))
    root = rewriter.evaluated(checked.root)
    types = {**checked.types, **dict.fromkeys(rewriter.added, BOOL)}
    whole = replace(expression.expression, checked=replace(checked, root=root, types=types))
    return CompiledExpression(whole, expression.variables)


def all_changes(expression: CompiledExpression, values: PartValues) -> list[list[Counterfactual]]:
    """Return each way in which comparisons would have to come out otherwise, the shortest first; none if none would do.

    Of ways of one length those about the node come first: the pod is given. Of several elements of a loop that would
    do, one stands for all.
    """
    ways = _Search(expression, values).ways(expression.expression.checked.root, {}, want=True)
    found = list[list[Counterfactual]]()
    for way in ways:
        places: dict[int, tuple[Node, list[At]]] = {}
        for node, at in way:
            places.setdefault(node.id, (node, []))[1].append(at)
        changes = [_change(expression, node, at, values) for node, at in places.values()]
        if changes and changes not in found:
            found.append(changes)
    return found


def _change(expression: CompiledExpression, node: Node, places: Sequence[At], values: PartValues) -> Counterfactual:
    at = places[-1]
    operands = node.args if isinstance(node, Call) and len(node.args) <= _OPERANDS else ()
    left, right = [*(values.value(operand, at) for operand in operands), None, None][:_OPERANDS]
    elements, unit = values.elements(node, at), compared_unit(node, expression)
    return Counterfactual(text(node), values.value(node, at), left, right, elements, len(places) > 1, unit)


def is_comparison(checked: Checked, node: Node) -> bool:
    """Report whether a part decides by itself, as `a == b` does and `a && b` does not."""
    if checked.type_of(node) != BOOL or isinstance(node, Const | Comprehension):
        return False
    if isinstance(node, Ident):
        return checked.names.get(node.id, "").startswith(VARIABLES)
    return not (isinstance(node, Call) and node.function in _LOGIC)


@dataclass(frozen=True, slots=True)
class _Everything:
    """Rewriter of expressions into ones that are true and evaluate every comparison on the way."""

    checked: Checked
    last_id: int
    added: list[int] = field(default_factory=list)
    """Ids of the parts that were added; all are bools."""

    def evaluated(self, node: Node) -> Node:
        if is_comparison(self.checked, node):
            return self._absorbed(node)
        match node:
            case Call(function="!_" | "_&&_" | "_||_" | "_?_:_", args=args):
                first, *others = map(self.evaluated, args)
                for other in others:
                    first = self._call("_&&_", first, other)
                return first
            case Comprehension(step=Call(function=function, args=args) as step) if is_loop(node):
                body, _ = trace_loop(node)
                every = self.evaluated(body)
                if function != "_&&_":  # `all` stops at the first false, the others go on
                    every = self._call("!_", every)
                step = replace(step, args=tuple(every if arg is body else arg for arg in args))
                return self._absorbed(replace(node, step=step))
            case Comprehension(result=result):
                return self._absorbed(replace(node, result=self.evaluated(result)))
        return self._true()

    def _absorbed(self, node: Node) -> Node:
        return self._call("_||_", node, self._true())

    def _call(self, function: str, *args: Node) -> Node:
        return Call(self._id(), function, args)

    def _true(self) -> Node:
        return Const(self._id(), value=True)

    def _id(self) -> int:
        self.added.append(self.last_id + 1 + len(self.added))
        return self.added[-1]


@dataclass(frozen=True, slots=True)
class _Search:
    """Search for the ways to a value."""

    expression: CompiledExpression
    values: PartValues

    def ways(self, node: Node, at: At, *, want: bool) -> Ways:
        """Return the ways in which a part has this value."""
        checked = self.expression.expression.checked
        loop = node if isinstance(node, Comprehension) and is_loop(node) else None
        length = None if loop is None else self.values.length(loop, at)
        if is_comparison(checked, node) or (loop is not None and length is None):
            return _HAD if self.values.raw_value(node, at) is want else [((node, at),)]
        if loop is not None and length is not None:
            return self._of_loop(loop, [{**at, loop.id: position} for position in reversed(range(length))], want=want)
        match node:
            case Const():
                return _HAD if node.value is want else _NEVER
            case Call(function="!_", args=(inner,)):
                return self.ways(inner, at, want=not want)
            case Call(function="_&&_" | "_||_" as function, args=sides):
                ways = [self.ways(side, at, want=want) for side in sides]
                return self._together(ways) if want is (function == "_&&_") else self._any(ways)
            case Call(function="_?_:_", args=(test, *branches)):
                chosen = [self.ways(test, at, want=value) for value in (True, False)]
                results = [self.ways(branch, at, want=want) for branch in branches]
                return self._any([self._together(pair) for pair in zip(chosen, results, strict=True)])
            case Comprehension(result=result):
                return self.ways(result, at, want=want)
        return _NEVER

    def _of_loop(self, loop: Comprehension, places: Sequence[At], *, want: bool) -> Ways:
        body, _ = trace_loop(loop)
        ways = [self.ways(body, at, want=True) for at in places]
        against = [self.ways(body, at, want=False) for at in places]
        match loop.step:
            case Call(function="_||_"):
                return self._best(ways) if want else self._together(map(_shortest, against))
            case Call(function="_&&_"):
                return self._together(map(_shortest, ways)) if want else self._best(against)
            case Call(function="_?_:_"):  # exists_one
                true = [at for at, way in enumerate(ways) if _is_had(way)]
                if not want:
                    others = [against[at] if at in true else way for at, way in enumerate(ways)]
                    return self._best(others) if len(true) == 1 else _HAD
                return self._together(_shortest(against[at]) for at in true[:-1]) if true else self._best(ways)
        return _NEVER

    def _together(self, parts: Iterable[Ways]) -> Ways:
        """Return the ways in which several parts have their values together."""
        found: Ways = _HAD
        for ways in parts:
            found = self._sorted([*one, *other] for one in found for other in ways)
        return found

    def _any(self, parts: Sequence[Ways]) -> Ways:
        """Return the ways in which one of several parts has its value."""
        return _HAD if any(map(_is_had, parts)) else self._sorted(way for ways in parts for way in ways)

    def _best(self, parts: Sequence[Ways]) -> Ways:
        """Return the ways of the part that needs the fewest comparisons."""
        return min(filter(None, parts), key=lambda ways: self._weight(ways[0]), default=_NEVER)

    def _sorted(self, ways: Iterable[Comparisons]) -> Ways:
        return sorted(ways, key=self._weight)[:WAYS_MAX]

    def _weight(self, way: Comparisons) -> tuple[int, int]:
        return len(way), sum(not self._is_about_node(node) for node, _ in way)

    def _is_about_node(self, node: Node) -> bool:
        return not {path[0] for path in self.expression.part(node).paths} <= OF_POD


def _is_had(ways: Ways) -> bool:
    return bool(ways) and not ways[0]


def _shortest(ways: Ways) -> Ways:
    return ways[:1]
