"""Parts of an expression with the values that they had in one evaluation.

Lowered code records them. The engine returns the value of a whole expression only, so on it each part is compiled and
evaluated by itself. The body of a loop has no value by itself and is left out there; a loop counts as a comparison.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from cel_expr_python import cel
from msgspec import Struct

from fairlead.cel.analysis.trace import Place, ValueTrace, is_loop, loops_around
from fairlead.cel.check import Expression
from fairlead.cel.engine.environment import PROTECTION, environment
from fairlead.cel.syntax.ast import Call, Checked, Comprehension, Const, Ident, ListExpr, Node, children, walk
from fairlead.cel.syntax.ast_decode import decode
from fairlead.cel.syntax.unparse import optional_macro, text
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.expression_rules import with_values
from fairlead.policy.explain.explanation import Element, Step
from fairlead.policy.explain.format_value import can_be_shown, format_value
from fairlead.policy.explain.units import unit_of
from fairlead.policy.views.faults import RAISED
from fairlead.policy.views.placed_pod import PlacedPod

RAISED_STEP: Final = "raised"
"""Text of the step whose value is the message of what an expression raised."""
_NOTHING: Final = object()
At = Mapping[int, int]
"""Positions of elements, by the id of their loop."""


def steps(expression: CompiledExpression, pod: Any, view: Any, now: int) -> Iterator[Step]:
    """Yield all parts with their values, the whole first, without literals; of loops the element that decided."""
    result, trace = expression.traced(pod)(view, now)
    traced = ExpressionTrace(expression.expression.checked, trace)
    seen = set[tuple[str, tuple[Element, ...]]]()
    for node, at in traced.parts(traced.checked.root, {}):
        key = text(node), traced.elements(node, at)
        if traced.has_value(node, at) and key not in seen:
            seen.add(key)
            yield Step(key[0], traced.value(node, at), key[1], unit=unit_of(node, expression))
    if isinstance(result, Exception):
        yield Step(RAISED_STEP, with_values(result))


@dataclass(frozen=True, slots=True)
class ExpressionTrace:
    """An expression with the trace of one evaluation."""

    checked: Checked
    trace: ValueTrace
    loops: Mapping[int, tuple[str, Comprehension]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "loops", _loops(self.checked.root))

    def place(self, node: Node, at: At) -> Place:
        """Return the key of a part's value in the trace."""
        return node.id, *[at.get(loop, -1) for loop in self.trace.around[node.id]]

    def raw_value(self, node: Node, at: At) -> object:
        """Return the value of a part as CEL has it, or a marker if it has none."""
        return node.value if isinstance(node, Const) else self.trace.values.get(self.place(node, at), _NOTHING)

    def has_value(self, node: Node, at: At) -> bool:
        """Report whether a part has a value that can be shown."""
        value = self.raw_value(node, at)
        is_element = isinstance(node, Ident) and isinstance(value, PlacedPod)  # the loop has named it already
        return value is not _NOTHING and not is_element and can_be_shown(value)

    def value(self, node: Node, at: At) -> object:
        """Return the value of a part as it is shown, or None if it has none."""
        return format_value(self.raw_value(node, at), self.checked.type_of(node)) if self.has_value(node, at) else None

    def length(self, loop: Comprehension, at: At) -> int:
        """Return how many elements a loop came to."""
        return len(self.trace.elements.get(self.place(loop, at), ()))

    def elements(self, node: Node, at: At) -> tuple[Element, ...]:
        """Return the elements of the loops around a part, the outermost first."""
        found = []
        around = self.trace.around[node.id]
        for depth, id_ in enumerate(around):
            seen = self.trace.elements.get((id_, *[at.get(loop, -1) for loop in around[:depth]]), ())
            position = at.get(id_, -1)
            if 0 <= position < len(seen):
                written, loop = self.loops[id_]
                is_key = self.checked.type_of(loop.range).name == "map"
                found.append(Element(written, position, _name(seen[position][0 if is_key else -1])))
        return tuple(found)

    def parts(self, node: Node, at: At) -> Iterator[tuple[Node, At]]:
        """Yield the parts worth showing: neither literals nor what macros expand to."""
        if not _is_literal(node) and not _is_of_macro(node):
            yield node, at
        macro = optional_macro(node)
        for child in children(node) if macro is None else (macro.operand, macro.body):
            if not is_loop(node) or child is not node.step:
                yield from self.parts(child, at)
            elif (position := self._deciding(node, at)) is not None:
                yield from self.parts(child, {**at, node.id: position})

    def _deciding(self, loop: Comprehension, at: At) -> int | None:
        """Return the element that decided a loop's result, else the last one; None if there is none."""
        positions = range(self.length(loop, at))
        body, wanted = trace_loop(loop)
        if self.raw_value(loop, at) is _NOTHING:  # it raised
            wanted = _NOTHING
        found = [one for one in positions if self.raw_value(body, {**at, loop.id: one}) is wanted]
        return found[-1] if found else positions[-1] if positions else None


def trace_loop(loop: Comprehension) -> tuple[Node, object]:
    """Return what a loop evaluates for each element, and the value that decides."""
    match loop.step:
        case Call(function="_||_", args=(_, test)):
            return test, True
        case Call(function="_&&_", args=(_, test)):
            return test, False
        case Call(function="_?_:_", args=(test, _, _)):
            return test, True
        case Call(function="_+_", args=(_, ListExpr(elements=(element,)))):
            return element, None
    return loop.step, None


def _loops(root: Node) -> Mapping[int, tuple[str, Comprehension]]:
    """Return the loops by id, each with the text of its range."""
    inputs: dict[str, str] = {}  # ranges that macros bind to a name of their own
    found: dict[int, tuple[str, Comprehension]] = {}
    for node in walk(root):
        if not isinstance(node, Comprehension):
            continue
        if is_loop(node):
            written = text(node.range)
            found[node.id] = inputs.get(written, written), node
        elif node.accumulator.startswith("@"):
            inputs[node.accumulator] = text(node.init)
    return found


def _name(value: object) -> str:
    match value:
        case PlacedPod():
            return f"{value.namespace}/{value.name}"
        case Struct():
            name = getattr(value, "name", None) or getattr(getattr(value, "metadata", None), "name", None)
            return str(name or "")
        case str() | int():
            return str(value)
    return ""


def _is_literal(node: Node) -> bool:
    return isinstance(node, Const) or (isinstance(node, ListExpr) and all(map(_is_literal, node.elements)))


def _is_of_macro(node: Node) -> bool:
    """Report whether a macro wrote this part, and not the user."""
    match node:
        case Ident(name=name):
            return name.startswith("@")
        case Comprehension(range=Ident(name=name)) if name.startswith("@"):
            return True
        case Call(args=args):
            return any(isinstance(arg, Ident) and arg.name.startswith("@") for arg in args)
    return False


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
        for node, at in ExpressionTrace(self._checked, ValueTrace(loops_around(self._checked.root))).parts(
            self._checked.root, {}
        ):
            written = text(node)
            value = None if written in seen else self.value(node, at)
            seen.add(written)
            if value is not None:
                yield Step(written, value, unit=unit_of(node, self.expression))
        if isinstance(found := self.raw_value(self._checked.root, {}), Exception):
            yield Step(RAISED_STEP, with_values(found))

    def raw_value(self, node: Node, _: At) -> object:
        """Return the value of a part, or the error that it raised."""
        if isinstance(node, Const):
            return node.value
        written = text(node)
        if written not in self._known:
            self._known[written] = self._evaluated(written)
        return self._known[written]

    def value(self, node: Node, at: At) -> object:
        """Return the value of a part as it is shown, or None if it has none."""
        value = self.raw_value(node, at)
        if isinstance(value, Exception) or not can_be_shown(value):
            return None
        return format_value(value, self._checked.type_of(node))

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
