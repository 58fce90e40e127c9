"""State and tools that lowering of every kind of node shares: the names in scope, evaluation order, kept errors."""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from fairlead.cel.analysis.estimate import Estimate
from fairlead.cel.analysis.node_facts import Analysis
from fairlead.cel.functions.metered import METERED, look_up
from fairlead.cel.lowering.pyast import MAX_STEPS, Builder, Out, Statements, compare, const, load, method, native
from fairlead.cel.syntax.ast import Checked, Node, Type
from fairlead.cel.values.meter import RAISED, SHORT_TEXT


@dataclass(slots=True, kw_only=True)
class Context(Builder):
    """One expression, and the variables that it uses, while they are lowered."""

    checked: Checked
    analysis: Analysis
    roots: Mapping[str, ast.expr]
    """The code that reads each fact."""
    bound: dict[str, Out] = field(default_factory=dict)
    """The names that macros bind."""
    counter: str = "steps"
    optimistic: bool = False
    """Leave out code that absorbs errors: if there is one, the caller evaluates again with plain code."""
    left_out: bool = False
    """Whether any such code was left out."""
    single_loop: bool = False
    """There is one loop at most, whose steps need no counter."""
    counts: bool = False
    """Whether code was written that uses the counter."""
    estimate: Estimate | None = None
    """Set if the cost has to be counted while the code runs."""

    def lower(self, node: Node) -> Out:
        """Write the code of an expression."""
        raise NotImplementedError

    def variable(self, name: str) -> Out:
        """Write the code of a variable of the policy."""
        raise NotImplementedError

    def traced(self, node: Node, out: Out) -> Out:  # noqa: ARG002 - for those that trace
        """Write code that records the value of an expression; subclasses that trace override this."""
        return out

    def entering(self, loop: int, element: Sequence[ast.expr]) -> Statements:  # noqa: ARG002 - for those that trace
        """Write code that records the element a loop is at; subclasses that trace override this."""
        return []

    def paying(self, function: Callable[..., object], *args: ast.expr) -> ast.expr:
        """Write a call of our function, which pays for its work if the cost is counted."""
        metered = METERED.get(function) if self.estimate is not None else None
        return self.call(function, *args) if metered is None else self.call(metered, load("m"), *args)

    def is_long(self, *nodes: Node) -> bool:
        """Return whether the cost is counted and all these nodes may be long texts."""
        estimate = self.estimate
        return estimate is not None and all(estimate.size(self.checked, node).most > SHORT_TEXT for node in nodes)

    def key(self, node: Node, key: Out) -> ast.expr:
        """Write a key to look up; a long text is paid for, because it is compared with the key in the map."""
        return self.call(look_up, load("m"), key.expr) if self.is_long(node) else key.expr

    def type_of(self, node: Node) -> Type:
        """Return the static type of an expression."""
        return self.checked.type_of(node)

    def has_loop(self, node: Node) -> bool:
        """Return whether evaluating a node takes loop steps."""
        return node.id in self.analysis.looping

    def is_always_evaluated(self, node: Node) -> bool:
        """Return whether a node has to be evaluated even after an error: it counts steps, or may end the evaluation."""
        return self.has_loop(node) or self.may_abort(node)

    def may_abort(self, node: Node) -> bool:
        """Return whether a node may end the whole evaluation other than by its loops."""
        return node.id in self.analysis.aborting

    def natives(self, nodes: Sequence[Node]) -> list[Out]:
        """Lower operands for code to which an absent field and its zero value are the same."""
        return [native(out) for out in self.sequence(nodes)]

    def sequence(self, nodes: Sequence[Node]) -> list[Out]:
        """Lower the operands of a call: all are evaluated from left to right, and the first error wins."""
        return self.in_order(
            [partial(self.lower, node) for node in nodes], [self.is_always_evaluated(node) for node in nodes]
        )

    def in_order(self, lowerings: Sequence[Callable[[], Out]], always: Sequence[bool]) -> list[Out]:
        """Lower operands in order, each by its own function; those with `always` are evaluated even after an error."""
        parts: list[tuple[Out, Statements]] = []
        for lowering in lowerings:
            with self.inside() as block:
                out = lowering()
            parts.append((out, block))
        last_always = max((at for at, one in enumerate(always) if one), default=-1)
        if any(self.absorbs(out.raises) for out, _ in parts[: max(last_always, 0)]):
            return self._all_evaluated(parts)
        last = max((at for at, (_, block) in enumerate(parts) if block), default=-1)
        outs = []
        for at, (out, block) in enumerate(parts):
            self.block += block
            outs.append(self.spill(out) if at < last else out)
        return outs

    def _all_evaluated(self, parts: Sequence[tuple[Out, Statements]]) -> list[Out]:
        """Write code that evaluates all operands even if one raises, as the engine does: their loop steps count."""
        error = self.fresh("e")
        self.assign(error, const(None))
        outs = []
        for out, block in parts:
            name = self.fresh()
            with self.inside() as body:
                body += block
                self.assign(name, out.expr)
            if out.raises:
                self.catch_first(body, error)
            else:
                self.block += body
            outs.append(Out(load(name), out.raises))
        self.raise_kept(error)
        return outs

    def absorbs(self, raises: bool) -> bool:  # noqa: FBT001 - of the code in question
        """Return whether to write code that continues after an error."""
        if not raises:
            return False
        self.left_out = self.left_out or self.optimistic
        return not self.optimistic

    def guard(self, body: Statements, handler: Statements, name: str | None = None) -> None:
        """Write a `try` around code that may raise an error of the language, which is paid for if cost is counted."""
        paid = [ast.Expr(method(load("m"), "pay", const(RAISED)))] if self.estimate is not None else []
        Builder.guard(self, body, [*paid, *handler], name)

    def catch_first(self, body: Statements, error: str, then: Statements | None = None) -> None:
        """Write a `try` that keeps the first error in a variable and continues."""
        caught = self.fresh("x")
        keep: Statements = [ast.Assign([ast.Name(error, ast.Store())], load(caught))]
        no_error_yet = compare(load(error), ast.Is(), const(None))
        self.guard(body, [ast.If(no_error_yet, keep, []), *(then or [])], caught)

    def catch_last(self, body: Statements, error: str, then: Statements | None = None) -> None:
        """Write a `try` that keeps the last error in a variable and continues."""
        caught = self.fresh("x")
        self.guard(body, [ast.Assign([ast.Name(error, ast.Store())], load(caught)), *(then or [])], caught)

    def raise_kept(self, error: str) -> None:
        """Write code that raises the kept error, if there is one."""
        self.branch(compare(load(error), ast.IsNot(), const(None)), [ast.Raise(load(error), None)])

    def count_step(self, amount: ast.expr | None = None) -> None:
        """Write code that takes loop steps from the budget of the evaluation."""
        self.counts = True
        self.block.append(ast.AugAssign(ast.Name(self.counter, ast.Store()), ast.Add(), amount or const(1)))
        over = compare(load(self.counter), ast.Gt(), const(MAX_STEPS))
        self.branch(over, [ast.Expr(ast.Call(load("over_limit"), [], []))])

    @contextmanager
    def binding(self, values: Mapping[str, Out]) -> Iterator[None]:
        """Bind the names of a macro while its body is lowered."""
        before = dict(self.bound)
        self.bound.update(values)
        try:
            yield
        finally:
            self.bound = before
