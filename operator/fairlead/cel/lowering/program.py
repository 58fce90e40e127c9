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
from functools import cached_property
from typing import Any, Final

from fairlead.cel.checked import Checked
from fairlead.cel.errors import Abort, CelError, Kind
from fairlead.cel.lowering.builder import CAUGHT, attribute, const, load
from fairlead.cel.lowering.context import loops
from fairlead.cel.lowering.lowerer import Lowerer
from fairlead.cel.lowering.scope import roots_of

OF_POD: Final = ("pod", "namespaceObject", "request")
OF_NODE: Final = ("node", "free", "requested", "allocatable", "pods", "data", "victim")

One = Callable[[Any, int], Any]


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
            return self._plain(facts)  # it may never be needed; if it is, it raises there

    @cached_property
    def _hoisting(self) -> Callable[[object], One]:
        return _compile(self.checked, self.variables, hoist=True)

    @cached_property
    def _plain(self) -> Callable[[object], One]:
        return _compile(self.checked, self.variables, hoist=False)

    def check(self) -> None:
        """Raise NotLoweredError if this is an expression for the engine."""
        _ = self._hoisting


def translated(error: Exception) -> CelError:
    """An error of the language, also where Python found it."""
    if isinstance(error, CelError):
        return error
    if isinstance(error, KeyError):
        key = error.args[0] if error.args else ""
        return CelError(Kind.NO_SUCH_KEY, f"no such key: {key!r}")
    return CelError(Kind.INDEX, str(error))


def _compile(checked: Checked, variables: Mapping[str, Checked], *, hoist: bool) -> Callable[[object], One]:
    roots = {name: load(name) for name in (*OF_POD, "now")}
    roots |= {name: attribute(load("v"), name) for name in OF_NODE}
    used = [checked, *variables.values()]
    lowerer = Lowerer(
        checked=checked,
        variables=variables,
        roots=roots,
        for_pod=OF_POD,
        hoist=hoist,
        single_loop=sum(1 for each in used for _ in loops(each.root)) <= 1,
    )
    with lowerer.inside() as body:
        out = lowerer.lower(checked.root)
    body.append(ast.Return(out.expr))
    if lowerer.counts:
        body.insert(0, ast.Assign([ast.Name(lowerer.counter, ast.Store())], const(0)))
    needed = roots_of(checked, variables, checked.root)
    reads = [ast.Assign([ast.Name(name, ast.Store())], attribute(load("c"), name)) for name in OF_POD if name in needed]
    one = _function("one", ("v", "now"), body)
    make = _function("make", ("c",), [*reads, *lowerer.outer, one, ast.Return(load("one"))])
    module = ast.fix_missing_locations(ast.Module([make], []))
    scope = lowerer.scope
    exec(compile(module, "<rule>", "exec"), scope)  # noqa: S102 - a tree that we built, not text
    made: Callable[[object], One] = scope["make"]  # type: ignore[assignment]
    return made


def _function(name: str, parameters: tuple[str, ...], body: list[ast.stmt]) -> ast.FunctionDef:
    args = [ast.arg(parameter) for parameter in parameters]
    arguments = ast.arguments(posonlyargs=[], args=args, kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.FunctionDef(name, arguments, body, [])
