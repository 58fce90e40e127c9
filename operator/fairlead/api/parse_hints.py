"""Hints for fields and values that do not fit the custom resource, derived from its models."""

import re
import typing
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from pydantic.fields import FieldInfo

from fairlead.api.closest_name import NAME_MAX, closest_name
from fairlead.api.errors import FieldPath
from fairlead.api.field_docs import field_doc
from fairlead.api.params import Params
from fairlead.api.values import Shape

_PLACES_MAX: Final = 3
_LOOKED_AT: Final = 1000  # characters of a value
_TEMPLATE: Final = re.compile(r"\{\{|\$[{(]")
# Names that fields have in other resources.
_OTHER_NAMES: Final[Mapping[str, str]] = {
    "matchConditions": "match.conditions",
    "labels": "podSelector.matchLabels",
}
_OTHER_NAMES_OF_EXPRESSION: Final = frozenset({"cel", "condition", "expr", "rule"})


def for_field(path: FieldPath, model: type[Params], at: FieldPath) -> str:
    """Return a hint for a field that does not exist in its place, in the part of an object at a path."""
    name, fields = str(path[-1]), fields_at(path[:-1], model)
    if name in _OTHER_NAMES_OF_EXPRESSION and "expression" in fields:
        return "did you mean expression?"
    if places := [place for place in _places(model).get(name, ()) if place != path[:-1]]:
        above = tuple(segment for segment in at if isinstance(segment, str))
        return f"it belongs in {_listed([above + place for place in places])}"
    if (other := _OTHER_NAMES.get(name, "")).partition(".")[0] in fields:
        return f"here it is called {other}"
    if near := closest_name(name, fields):
        return f"did you mean {near}?"
    return "labels go under matchLabels" if "matchLabels" in fields else f"the fields here are {', '.join(fields)}"


def for_missing(path: FieldPath, model: type[Params]) -> str:
    """Return a hint for a missing required field: its fields, or its documentation."""
    field = field_at(path, model)
    is_map = any(typing.get_origin(one) is dict for one in _parts(field))
    if below := fields_at(path, model) if isinstance(path[-1], str) and not is_map else []:
        needed = [one.alias or "" for one in _model_of(field).model_fields.values() if one.is_required()]
        return f"write its {' and '.join(needed)}" if needed else f"its fields are {', '.join(below)}"
    return summarize_field(path, model)


def for_kind(kind: str, value: object, path: FieldPath, model: type[Params]) -> str:
    """Return a hint for a value of the wrong type."""
    field = field_at(path, model)
    if unfilled := for_template(value):
        return unfilled
    match kind, value:
        case "string_type", bool() | int() | float():
            shapes = [one for one in _parts(field) if isinstance(one, Shape) and one.bounds]
            return shapes[0].message if shapes else "write it in quotes"
        case "string_type", list() | tuple() if path[-1] == "expression":
            return "write one string, with && between conditions"
        case "string_type", Mapping():
            return "quote a string that begins with '{', or write it under '|'"
        case (("int_type" | "float_type"), str()) if _is_number(value):
            return "remove the quotes"
        case "bool_type", "true" | "false":
            return "remove the quotes"
        case "tuple_type", Mapping():
            return "each item begins with '- '" + _first_fields(field)
        case "tuple_type", str() | bool() | int() | float():
            fields = _first_fields(field)
            return "each item begins with '- '" + fields if fields else f"write [{value}]"[:NAME_MAX]
        case "model_type", list() | tuple():
            return "remove the '-'"
        case "model_type", _ if below := fields_at(path, model):
            return f"its fields are {', '.join(below)}"
    return ""


def for_template(value: object) -> str:
    """Return a hint for a template that a tool should have filled in."""
    found = _TEMPLATE.search(value[:_LOOKED_AT]) if isinstance(value, str) else None
    if not found:
        return ""
    cure = "let Helm render the file first" if found[0] == "{{" else "let your tool fill it in first"
    return f"`{found[0]}` is a template that was not filled in; {cure}"


def summarize_field(path: FieldPath, model: type[Params]) -> str:
    """Return the first sentence of the documentation of the field at a path."""
    here = _model_at(path[:-1], model)
    fields = here.model_fields.items() if here and path else ()
    docs = (field_doc(here, name) for name, field in fields if here and field.alias == path[-1])
    sentence = " ".join(next(docs, "").split()).partition(". ")[0].removesuffix(".")
    return sentence if sentence[1:2].isupper() else sentence[:1].lower() + sentence[1:]


def fields_at(path: FieldPath, model: type[Params]) -> list[str]:
    """Return the names of the fields that an object has at a path."""
    here = _model_at(path, model)
    return [field.alias or name for name, field in here.model_fields.items()] if here else []


def field_at(path: FieldPath, model: type[Params]) -> FieldInfo | None:
    """Return the field at a path; None for an item of a list."""
    here = _model_at(path[:-1], model)
    fields = here.model_fields.values() if here and path else ()
    return next((field for field in fields if field.alias == path[-1]), None)


def words_of(field: FieldInfo | None) -> list[str]:
    """Return the enum values of a field."""
    return [word for word in _parts(field) if isinstance(word, str)]


def _is_number(text: str) -> bool:
    try:
        return float(text[:NAME_MAX]) == float(text)
    except ValueError:
        return False


def _first_fields(field: FieldInfo | None) -> str:
    made = _model_of(field)
    names = [one.alias or "" for one in made.model_fields.values() if one.is_required()] if made else []
    return f" and has its own {' and '.join(names)}" if names else ""


@lru_cache(4)
def _places(model: type[Params]) -> Mapping[str, list[FieldPath]]:
    """Return the paths where each field name belongs, the higher ones first."""
    found: dict[str, list[FieldPath]] = {}
    level: list[tuple[FieldPath, type[Params]]] = [((), model)]
    while level:
        below: list[tuple[FieldPath, type[Params]]] = []
        for path, here in level:
            for field in here.model_fields.values():
                name = field.alias or ""
                found.setdefault(name, []).append(path)
                # The fields of strategies and of device shares are their own, and people do not write the status.
                if name not in ("status", "deviceShare") and name not in getattr(here, "strategies", ()):
                    inner = [one for one in _parts(field) if isinstance(one, type) and issubclass(one, Params)]
                    below += [((*path, name), one) for one in inner[:1]]
        level = below
    return found


def _listed(places: list[FieldPath]) -> str:
    shown = [".".join(map(str, place)) or "the top" for place in places[:_PLACES_MAX]]
    if len(places) > _PLACES_MAX:
        return f"{', '.join(shown)} and others"
    return " or ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


def _model_of(field: FieldInfo | None) -> type[Params]:
    return next((one for one in _parts(field) if isinstance(one, type) and issubclass(one, Params)), Params)


def _model_at(path: FieldPath, model: type[Params]) -> type[Params] | None:
    here: type[Params] | None = model
    of_map, models = False, list[type[Params]]()
    for place, segment in enumerate(path):
        if of_map:
            of_map = False  # a key of the user's choice
            if models and not any(isinstance(one, int) for one in path[place + 1 : place + 2]):
                here = models[-1]  # of a value that is a list or a map, the model of the map is the last one
        elif isinstance(segment, str) and here is not None:
            field = next((field for field in here.model_fields.values() if field.alias == segment), None)
            models = [one for one in _parts(field) if isinstance(one, type) and issubclass(one, Params)]
            here = models[0] if models else None
            of_map = any(typing.get_origin(one) is dict for one in _parts(field))
    return here


def _parts(field: FieldInfo | None) -> Iterator[object]:
    """Yield the parts of a field's annotation: types, enum values and markers."""
    if field is not None:
        yield from field.metadata
        yield from _unwrapped(field.annotation)


def _unwrapped(annotation: object) -> Iterator[object]:
    yield annotation
    for one in typing.get_args(annotation):
        yield from _unwrapped(one)
