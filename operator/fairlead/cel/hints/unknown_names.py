"""Names that there are not: what they stand for elsewhere, and the nearest that is valid in their place."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from fairlead.api.closest_name import closest_name
from fairlead.cel.engine.environment import ROOTS, Scope
from fairlead.cel.hints import suggestions
from fairlead.cel.hints.engine_messages import EngineMessage, called
from fairlead.cel.hints.excerpt import Excerpt
from fairlead.cel.hints.foreign_syntax import (
    CONVERSIONS,
    FOREIGN_FUNCTIONS,
    FOREIGN_MACROS,
    FUNCTION_NAMES,
    MACRO_NAMES,
    METHODS,
    NO_VALUE,
    VARIABLES,
)
from fairlead.cel.values.schema import PACKAGE, messages

_LISTED: Final = 12
_NAME: Final = re.compile(r"(?<![\w.])\w++")
Worded = tuple[int, str, str]
"""How far from the place, what is wrong, what would be right."""


@dataclass(frozen=True, slots=True)
class Names:
    """What may be named in an expression."""

    scope: Scope
    variables: Collection[str]
    data: Collection[str] = ()


def undefined_field(match: re.Match[str], place: Excerpt, _: Names) -> Worded:
    """A field that a message does not have."""
    field, struct = match.groups()
    message = struct.removeprefix(f"{PACKAGE}.")
    fields = messages().get(message, {})
    offset = place.rest.find(field) if field in place.rest else 0
    near = _below(field, fields, 1.0) or did_you_mean(field, fields)
    kept = f"pods on a node are kept without it; its fields are {', '.join(fields)}"
    if message.startswith("Placed"):
        return offset, f"`{field}` is no field that pods on a node are kept with", near or kept
    hint = near or _below(field, fields, 0.8) or f"its fields are {_listed(fields)}"
    return offset, f"{message} has no field `{field}`", hint


def _below(name: str, fields: Mapping[str, str], cutoff: float) -> str:
    """The nearest name among the fields of the fields: the way to it was cut short."""
    deeper = {inner: f"{field}.{inner}" for field, type_ in fields.items() for inner in messages().get(type_, ())}
    near = closest_name(name, deeper, cutoff=cutoff)
    return f"did you mean `{deeper[near]}`?" if near else ""


def undeclared(match: re.Match[str], place: Excerpt, names: Names) -> Worded:
    """A variable or a function that there is not."""
    name = match[1].lstrip(".")
    if called(EngineMessage(place.at, match.string), place.source):
        return _undeclared_function(name, place)
    root = name.split(".")[0]
    if root == "variables":
        return _undeclared_variable(name, place, names)
    here = [found.start() for found in _NAME.finditer(place.code) if found[0] == root]
    near = min(here, key=lambda at: abs(at - place.at)) - place.at if here else 0
    if root in ROOTS:
        return near, f"`{root}` cannot be read in {names.scope.what}", f"there are {_listed(names.scope.roots)}"
    fault = f"there is no variable `{root}`"
    if VARIABLES.get(root) == NO_VALUE and (compared := re.search(r"([=!])=\s*$", place.before)):
        cure = suggestions.of_operator(
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


def _undeclared_variable(name: str, place: Excerpt, names: Names) -> Worded:
    short = name.removeprefix("variables").removeprefix(".").split(".")[0]
    declared = f"declared are {_listed(names.variables)}" if names.variables else "none is declared above this place"
    if short:
        return 1, f"there is no variable `{short}` in `variables`", did_you_mean(short, names.variables) or declared
    index = re.match(r"variables\s*\[\s*['\"](\w+)['\"]", place.rest)
    hint = f"write `variables.{index[1]}`" if index else declared
    return 0, "`variables` is no map, and is read as `variables.name`", hint


def _undeclared_function(name: str, place: Excerpt) -> Worded:
    """The place is that of the bracket."""
    offset = -len(name)
    target = suggestions.called_on(name, place)
    values = {
        "name": name,
        "target": target,
        "item": suggestions.item(target),
        "arguments": ", ".join(place.arguments),
        "first": place.arguments[0] if place.arguments else "",
        "first_optional": suggestions.optional(place.arguments[0]) if place.arguments else "",
        "rest": ", ".join(place.arguments[1:]) or "''",
    }
    if name in {*FUNCTION_NAMES, *MACRO_NAMES} and not (target and name in METHODS):
        return (
            offset,
            f"`{name}` is not called like this",
            suggestions.filled(_how_to_call(name, place, values), values),
        )
    module = f"{target.lower() if target == 'Math' else target}.{name}"
    if target in ("variables", *(root for root, type_ in ROOTS.items() if type_.name == "map")):
        hint = METHODS.get(name, "write `{target}.{name}`, without brackets")
    elif target and module in FOREIGN_FUNCTIONS:
        hint = FOREIGN_FUNCTIONS[module]
    elif not target and name in ROOTS:
        hint = "it is a value: write `{name}`"
    elif target and name == "count" and values["arguments"]:
        hint = "write `{target}.filter({arguments}).size()`"
    else:
        hint = (METHODS if target else FOREIGN_FUNCTIONS).get(name, "")
    fault = f"there is no function `{name}`"
    return (
        offset,
        fault,
        suggestions.filled(hint, values) or _near_function(name, call="" if target else "()"),
    )


def _how_to_call(name: str, place: Excerpt, values: dict[str, str]) -> str:
    """For a function that there is, and that is not called as it must be."""
    if name in ("has", "size") and not values["target"]:
        return "it takes one value"
    if name in CONVERSIONS:
        return f"write `{name}({{target}})`" if values["target"] else "it takes one value"
    if name == "exists" and len(place.arguments) == (not values["target"]):
        values["there"] = suggestions.presence(values["target"] or values["first"])
        if values["there"]:
            return "write `{there}`"
    called_otherwise = FOREIGN_MACROS.get(name, "" if values["target"] else "write `{first}.{name}({rest})`")
    values["target"] = values["target"] or values["first"]
    return called_otherwise or "see the functions in the reference of the rule language"


def _near_function(name: str, *, call: str) -> str:
    spaced = [one for one in FUNCTION_NAMES if one.endswith(f".{name}")]
    return (
        f"did you mean `{spaced[0]}{call}`?"
        if spaced
        else did_you_mean(name, {*FUNCTION_NAMES, *MACRO_NAMES}, call=call)
    )


def did_you_mean(name: str, candidates: Collection[str], *, call: str = "") -> str:
    """The nearest name, as a question."""
    near = closest_name(name, candidates)
    return f"did you mean `{near}{call}`?" if near else ""


def _listed(names: Collection[str]) -> str:
    shown = sorted(names)
    return ", ".join(shown[:_LISTED]) + (", ..." if len(shown) > _LISTED else "")
