"""Regular expressions: constant patterns are compiled when the expression is, others when they are there."""

import ast
from collections.abc import Callable
from functools import cache
from typing import Any

from fairlead.cel.checked import Call, Const
from fairlead.cel.errors import CelError
from fairlead.cel.functions.regex import compile_units, compiled
from fairlead.cel.functions.table import PATTERN_METHODS
from fairlead.cel.lowering.builder import NotLoweredError, Out, load
from fairlead.cel.lowering.context import Context
from fairlead.cel.lowering.dynamic import no_overload
from fairlead.cel.meter import Meter

_TYPES = (str, str, int)
_OF_COMPUTED = (str, *_TYPES)
_COUNTED = PATTERN_METHODS[
    "regex_replace_string_string_string_int"
]  # asked for nothing, it does not look at the pattern


def call(lo: Context, node: Call, overload: str) -> Out:
    """A function of a text and a pattern."""
    text, written, *rest = node.args
    if not isinstance(written, Const) or not isinstance(written.value, str):
        if lo.estimate is None:
            raise NotLoweredError("a pattern that is not a constant")
        args = [arg.expr for arg in lo.sequence(node.args)]
        return Out(lo.call(_computed(node.function, PATTERN_METHODS[overload]), load("m"), *args), raises=True)
    args = [arg.expr for arg in lo.sequence([text, *rest])]
    function = _method(node.function, written.value, PATTERN_METHODS[overload])
    if lo.estimate is None:
        return Out(lo.call(function, *args), raises=True)
    return Out(ast.Call(lo.ref(function), args, [ast.keyword("meter", load("m"))]), raises=True)


@cache
def _computed(name: str, method: str) -> Callable[..., object]:
    """The same of a pattern that is there when the expression is evaluated, and is paid for then."""

    def call(meter: Meter, text: object, written: Any, *rest: object) -> object:
        if any(one.__class__ is not type_ for one, type_ in zip((written, text, *rest), _OF_COMPUTED, strict=False)):
            no_overload(name, text, written, *rest)
        if method == _COUNTED and rest[-1] == 0:
            return text
        meter.once(written, compile_units(written))
        return getattr(compiled(written), method)(text, *rest, meter=meter)

    return call


def _method(name: str, text: str, method: str) -> Callable[..., object]:
    """The method of the compiled pattern, which takes texts and a count."""
    try:
        function: Callable[..., object] = getattr(compiled(text), method)
    except CelError as error:
        kind, message = error.kind, error.message

        def function(*arguments: object, meter: Meter | None = None) -> object:  # noqa: ARG001 - as the others
            if method == _COUNTED and arguments[-1] == 0:
                return arguments[0]
            raise CelError(kind, message)

    def checked(*arguments: object, meter: Meter | None = None) -> object:
        if any(argument.__class__ is not type_ for argument, type_ in zip(arguments, _TYPES, strict=False)):
            no_overload(name, *arguments)
        return function(*arguments) if meter is None else function(*arguments, meter=meter)

    return checked
