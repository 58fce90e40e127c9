"""What is wrong with an object as a suite writes it: a field that there is not would be passed over in silence."""

from collections.abc import Iterator, Mapping
from typing import Final

from fairlead.api.errors import FieldError, FieldPath
from fairlead.api.nearest import nearest
from fairlead.api.parse import shown
from fairlead.cel.errors import CelError
from fairlead.cel.functions.timetext import string_to_timestamp
from fairlead.cel.schema import NAMESPACE, NODE, POD, element, messages
from fairlead.suites.objects import AMOUNTS, OURS
from fairlead.suites.suite import Case, Expect, Object, Suite

KINDS: Final = {"namespaces": NAMESPACE, "nodes": NODE, "pods": POD}
_WORDS: Final = {"string": "a string", "int": "a whole number", "bool": "true or false", "double": "a number"}
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "int": (int,),
    "bool": (bool,),
    "double": (int, float),
    "dyn": (int, str),
}
_NOTHING: Final = Expect()
_LISTED_MAX: Final = 12
_NOT_READ: Final = ("managedFields",)  # what kubectl may print and no rule may read


def faults(suite: Suite) -> Iterator[FieldError]:
    """Everything that is wrong with the objects of a suite."""
    objects = [*_objects(suite)]
    for name, template in suite.templates.items():
        kinds = {kind for one, kind, _ in objects if one.get("from") == name} or {POD, NODE, NAMESPACE}
        each = [[*_of_object(template, kind, ("templates", name))] for kind in sorted(kinds)]
        # Where nothing says of which kind it is, it has to be right for one.
        yield from max(each, key=len) if len(kinds) < len(KINDS) else min(each, key=len)
    for one, kind, path in objects:
        yield from _of_object(one, kind, path)
    for at, case in enumerate(suite.cases):
        if case.expect == _NOTHING:
            hint = f"its fields are {', '.join(Expect.model_fields)}"
            yield FieldError(("cases", at, "expect"), "expects nothing, so that the case could not fail", hint)


def _objects(suite: Suite) -> Iterator[tuple[Object, str, FieldPath]]:
    """All that are written, with their kinds and where they are."""
    where: list[tuple[FieldPath, Suite | Case]] = [((), suite)]
    where += [(("cases", at), case) for at, case in enumerate(suite.cases)]
    for path, of in where:
        for field, kind in KINDS.items():
            yield from ((one, kind, (*path, field, index)) for index, one in enumerate(getattr(of, field)))
        if isinstance(of, Case):
            yield of.pod, POD, (*path, "pod")


def _of_object(value: object, kind: str, path: FieldPath) -> Iterator[FieldError]:
    if isinstance(value, Mapping):
        value = {key: one for key, one in value.items() if key not in OURS}
    yield from _of(value, kind, path)


def _of(value: object, type_: str, path: FieldPath) -> Iterator[FieldError]:
    inner = element(type_)
    if value is None:
        return
    if type_.startswith("list"):
        if isinstance(value, list):
            for at, item in enumerate(value):
                yield from _of(item, inner or "", (*path, at))
        else:
            yield FieldError(path, f"must be a list, not {shown(value)}", "each item begins with '- '")
    elif type_ in messages() or type_.startswith("map"):
        if isinstance(value, Mapping):
            for key, item in value.items():
                yield from _of_entry(key, item, type_, path)
        else:
            yield FieldError(path, f"must be a map, not {shown(value)}", _fields_of(type_))
    else:
        yield from _of_value(value, type_, path)


def _of_entry(key: str, item: object, type_: str, path: FieldPath) -> Iterator[FieldError]:
    here = (*path, key)
    if type_ in messages():
        known = messages()[type_]
        if key in known:
            yield from _of(item, known[key], here)
        elif key not in _NOT_READ:
            near = nearest(key, known)
            yield FieldError(here, "there is no such field", f"did you mean {near}?" if near else _fields_of(type_))
    elif not (path[-1] in AMOUNTS and isinstance(item, int | float) and not isinstance(item, bool)):
        yield from _of(item, element(type_) or "", here)


def _of_value(value: object, type_: str, path: FieldPath) -> Iterator[FieldError]:
    if type_ == "timestamp":
        try:
            string_to_timestamp(str(value))
        except CelError:
            yield FieldError(path, f"{shown(value)} is no time", "write it as 2027-01-15T12:00:00Z")
    elif not isinstance(value, _TYPES[type_]) or (isinstance(value, bool) and type_ != "bool"):
        hint = "write it in quotes" if type_ == "string" and not isinstance(value, list | Mapping) else ""
        yield FieldError(path, f"must be {_WORDS.get(type_, 'a number or a text')}, not {shown(value)}", hint)


def _fields_of(type_: str) -> str:
    fields = messages().get(type_, {})
    return f"its fields are {', '.join(fields)}" if 0 < len(fields) <= _LISTED_MAX else ""
