"""Facts about each node before code is written: the names it uses, whether it loops, whether it may abort."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fairlead.cel.analysis.static_types import EQUALITY, require_static_type
from fairlead.cel.syntax.ast import Call, Checked, Comprehension, Const, Ident, ListExpr, Node, StructExpr, children
from fairlead.cel.values.errors import NotLoweredError

VARIABLES: Final = "variables."
NODES_MAX: Final = 5_000
DEPTH_MAX: Final = 100

_ABORTING: Final = frozenset({"lists.range", "regex.replace"})

Names = frozenset[str]


@dataclass(slots=True)
class Analysis:
    """Facts about the nodes of one expression, by their ids."""

    names: dict[int, Names] = field(default_factory=dict)
    """Free names; a variable of the policy is replaced by the names that it uses."""
    looping: set[int] = field(default_factory=set)
    aborting: set[int] = field(default_factory=set)
    """Nodes that may end the whole evaluation other than by their loops."""
    blocks: dict[int, int] = field(default_factory=dict)
    """The deepest nesting of loops and handlers in the code of a node."""
    loops: int = 0
    nodes: int = 0
    depth: int = 0
    _kept: dict[Names, Names] = field(default_factory=dict)

    def same(self, names: Names) -> Names:
        """Return one shared set for all nodes that use these names: there are few, and they live long."""
        return self._kept.setdefault(names, names)


def analyse(checked: Checked, variables: Mapping[str, Checked]) -> Mapping[str, Analysis]:
    """Analyse an expression, stored under the empty name, and the policy's variables that it uses.

    Raises NotLoweredError if it is too large, or has a type that is known only at run time.
    """
    done: dict[str, Analysis] = {}
    _Analyser(checked, variables, done).run("")
    return done


@dataclass(frozen=True, slots=True)
class _Bound:
    """A name that a macro binds. Its value may be computed where the name stands, with its loops and aborts."""

    looping: bool = False
    aborting: bool = False


_Scope = Mapping[str, _Bound]


@dataclass(slots=True)
class _Analyser:
    checked: Checked
    variables: Mapping[str, Checked]
    done: dict[str, Analysis]
    analysis: Analysis = field(default_factory=Analysis)

    def run(self, name: str) -> Analysis:
        self.visit(self.checked.root, {}, 1, compared=True)
        self.done[name] = self.analysis
        if self.analysis.nodes > NODES_MAX:
            raise NotLoweredError(f"with the variables that it uses it has more than {NODES_MAX} nodes")
        return self.analysis

    def visit(self, node: Node, bound: _Scope, depth: int, *, compared: bool = False) -> None:
        found = self.analysis
        if depth > DEPTH_MAX:
            raise NotLoweredError(f"it is nested more than {DEPTH_MAX} levels deep")
        require_static_type(self.checked, node, compared=compared)
        found.nodes += 1
        found.depth = max(found.depth, depth)
        match node:
            case Ident():
                self.ident(node, bound, depth)
                return
            case Comprehension():
                self.fold(node, bound, depth)
            case _:
                parts = children(node)
                compares = isinstance(node, Call) and node.function in EQUALITY
                for part in parts:
                    self.visit(part, bound, depth + 1, compared=compares)
                self.merge(node, parts)
        found.blocks[node.id] = self.handlers(node) + max((found.blocks[p.id] for p in children(node)), default=0)

    def handlers(self, node: Node) -> int:
        """Return how many blocks its own code nests at most."""
        match node:
            case Comprehension():
                return 2
            case Call(function="_&&_" | "_||_"):
                return 1
        found = self.analysis
        return int(any(part.id in found.looping or part.id in found.aborting for part in children(node)))

    def merge(self, node: Node, parts: tuple[Node, ...]) -> None:
        names = self.analysis.names
        names[node.id] = self.analysis.same(frozenset().union(*(names[part.id] for part in parts)))
        if any(part.id in self.analysis.looping for part in parts):
            self.analysis.looping.add(node.id)
        if _may_abort(node) or any(part.id in self.analysis.aborting for part in parts):
            self.analysis.aborting.add(node.id)

    def ident(self, node: Ident, bound: _Scope, depth: int) -> None:
        found = self.analysis
        found.blocks[node.id] = 0
        if node.name in bound:
            found.names[node.id] = found.same(frozenset({node.name}))
            if bound[node.name].looping:
                found.looping.add(node.id)
            if bound[node.name].aborting:
                found.aborting.add(node.id)
            return
        full = self.checked.names.get(node.id, node.name)
        if not full.startswith(VARIABLES):
            found.names[node.id] = found.same(frozenset({full}))
            return
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

    def fold(self, node: Comprehension, bound: _Scope, depth: int) -> None:
        found, names = self.analysis, self.analysis.names
        depth += 1
        self.visit(node.range, bound, depth)
        self.visit(node.init, bound, depth)
        inside = {**bound, node.accumulator: _Bound()}
        is_bind = isinstance(node.range, ListExpr) and not node.range.elements
        if not is_bind:
            inside |= dict.fromkeys((node.variable, node.variable2), _Bound())
        self.visit(node.condition, inside, depth)
        self.visit(node.step, inside, depth)
        made = _Bound(is_bind and node.init.id in found.looping, is_bind and node.init.id in found.aborting)
        self.visit(node.result, {**bound, node.accumulator: made}, depth)
        within = frozenset().union(*(names[part.id] for part in (node.condition, node.step, node.result)))
        free = within - {node.variable, node.variable2, node.accumulator}
        names[node.id] = found.same(free | names[node.range.id] | names[node.init.id])
        if not is_bind:
            found.loops += 1
        if not is_bind or any(part.id in found.looping for part in children(node)):
            found.looping.add(node.id)
        if any(part.id in found.aborting for part in children(node)):
            found.aborting.add(node.id)


def _may_abort(node: Node) -> bool:
    """Return whether a node may end the evaluation by itself."""
    match node:
        case StructExpr():
            keys = {part.key.value for part in node.entries if isinstance(part.key, Const)}
            return len(keys) < len(node.entries)
        case Call(function=function):
            return function in _ABORTING
    return False
