"""Replies as Go's encoding/json reads them, as far as the scheduler's types go: `docs/reference/extender-contract.md`.

Stricter than Go in one point: keys that the types do not have, and keys that are there twice, are errors.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final


class GoError(Exception):
    """The scheduler would not take it."""


Check = Callable[[Any], None]


def decode(verb: str, reply: bytes) -> Any:
    """The reply of a verb with status 200."""
    value = strictly(reply)
    _VERBS[verb](value)
    return value


def strictly(body: bytes) -> Any:
    """JSON as the standard has it, with each key once."""
    try:
        return json.loads(body, object_pairs_hook=_once, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise GoError(str(error)) from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise GoError(f"a key twice: {[key for key, _ in pairs]}")
    return found


def _refuse(constant: str) -> Any:
    raise GoError(constant)


def _text(value: Any) -> None:
    if not isinstance(value, str):
        raise GoError(f"no string: {value!r}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise GoError(str(error)) from error


def _int(value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not -(1 << 63) <= value < 1 << 63:
        raise GoError(f"no int64: {value!r}")


def _any_object(value: Any) -> None:
    if not isinstance(value, dict):
        raise GoError(f"no object: {value!r}")


def _or_null(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


def _list(check: Check) -> Check:
    def each(value: Any) -> None:
        if not isinstance(value, list):
            raise GoError(f"no list: {value!r}")
        for one in value:
            check(one)

    return each


def _map(check: Check) -> Check:
    def each(value: Any) -> None:
        _any_object(value)
        for key, one in value.items():
            _text(key)
            check(one)

    return each


def _object(fields: Mapping[str, Check], *, others: bool = False) -> Check:
    def each(value: Any) -> None:
        _any_object(value)
        if not others and {*value} != {*fields}:
            raise GoError(f"other keys: {[*value]}")
        for key, check in fields.items():
            if key in value:
                check(value[key])

    return each


_REASONS: Final = _or_null(_map(_text))
_VICTIMS: Final = _object({"Pods": _or_null(_list(_object({"UID": _text}))), "NumPDBViolations": _int})
_VERBS: Final[Mapping[str, Check]] = {
    "filter": _object(
        {
            "Nodes": _or_null(_object({"items": _or_null(_list(_any_object))}, others=True)),
            "NodeNames": _or_null(_list(_text)),
            "FailedNodes": _REASONS,
            "FailedAndUnresolvableNodes": _REASONS,
            "Error": _text,
        }
    ),
    "prioritize": _list(_object({"Host": _text, "Score": _int})),
    "preempt": _object({"NodeNameToMetaVictims": _map(_VICTIMS)}),
    "bind": _object({"Error": _text}),
}
