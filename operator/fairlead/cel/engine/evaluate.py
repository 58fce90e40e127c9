"""Evaluation on the engine: of expressions that are not lowered, and as the reference for those that are.

The engine's errors are text with a status code in front, and the code says less than the words. The first line of the
table whose words are in the text decides which kind of error it is.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from cel_expr_python import cel

from fairlead.cel.analysis.expression_reads import Path
from fairlead.cel.engine.protobuf import FieldTree, ReadBudget, timestamp, to_engine
from fairlead.cel.values.errors import Abort, CelError, Kind
from fairlead.cel.values.schema import NAMESPACE, NODE, PLACED_POD, POD
from fairlead.cel.values.value_types import Timestamp

_WORDS: Final = (
    ("duplicate key", Kind.DUPLICATE_KEY),
    ("Iteration budget exceeded", Kind.LIMIT),
    ("vector::reserve", Kind.LIMIT),
    ("std::bad_alloc", Kind.LIMIT),
    ("Key not found in map", Kind.NO_SUCH_KEY),
    ("Index error: index=", Kind.INDEX),
    ("No matching overloads found", Kind.NO_OVERLOAD),
    ("Index error: expected integer type", Kind.NO_OVERLOAD),
    ("Invalid map key type", Kind.NO_OVERLOAD),
    ("Invalid container type", Kind.NO_OVERLOAD),
    ("Applying SELECT to non-message type", Kind.NO_OVERLOAD),
    ("integer overflow", Kind.OVERFLOW),
    ("timestamp overflow", Kind.OVERFLOW),
    ("above maximum allowed", Kind.OVERFLOW),
    ("below minimum allowed", Kind.OVERFLOW),
    ("quantity out of range", Kind.OVERFLOW),
    ("divide by zero", Kind.DIVIDE_BY_ZERO),
    ("modulus by zero", Kind.DIVIDE_BY_ZERO),
    ("cannot convert", Kind.CONVERSION),
    ("conversion", Kind.CONVERSION),
    ("out of int64 range", Kind.CONVERSION),
    ("out of uint64 range", Kind.CONVERSION),
    ("malformed UTF-8", Kind.CONVERSION),
    ("invalid base64 data", Kind.CONVERSION),
    ("optional.none() dereference", Kind.NO_VALUE),
    ("regular expression", Kind.PATTERN),
    ("invalid replacement string", Kind.PATTERN),
    ("unable to find descriptor for type URL", Kind.NO_VALUE),  # a field of type dyn that is absent
    ("NOT_FOUND", Kind.NO_SUCH_KEY),
)


_CLEANED: Final = (
    (re.compile(r"^[A-Z_]+: "), ""),
    (re.compile(r"math\.@max"), "math.greatest"),
    (re.compile(r"math\.@min"), "math.least"),
    (re.compile(r"(?<= )@in\b"), "in"),
    (re.compile(r"(?<= )_?([-+*/%<>=!]=?|\[)_\]?(?=\()"), r"\1"),
    (re.compile(r"(?<=[(, ])(u?int)64(?=[,)])"), r"\1"),
    (re.compile(r"<jump_condition>"), "a condition that is no bool"),
    (re.compile(r"vector::reserve"), "a list cannot have so many items"),
    (re.compile(r"std::bad_alloc"), "there is no memory for it"),
)


def kind_of(message: str) -> Kind:
    """Return the kind of an error by the engine's text; one that the table does not know is an invalid argument."""
    return next((kind for words, kind in _WORDS if words in message), Kind.ARGUMENT)


def clean_message(message: str) -> str:
    """Return the engine's text without status codes and internal names of operators."""
    for pattern, word in _CLEANED:
        message = pattern.sub(word, message)
    return message


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
    roots: Mapping[str, object], tree: Mapping[str, FieldTree] | None = None, room: ReadBudget | None = None
) -> dict[str, Any]:
    """Convert the variables for the engine. Raises Abort if they are larger than it may read."""
    return {name: _fact(name, value, tree.get(name) if tree else None, room) for name, value in roots.items()}


def _fact(name: str, value: Any, below: FieldTree, room: ReadBudget | None) -> Any:
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
