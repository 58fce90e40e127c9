"""What is known of each node before any code is written: its type at run time, the names it uses, whether it loops.

The checker's types are promises about expressions, not about values: `[1] + dyn(['a'])` is a list of int to it. Native
code needs to know what a value surely is, so that types are inferred once more here, from the facts upwards, and
whatever `dyn` has touched is `dyn`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Final

from fairlead.cel.checked import (
    DYN,
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
    Type,
    children,
)
from fairlead.cel.lowering.builder import NotLoweredError

VARIABLES: Final = "variables."
NODES_MAX: Final = 5_000
DEPTH_MAX: Final = 100

NEVER: Final = Type("never")  # of the elements of an empty list
BOOL: Final = Type("bool")
INT: Final = Type("int")
_SCALARS: Final = frozenset(
    {"bool", "int", "uint", "double", "string", "bytes", "null", "timestamp", "duration", "type"}
)
_ARITHMETIC: Final = frozenset(
    {"_+_", "_-_", "_*_", "_/_", "_%_", "-_", "math.@max", "math.@min", "math.abs", "math.sign"}
)
_KEEP_FIRST: Final = frozenset({"sort", "@sortByAssociatedKeys", "slice", "distinct", "reverse"})
_ABORTING: Final = frozenset({"lists.range", "regex.replace"})

Names = frozenset[str]


@dataclass(slots=True)
class Analysis:
    """What is known of the nodes of one expression, by their ids."""

    types: dict[int, Type] = field(default_factory=dict)
    names: dict[int, Names] = field(
        default_factory=dict
    )  # free names, the policy's variables replaced by what they use
    looping: set[int] = field(default_factory=set)
    aborting: set[int] = field(default_factory=set)  # what may end the whole evaluation, other than by its loops
    blocks: dict[int, int] = field(default_factory=dict)  # loops and handlers within one another, at most
    loops: int = 0
    nodes: int = 0
    depth: int = 0


def join(one: Type, other: Type) -> Type:
    """The type of a value that is of one of two types."""
    if one == other or other == NEVER:
        return one
    if one == NEVER:
        return other
    if one.name == other.name and one.params and len(one.params) == len(other.params):
        return Type(one.name, tuple(join(a, b) for a, b in zip(one.params, other.params, strict=True)))
    return DYN


def analyse(checked: Checked, variables: Mapping[str, Checked]) -> Mapping[str, Analysis]:
    """Analyse an expression, known as the empty name, and the policy's variables that it uses."""
    done: dict[str, Analysis] = {}
    _Analyser(checked, variables, done).run("")
    return done


@dataclass(frozen=True, slots=True)
class _Bound:
    """What a macro binds. Its value may be computed where the name stands, with all that this entails."""

    type: Type
    looping: bool = False
    aborting: bool = False


_Scope = Mapping[str, _Bound]


@dataclass(slots=True)
class _Analyser:
    checked: Checked
    variables: Mapping[str, Checked]
    done: dict[str, Analysis]
    found: Analysis = field(default_factory=Analysis)

    def run(self, name: str) -> Analysis:
        self.visit(self.checked.root, {}, 1)
        self.done[name] = self.found
        if self.found.nodes > NODES_MAX:
            raise NotLoweredError(f"with the variables that it uses it has more than {NODES_MAX} nodes")
        return self.found

    def visit(self, node: Node, bound: _Scope, depth: int) -> Type:
        found = self.found
        if depth > DEPTH_MAX:
            raise NotLoweredError(f"it is nested more than {DEPTH_MAX} levels deep")
        found.nodes += 1
        found.depth = max(found.depth, depth)
        match node:
            case Ident():
                type_ = self.ident(node, bound, depth)
            case Comprehension():
                type_ = self.fold(node, bound, depth)
            case _:
                parts = children(node)
                types = [self.visit(part, bound, depth + 1) for part in parts]
                type_ = self.combined(node, types)
                self.merge(node, parts)
        found.types[node.id] = type_
        if not isinstance(node, Ident):
            found.blocks[node.id] = self.handlers(node) + max((found.blocks[p.id] for p in children(node)), default=0)
        return type_

    def handlers(self, node: Node) -> int:
        """How many blocks its code stands in, at most."""
        match node:
            case Comprehension():
                return 2
            case Call(function="_&&_" | "_||_"):
                return 1
        found = self.found
        return int(any(part.id in found.looping or part.id in found.aborting for part in children(node)))

    def merge(self, node: Node, parts: tuple[Node, ...]) -> None:
        names = self.found.names
        names[node.id] = frozenset().union(*(names[part.id] for part in parts)) if parts else frozenset()
        if any(part.id in self.found.looping for part in parts):
            self.found.looping.add(node.id)
        if self.may_abort(node) or any(part.id in self.found.aborting for part in parts):
            self.found.aborting.add(node.id)

    def may_abort(self, node: Node) -> bool:
        """Whether it may end the evaluation by itself."""
        types = self.found.types
        match node:
            case StructExpr():
                keys = {part.key.value for part in node.entries if isinstance(part.key, Const)}
                return len(keys) < len(node.entries)
            case Select(operand=operand):
                type_ = types[operand.id]
                return type_ == DYN or (type_.name == OPTIONAL and _hides(type_))
            case Call(function="_?._", args=(operand, _)):
                return _hides(types[operand.id])
            case Call(function=function):
                return function in _ABORTING
        return False

    def ident(self, node: Ident, bound: _Scope, depth: int) -> Type:
        found = self.found
        found.blocks[node.id] = 0
        if node.name in bound:
            found.names[node.id] = frozenset({node.name})
            if bound[node.name].looping:
                found.looping.add(node.id)
            if bound[node.name].aborting:
                found.aborting.add(node.id)
            return bound[node.name].type
        full = self.checked.names.get(node.id, node.name)
        if not full.startswith(VARIABLES):
            found.names[node.id] = frozenset({full})
            return self.checked.type_of(node)
        name = full.removeprefix(VARIABLES)
        if (inner := self.done.get(name)) is None:
            inner = _Analyser(self.variables[name], self.variables, self.done).run(name)
        root = self.variables[name].root
        found.names[node.id] = inner.names[root.id]
        found.blocks[node.id] = inner.blocks[root.id]
        if root.id in inner.looping or root.id in inner.aborting:
            found.aborting.add(node.id)
        found.nodes += inner.nodes
        found.loops += inner.loops
        found.depth = max(found.depth, depth + inner.depth)
        if found.depth > DEPTH_MAX:
            raise NotLoweredError(f"with the variables that it uses it is nested more than {DEPTH_MAX} levels deep")
        return inner.types[root.id]

    def fold(self, node: Comprehension, bound: _Scope, depth: int) -> Type:
        found, names = self.found, self.found.names
        depth += 1
        range_type = self.visit(node.range, bound, depth)
        init = self.visit(node.init, bound, depth)
        inside = dict(bound)
        is_bind = isinstance(node.range, ListExpr) and not node.range.elements
        if not is_bind:
            inside |= {name: _Bound(element) for name, element in _elements(node, range_type).items()}
        inside[node.accumulator] = _Bound(init)
        self.visit(node.condition, inside, depth)
        step = self.visit(node.step, inside, depth)
        made = _Bound(join(init, step))
        if is_bind:
            made = _Bound(init, node.init.id in found.looping, node.init.id in found.aborting)
        inside = {**bound, node.accumulator: made}
        type_ = self.visit(node.result, inside, depth)
        within = frozenset().union(*(names[part.id] for part in (node.condition, node.step, node.result)))
        free = within - {node.variable, node.variable2, node.accumulator}
        names[node.id] = free | names[node.range.id] | names[node.init.id]
        if not is_bind:
            found.loops += 1
        if not is_bind or any(part.id in found.looping for part in children(node)):
            found.looping.add(node.id)
        if any(part.id in found.aborting for part in children(node)):
            found.aborting.add(node.id)
        return type_

    def combined(self, node: Node, types: list[Type]) -> Type:
        static = self.checked.type_of(node)
        match node:
            case Const():
                return static
            case Select(test_only=test_only):
                return BOOL if test_only else self.selected(node, types[0], static)
            case ListExpr(optional=optional):
                parts = (_param(type_) if at in optional else type_ for at, type_ in enumerate(types))
                return Type("list", (reduce(join, parts, NEVER),))
            case StructExpr(message=""):
                values = (
                    _param(type_) if entry.optional else type_
                    for entry, type_ in zip(node.entries, types[1::2], strict=True)
                )
                return Type("map", (reduce(join, types[::2], NEVER), reduce(join, values, NEVER)))
            case Call():
                return self.called(node, types, static)
        return static

    def selected(self, node: Select, operand: Type, static: Type) -> Type:
        if operand.name == "map":
            return operand.params[1]
        if operand.name == OPTIONAL:
            return Type(OPTIONAL, (_looked_up(operand, static),))
        return static if operand == self.checked.type_of(node.operand) else DYN

    def called(self, node: Call, types: list[Type], static: Type) -> Type:
        first = types[0] if types else DYN
        match node.function:
            case "_?_:_":
                return join(types[1], types[2])
            case "_[_]" if first.name in ("list", "map"):
                return first.params[-1]
            case "_[?_]" | "_?._":
                return Type(OPTIONAL, (_looked_up(first, static),))
            case "orValue":
                return join(_param(first), types[1]) if first.name == OPTIONAL else DYN
            case "or":
                return join(first, types[1]) if first.name == OPTIONAL else DYN
            case "value":
                return _param(first)
            case "optional.of" | "optional.ofNonZeroValue":
                return Type(OPTIONAL, (first,))
            case "optional.none":
                return Type(OPTIONAL, (NEVER,))
            case "_+_" if first.name == "list" and types[1].name == "list":
                return join(first, types[1])
            case name if name in _KEEP_FIRST and first.name in ("list", "string"):
                return first
        args = zip(types, node.args, strict=True)
        if all(type_ == self.checked.type_of(arg) and not _hides(type_) for type_, arg in args):
            return static
        return static if static.name in _SCALARS and node.function not in _ARITHMETIC else _weakened(static)


def _looked_up(held: Type, static: Type) -> Type:
    if held.name == OPTIONAL:
        held = _param(held)
    if held.name in ("list", "map"):
        return held.params[-1]
    return DYN if held in (DYN, NEVER) or held.name == OPTIONAL else _param(static)


def _param(type_: Type) -> Type:
    return type_.params[0] if type_.name == OPTIONAL and type_.params else DYN


def _hides(type_: Type) -> bool:
    """Whether there may be values in it whose type is not known."""
    return type_ in (DYN, NEVER) or any(map(_hides, type_.params))


def _weakened(static: Type) -> Type:
    if static.name in ("list", "map", OPTIONAL):
        return Type(static.name, (DYN,) * len(static.params))
    return DYN


def _elements(node: Comprehension, range_type: Type) -> Mapping[str, Type]:
    if range_type.name not in ("list", "map"):
        return {node.variable: DYN, node.variable2: DYN} if node.variable2 else {node.variable: DYN}
    if not node.variable2:
        return {node.variable: range_type.params[0]}
    first = INT if range_type.name == "list" else range_type.params[0]
    return {node.variable: first, node.variable2: range_type.params[-1]}
