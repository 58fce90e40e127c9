"""Lowering of a checked expression to Python, one kind of node at a time; of literals here.

Static types decide what is written: comparisons and arithmetic are Python's own wherever these do the same.

Parts that depend on the pod alone are *hoisted*: computed once for a class of pods, in the function that makes the
function for each node. If a hoisted part raises, the caller runs the plain code instead, in which it raises in its
place.
"""

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from fairlead.cel.analysis.node_facts import Analysis
from fairlead.cel.analysis.time_dependence import Watched
from fairlead.cel.analysis.weights import depends_on_data
from fairlead.cel.lowering import field_access, macros, operators, optional_access
from fairlead.cel.lowering.context import Context
from fairlead.cel.lowering.pyast import Out, Statements, any_raises, attribute, const, load, method
from fairlead.cel.syntax.ast import (
    OPTIONAL,
    Call,
    Checked,
    Comprehension,
    Const,
    Ident,
    ListExpr,
    Node,
    Select,
    StructExpr,
)
from fairlead.cel.values.errors import Abort, Kind, NotLoweredError
from fairlead.cel.values.value_types import NONE, UInt


@dataclass(slots=True, kw_only=True)
class Lowerer(Context):
    """One expression, and the variables that it uses, while they are lowered."""

    variables: Mapping[str, Checked]
    analyses: Mapping[str, Analysis]
    for_pod: Collection[str]
    """The roots that are known before any node is."""
    hoist: bool
    trace: bool = False
    """Whether to record every value."""
    watched: Watched = field(default_factory=dict)
    """The calls that note how long their values hold."""
    outer: Statements = field(default_factory=list)
    _done: dict[tuple[int, int], tuple[Out, str | None]] = field(default_factory=dict)
    _hoisting: bool = False
    _in_variable: bool = False

    def lower(self, node: Node) -> Out:
        """Write the code of an expression."""
        if self.trace and not self._in_variable:
            return self.traced(node, self._lowered(node))
        if self.hoist and not self._hoisting and self._is_hoistable(node):
            return self._hoisted(node)
        return self._lowered(node)

    def _lowered(self, node: Node) -> Out:
        match node:
            case Const():
                return constant(self, node)
            case Ident():
                return field_access.name(self, node)
            case Select() if self.type_of(node.operand).name == OPTIONAL:
                return optional_access.select_optional(self, node)
            case Select():
                return field_access.select_field(self, node)
            case Call() if noting := self.watched.get((id(self.checked), node.id)):
                args = (arg.expr for arg in self.sequence(node.args))
                return Out(self.call(noting, load("note"), *args), raises=True)
            case Call():
                return operators.call(self, node)
            case ListExpr():
                return list_of(self, node)
            case StructExpr():
                return map_of(self, node)
            case Comprehension():
                return macros.fold(self, node)
        raise NotLoweredError(type(node).__name__)

    def _is_hoistable(self, node: Node) -> bool:
        """Return whether a node depends on the pod alone and is worth a variable."""
        names = self.analysis.names[node.id]
        if not names.issubset(self.for_pod) or isinstance(node, Const) or not names.isdisjoint(self.bound):
            return False
        return not (isinstance(node, Ident) and node.name in names)

    def _hoisted(self, node: Node) -> Out:
        """Write a node in the outer function; the steps that it takes there are counted where its value is used."""
        key = (id(self.checked), node.id)
        if key not in self._done:
            inner, self.block, self._hoisting = self.block, self.outer, True
            name, steps = self.fresh("h"), None
            pays = self.estimate is not None and depends_on_data(self.checked, node)
            before, cost = self.fresh("m"), self.fresh("c")
            try:
                if pays:
                    self.assign(before, attribute(load("m"), "mark"))
                if self.has_loop(node):
                    self.assign(self.counter, const(0))
                out = self.lower(node)
                self.assign(name, out.expr)
                if self.has_loop(node) and not self.single_loop:
                    steps = self.fresh("n")
                    self.assign(steps, load(self.counter))
                if pays:
                    self.assign(cost, ast.BinOp(load(before), ast.Sub(), attribute(load("m"), "mark")))
            finally:
                self.block, self._hoisting = inner, False
            value = method(load("m"), "again", load(cost), load(name))
            self._done[key] = (Out(value, raises=True) if pays else Out(load(name)), steps)
        out, steps = self._done[key]
        if steps is not None:
            self.count_step(load(steps))
        return out

    def variable(self, name: str) -> Out:
        """Write the code of a variable in place: its own evaluation, with its own budget of steps."""
        outer = self.checked, self.analysis, self.counter, self.bound, self._in_variable
        self.checked, self.analysis = self.variables[name], self.analyses[name]
        self.counter, self.bound, self._in_variable = self.fresh("steps"), {}, True
        root = self.checked.root
        try:
            with self.inside() as block:
                out = self.lower(root)
            if self.has_loop(root):
                self.assign(self.counter, const(0))
            self.block += block
        finally:
            self.checked, self.analysis, self.counter, self.bound, self._in_variable = outer
        return out

    def entering(self, loop: int, element: Sequence[ast.expr]) -> Statements:
        """Write code that records the element a loop is at."""
        if not self.trace or self._in_variable:
            return []
        return [ast.Expr(ast.Call(load("enter"), [const(loop), *element], []))]

    def traced(self, node: Node, out: Out) -> Out:
        """Write code that records the value of an expression."""
        if not self.trace or self._in_variable or isinstance(node, Const):
            return out
        return Out(ast.Call(load("record"), [const(node.id), out.expr], []), out.raises)


def constant(lo: Context, node: Const) -> Out:
    """Write a constant."""
    if isinstance(node.value, UInt):
        return Out(lo.ref(node.value))
    return Out(const(node.value))


def list_of(lo: Context, node: ListExpr) -> Out:
    """Write `[a, ?b]`."""
    parts = lo.sequence(node.elements)
    elements: list[ast.expr] = [
        ast.Starred(lo.call(listed, part.expr), ast.Load()) if at in node.optional else part.expr
        for at, part in enumerate(parts)
    ]
    return Out(ast.List(elements, ast.Load()), any_raises(*parts))


def listed(optional: object) -> Sequence[object]:
    """Return the elements that an optional adds to a list."""
    return () if optional is NONE else (optional.value,)  # type: ignore[attr-defined]


def map_of(lo: Context, node: StructExpr) -> Out:
    """Write `{key: value, ?key: value}`."""
    if node.message:
        raise NotLoweredError(f"an object of type {node.message}")
    keys = [entry.key for entry in node.entries if isinstance(entry.key, Node)]
    parts = lo.sequence([part for entry, key in zip(node.entries, keys, strict=True) for part in (key, entry.value)])
    made_keys = [lo.key(key, part) for key, part in zip(keys, parts[::2], strict=True)]
    values = [part.expr for part in parts[1::2]]
    texts = {key.value for key in keys if isinstance(key, Const) and isinstance(key.value, str)}
    if len(texts) == len(keys) and not any(entry.optional for entry in node.entries):
        return Out(ast.Dict(list(made_keys), values), any_raises(*parts))
    flags = const(tuple(entry.optional for entry in node.entries))
    made = lo.call(make_map, ast.Tuple(made_keys, ast.Load()), ast.Tuple(values, ast.Load()), flags)
    return Out(made, any_raises(*parts) or lo.may_abort(node))


def make_map(keys: Sequence[object], values: Sequence[object], optional: Sequence[bool]) -> dict[object, object]:
    """Make a map of which keys may be equal or values absent. Raises Abort for a key that stands twice."""
    made: dict[object, object] = {}
    for key, value, is_optional in zip(keys, values, optional, strict=True):
        if is_optional and value is NONE:
            continue
        if key in made:
            raise Abort(Kind.DUPLICATE_KEY, f"the key {key!r} stands twice in a map")
        made[key] = value.value if is_optional else value  # type: ignore[attr-defined]
    return made
