"""The same explanations for what is not lowered: the engine tells no parts, so each is asked for by itself.

What stands in loops is left out, since it has no value by itself; a loop as a whole counts as a comparison.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, combinations, islice, product
from typing import Any, Final

from cel_expr_python import cel

from fairlead.cel.analysis.trace import Trace, leaves, loops_around
from fairlead.cel.check import Expression
from fairlead.cel.engine.environment import PROTECTION, environment
from fairlead.cel.syntax.ast import Call, Comprehension, Const, ListExpr, Node, walk
from fairlead.cel.syntax.ast_decode import decode
from fairlead.cel.syntax.unparse import text
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.expression_rules import with_values
from fairlead.policy.explain.counterfactuals import fewest_changes
from fairlead.policy.explain.explanation import Change, Step
from fairlead.policy.explain.format_value import can_be_shown, shown
from fairlead.policy.explain.trace_steps import ExpressionTrace
from fairlead.policy.views.faults import RAISED

TRIES: Final = 200
_OPERANDS: Final = 2


@dataclass(frozen=True)
class EngineTrace:
    """An expression whose parts are asked for one by one, for a pod and a node."""

    expression: CompiledExpression
    pod: Any
    view: Any
    now: int
    _answers: dict[str, object] = field(default_factory=dict)

    def steps(self) -> Iterator[Step]:
        """All parts with their values, the whole first."""
        seen = set[str]()
        for node, _ in self._told.parts(self._root, {}):
            written = text(node)
            value = None if written in seen else self._value(node)
            seen.add(written)
            if value is not None:
                yield Step(written, value)
        if isinstance(found := self._ask(self._root), Exception):
            yield Step("raised", with_values(found))

    def closest(self) -> list[Change]:
        """The smallest set of comparisons whose flip makes the rule pass; empty if none was found."""
        tried = chain(islice(self._attempts(), TRIES), self._reckoned())
        found: Mapping[int, bool] = next((each for each in tried if self._ask(_forced(self._root, each)) is True), {})
        return [self._flip(leaf) for leaf in self._leaves if leaf.id in found]

    @cached_property
    def _leaves(self) -> list[Node]:
        checked = self.expression.expression.checked
        nodes = {node.id: node for node in walk(checked.root)}
        outermost = (nodes[(*self._told.trace.around[leaf.id], leaf.id)[0]] for leaf in leaves(checked))
        return [node for node in dict.fromkeys(outermost) if checked.type_of(node).name == "bool"]

    @cached_property
    def _told(self) -> ExpressionTrace:
        return ExpressionTrace(self.expression.expression.checked, Trace(loops_around(self._root)))

    @cached_property
    def _environment(self) -> cel.Env:
        types = {name: variable.expression.type for name, variable in self.expression.variables.items()}
        return environment(PROTECTION, types)

    @property
    def _root(self) -> Node:
        return self.expression.expression.checked.root

    def _attempts(self) -> Iterator[Mapping[int, bool]]:
        for size in range(1, len(self._leaves) + 1):
            for chosen in combinations(self._leaves, size):
                for values in product(*(self._others(leaf) for leaf in chosen)):
                    yield {leaf.id: value for leaf, value in zip(chosen, values, strict=True)}

    def _reckoned(self) -> Iterator[Mapping[int, bool]]:
        found = fewest_changes(self.expression.expression.checked, self._root, self._ask, want=True)
        if found:
            yield found

    def _others(self, leaf: Node) -> tuple[bool, ...]:
        value = self._ask(leaf)
        return (not value,) if isinstance(value, bool) else (True, False)

    def _flip(self, leaf: Node) -> Change:
        operands = leaf.args if isinstance(leaf, Call) and len(leaf.args) <= _OPERANDS else ()
        left, right = [*map(self._value, operands), None, None][:_OPERANDS]
        return Change(text(leaf), self._value(leaf), left, right)

    def _value(self, node: Node) -> object:
        """As it is shown; None if there is none."""
        value = node.value if isinstance(node, Const) else self._ask(node)
        if isinstance(value, Exception) or not can_be_shown(value):
            return None
        return shown(value, self._told.checked.type_of(node))

    def _ask(self, node: Node) -> object:
        """The value of a part, or the error that it raised."""
        written = text(node)
        if written not in self._answers:
            self._answers[written] = self._answer(written)
        return self._answers[written]

    def _answer(self, written: str) -> object:
        try:
            compiled = self._environment.compile(written)
        except RuntimeError as error:  # a name that something around it binds
            return error
        checked = decode(compiled.serialize())
        part = Expression(written, checked.type_of(checked.root), checked, compiled)
        try:
            return CompiledExpression(part, self.expression.variables).for_pod(self.pod)(self.view, self.now)
        except RAISED as error:
            return error


def _forced(node: Node, values: Mapping[int, bool]) -> Node:
    """The same with these values written out, wherever a leaf can stand."""
    if node.id in values:
        return Const(node.id, values[node.id])
    match node:
        case Call():
            return replace(node, args=tuple(_forced(arg, values) for arg in node.args))
        case ListExpr():
            return replace(node, elements=tuple(_forced(element, values) for element in node.elements))
        case Comprehension():
            held, init, result = (_forced(part, values) for part in (node.range, node.init, node.result))
            return replace(node, range=held, init=init, result=result)
    return node
