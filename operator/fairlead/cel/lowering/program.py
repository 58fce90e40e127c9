"""Byte code: a function for a class of pods that makes the function for a node.

`make` is given what is known of the pod (`c.pod`, `c.namespaceObject`, `c.request`), computes what depends on it alone,
and gives a function of what is known of a node (`v.node`, `v.free`, `v.pods`, `v.data`) and the time.

This code hopes that nothing raises and leaves out what absorbs errors, which makes it a third of the size. If something
does raise, the *plain* code, made when it is first wanted, evaluates from the beginning and exactly.
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
from fairlead.cel.analysis.trace import Place, Trace, loops_around
from fairlead.cel.lowering.lowerer import Lowerer
from fairlead.cel.lowering.pyast import attribute, const, load
from fairlead.cel.syntax.ast import Checked
from fairlead.cel.values.errors import Abort, CelError, Kind, NotLoweredError
from fairlead.cel.values.meter import BUDGET, Hope, Meter
from fairlead.cooperative import Steps, finish

OF_POD: Final = ("pod", "namespaceObject", "request")
OF_NODE: Final = ("node", "free", "requested", "allocatable", "pods", "data", "victim")

_BLOCKS_MAX: Final = 18  # Python nests no more than 20 loops and handlers; two are to spare
_LARGE: Final = 200
"""Nodes of an expression of which no code is made while it is evaluated: that would take longer than to evaluate it."""
_PLACELESS: Final = frozenset({ast.Load, ast.Store})

One = Callable[[Any, int], Any]
Traced = Callable[[Any, int], tuple[Any, Trace]]


class _Mode(Enum):
    HOPEFUL = auto()
    PLAIN = auto()
    TRACING = auto()
    NOTING = auto()


_PARAMETERS: Final[Mapping[_Mode, tuple[str, ...]]] = {
    _Mode.HOPEFUL: ("c", "anew"),
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
        """Compute what depends on the pod alone; the rest is a function of a node's facts and the time."""
        hopeful = self._hopeful
        try:
            return hopeful(facts, partial(self._anew, facts))
        except Exception:  # noqa: BLE001  also what nobody foresaw
            return self.plain(facts)  # it may never be needed; if it is, it raises there

    def plain(self, facts: object) -> One:
        """The same with nothing computed beforehand, and nothing left out."""
        return self._plain(facts)

    @cached_property
    def watched(self) -> Watched | None:
        """What notes until when the whole holds; None where that cannot be said."""
        return expiring_calls(self.checked, self.variables)

    def noting(self, facts: object, note: Note) -> One:
        """The same, and it notes after how many nanoseconds its result may be another though no fact changed."""
        return self._noting(facts, note)

    def _anew(self, facts: object, v: Any, now: int) -> Any:
        return self._plain(facts)(v, now)

    def traced(self, facts: object) -> Traced:
        """Return a function that also returns the value of every part.

        Parts that raise have none; an error of the whole is the result.
        """

        def one(v: Any, now: int) -> tuple[Any, Trace]:
            trace, tracing = Trace(self._around), self._tracing
            try:
                return tracing(facts, trace.record, trace.enter)(v, now), trace
            except Exception as error:  # noqa: BLE001  also what nobody foresaw
                return error if isinstance(error, Abort) else translated(error), trace

        return one

    @cached_property
    def _around(self) -> Mapping[int, Place]:
        return loops_around(self.checked.root)

    @cached_property
    def _analyses(self) -> Mapping[str, Analysis]:
        return analyse(self.checked, self.variables)

    @cached_property
    def _hopeful(self) -> Callable[..., One]:
        return self._compile(_Mode.HOPEFUL)

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
        """Find out what is known of each node before code is written; what cannot be lowered is told by `check`."""
        with suppress(NotLoweredError):
            _ = self._analyses

    def check(self) -> None:
        """Raise NotLoweredError if this is an expression for the engine."""
        finish(self.check_steps())

    def check_steps(self) -> Steps[None]:
        """The same, pausing between what is found out, what is written and what Python makes of it."""
        _ = self._analyses
        yield
        _ = self._estimate
        yield
        yield from self._made(_Mode.HOPEFUL, "_hopeful")
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
        """Whether its cost is counted while it runs: it is not known to stay within the budget."""
        return self._estimate is not None

    @cached_property
    def _estimate(self) -> Estimate | None:
        """How large the parts may be of what is metered; of the others, which are nearly all, nothing is kept."""
        found = Estimate(self.checked, self.variables)
        return found if found.cost > BUDGET else None

    def _compile(self, mode: _Mode) -> Callable[..., One]:
        return _executed(*self._written(mode))

    def _written(self, mode: _Mode) -> tuple[ast.FunctionDef, dict[str, object]]:
        """The code, and what it refers to."""
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
            hoist=mode is _Mode.HOPEFUL,
            optimistic=mode is _Mode.HOPEFUL,
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
        begun: list[ast.stmt] = []
        if self.is_metered:
            body.insert(0, ast.Expr(ast.Call(attribute(load("m"), "begin"), [], [])))
            meter = Hope if mode is _Mode.HOPEFUL else Meter
            begun.append(ast.Assign([ast.Name("m", ast.Store())], lowerer.call(meter)))
        if lowerer.left_out or (self.is_metered and mode is _Mode.HOPEFUL):
            anew = ast.Call(load("anew"), [load("v"), load("now")], [])
            body = [ast.Try(body, [ast.ExceptHandler(load("CAUGHT"), None, [ast.Return(anew)])], [], [])]
        needed = analysis.names[self.checked.root.id]
        reads: list[ast.stmt] = [
            ast.Assign([ast.Name(name, ast.Store())], attribute(load("c"), name)) for name in OF_POD if name in needed
        ]
        one = _function("one", ("v", "now"), body)
        make = _function("make", _PARAMETERS[mode], [*reads, *begun, *lowerer.outer, one, ast.Return(load("one"))])
        return make, lowerer.scope


def _executed(make: ast.FunctionDef, scope: dict[str, object]) -> Callable[..., One]:
    module = ast.Module([make], [])
    _place(module)
    try:
        code = compile(module, "<rule>", "exec")
    except SyntaxError as error:
        raise NotLoweredError(f"it is nested too deeply: {error.msg}") from None
    exec(code, scope)  # noqa: S102 - a tree that we built, not text
    # It refers to the scope: were it left in there, only the collector could free both, and it passes over what is old.
    made: Callable[..., One] = scope.pop("make")  # type: ignore[assignment]
    return made


def _place(module: ast.Module) -> None:
    """Give every node a place, which `compile` wants: what `ast.fix_missing_locations` does, in less time."""
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


def translated(error: Exception) -> CelError:
    """An error of the language, also where Python found it, and where nobody foresaw it."""
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
