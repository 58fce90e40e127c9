"""Write values as the language writes them."""

import math

from fairlead.cel.values.value_types import Duration, Nothing, Some, Timestamp, TypeName, UInt

_SECOND = 1_000_000_000


def literal(value: object, *, dyn: bool = False) -> str:
    """Write a value; with `dyn`, hide its type and those of its parts from the checker."""
    text = _write(value, dyn=dyn)
    return f"dyn({text})" if dyn else text


def _write(value: object, *, dyn: bool) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case UInt():
            return f"{int(value)}u"
        case Timestamp():
            return f'(timestamp({value // _SECOND}) + duration("{value % _SECOND}ns"))'
        case Duration():
            seconds, nanoseconds = divmod(abs(value), _SECOND)
            return f'duration("{"-" if value < 0 else ""}{seconds}s{nanoseconds}ns")'
        case int():
            return str(int(value))
        case float():
            return _write_double(value)
        case TypeName():
            return str(value)
        case str():
            return '"' + "".join(f"\\U{ord(character):08x}" for character in value) + '"'
        case bytes():
            return 'b"' + "".join(f"\\x{byte:02x}" for byte in value) + '"'
        case list() | tuple():
            return "[" + ", ".join(literal(element, dyn=dyn) for element in value) + "]"
        case dict():
            return "{" + ", ".join(f"{literal(k, dyn=dyn)}: {literal(v, dyn=dyn)}" for k, v in value.items()) + "}"
        case Some():
            return f"optional.of({literal(value.value, dyn=dyn)})"
        case Nothing():
            return "optional.none()"
    raise TypeError(value)


def _write_double(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return f'double("{"-" if math.copysign(1, value) < 0 else ""}{"nan" if math.isnan(value) else "inf"}")'
