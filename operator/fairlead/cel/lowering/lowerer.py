"""From the checked expression to Python, one kind of node at a time.

The static types that the checker found decide what is written: comparisons and arithmetic of one type are native,
only values of type `dyn` are asked for their class when they are there.

What depends on the pod alone is *hoisted*: computed once for a class of pods, in the function that makes the function
that is called for each node. If a hoisted part raises, the caller takes the plain code instead, in which it raises
where it stands.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from fairlead.cel.checked import Call, Checked, Comprehension, Const, Ident, ListExpr, Node, Select, StructExpr
from fairlead.cel.lowering import access, literals, macros, operators
from fairlead.cel.lowering.builder import NotLoweredError, Out, Statements, const, load
from fairlead.cel.lowering.context import Context, has_loop
from fairlead.cel.lowering.scope import hoistable, roots_of


@dataclass(slots=True, kw_only=True)
class Lowerer(Context):
    """One expression, and the variables that it uses, being lowered."""

    for_pod: Collection[str]  # the roots that are there before any node is
    hoist: bool
    outer: Statements = field(default_factory=list)
    _done: dict[tuple[int, int], tuple[Out, str | None]] = field(default_factory=dict)
    _hoisting: bool = False

    def lower(self, node: Node) -> Out:
        """Write the code of an expression."""
        if self.hoist and not self._hoisting and self._is_hoistable(node):
            return self._hoisted(node)
        match node:
            case Const():
                return literals.constant(self, node)
            case Ident():
                return access.name(self, node)
            case Select():
                return access.select(self, node)
            case Call():
                return operators.call(self, node)
            case ListExpr():
                return literals.list_of(self, node)
            case StructExpr():
                return literals.map_of(self, node)
            case Comprehension():
                return macros.fold(self, node)
        raise NotLoweredError(type(node).__name__)

    def _is_hoistable(self, node: Node) -> bool:
        roots = roots_of(self.checked, self.variables, node)
        return not roots & set(self.bound) and hoistable(roots, node, self.for_pod)

    def _hoisted(self, node: Node) -> Out:
        """Compute it in the outer function; the steps that it took there are counted where it is used."""
        key = (id(self.checked), node.id)
        if key not in self._done:
            inner, self.block, self._hoisting = self.block, self.outer, True
            name, steps = self.fresh("h"), None
            try:
                if has_loop(node):
                    self.assign(self.counter, const(0))
                out = self.lower(node)
                self.assign(name, out.expr)
                if has_loop(node) and not self.single_loop:
                    steps = self.fresh("n")
                    self.assign(steps, load(self.counter))
            finally:
                self.block, self._hoisting = inner, False
            self._done[key] = (Out(load(name)), steps)
        out, steps = self._done[key]
        if steps is not None:
            self.count_step(load(steps))
        return out

    def variable(self, name: str) -> Out:
        """Write the code of a variable in place: an evaluation of its own, with a budget of its own."""
        checked, counter, bound = self.checked, self.counter, self.bound
        self.checked, self.counter, self.bound = self.variables[name], self.fresh("steps"), {}
        try:
            with self.inside() as block:
                out = self.lower(self.checked.root)
            if has_loop(self.checked.root):
                self.assign(self.counter, const(0))
            self.block += block
        finally:
            self.checked, self.counter, self.bound = checked, counter, bound
        return out
