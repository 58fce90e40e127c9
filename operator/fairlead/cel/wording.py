"""The engine's complaints in the words of a person who writes policies, with the cure.

The engine says where and what; it does not know which names would have been right, and calls operators `_>=_`.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from fairlead.cel import cures
from fairlead.cel.diagnostics import Diagnostic, place
from fairlead.cel.elsewhere import FUNCTIONS as FUNCTIONS_ELSEWHERE
from fairlead.cel.elsewhere import MACROS as MACROS_WRITTEN
from fairlead.cel.elsewhere import METHODS, NO_VALUE, VARIABLES
from fairlead.cel.environment import ROOTS, Scope
from fairlead.cel.excerpts import Excerpt
from fairlead.cel.schema import PACKAGE, messages
from fairlead.cel.syntax import of_syntax
from fairlead.cel.vocabulary import FUNCTIONS, MACROS

_ERROR: Final = re.compile(r"ERROR: <input>:(-?\d+):(-?\d+): (.*?)(?=\n \| |\nERROR: |\Z| \[[A-Z_]+\]\Z)", re.DOTALL)
_KEPT: Final = 5  # after that many, the rest follows from the first
# A key with a dot, a dash or a slash that is written as if it were a field. Resources have no dots alone.
_HOLDER: Final = r"\b({})\.({})(?![\w(])"
_UNQUOTED_KEYS: Final = (
    re.compile(_HOLDER.format("labels|annotations|nodeSelector|matchLabels", r"\w+(?:[-./]+\w+)+")),
    re.compile(
        _HOLDER.format("allocatable|capacity|requests|limits|free|requested|request|data", r"[\w.]+(?:[-/]+[\w.]+)+")
    ),
)


@dataclass(frozen=True, slots=True)
class Names:
    """What may be named in an expression."""

    scope: Scope
    variables: Collection[str]
    data: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class _Said:
    """One complaint of the engine."""

    at: int
    message: str


def diagnostics(error: str, source: str, names: Names) -> list[Diagnostic]:
    """What the engine said, one by one."""
    if "recursion" in error:
        return [Diagnostic(1, 1, "the expression is nested more than 32 deep", "split it with variables")]
    said = [
        _Said(_offset(source, int(line), int(column)), message)
        for line, column, message in _ERROR.findall(error)
        if int(line) > 0 and "*error*" not in message  # what follows from another fault
    ]
    if not said:
        return [Diagnostic(1, 1, error.splitlines()[0])]
    syntax = [one for one in said if one.message.startswith("Syntax error")]
    if syntax:
        at, text, hint = of_syntax(syntax[0].message, Excerpt(source, syntax[0].at))
        return [Diagnostic(*place(source, at), text, hint)]
    keys, rest = _unquoted_keys(source, said)
    found = [_worded(one, source, names) for one in _without_echoes(rest, source)]
    return sorted({*keys, *found})[:_KEPT]


def _offset(source: str, line: int, column: int) -> int:
    lines = source.split("\n")
    return min(sum(len(one) + 1 for one in lines[: line - 1]) + column - 1, len(source))


def _unquoted_keys(source: str, said: list[_Said]) -> tuple[list[Diagnostic], list[_Said]]:
    """Keys that are read as fields, and what else is wrong."""
    found, rest = list[Diagnostic](), said
    code = Excerpt(source, 0).code
    for key in (one for pattern in _UNQUOTED_KEYS for one in pattern.finditer(code)):
        inside = [one for one in rest if key.start(2) - 1 <= one.at <= key.end()]
        if any(not one.message.startswith("found") or "_-_" in one.message for one in inside):
            holder, name = Excerpt(source, key.start(2) - 1).target, key[2]
            fault = f"a key with `{re.sub(r'[^-./]', '', name)[0]}` in it is not read as a field"
            found.append(Diagnostic(*place(source, key.start(2)), fault, f"write `{holder}['{name}']`"))
            rest = [one for one in rest if one not in inside]
    return found, rest


def _without_echoes(said: list[_Said], source: str) -> list[_Said]:
    """Once a call is wrong, what it would have bound, and what is called on its result, are no news."""
    kept = list(said)
    for call in [one for one in said if _called(one, source)]:
        name, place = _called(call, source), Excerpt(source, call.at)
        begins = place.target_span[0]
        before = [one for one in kept if begins <= one.at < call.at - len(name)]
        if any(_called(one, source) or _root(one) in VARIABLES for one in before):
            kept.remove(call)
            continue
        bound = {argument for argument in place.arguments if argument.isidentifier()}
        kept = [
            one
            for one in kept
            if not (one in before and _root(one))
            and not (call.at < one.at <= place.end and _root(one) and (name in MACROS or _root(one) in bound))
        ]
    return kept


def _called(one: _Said, source: str) -> str:
    """The name of the function, if it is one that there is not."""
    found = re.match(_UNDECLARED, one.message)
    is_call = found and source.startswith("(", one.at) and source[: one.at].rstrip().endswith(found[1])
    return found[1] if found and is_call else ""


def _root(one: _Said) -> str:
    """The variable, if it is one that there is not."""
    found = re.match(_UNDECLARED, one.message)
    return found[1].split(".")[0] if found else ""


def _worded(said: _Said, source: str, names: Names) -> Diagnostic:
    for pattern, handler in _HANDLERS.items():
        if match := re.match(pattern, said.message, re.DOTALL):
            offset, text, hint = handler(match, Excerpt(source, said.at), names)
            return Diagnostic(*place(source, said.at + offset), text, hint)
    return Diagnostic(*place(source, said.at), said.message)


_Worded = tuple[int, str, str]
_UNDECLARED: Final = r"undeclared reference to '(.*)' \(in container"


def _undefined_field(match: re.Match[str], place: Excerpt, _: Names) -> _Worded:
    field, struct = match.groups()
    message = struct.removeprefix(f"{PACKAGE}.")
    fields = messages().get(message, {})
    offset = place.rest.find(field) if field in place.rest else 0
    kept = f"pods on a node are kept without it; its fields are {', '.join(fields)}"
    if message.startswith("Placed"):
        return offset, f"`{field}` is no field that pods on a node are kept with", did_you_mean(field, fields) or kept
    hint = (
        _below(field, fields, 1.0)
        or did_you_mean(field, fields)
        or _below(field, fields, 0.8)
        or f"its fields are {_listed(fields)}"
    )
    return offset, f"{message} has no field `{field}`", hint


def _below(name: str, fields: Mapping[str, str], cutoff: float) -> str:
    """The nearest name among the fields of the fields: the way to it was cut short."""
    deeper = {inner: f"{field}.{inner}" for field, type_ in fields.items() for inner in messages().get(type_, ())}
    near = get_close_matches(name, sorted(deeper), n=1, cutoff=cutoff)
    return f"did you mean `{deeper[near[0]]}`?" if near else ""


def _undeclared(match: re.Match[str], place: Excerpt, names: Names) -> _Worded:
    name = match[1].lstrip(".")
    if _called(_Said(place.at, match.string), place.source):
        return _undeclared_function(name, place)
    root = name.split(".")[0]
    if root == "variables":
        return _undeclared_variable(name, place, names)
    here = list(re.finditer(rf"(?<![\w.]){re.escape(root)}\b", place.code))
    near = min(here, key=lambda found: abs(found.start() - place.at)).start() - place.at if here else 0
    if root in ROOTS:
        return near, f"`{root}` cannot be read in {names.scope.what}", f"there are {_listed(names.scope.roots)}"
    fault = f"there is no variable `{root}`"
    if VARIABLES.get(root) == NO_VALUE and (compared := re.search(r"([=!])=\s*$", place.before)):
        cure = cures.of_operator(
            f"_{compared[1]}=_", ["...", "null"], Excerpt(place.source, place.at - len(compared[0]))
        )
        return near, fault, cure or NO_VALUE
    return near, fault, VARIABLES.get(root) or _meant_by(name, place, names)


def _meant_by(name: str, place: Excerpt, names: Names) -> str:
    """What a name may stand for that is none."""
    for holder, declared in (("variables", names.variables), ("data", names.data)):
        if name in declared:
            return f"did you mean `{holder}.{name}`?"
    if hint := did_you_mean(name.split(".")[0], [*names.scope.roots, "variables"]):
        return hint
    if name.isidentifier() and re.search(r"(?:[=!]=|\[|\bin)\s*$", place.before):
        return f"a text stands in quotes: `'{name}'`"
    return f"there are {_listed([*names.scope.roots, 'variables'])}"


def _undeclared_variable(name: str, place: Excerpt, names: Names) -> _Worded:
    short = name.removeprefix("variables").removeprefix(".").split(".")[0]
    declared = f"declared are {_listed(names.variables)}" if names.variables else "none is declared above this place"
    if short:
        return 1, f"there is no variable `{short}` in `variables`", did_you_mean(short, names.variables) or declared
    index = re.match(r"variables\s*\[\s*['\"](\w+)['\"]", place.rest)
    hint = f"write `variables.{index[1]}`" if index else declared
    return 0, "`variables` is no map, and is read as `variables.name`", hint


def _undeclared_function(name: str, place: Excerpt) -> _Worded:
    """The place is that of the bracket."""
    offset = -len(name)
    target = cures.called_on(name, place)
    values = {
        "name": name,
        "target": target,
        "item": cures.item(target),
        "arguments": ", ".join(place.arguments),
        "first": place.arguments[0] if place.arguments else "",
        "rest": ", ".join(place.arguments[1:]) or "''",
    }
    known = {*FUNCTIONS, *MACROS}
    if name in known and not (target and name in METHODS):
        values["target"] = target or values["first"]
        called = MACROS_WRITTEN.get(name, "" if target else "write `{first}.{name}({rest})`")
        hint = cures.filled(called, values) or "see the functions in the reference of the rule language"
        return offset, f"`{name}` is not called like this", hint
    module = f"{target.lower() if target == 'Math' else target}.{name}"
    if target and module in FUNCTIONS_ELSEWHERE:
        hint = FUNCTIONS_ELSEWHERE[module]
    else:
        hint = (METHODS if target else FUNCTIONS_ELSEWHERE).get(name, "")
    fault = f"there is no function `{name}`"
    return (
        offset,
        fault,
        cures.filled(hint, values) or _near_function(name, call="" if target else "()"),
    )


def _near_function(name: str, *, call: str) -> str:
    spaced = [one for one in FUNCTIONS if one.endswith(f".{name}")]
    return f"did you mean `{spaced[0]}{call}`?" if spaced else did_you_mean(name, {*FUNCTIONS, *MACROS}, call=call)


def _overload(match: re.Match[str], place: Excerpt, _: Names) -> _Worded:
    function, types = match[1], [_type(part) for part in _split(match[2])]
    said, cure = _misapplied(function, types, [*map(_shown, types)], place)
    return 0 if function[0] in "_@!-" else -len(function), said, cure


def _misapplied(function: str, types: list[str], shown: list[str], place: Excerpt) -> tuple[str, str]:
    operator = function.strip("_").replace("_", "")
    if function == "_[_]":
        return f"{shown[0]} has no elements by {shown[1]}", cures.of_index(types, place)
    if function[0] not in "_@!-":
        return f"`{function}` does not take {_and(shown)}", cures.of_call(function, types, place)
    said = {
        "_?_:_": f"`?:` takes a bool and two values of one type, not {_and(shown)}",
        "!_": f"`!` takes bools, not {_and(shown)}",
        "_&&_": f"`&&` takes bools, not {_and(shown)}",
        "_||_": f"`||` takes bools, not {_and(shown)}",
        "-_": f"`-` takes a number, not {shown[0]}",
        "@in": f"`in` looks for {shown[0]} in {shown[-1]}",
    }
    return said.get(function, f"`{operator}` does not take {_and(shown)}"), cures.of_operator(function, types, place)


def _selection(match: re.Match[str], place: Excerpt, _: Names) -> _Worded:
    type_ = _type(match[1])
    field = re.match(r"\.\s*(\w+)", place.rest)
    cure = cures.of_field(field[1], type_, place) if field else ""
    return 1, f"{type_} has no fields", cure or "a label with dots or slashes is read as labels['example.com/key']"


def _reserved(match: re.Match[str], _place: Excerpt, _: Names) -> _Worded:
    hint = "the pod's namespace is `namespaceObject`" if match[1] == "namespace" else ""
    return 0, f"`{match[1]}` is a reserved word of CEL", hint


def _has(_match: re.Match[str], place: Excerpt, _: Names) -> _Worded:
    fault = "has() takes a field, as in has(pod.spec.priority)"
    if place.rest.startswith("[") and (key := ", ".join(place.arguments)):
        return 0, fault, f"for a key of a map write `{key} in {place.target}`"
    if place.rest.startswith("in "):
        return 0, fault, f"write `{place.left} in {place.right}` alone"
    if re.match(r"\w+\s*\)", place.rest):
        return 0, fault, "a variable is always there"
    return 0, fault, "for a key of a map write 'key' in map"


def _macro(_match: re.Match[str], _place: Excerpt, _: Names) -> _Worded:
    return 0, "a macro takes a name first, such as `x`, and then what is to be said of `x`", ""


def _literal(match: re.Match[str], _place: Excerpt, _: Names) -> _Worded:
    return 0, f"the number has no room in {match[1]}", "an int has 64 bits; a double is written 1e20"


_HANDLERS: Final[Mapping[str, Callable[[re.Match[str], Excerpt, Names], _Worded]]] = {
    r"undefined field '(.*)' not found in struct '(.*)'": _undefined_field,
    _UNDECLARED: _undeclared,
    r"found no matching overload for '(.*)' applied to '\((.*)\)'": _overload,
    r"expression of type '(.*)' cannot be the operand of a select operation": _selection,
    r"reserved identifier: (\w+)": _reserved,
    r"has\(\) argument must be a field selection": _has,
    r"invalid (\w+) literal": _literal,
    r".*variable name must be a simple identifier": _macro,
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
