"""The engine's complaints in the words of a person who writes policies, with the cure.

The engine says where and what; it does not know which names would have been right, and calls operators `_>=_`.
"""

import re
from collections.abc import Callable
from typing import Final

from fairlead.cel.hints import suggestions
from fairlead.cel.hints.engine_messages import (
    UNDECLARED,
    EngineMessage,
    drop_follow_ups,
    engine_messages,
    unquoted_keys,
)
from fairlead.cel.hints.excerpt import Excerpt
from fairlead.cel.hints.foreign_syntax import RESERVED
from fairlead.cel.hints.syntax_errors import of_syntax
from fairlead.cel.hints.unknown_names import Names, Worded, undeclared, undefined_field
from fairlead.cel.syntax.diagnostics import Diagnostic, place
from fairlead.cel.values.schema import PACKAGE

_KEPT: Final = 5  # after that many, the rest follows from the first


def diagnostics(error: str, source: str, names: Names) -> list[Diagnostic]:
    """What the engine said, one by one."""
    if "recursion" in error:
        return [Diagnostic(1, 1, "the expression is nested more than 32 deep", "split it with variables")]
    said = engine_messages(error, source)
    if not said:
        return [Diagnostic(1, 1, error.splitlines()[0])]
    syntax = [one for one in said if one.message.startswith("Syntax error")]
    if syntax:
        at, text, hint = of_syntax(syntax[0].message, Excerpt(source, syntax[0].at))
        return [Diagnostic(*place(source, at), text, hint)]
    keys, rest = unquoted_keys(source, said)
    found = [_worded(one, source, names) for one in drop_follow_ups(rest, source)]
    return sorted({*keys, *found})[:_KEPT]


def _worded(said: EngineMessage, source: str, names: Names) -> Diagnostic:
    for pattern, handler in _HANDLERS:
        if match := pattern.match(said.message):
            offset, text, hint = handler(match, Excerpt(source, said.at), names)
            return Diagnostic(*place(source, said.at + offset), text, hint)
    return Diagnostic(*place(source, said.at), said.message)


def _overload(match: re.Match[str], place: Excerpt, _: Names) -> Worded:
    function, types = match[1], [_type(part) for part in _split(match[2])]
    said, cure = _misapplied(function, types, [*map(_shown, types)], place)
    return 0 if function[0] in "_@!-" else -len(function), said, cure


def _misapplied(function: str, types: list[str], shown: list[str], place: Excerpt) -> tuple[str, str]:
    operator = function.strip("_").replace("_", "")
    if function == "_[_]":
        return f"{shown[0]} has no elements by {shown[1]}", suggestions.of_index(types, place)
    if function[0] not in "_@!-":
        return f"`{function}` does not take {_and(shown)}", suggestions.of_call(function, types, place)
    said = {
        "_?_:_": f"`?:` takes a bool and two values of one type, not {_and(shown)}",
        "!_": f"`!` takes bools, not {_and(shown)}",
        "_&&_": f"`&&` takes bools, not {_and(shown)}",
        "_||_": f"`||` takes bools, not {_and(shown)}",
        "-_": f"`-` takes a number, not {shown[0]}",
        "@in": f"`in` looks for {shown[0]} in {shown[-1]}",
    }
    return said.get(function, f"`{operator}` does not take {_and(shown)}"), suggestions.of_operator(
        function, types, place
    )


def _selection(match: re.Match[str], place: Excerpt, _: Names) -> Worded:
    type_ = _type(match[1])
    field = re.match(r"\.\s*(\w+)", place.rest)
    cure = suggestions.of_field(field[1], type_, place) if field else ""
    return 1, f"{type_} has no fields", cure or "a label with dots or slashes is read as labels['example.com/key']"


def _reserved(match: re.Match[str], place: Excerpt, _: Names) -> Worded:
    parts = Excerpt(place.source, place.at + len(match[1])).arguments
    values = dict(zip(("condition", "then", "otherwise"), parts, strict=False))
    return 0, f"`{match[1]}` is a reserved word of CEL", suggestions.filled(RESERVED.get(match[1], ""), values)


def _has(_match: re.Match[str], place: Excerpt, _: Names) -> Worded:
    fault = "has() takes a field, as in has(pod.spec.priority)"
    if place.rest.startswith("[") and (key := ", ".join(place.arguments)):
        return 0, fault, f"for a key of a map write `{key} in {place.target}`"
    if place.rest.startswith("in "):
        return 0, fault, f"write `{place.left} in {place.right}` alone"
    if re.match(r"\w+\s*\)", place.rest):
        return 0, fault, "a variable is always there"
    return 0, fault, "for a key of a map write 'key' in map"


def _macro(_match: re.Match[str], _place: Excerpt, _: Names) -> Worded:
    return 0, "a macro takes a name first, such as `x`, and then what is to be said of `x`", ""


def _literal(match: re.Match[str], _place: Excerpt, _: Names) -> Worded:
    return 0, f"the number has no room in {match[1]}", "an int has 64 bits; a double is written 1e20"


_HANDLERS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str], Excerpt, Names], Worded]], ...]] = tuple(
    (re.compile(pattern, re.DOTALL), handler)
    for pattern, handler in (
        (r"undefined field '(.*)' not found in struct '(.*)'", undefined_field),
        (UNDECLARED.pattern, undeclared),
        (r"found no matching overload for '([^']*+)' applied to '\((.*)\)'", _overload),
        (r"expression of type '(.*)' cannot be the operand of a select operation", _selection),
        (r"reserved identifier: (\w+)", _reserved),
        (r"has\(\) argument must be a field selection", _has),
        (r"invalid (\w+) literal", _literal),
        (r".*variable name must be a simple identifier", _macro),
    )
)


def _and(types: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(types[:-1]), types[-1]])) if types else "nothing"


def _shown(type_: str) -> str:
    return type_.replace("optional_type", "optional").replace("Quantity", "quantity")


def _split(types: str) -> list[str]:
    """Split a list of types at its own commas."""
    parts, depth = [""], 0
    for character in types:
        depth += character in "(<"
        depth -= character in ")>"
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _type(engine: str) -> str:
    """A type in our words."""
    text = engine.replace("google.protobuf.Timestamp", "timestamp").replace("google.protobuf.Duration", "duration")
    text = re.sub(r"\((?:T%\d+(?:, )?)+\)", "", text)  # of what an empty list holds
    text = re.sub(r"T%\d+", "anything", text)
    return text.replace(f"{PACKAGE}.", "").replace("null_type", "null").replace("PlacedPod", "pod on a node")
