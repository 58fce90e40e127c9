"""Evaluation on the engine: of expressions that are not lowered, and as the reference for those that are."""

from collections.abc import Iterable, Mapping
from typing import Any

from cel_expr_python import cel

from fairlead.cel.analysis.expression_reads import Path
from fairlead.cel.engine.engine_errors import clean_message, kind_of
from fairlead.cel.engine.protobuf import FieldTree, Room, timestamp, to_engine
from fairlead.cel.values.errors import Abort, CelError
from fairlead.cel.values.schema import NAMESPACE, NODE, PLACED_POD, POD
from fairlead.cel.values.value_types import Timestamp

_MESSAGES = {"pod": POD, "node": NODE, "namespaceObject": NAMESPACE, "victim": PLACED_POD}


def needed_fields(paths: Iterable[Path]) -> dict[str, FieldTree]:
    """Return the fields that have to be converted for an expression that reads these paths, by variable."""
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
    roots: Mapping[str, object], tree: Mapping[str, FieldTree] | None = None, room: Room | None = None
) -> dict[str, Any]:
    """Convert the variables for the engine. Raises Abort if they are larger than it may read."""
    return {name: _fact(name, value, tree.get(name) if tree else None, room) for name, value in roots.items()}


def _fact(name: str, value: Any, below: FieldTree, room: Room | None) -> Any:
    if name in _MESSAGES:
        return to_engine(_MESSAGES[name], value, below, room)
    if room is not None:
        room.take(value)
    if name == "pods":
        return [to_engine(PLACED_POD, pod, None, room) for pod in value]
    return plain(value)


def plain_time(now: int) -> Any:
    """Convert a moment for the engine."""
    return timestamp(now)


def plain(value: Any) -> Any:
    """Convert a value of ours for the engine."""
    if isinstance(value, Timestamp):
        return timestamp(value)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def evaluate(expression: cel.Expression, data: Mapping[str, Any]) -> cel.Value:
    """Evaluate an expression on the engine. Raises CelError, or Abort if the engine gives up."""
    try:
        value = expression.eval(data=data)
    except (RuntimeError, ValueError, MemoryError) as error:
        raise Abort(kind_of(str(error)), clean_message(str(error))) from error
    if value.type() == cel.Type.ERROR:
        text = str(value.value())
        raise CelError(kind_of(text), clean_message(text))
    return value
