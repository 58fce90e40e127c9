"""Parsing of policies from plain data, with every error that the API server would find.

Any YAML or JSON raises nothing but `InvalidObjectError`. `status` is ignored: an operator wrote it, not the user.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from itertools import islice
from typing import Final, TypeVar, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from fairlead.api import parse_hints
from fairlead.api.closest_name import closest_name
from fairlead.api.errors import FieldError, FieldPath, InvalidObjectError
from fairlead.api.mode import RuleMode
from fairlead.api.params import ITEMS, MAP, Params
from fairlead.api.v1alpha1 import Metadata, SchedulerExtenderPolicy

P = TypeVar("P", bound=SchedulerExtenderPolicy)
M = TypeVar("M", bound=Params)

_MISSING = "is missing"
_NO_SUCH_FIELD = "there is no such field"
_ERRORS_MAX = 100
_VALUES_MAX = 5_000
_WIDTH_MAX = 100
_DEPTH_MAX = 24
_SHOWN_DEPTH = 8
_METADATA = tuple(str(field.alias) for field in Metadata.model_fields.values())
_SHOWN_MAX = 60
_UNWRITTEN = ("[key]", ITEMS, MAP)
"""Segments of paths that stand in no file."""
_BITS_MAX = 256
_KINDS = {
    "tuple_type": "a list",
    "model_type": "a map of fields",
    "dict_type": "a map",
    "string_type": "a string",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
}
_SIZES: dict[str, Callable[[Mapping[str, object]], str]] = {
    "string_too_short": lambda limits: f"at least {limits['min_length']} characters",
    "string_too_long": lambda limits: f"at most {limits['max_length']} characters",
    "too_short": lambda limits: f"at least {limits['min_length']} items",
    "too_long": lambda limits: f"at most {limits['max_length']} items",
}
_LIMITS: dict[str, Callable[[Mapping[str, object]], str]] = {
    "greater_than_equal": lambda limits: f"at least {limits['ge']}",
    "less_than_equal": lambda limits: f"at most {limits['le']}",
    "greater_than": lambda limits: f"more than {limits['gt']}",
    "less_than": lambda limits: f"less than {limits['lt']}",
}


def parse_policy(obj: object, model: type[P]) -> P:
    """Return the policy of plain data, with a model of `policy_model`. Raises InvalidObjectError."""
    if isinstance(obj, Mapping):
        obj = {key: _read(value) if key == "metadata" else value for key, value in obj.items() if key != "status"}
        if isinstance(spec := obj.get("spec"), Mapping) and len(spec) <= _WIDTH_MAX:
            obj["spec"] = _shortened(spec)
    if (fault := _excess(obj)) is not None:
        raise InvalidObjectError([fault])
    return parse_params(obj, model)


def _shortened(part: Mapping[str, object], depth: int = 2) -> dict[str, object]:
    """Return an object with overlong lists cut off: pydantic validates items one by one."""
    return {
        key: value[: _WIDTH_MAX + 1]
        if isinstance(value, list | tuple)
        else _shortened(value, depth - 1)
        if depth and isinstance(value, Mapping) and len(value) <= _WIDTH_MAX
        else value
        for key, value in part.items()
    }


def _read(metadata: object) -> object:
    """Return the parts of metadata that are read; the rest may be large."""
    if not isinstance(metadata, Mapping):
        return metadata
    return {key: metadata[key] for key in _METADATA if key in metadata}


def _excess(obj: object) -> FieldError | None:
    """Return an error for an object far larger than any policy, found before it is parsed."""
    left: list[tuple[FieldPath, object]] = [((), obj)]
    for _ in range(_VALUES_MAX):
        if not left:
            return None
        path, value = left.pop()
        if isinstance(value, Mapping):
            if len(value) > _WIDTH_MAX:
                hint = "remove those that do not exist"
                return FieldError(path, f"has {len(value):,} fields, no part of a policy has {_WIDTH_MAX}", hint)
            parts: Iterable[tuple[object, object]] = value.items()
        elif isinstance(value, list | tuple):
            parts = enumerate(islice(value, _WIDTH_MAX))  # no valid list is longer
        else:
            continue
        if len(path) >= _DEPTH_MAX:
            if "params" in path:  # of a custom strategy, where the schema has no end
                return FieldError(path[:_SHOWN_DEPTH], "is nested too deeply")
            continue  # no field is that deep, so nothing reads it
        left += [((*path, key if isinstance(key, int) else str(key)), one) for key, one in parts]
    return FieldError((), f"the policy has more than {_VALUES_MAX:,} values", "split it into several policies")


def parse_params(obj: object, model: type[M], at: FieldPath = ()) -> M:
    """Return any other object whose model is a `Params`, or the part of one at a path. Raises InvalidObjectError."""
    try:
        return model.model_validate(obj, by_alias=True, by_name=False)
    except ValidationError as wrong:
        details = wrong.errors(include_url=False)
    errors = _without_misspelt([error for detail in details[:_ERRORS_MAX] for error in _translated(detail, model, at)])
    if len(details) > _ERRORS_MAX:
        errors.append(FieldError((), f"{len(details) - _ERRORS_MAX} more errors"))
    raise InvalidObjectError(FieldError((*at, *error.path), error.message, error.hint) for error in errors)


def _without_misspelt(errors: list[FieldError]) -> list[FieldError]:
    """Return the errors without those for fields that are missing because their names are misspelt."""
    meant = {(one.path[:-1], one.hint) for one in errors if one.message == _NO_SUCH_FIELD}
    return [
        one
        for one in errors
        if one.message != _MISSING or (one.path[:-1], f"did you mean {one.path[-1]}?") not in meant
    ]


def _translated(detail: ErrorDetails, model: type[Params], at: FieldPath) -> Iterator[FieldError]:
    path = tuple(segment for segment in detail["loc"] if segment not in _UNWRITTEN)
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "failed_checks":
        for below, message in context["failed"]:
            what, _, cure = message.partition(": ")
            yield FieldError(path + below, what, cure)
    elif kind == "missing":
        yield FieldError(path, _MISSING, parse_hints.for_missing(path, model))
    elif kind == "extra_forbidden":
        yield FieldError(path, _NO_SUCH_FIELD, parse_hints.for_field(path, model, at))
    elif kind == "literal_error" and (allowed := parse_hints.words_of(parse_hints.field_at(path, model))):
        wanted = f"is not one of {', '.join(allowed)}" if len(allowed) > 1 else f"is not {allowed[0]}"
        yield FieldError(path, f"{show_value(value)} {wanted}", _suggested(value, allowed))
    elif kind == "shape":
        yield FieldError(
            path, f"{show_value(value)} is not possible here", parse_hints.for_template(value) or context["message"]
        )
    elif kind in _KINDS:
        cure = parse_hints.for_kind(kind, value, path, model)
        yield FieldError(path, f"must be {_KINDS[kind]}, not {show_value(value)}", cure)
    elif kind in ("string_too_short", "too_short") and not value:
        field = parse_hints.field_at(path, model)
        cure = "" if not field or field.is_required() else "leave it out"
        yield FieldError(
            path, "must not be empty", parse_hints.summarize_field(path, model) if path[-1] == "expression" else cure
        )
    elif kind == "too_short" and isinstance(value, Sized) and len(value) >= context["min_length"]:
        return  # it is too short only because some items are invalid, which is reported anyway
    elif kind in _SIZES:
        size = len(value) if isinstance(value, Sized) else 0
        said = f"not {size}" if size <= _WIDTH_MAX or isinstance(value, str) else f"and has more than {_WIDTH_MAX}"
        yield FieldError(path, f"must have {_SIZES[kind](context)}, {said}")
    elif kind in _LIMITS:
        yield FieldError(path, f"must be {_LIMITS[kind](context)}, not {show_value(value)}")
    else:
        yield FieldError(path, detail["msg"][:1].lower() + detail["msg"][1:])


def show_value(value: object) -> str:
    """Return a value for an error message, never long."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() if value.bit_length() > _BITS_MAX:
            return "a number of many digits"
        case str() if len(value) > _SHOWN_MAX:
            return f"{value[:_SHOWN_MAX]!r}..."
        case str() | int() | float():
            return repr(value)
        case Mapping():
            return "a map"
        case list() | tuple() | set():
            return "a list"
        case _:
            return f"a {type(value).__name__}"


_OFF: Final = frozenset({"off", "no", "false", "none", "disable"})


def _suggested(value: object, allowed: list[str]) -> str:
    """Return which of the allowed words was meant by another one, or by one that YAML reads as a boolean."""
    if "Disabled" in allowed and str(value).lower() in _OFF:
        return "did you mean Disabled?"
    if allowed == [*get_args(RuleMode)] and str(value).lower() in (*_OFF, "disabled"):
        return "remove the rule"
    if value is False and "Off" in allowed:
        return 'write "Off" in quotes: without, YAML reads it as false'
    return _meant(value, allowed) if isinstance(value, str) else ""


def _meant(value: str, allowed: list[str]) -> str:
    near = closest_name(value, allowed)
    return f"did you mean {near}?" if near else parse_hints.for_template(value)
