"""What would have to be otherwise for a rule to pass: the smallest set of comparisons, each tried by applying it.

A comparison in a loop is turned for one of the elements, or for all of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, islice, product
from typing import Any, Final, TypeAlias

from fairlead.cel.analysis.cost import OF_POD
from fairlead.cel.analysis.trace import Place, Trace, is_leaf, is_loop, leaves
from fairlead.cel.syntax.ast import Call, Checked, Comprehension, Const, ListExpr, Node
from fairlead.cel.syntax.unparse import text
from fairlead.cel.values.errors import NotLoweredError
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.explain.explanation import Change
from fairlead.policy.explain.trace_steps import At, ExpressionTrace

Turned: TypeAlias = Mapping[int, bool]
"""Leaves, with what they are made to come to."""
_NONE: Final[Turned] = {}


def fewest_changes(checked: Checked, node: Node, value: Callable[[Node], object], *, want: bool) -> Turned | None:
    """What to turn for an expression to come to this; None if nothing would do. A loop is taken for all its elements.

    A leaf whose value is no bool (it raised, or has several) has to be turned for either outcome.
    """

    def both(parts: Iterable[Node], *, want: bool) -> Turned | None:
        merged: dict[int, bool] = {}
        for part in parts:
            found = fewest_changes(checked, part, value, want=want)
            if found is None:
                return None
            merged |= found
        return merged

    def one(ways: Iterable[Turned | None]) -> Turned | None:
        return min((way for way in ways if way is not None), key=len, default=None)

    if is_leaf(checked, node):
        return _NONE if value(node) is want else {node.id: want}
    match node:
        case Const():
            return _NONE if node.value is want else None
        case Call(function="!_", args=(inner,)):
            return fewest_changes(checked, inner, value, want=not want)
        case Call(function="_&&_" | "_||_" as function, args=sides):
            if want is (function == "_&&_"):
                return both(sides, want=want)
            return one(fewest_changes(checked, side, value, want=want) for side in sides)
        case Call(function="_?_:_", args=(test, *branches)):
            tests = (fewest_changes(checked, test, value, want=chosen) for chosen in (True, False))
            results = (fewest_changes(checked, branch, value, want=want) for branch in branches)
            return one(
                None if chosen is None or found is None else {**chosen, **found}
                for chosen, found in zip(tests, results, strict=True)
            )
        case Comprehension(step=Call(args=(first, second, *_)) as step) if is_loop(node):
            tested = first if step.function == "_?_:_" else second
            return fewest_changes(checked, tested, value, want=want)
        case Comprehension(result=result, range=ListExpr()):
            return fewest_changes(checked, result, value, want=want)
    return None


TRIES: Final = 2_000
ELEMENTS: Final = 20
"""Of loops, that are tried by themselves."""

_OPERANDS: Final = 2


def minimal_changes(expression: CompiledExpression, pod: Any, view: Any, now: int) -> list[Change]:
    """The smallest set of comparisons whose flip makes the rule pass; empty if none was found.

    Of sets of one size those come first that are about the node: a pod is what it is.
    """
    search = _Search(expression, pod, view, now)
    attempts = chain(islice(search.attempts(), TRIES), search.reckoned())
    found = next((each for each in attempts if search.passes(each)), None)
    return [] if found is None else [search.flip(node, found) for node in found.nodes]


@dataclass(frozen=True, slots=True)
class _Attempt:
    """Comparisons, with what they are made to come to: at these elements of loops, or everywhere."""

    nodes: Sequence[Node]
    values: Sequence[bool]
    at: At

    def force(self, but: Node | None = None) -> Mapping[int, bool]:
        """What is given to the evaluation."""
        pairs = zip(self.nodes, self.values, strict=True)
        return {node.id: value for node, value in pairs if node is not but}


@dataclass(frozen=True)
class _Search:
    expression: CompiledExpression
    pod: Any
    view: Any
    now: int

    @cached_property
    def told(self) -> Trace:
        return self._run({}, {})[1]

    def attempts(self) -> Iterator[_Attempt]:
        """All that can be tried, fewest comparisons first."""
        candidates = sorted(leaves(self.expression.expression.checked), key=lambda leaf: not self._is_about_node(leaf))
        for size in range(1, len(candidates) + 1):
            for nodes in combinations(candidates, size):
                for at in self._elements(nodes):
                    for values in product(*(self._others(node, at) for node in nodes)):
                        yield _Attempt(nodes, values, at)

    def reckoned(self) -> Iterator[_Attempt]:
        """What is left where there are more sets than can be tried."""
        checked = self.expression.expression.checked
        turned = fewest_changes(checked, checked.root, self._alone, want=True)
        if turned:
            nodes = [leaf for leaf in leaves(checked) if leaf.id in turned]
            yield _Attempt(nodes, [turned[node.id] for node in nodes], {})

    def passes(self, attempt: _Attempt) -> bool:
        """Try it."""
        return self._run(attempt.force(), attempt.at)[0] is True

    def flip(self, node: Node, attempt: _Attempt) -> Change:
        """What is said of one of the comparisons: with the others turned, so that it is come to."""
        told = ExpressionTrace(self.expression.expression.checked, self._run(attempt.force(but=node), attempt.at)[1])
        everywhere = bool(self.told.around[node.id]) and not attempt.at
        at = self._against(node, attempt, told) if everywhere else attempt.at
        operands = node.args if isinstance(node, Call) and len(node.args) <= _OPERANDS else ()
        values = [told.value(operand, at) for operand in operands]
        left, right = [*values, None, None][:_OPERANDS]
        return Change(text(node), told.value(node, at), left, right, told.elements(node, at), everywhere)

    def _elements(self, nodes: Sequence[Node]) -> Iterator[At]:
        """Where to turn them: at elements that their loops came to, the last one first, and then at all of them."""
        around = sorted({self.told.around[node.id] for node in nodes} - {()})
        if around:
            for chosen in islice(product(*(_come_to(self.told, loops) for loops in around)), ELEMENTS):
                yield {loop: position for at in chosen for loop, position in at.items()}
        yield {}

    def _alone(self, leaf: Node) -> object:
        """The value of a leaf, also where `&&` and `||` did not come to it."""
        try:
            return self.expression.part(leaf).traced(self.pod)(self.view, self.now)[0]
        except NotLoweredError:  # it names what a macro around it binds
            return self.told.values.get((leaf.id,))

    def _others(self, node: Node, at: At) -> Sequence[bool]:
        """What else it could come to."""
        place = node.id, *[at.get(loop, -1) for loop in self.told.around[node.id]]
        value = self.told.values.get(place)
        return (not value,) if isinstance(value, bool) else (True, False)

    def _against(self, node: Node, attempt: _Attempt, told: ExpressionTrace) -> At:
        """An element for which a comparison is otherwise than it would have to be."""
        wanted, around = attempt.force()[node.id], self.told.around[node.id]
        against = [at for at in _come_to(told.trace, around) if told.held(node, at) is not wanted]
        ended = [*_come_to(self._run(attempt.force(), attempt.at)[1], around)][:1]
        return next(iter([at for at in ended if at in against] + against), {})

    def _run(self, force: Mapping[int, bool], at: At) -> tuple[Any, Trace]:
        return self.expression.traced(self.pod, force, at)(self.view, self.now)

    def _is_about_node(self, leaf: Node) -> bool:
        return not {path[0] for path in self.expression.part(leaf).paths} <= OF_POD


def _come_to(trace: Trace, loops: Place) -> Iterator[At]:
    """The elements that the innermost of some loops came to, the last one first."""
    found = [
        dict(zip(loops, (*place[1:], position), strict=True))
        for place, elements in trace.elements.items()
        if place[0] == loops[-1]
        for position in range(len(elements))
    ]
    yield from [*found[-1:], *found[:-1]]
