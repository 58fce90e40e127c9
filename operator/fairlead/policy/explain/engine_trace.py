"""Values of the parts of an expression that is not lowered.

The engine returns the value of a whole expression only, so each part is compiled and evaluated by itself. The body of
a loop has no value by itself and is left out; a loop as a whole counts as a comparison.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cel_expr_python import cel

from fairlead.cel.analysis.trace import Trace, loops_around
from fairlead.cel.check import Expression
from fairlead.cel.engine.environment import PROTECTION, environment
from fairlead.cel.syntax.ast import Checked, Comprehension, Const, Node
from fairlead.cel.syntax.ast_decode import decode
from fairlead.cel.syntax.unparse import text
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.expression_rules import with_values
from fairlead.policy.explain.explanation import Element, Step
from fairlead.policy.explain.format_value import can_be_shown, shown
from fairlead.policy.explain.trace_steps import At, ExpressionTrace
from fairlead.policy.views.faults import RAISED


@dataclass(frozen=True)
class EngineTrace:
    """An expression whose parts are evaluated one by one, for one pod and one node."""

    expression: CompiledExpression
    pod: Any
    view: Any
    now: int
    _known: dict[str, object] = field(default_factory=dict)

    def steps(self) -> Iterator[Step]:
        """Yield all parts with their values, the whole first."""
        seen = set[str]()
        for node, at in ExpressionTrace(self._checked, Trace(loops_around(self._checked.root))).parts(
            self._checked.root, {}
        ):
            written = text(node)
            value = None if written in seen else self.value(node, at)
            seen.add(written)
            if value is not None:
                yield Step(written, value)
        if isinstance(found := self.held(self._checked.root, {}), Exception):
            yield Step("raised", with_values(found))

    def held(self, node: Node, _: At) -> object:
        """Return the value of a part, or the error that it raised."""
        if isinstance(node, Const):
            return node.value
        written = text(node)
        if written not in self._known:
            self._known[written] = self._evaluated(written)
        return self._known[written]

    def value(self, node: Node, at: At) -> object:
        """Return the value of a part as it is shown, or None if it has none."""
        value = self.held(node, at)
        if isinstance(value, Exception) or not can_be_shown(value):
            return None
        return shown(value, self._checked.type_of(node))

    def elements(self, _: Node, __: At) -> Sequence[Element]:
        """Return no elements: no part of a loop has a value."""
        return ()

    def length(self, _: Comprehension, __: At) -> None:
        """Return None: a loop has a value only as a whole."""

    @property
    def _checked(self) -> Checked:
        return self.expression.expression.checked

    @cached_property
    def _environment(self) -> cel.Env:
        types = {name: variable.expression.type for name, variable in self.expression.variables.items()}
        return environment(PROTECTION, types)

    def _evaluated(self, written: str) -> object:
        try:
            compiled = self._environment.compile(written)
        except RuntimeError as error:  # it names what a macro around it binds
            return error
        checked = decode(compiled.serialize())
        part = Expression(written, checked.type_of(checked.root), checked, compiled)
        try:
            return CompiledExpression(part, self.expression.variables).for_pod(self.pod)(self.view, self.now)
        except RAISED as error:
            return error
