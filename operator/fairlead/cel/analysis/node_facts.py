"""What is known of each node before any code is written: its type, the names it uses, whether it loops or may abort."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fairlead.cel.analysis.inference import elements, hides, inferred_type, join
from fairlead.cel.syntax.ast import (
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
from fairlead.cel.values.errors import NotLoweredError

VARIABLES: Final = "variables."
NODES_MAX: Final = 5_000
DEPTH_MAX: Final = 100

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
    _kept: dict[Names, Names] = field(default_factory=dict)

    def same(self, names: Names) -> Names:
        """One for all nodes that use these: there are few of them, and they live as long as the policy."""
        return self._kept.setdefault(names, names)


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
                type_ = inferred_type(self.checked, node, types)
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
        names[node.id] = self.found.same(frozenset().union(*(names[part.id] for part in parts)))
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
                return type_ == DYN or (type_.name == OPTIONAL and hides(type_))
            case Call(function="_?._", args=(operand, _)):
                return hides(types[operand.id])
            case Call(function=function):
                return function in _ABORTING
        return False

    def ident(self, node: Ident, bound: _Scope, depth: int) -> Type:
        found = self.found
        found.blocks[node.id] = 0
        if node.name in bound:
            found.names[node.id] = found.same(frozenset({node.name}))
            if bound[node.name].looping:
                found.looping.add(node.id)
            if bound[node.name].aborting:
                found.aborting.add(node.id)
            return bound[node.name].type
        full = self.checked.names.get(node.id, node.name)
        if not full.startswith(VARIABLES):
            found.names[node.id] = found.same(frozenset({full}))
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
            inside |= {name: _Bound(element) for name, element in elements(node, range_type).items()}
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
        names[node.id] = found.same(free | names[node.range.id] | names[node.init.id])
        if not is_bind:
            found.loops += 1
        if not is_bind or any(part.id in found.looping for part in children(node)):
            found.looping.add(node.id)
        if any(part.id in found.aborting for part in children(node)):
            found.aborting.add(node.id)
        return type_
