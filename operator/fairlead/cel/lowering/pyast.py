"""Python statements under construction.

An expression lowers to a Python expression and, where Python has none for it (loops, absorbed errors), to statements
before it. `Out.raises` says whether evaluating it may raise or abort: code that does neither needs no `try` and may be
moved.
"""

import ast
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from fairlead.cel.values.errors import Abort, CelError, Kind
from fairlead.cel.values.value_types import NONE, Some

# Lookups raise Python's own errors, which are translated where the evaluation ends.
CAUGHT: Final = (CelError, KeyError, IndexError)
MAX_STEPS: Final = 9_999  # the engine aborts at the 10,000th

Statements: TypeAlias = list[ast.stmt]


@dataclass(frozen=True, slots=True)
class Out:
    """A lowered expression; `raises` covers the statements before it too."""

    expr: ast.expr
    raises: bool = False

    @property
    def simple(self) -> bool:
        """Return whether it may be written twice and moved past anything."""
        return isinstance(self.expr, ast.Name | ast.Constant)


def over_limit() -> None:
    """Raise Abort for too many loop steps."""
    raise Abort(Kind.LIMIT, f"more than {MAX_STEPS} loop steps")


_BASE: Final[Mapping[str, object]] = {
    "__builtins__": {},
    "CAUGHT": CAUGHT,
    "EMPTY": {},
    "NONE": NONE,
    "Some": Some,
    "len": len,
    "over_limit": over_limit,
}


@dataclass(slots=True)
class Builder:
    """Builder of blocks of statements, with the variables and objects that the code refers to."""

    block: Statements = field(default_factory=list)
    scope: dict[str, object] = field(default_factory=lambda: dict(_BASE))
    _count: int = 0
    _known: dict[int, str] = field(default_factory=dict)

    def fresh(self, prefix: str = "t") -> str:
        """Return an unused variable name."""
        self._count += 1
        return f"{prefix}{self._count}"

    def ref(self, thing: object) -> ast.expr:
        """Put an object of ours (a function, a constant without a literal) into the scope; return its name."""
        name = self._known.get(id(thing))
        if name is None:
            name = f"{getattr(thing, '__name__', 'k')}_{len(self._known)}".replace("<lambda>", "f")
            self._known[id(thing)] = name
            self.scope[name] = thing
        return load(name)

    def call(self, function: Callable[..., object] | type, *args: ast.expr) -> ast.expr:
        """Write a call of our function."""
        return ast.Call(self.ref(function), list(args), [])

    @contextmanager
    def inside(self) -> Iterator[Statements]:
        """Collect statements in a new block, which the caller places."""
        outer, self.block = self.block, []
        try:
            yield self.block
        finally:
            self.block = outer

    def assign(self, name: str, value: ast.expr) -> None:
        """Write `name = value`."""
        self.block.append(ast.Assign([ast.Name(name, ast.Store())], value))

    def spill(self, out: Out) -> Out:
        """Assign an expression to a variable, unless it is simple; return that."""
        if out.simple:
            return out
        name = self.fresh()
        self.assign(name, out.expr)
        return Out(load(name), out.raises)

    def branch(self, test: ast.expr, then: Statements, otherwise: Statements | None = None) -> None:
        """Write an `if`."""
        self.block.append(ast.If(test, then or [ast.Pass()], otherwise or []))

    def guard(self, body: Statements, handler: Statements, name: str | None = None) -> None:
        """Write a `try` around code that may raise an error of the language."""
        caught = ast.ExceptHandler(load("CAUGHT"), name, handler)
        self.block.append(ast.Try(body or [ast.Pass()], [caught], [], []))


def native(out: Out) -> Out:
    """Return a field without the code that replaces an absent one, for code to which any zero value is the same."""
    match out.expr:
        case ast.BoolOp(
            op=ast.Or(), values=[ast.Attribute() as field, ast.Constant(value="" | 0) | ast.Name(id="EMPTY")]
        ):
            return Out(field, out.raises)
    return out


def load(name: str) -> ast.Name:
    """Build a name that is read."""
    return ast.Name(name, ast.Load())


def const(value: object) -> ast.Constant:
    """Build a literal."""
    return ast.Constant(value)  # type: ignore[arg-type]


def attribute(value: ast.expr, name: str) -> ast.expr:
    """Build `value.name`."""
    return ast.Attribute(value, name, ast.Load())


def method(value: ast.expr, name: str, *args: ast.expr) -> ast.expr:
    """Build `value.name(*args)`."""
    return ast.Call(attribute(value, name), list(args), [])


def index(value: ast.expr, key: ast.expr) -> ast.expr:
    """Build `value[key]`."""
    return ast.Subscript(value, key, ast.Load())


def compare(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> ast.expr:
    """Build `left operator right`."""
    return ast.Compare(left, [operator], [right])


def either(test: ast.expr, then: ast.expr, otherwise: ast.expr) -> ast.expr:
    """Build `then if test else otherwise`."""
    return ast.IfExp(test, then, otherwise)


def all_of(*parts: ast.expr) -> ast.expr:
    """Build `a and b`."""
    return ast.BoolOp(ast.And(), list(parts))


def any_of(*parts: ast.expr) -> ast.expr:
    """Build `a or b`."""
    return ast.BoolOp(ast.Or(), list(parts))


def negate(value: ast.expr) -> ast.expr:
    """Build `not value`."""
    return ast.UnaryOp(ast.Not(), value)


def walrus(name: str, value: ast.expr) -> ast.expr:
    """Build `(name := value)`."""
    return ast.NamedExpr(ast.Name(name, ast.Store()), value)


def any_raises(*outs: Out) -> bool:
    """Return whether any of these expressions may raise."""
    return any(out.raises for out in outs)
