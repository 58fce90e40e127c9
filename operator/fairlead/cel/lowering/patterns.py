"""Regular expressions: constant patterns, compiled when the expression is."""

from collections.abc import Callable

from fairlead.cel.checked import Call, Const
from fairlead.cel.errors import CelError
from fairlead.cel.functions.regex import compiled
from fairlead.cel.functions.table import PATTERN_METHODS
from fairlead.cel.lowering.builder import NotLoweredError, Out
from fairlead.cel.lowering.context import Context
from fairlead.cel.lowering.dynamic import no_overload

_TYPES = (str, str, int)
_COUNTED = PATTERN_METHODS[
    "regex_replace_string_string_string_int"
]  # asked for nothing, it does not look at the pattern


def call(lo: Context, node: Call, overload: str) -> Out:
    """A function of a text and a pattern."""
    text, pattern, *rest = node.args
    if not isinstance(pattern, Const) or not isinstance(pattern.value, str):
        raise NotLoweredError("a pattern that is not a constant")
    args = [arg.expr for arg in lo.sequence([text, *rest])]
    return Out(lo.call(_method(node.function, pattern.value, PATTERN_METHODS[overload]), *args), raises=True)


def _method(name: str, pattern: str, method: str) -> Callable[..., object]:
    """The method of the compiled pattern, which takes texts and a count."""
    try:
        function: Callable[..., object] = getattr(compiled(pattern), method)
    except CelError as error:
        kind, message = error.kind, error.message

        def function(*arguments: object) -> object:
            if method == _COUNTED and arguments[-1] == 0:
                return arguments[0]
            raise CelError(kind, message)

    def checked(*arguments: object) -> object:
        if any(argument.__class__ is not type_ for argument, type_ in zip(arguments, _TYPES, strict=False)):
            no_overload(name, *arguments)
        return function(*arguments)

    return checked
