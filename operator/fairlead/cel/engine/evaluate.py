"""Expressions on the engine itself: those that are not lowered, and the reference that the others are compared with."""

from collections.abc import Iterable, Mapping
from typing import Any

from cel_expr_python import cel

from fairlead.cel.analysis.expression_reads import Path
from fairlead.cel.engine.engine_errors import clean_message, kind_of
from fairlead.cel.engine.protobuf import Room, Wanted, timestamp, to_engine
from fairlead.cel.values.errors import Abort, CelError
from fairlead.cel.values.schema import NAMESPACE, NODE, PLACED_POD, POD
from fairlead.cel.values.value_types import Timestamp

_MESSAGES = {"pod": POD, "node": NODE, "namespaceObject": NAMESPACE, "victim": PLACED_POD}


def needed_fields(paths: Iterable[Path]) -> dict[str, Wanted]:
    """What has to be converted for an expression that reads these paths, by variable of the environment."""
    tree: dict[str, Any] = {}
    for path in sorted(paths):
        if path[0] == "pods":
            tree["pods"] = None
            continue
        level = tree
        for at, step in enumerate(path):
            if at + 1 == len(path):
                level[step] = None
            else:
                level = level.setdefault(step, {})
    return tree


def engine_inputs(
    roots: Mapping[str, object], tree: Mapping[str, Wanted] | None = None, room: Room | None = None
) -> dict[str, Any]:
    """The variables of the environment as the engine takes them. Raises Abort where there is no room for them."""
    return {name: _fact(name, value, tree.get(name) if tree else None, room) for name, value in roots.items()}


def _fact(name: str, value: Any, below: Wanted, room: Room | None) -> Any:
    if name in _MESSAGES:
        return to_engine(_MESSAGES[name], value, below, room)
    if room is not None:
        room.take(value)
    if name == "pods":
        return [to_engine(PLACED_POD, pod, None, room) for pod in value]
    return plain(value)


def plain_time(now: int) -> Any:
    """A moment as the engine takes it."""
    return timestamp(now)


def plain(value: Any) -> Any:
    """A value of ours as the engine takes it."""
    if isinstance(value, Timestamp):
        return timestamp(value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def evaluate(expression: cel.Expression, data: Mapping[str, Any]) -> cel.Value:
    """Ask the engine; its errors become ours."""
    try:
        value = expression.eval(data=data)
    except (RuntimeError, ValueError, MemoryError) as error:
        raise Abort(kind_of(str(error)), clean_message(str(error))) from error
    if value.type() == cel.Type.ERROR:
        text = str(value.value())
        raise CelError(kind_of(text), clean_message(text))
    return value
