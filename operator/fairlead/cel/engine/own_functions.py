"""Functions that are not the engine's own, in the form that it takes.

Values of opaque types are messages there. The engine tells messages apart when it checks an expression but not when it
evaluates one: to it, `isGreaterThan` of quantities and of versions is one function, which looks at its arguments.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import groupby
from typing import Any, Final

from cel_expr_python import cel

from fairlead.cel.engine.protobuf import opaque_message, opaque_text
from fairlead.cel.functions.extensions import DECLARATIONS, OPAQUE, Declaration
from fairlead.cel.values.errors import CelError, Kind

EXTENDED: Final = "string"
"""The engine's function with overloads of ours; a function is declared once, so that its own are declared here too."""
_OVERLOADS: Final = {
    "bool_to_string": "bool",
    "bytes_to_string": "bytes",
    "double_to_string": "double",
    "duration_to_string": "duration",
    "int64_to_string": "int",
    "string_to_string": "string",
    "timestamp_to_string": "timestamp",
    "uint64_to_string": "uint",
}


@cache
def own_functions() -> tuple[cel.FunctionDecl, ...]:
    """Return the declarations of all of them, with what evaluates them."""
    overloads: dict[str, list[cel.Overload]] = {
        EXTENDED: [cel.Overload(name, cel.Type("string"), [cel.Type(type_)]) for name, type_ in _OVERLOADS.items()]
    }
    for _, alike in groupby(sorted(DECLARATIONS, key=_as_evaluated), key=_as_evaluated):
        group = [*alike]
        for one in group:
            types = [cel.Type(name) for name in one.parameters]
            # The first stands for all of them.
            function = _for_engine(group) if one is group[0] else None
            made = cel.Overload(one.overload_id, cel.Type(one.result), types, one.is_member, function)
            overloads.setdefault(one.name, []).append(made)
    return tuple(cel.FunctionDecl(name, found) for name, found in overloads.items())


def _as_evaluated(declaration: Declaration) -> tuple[str, bool, tuple[str, ...]]:
    """Return all that the engine knows of an overload when it evaluates an expression."""
    return (
        declaration.name,
        declaration.is_member,
        tuple("" if parameter in OPAQUE else parameter for parameter in declaration.parameters),
    )


def _for_engine(group: Sequence[Declaration]) -> Callable[..., Any]:
    """Return what evaluates overloads that differ only in messages. An exception becomes a CEL error with its text."""
    first = group[0]
    opaque = [at for at, parameter in enumerate(first.parameters) if parameter in OPAQUE]
    if not opaque and first.result not in OPAQUE:
        return first.implementation
    by_types = {tuple(one.parameters[at] for at in opaque): one for one in group}

    def call(*arguments: Any) -> Any:
        types = tuple(arguments[at].DESCRIPTOR.full_name for at in opaque)
        if (one := by_types.get(types)) is None:
            raise CelError(Kind.NO_OVERLOAD, f"No matching overloads found : {first.name}({', '.join(types)})")
        values = [*arguments]
        for at, type_ in zip(opaque, types, strict=True):
            values[at] = OPAQUE[type_].read(opaque_text(arguments[at]))
        value = one.implementation(*values)
        return opaque_message(one.result, OPAQUE[one.result].write(value)) if one.result in OPAQUE else value

    return call
