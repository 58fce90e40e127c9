"""Byte code: a function for a class of pods that makes the function for a node.

`make` takes the facts of the pod (`c.pod`, `c.namespaceObject`, `c.request`), computes the parts that depend on them
alone, and returns a function of the facts of a node (`v.node`, `v.free`, `v.pods`, `v.data`) and the time.

This *optimistic* code leaves out the code that absorbs errors, which makes it a third of the size. If something raises,
the *plain* code, compiled when it is first needed, evaluates everything again, exactly.
"""

import ast
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property, partial
from typing import Any, Final

from fairlead.cel.analysis.estimate import Estimate
from fairlead.cel.analysis.expiry import Note
from fairlead.cel.analysis.node_facts import Analysis, analyse
from fairlead.cel.analysis.time_dependence import Watched, expiring_calls
from fairlead.cel.analysis.trace import Place, ValueTrace, loops_around
from fairlead.cel.lowering.lowerer import Lowerer
from fairlead.cel.lowering.pyast import attribute, const, load
from fairlead.cel.syntax.ast import Checked
from fairlead.cel.values.errors import Abort, CelError, Kind, NotLoweredError
from fairlead.cel.values.meter import BUDGET, Meter, OptimisticMeter
from fairlead.cooperative import Steps, finish

OF_POD: Final = ("pod", "namespaceObject", "request")
OF_NODE: Final = ("node", "free", "requested", "allocatable", "pods", "data", "victim")

_BLOCKS_MAX: Final = 18  # Python nests at most 20 loops and handlers; two are spare
_LARGE: Final = 200
"""Nodes above which all code is compiled beforehand, since compiling takes longer than an evaluation."""
_PLACELESS: Final = frozenset({ast.Load, ast.Store})

One = Callable[[Any, int], Any]
Traced = Callable[[Any, int], tuple[Any, ValueTrace]]


class _Mode(Enum):
    OPTIMISTIC = auto()
    PLAIN = auto()
    TRACING = auto()
    NOTING = auto()


_PARAMETERS: Final[Mapping[_Mode, tuple[str, ...]]] = {
    _Mode.OPTIMISTIC: ("c", "plain"),
    _Mode.PLAIN: ("c",),
    _Mode.TRACING: ("c", "record", "enter"),
    _Mode.NOTING: ("c", "note"),
}


@dataclass(frozen=True)
class Program:
    """A lowered expression."""

    checked: Checked
    variables: Mapping[str, Checked] = field(default_factory=dict)

    def for_pod(self, facts: object) -> One:
        """Compute the parts that depend on the pod alone; return a function of a node's facts and the time."""
        optimistic = self._optimistic
        try:
            return optimistic(facts, partial(self._run_plain, facts))
        except Exception:  # noqa: BLE001  also unforeseen errors
            return self.plain(facts)  # the value may never be needed; if it is, plain code raises in its place

    def plain(self, facts: object) -> One:
        """Return the function of plain code, which computes nothing beforehand and leaves nothing out."""
        return self._plain(facts)

    @cached_property
    def watched(self) -> Watched | None:
        """Calls that note how long the result holds; None if that is not known."""
        return expiring_calls(self.checked, self.variables)

    def noting(self, facts: object, note: Note) -> One:
        """Return a function that also notes after how many nanoseconds its result may change though no fact does."""
        return self._noting(facts, note)

    def _run_plain(self, facts: object, v: Any, now: int) -> Any:
        return self._plain(facts)(v, now)

    def traced(self, facts: object) -> Traced:
        """Return a function that also traces the value of every expression.

        Parts that raise have no value in the trace; an error of the whole expression is returned as its result.
        """

        def one(v: Any, now: int) -> tuple[Any, ValueTrace]:
            trace, tracing = ValueTrace(self._around), self._tracing
            try:
                return tracing(facts, trace.record, trace.enter)(v, now), trace
            except Exception as error:  # noqa: BLE001  also unforeseen errors
                return error if isinstance(error, Abort) else translate_error(error), trace

        return one

    @cached_property
    def _around(self) -> Mapping[int, Place]:
        return loops_around(self.checked.root)

    @cached_property
    def _analyses(self) -> Mapping[str, Analysis]:
        return analyse(self.checked, self.variables)

    @cached_property
    def _optimistic(self) -> Callable[..., One]:
        return self._compile(_Mode.OPTIMISTIC)

    @cached_property
    def _plain(self) -> Callable[..., One]:
        return self._compile(_Mode.PLAIN)

    @cached_property
    def _tracing(self) -> Callable[..., One]:
        return self._compile(_Mode.TRACING)

    @cached_property
    def _noting(self) -> Callable[..., One]:
        return self._compile(_Mode.NOTING)

    def analyse(self) -> None:
        """Analyse the nodes before code is written; `check` raises for an expression that cannot be lowered."""
        with suppress(NotLoweredError):
            _ = self._analyses

    def check(self) -> None:
        """Raise NotLoweredError if the expression has to run on the engine."""
        finish(self.check_steps())

    def check_steps(self) -> Steps[None]:
        """Check as `check` does, pausing between analysis, lowering and compiling."""
        _ = self._analyses
        yield
        _ = self._estimate
        yield
        yield from self._made(_Mode.OPTIMISTIC, "_optimistic")
        analysis, root = self._analyses[""], self.checked.root.id
        is_large = analysis.nodes > _LARGE
        if is_large or analysis.blocks[root] > _BLOCKS_MAX:
            yield from self._made(_Mode.PLAIN, "_plain")
        if is_large and "now" in analysis.names[root]:
            yield from self._made(_Mode.NOTING, "_noting")

    def _made(self, mode: _Mode, name: str) -> Steps[None]:
        if name not in vars(self):
            written = self._written(mode)
            yield
            vars(self)[name] = _executed(*written)
            yield

    @property
    def is_metered(self) -> bool:
        """Return whether the cost is counted while the code runs, because it is not known to stay within the budget."""
        return self._estimate is not None

    @cached_property
    def _estimate(self) -> Estimate | None:
        """Bounds of the sizes of all parts of a metered expression; None for the others, which are nearly all."""
        found = Estimate(self.checked, self.variables)
        return found if found.cost > BUDGET else None

    def _compile(self, mode: _Mode) -> Callable[..., One]:
        return _executed(*self._written(mode))

    def _written(self, mode: _Mode) -> tuple[ast.FunctionDef, dict[str, object]]:
        """Return the code and the scope that it refers to."""
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
            hoist=mode is _Mode.OPTIMISTIC,
            optimistic=mode is _Mode.OPTIMISTIC,
            trace=mode is _Mode.TRACING,
            watched=(mode is _Mode.NOTING and self.watched) or {},
            single_loop=analysis.loops <= 1,
            estimate=(self._estimate or Estimate(self.checked, self.variables)) if self.is_metered else None,
        )
        with lowerer.inside() as body:
            out = lowerer.lower(self.checked.root)
        body.append(ast.Return(out.expr))
        if lowerer.counts:
            body.insert(0, ast.Assign([ast.Name(lowerer.counter, ast.Store())], const(0)))
        meters: list[ast.stmt] = []
        if self.is_metered:
            body.insert(0, ast.Expr(ast.Call(attribute(load("m"), "begin"), [], [])))
            meter = OptimisticMeter if mode is _Mode.OPTIMISTIC else Meter
            meters.append(ast.Assign([ast.Name("m", ast.Store())], lowerer.call(meter)))
        if lowerer.left_out or (self.is_metered and mode is _Mode.OPTIMISTIC):
            plain = ast.Call(load("plain"), [load("v"), load("now")], [])
            body = [ast.Try(body, [ast.ExceptHandler(load("CAUGHT"), None, [ast.Return(plain)])], [], [])]
        needed = analysis.names[self.checked.root.id]
        reads: list[ast.stmt] = [
            ast.Assign([ast.Name(name, ast.Store())], attribute(load("c"), name)) for name in OF_POD if name in needed
        ]
        one = _function("one", ("v", "now"), body)
        make = _function("make", _PARAMETERS[mode], [*reads, *meters, *lowerer.outer, one, ast.Return(load("one"))])
        return make, lowerer.scope


def _executed(make: ast.FunctionDef, scope: dict[str, object]) -> Callable[..., One]:
    module = ast.Module([make], [])
    _place(module)
    try:
        code = compile(module, "<rule>", "exec")
    except SyntaxError as error:
        raise NotLoweredError(f"it is nested too deeply: {error.msg}") from None
    exec(code, scope)  # noqa: S102 - a tree that we built, not text
    # The function refers to the scope. If the scope held it, only the garbage collector could free both.
    made: Callable[..., One] = scope.pop("make")  # type: ignore[assignment]
    return made


def _place(module: ast.Module) -> None:
    """Give every node a position, which `compile` requires; faster than `ast.fix_missing_locations`."""
    left: list[ast.AST] = [module]
    while left:
        node = left.pop()
        if node._attributes:  # noqa: SLF001 - named so by the standard library, and documented
            node.lineno, node.col_offset = 1, 0  # type: ignore[attr-defined]
        for name in node._fields:
            part = getattr(node, name, None)
            if part.__class__ is list:
                left.extend([item for item in part if isinstance(item, ast.AST)])
            elif isinstance(part, ast.AST) and part.__class__ not in _PLACELESS:
                left.append(part)


def translate_error(error: Exception) -> CelError:
    """Return an error as one of the language; one that is not foreseen becomes an internal error."""
    if isinstance(error, CelError):
        return error
    if isinstance(error, Abort):
        return CelError(error.kind, error.message)
    if isinstance(error, KeyError):
        key = error.args[0] if error.args else ""
        return CelError(Kind.NO_SUCH_KEY, f"no such key: {key!r}")
    if isinstance(error, IndexError):
        return CelError(Kind.INDEX, str(error))
    return CelError(Kind.INTERNAL, f"{type(error).__name__}: {error}")


def _function(name: str, parameters: tuple[str, ...], body: list[ast.stmt]) -> ast.FunctionDef:
    args = [ast.arg(parameter) for parameter in parameters]
    arguments = ast.arguments(posonlyargs=[], args=args, kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.FunctionDef(name, arguments, body, [])
