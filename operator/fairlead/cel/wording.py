"""The engine's complaints in the words of a person who writes policies, with the cure.

The engine says where and what; it does not know which names would have been right, and calls operators `_>=_`.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from fairlead.cel.diagnostics import Diagnostic
from fairlead.cel.environment import ROOTS, Scope
from fairlead.cel.schema import PACKAGE, messages
from fairlead.cel.vocabulary import FUNCTIONS, MACROS

_ERROR: Final = re.compile(r"ERROR: <input>:(-?\d+):(-?\d+): (.*?)(?=\n \| |\nERROR: |\Z| \[[A-Z_]+\]\Z)", re.DOTALL)
_KEPT: Final = 5  # after that many, the rest follows from the first


@dataclass(frozen=True, slots=True)
class Names:
    """What may be named in an expression."""

    scope: Scope
    variables: Collection[str]


def diagnostics(error: str, source: str, names: Names) -> list[Diagnostic]:
    """What the engine said, one by one."""
    if "recursion" in error:
        return [Diagnostic(1, 1, "the expression is nested more than 32 deep", "split it with variables")]
    found = [
        _worded(int(line), int(column), message, source, names)
        for line, column, message in _ERROR.findall(error)
        if int(line) > 0 and "*error*" not in message  # what follows from another fault
    ]
    if not found:
        return [Diagnostic(1, 1, error.splitlines()[0])]
    return _without_echoes(found)[:_KEPT]


def _without_echoes(found: list[Diagnostic]) -> list[Diagnostic]:
    """Once a macro's name is wrong, the names that it would have bound are no news."""
    if syntax := [one for one in found if one.message.startswith("syntax")]:
        return syntax[:1]
    macros = [one for one in found if one.message.startswith("there is no function")]
    if macros and any(one.message.startswith("there is no variable") for one in found):
        return macros
    return sorted(set(found))


def _worded(line: int, column: int, message: str, source: str, names: Names) -> Diagnostic:
    here = (source.split("\n")[line - 1] if line <= source.count("\n") + 1 else "")[column - 1 :]
    for pattern, handler in _HANDLERS.items():
        if match := re.match(pattern, message, re.DOTALL):
            offset, text, hint = handler(match, _Place(source, line, column, here), names)
            return Diagnostic(line, column + offset, text, hint)
    return Diagnostic(line, column, message)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the engine points to."""

    source: str
    line: int
    column: int
    rest: str

    @property
    def before(self) -> str:
        """The line up to there."""
        return self.source.split("\n")[self.line - 1][: self.column - 1]


_Worded = tuple[int, str, str]


def _undefined_field(match: re.Match[str], place: _Place, _: Names) -> _Worded:
    field, struct = match.groups()
    message = struct.removeprefix(f"{PACKAGE}.")
    fields = messages().get(message, {})
    offset = place.rest.find(field) if field in place.rest else 0
    kept = f"pods on a node are kept without it; its fields are {', '.join(fields)}"
    if message.startswith("Placed"):
        return offset, f"`{field}` is no field that pods on a node are kept with", did_you_mean(field, fields) or kept
    hint = did_you_mean(field, fields) or _below(field, fields) or f"its fields are {_listed(fields)}"
    return offset, f"{message} has no field `{field}`", hint


def _below(name: str, fields: Mapping[str, str]) -> str:
    """The nearest name among the fields of the fields: the way to it was cut short."""
    deeper = {inner: f"{field}.{inner}" for field, type_ in fields.items() for inner in messages().get(type_, ())}
    near = get_close_matches(name, sorted(deeper), n=1, cutoff=0.8)
    return f"did you mean `{deeper[near[0]]}`?" if near else ""


def _undeclared(match: re.Match[str], place: _Place, names: Names) -> _Worded:
    name = match[1]
    if place.rest.startswith("("):
        return _undeclared_function(name, place)
    if name.startswith("variables"):
        short = name.removeprefix("variables").removeprefix(".").split(".")[0]
        declared = (
            f"declared are {_listed(names.variables)}" if names.variables else "none is declared above this place"
        )
        return 1, f"there is no variable `{short}` in `variables`", did_you_mean(short, names.variables) or declared
    root = name.split(".")[0]
    found = [match.start() for match in re.finditer(rf"(?<![\w.]){re.escape(root)}\b", place.before)]
    offset = found[-1] - len(place.before) if found and place.rest.startswith(".") else 0
    if root in ROOTS:
        return offset, f"`{root}` cannot be read in {names.scope.what}", f"there are {_listed(names.scope.roots)}"
    hint = did_you_mean(root, [*names.scope.roots, "variables"])
    return offset, f"there is no variable `{root}`", hint or f"there are {_listed([*names.scope.roots, 'variables'])}"


def _undeclared_function(name: str, place: _Place) -> _Worded:
    offset = -len(name)
    known = {*FUNCTIONS, *MACROS}
    if name in known:
        return offset, f"`{name}` is not called like this", "see the functions in the reference of the rule language"
    member = place.before.endswith(f".{name}")
    return offset, f"there is no function `{name}`", did_you_mean(name, known, call="" if member else "()")


def _overload(match: re.Match[str], place: _Place, _: Names) -> _Worded:
    function, types = match[1], [_type(part) for part in _split(match[2])]
    operator = function.strip("_").replace("_", "")
    if function == "_?_:_":
        return 0, f"`?:` takes a bool and two values of one type, not {_and(types)}", _bool_hint(types[:1])
    if function in ("!_", "_&&_", "_||_"):
        return 0, f"`{operator}` takes bools, not {_and(types)}", _bool_hint(types)
    if function == "-_":
        return 0, f"`-` takes a number, not {types[0]}", ""
    if function == "_[_]":
        return 0, f"{types[0]} has no elements by {types[1]}", ""
    if function == "@in":
        return 0, f"`in` looks for {types[0]} in {types[1]}", _cure(types, place)
    if function.startswith("_"):
        return 0, f"`{operator}` does not take {_and(types)}", _cure(types, place)
    return -len(function), f"`{function}` does not take {_and(types)}", _cure(types, place)


def _cure(types: list[str], place: _Place) -> str:
    """What makes two types one."""
    literal = re.match(r"[^\w\s'\"]+\s*(-?\d+)\b(?!\.)", place.rest)
    before = re.search(r"(-?\b\d+)\s*$", place.before)
    match types:
        case ["double", "int"] if literal:
            return f"write {literal[1]}.0"
        case ["int", "double"] if before and "." not in place.before[max(0, before.start() - 1) : before.end()]:
            return f"write {before[1]}.0"
        case ["int", "double"] | ["double", "int"]:
            return "write double(...) around the int"
        case ["string", "int" | "double"] | ["int" | "double", "string"]:
            return "write int(...) or double(...) around the string; for a quantity such as 500m, quantity(...)"
        case ["timestamp", _] | [_, "timestamp"]:
            return "a timestamp compares with timestamp('...'), and minus a timestamp gives a duration"
        case ["duration", _] | [_, "duration"]:
            return "a duration is written duration('90s')"
        case [_, "null"] | ["null", _]:
            return "a field that is absent is not null: ask has(...)"
    return ""


def _bool_hint(types: list[str]) -> str:
    return "compare it with something" if types and types[0] in ("string", "int", "double") else ""


def _selection(match: re.Match[str], _place: _Place, _: Names) -> _Worded:
    return 1, f"{_type(match[1])} has no fields", "a label with dots or slashes is read as labels['example.com/key']"


def _reserved(match: re.Match[str], _place: _Place, _: Names) -> _Worded:
    hint = "the pod's namespace is `namespaceObject`" if match[1] == "namespace" else ""
    return 0, f"`{match[1]}` is a reserved word of CEL", hint


def _syntax(match: re.Match[str], place: _Place, _: Names) -> _Worded:
    text = match[1]
    if "<EOF>' expecting ':'" in text:
        return (
            0,
            "syntax error: `?` wants a `:`",
            "an optional field is read with `.?field`, a default is `x.orValue(y)`",
        )
    if text.startswith(("mismatched input '<EOF>'", "missing")) and not place.rest.strip():
        return 0, "syntax error: the expression ends too early", "close every bracket and quote"
    if "token recognition error at: '= '" in text or place.rest.startswith("= "):
        return 0, "syntax error: there is no `=`", "`==` compares"
    if text.startswith("token recognition error") and place.rest[:1] in "'\"":
        return 0, "syntax error: the string does not end", "close the quote"
    if text.startswith("token recognition error"):
        return 0, f"syntax error: {place.rest[:1]!r} means nothing here", ""
    return 0, f"syntax error near `{place.rest.split()[0][:20] if place.rest.split() else ''}`", ""


def _has(_match: re.Match[str], _place: _Place, _: Names) -> _Worded:
    return 0, "has() takes a field, as in has(pod.spec.priority)", "for a key of a map write 'key' in map"


def _literal(match: re.Match[str], _place: _Place, _: Names) -> _Worded:
    return 0, f"the number has no room in {match[1]}", "an int has 64 bits; a double is written 1e20"


_HANDLERS: Final[Mapping[str, Callable[[re.Match[str], _Place, Names], _Worded]]] = {
    r"undefined field '(.*)' not found in struct '(.*)'": _undefined_field,
    r"undeclared reference to '(.*)' \(in container": _undeclared,
    r"found no matching overload for '(.*)' applied to '\((.*)\)'": _overload,
    r"expression of type '(.*)' cannot be the operand of a select operation": _selection,
    r"reserved identifier: (\w+)": _reserved,
    r"Syntax error: (.*)": _syntax,
    r"has\(\) argument must be a field selection": _has,
    r"invalid (\w+) literal": _literal,
}


def did_you_mean(name: str, candidates: Collection[str], *, call: str = "") -> str:
    """The nearest name, as a question."""
    lower = {candidate.lower(): candidate for candidate in sorted(candidates, reverse=True)}
    near = get_close_matches(name.lower(), sorted(lower), n=1, cutoff=0.6)
    return f"did you mean `{lower[near[0]]}{call}`?" if near else ""


def _listed(names: Collection[str]) -> str:
    shown = sorted(names)
    return ", ".join(shown[:12]) + (", ..." if len(shown) > 12 else "")


def _and(types: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(types[:-1]), types[-1]])) if types else "nothing"


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
    return text.replace(f"{PACKAGE}.", "").replace("null_type", "null").replace("PlacedPod", "pod on a node")
