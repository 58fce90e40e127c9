"""Byte code: a function for a class of pods that makes the function for a node.

def make(c):                  # what is known of the pod: c.pod, c.namespaceObject, c.request
    pod = c.pod
    h1 = ...                  # what depends on the pod alone
    def one(v, now):          # v.node, v.free, v.pods, v.data ...
        return ...
    return one
"""

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from typing import Any, Final

from fairlead.cel.checked import Checked
from fairlead.cel.errors import Abort, CelError, Kind
from fairlead.cel.lowering.analysis import Analysis, analyse
from fairlead.cel.lowering.builder import CAUGHT, NotLoweredError, attribute, const, load
from fairlead.cel.lowering.lowerer import Lowerer

OF_POD: Final = ("pod", "namespaceObject", "request")
OF_NODE: Final = ("node", "free", "requested", "allocatable", "pods", "data", "victim")

One = Callable[[Any, int], Any]
Traced = Callable[[Any, int], tuple[Any, dict[int, object]]]


class _Mode(Enum):
    HOISTING = auto()
    PLAIN = auto()
    TRACING = auto()


@dataclass(frozen=True)
class Program:
    """A lowered expression."""

    checked: Checked
    variables: Mapping[str, Checked] = field(default_factory=dict)

    def for_pod(self, facts: object) -> One:
        """Compute what depends on the pod alone; the rest is a function of a node's facts and the time."""
        try:
            return self._hoisting(facts)
        except (*CAUGHT, Abort):
            return self.plain(facts)  # it may never be needed; if it is, it raises there

    def plain(self, facts: object) -> One:
        """The same with nothing computed beforehand."""
        return self._plain(facts)

    def traced(self, facts: object, force: Mapping[int, bool] | None = None) -> Traced:
        """A function that also tells the value of every expression by its id; the last, of one in a loop.

        Leaves in `force` are not evaluated and have the value given there. What raises is left out; an error of the
        whole is the result.
        """

        def one(v: Any, now: int) -> tuple[Any, dict[int, object]]:
            values: dict[int, object] = {}

            def record(id_: int, value: object) -> object:
                values[id_] = value
                return value

            try:
                return self._tracing(facts, record, force or {})(v, now), values
            except (*CAUGHT, Abort) as error:
                return error if isinstance(error, Abort) else translated(error), values

        return one

    @cached_property
    def _analyses(self) -> Mapping[str, Analysis]:
        return analyse(self.checked, self.variables)

    @cached_property
    def _hoisting(self) -> Callable[..., One]:
        return self._compile(_Mode.HOISTING)

    @cached_property
    def _plain(self) -> Callable[..., One]:
        return self._compile(_Mode.PLAIN)

    @cached_property
    def _tracing(self) -> Callable[..., One]:
        return self._compile(_Mode.TRACING)

    def check(self) -> None:
        """Raise NotLoweredError if this is an expression for the engine."""
        _ = self._hoisting

    def _compile(self, mode: _Mode) -> Callable[..., One]:
        analysis = self._analyses[""]
        roots: dict[str, ast.expr] = {name: load(name) for name in (*OF_POD, "now")}
        roots |= {name: attribute(load("v"), name) for name in OF_NODE}
        lowerer = Lowerer(
            checked=self.checked,
            analysis=analysis,
            variables=self.variables,
            analyses=self._analyses,
            roots=roots,
            for_pod=frozenset(OF_POD),
            hoist=mode is _Mode.HOISTING,
            trace=mode is _Mode.TRACING,
            single_loop=analysis.loops <= 1,
        )
        with lowerer.inside() as body:
            out = lowerer.lower(self.checked.root)
        body.append(ast.Return(out.expr))
        if lowerer.counts:
            body.insert(0, ast.Assign([ast.Name(lowerer.counter, ast.Store())], const(0)))
        needed = analysis.names[self.checked.root.id]
        reads: list[ast.stmt] = [
            ast.Assign([ast.Name(name, ast.Store())], attribute(load("c"), name)) for name in OF_POD if name in needed
        ]
        parameters = ("c", "record", "force") if mode is _Mode.TRACING else ("c",)
        one = _function("one", ("v", "now"), body)
        make = _function("make", parameters, [*reads, *lowerer.outer, one, ast.Return(load("one"))])
        return _executed(make, lowerer.scope)


def _executed(make: ast.FunctionDef, scope: dict[str, object]) -> Callable[..., One]:
    module = ast.fix_missing_locations(ast.Module([make], []))
    try:
        code = compile(module, "<rule>", "exec")
    except SyntaxError as error:  # Python nests no more than 20 loops and handlers
        raise NotLoweredError(f"it is nested too deeply: {error.msg}") from None
    exec(code, scope)  # noqa: S102 - a tree that we built, not text
    made: Callable[..., One] = scope["make"]  # type: ignore[assignment]
    return made


def translated(error: Exception) -> CelError:
    """An error of the language, also where Python found it."""
    if isinstance(error, CelError):
        return error
    if isinstance(error, KeyError):
        key = error.args[0] if error.args else ""
        return CelError(Kind.NO_SUCH_KEY, f"no such key: {key!r}")
    return CelError(Kind.INDEX, str(error))


def _function(name: str, parameters: tuple[str, ...], body: list[ast.stmt]) -> ast.FunctionDef:
    args = [ast.arg(parameter) for parameter in parameters]
    arguments = ast.arguments(posonlyargs=[], args=args, kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.FunctionDef(name, arguments, body, [])
