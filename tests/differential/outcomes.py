"""What comes of an expression on either side, in a form in which equal means the same."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

from cel_expr_python import cel
from msgspec import Struct

from differential.data import DECLARED, Facts, some_facts
from differential.world import activation
from fairlead.cel.engine.evaluate import kind_of
from fairlead.cel.engine.protobuf import opaque_text, to_engine
from fairlead.cel.functions.addresses import CIDR, IP
from fairlead.cel.functions.extensions import OPAQUE
from fairlead.cel.functions.quantity import Quantity
from fairlead.cel.functions.semver import Semver
from fairlead.cel.lowering.program import Program, translate_error
from fairlead.cel.lowering.pyast import CAUGHT
from fairlead.cel.values.errors import Abort, CelError, Kind
from fairlead.cel.values.value_types import Duration, Nothing, Some, Timestamp, TypeName, UInt
from fairlead.policy.views.policy_data import MissingDataError

_NAMES = {"NULL": "null_type", "TIMESTAMP": "google.protobuf.Timestamp", "DURATION": "google.protobuf.Duration"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OF_DATA = tuple(f'"{name}"' for name in DECLARED)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it, in a form in which equal means the same."""

    value: str
    error: str = ""
    note: str = field(default="", compare=False)


def same(want: Outcome, got: Outcome) -> bool:
    return want == got


def on_engine(compiled: cel.Expression, index: int) -> Outcome:
    return evaluated(compiled, activation(index))


def evaluated(compiled: cel.Expression, facts: cel.Activation) -> Outcome:
    """What the engine makes of an expression."""
    try:
        value = compiled.eval(activation=facts)
    except (RuntimeError, ValueError, MemoryError) as error:
        return Outcome("", f"abort {kind_of(str(error))}")
    if value.type() == cel.Type.ERROR:
        try:
            text = str(value.value())
        except TypeError:
            return Outcome("opaque")
        return Outcome("", _kind(text))
    return Outcome(_of_engine(value))


def _kind(text: str) -> str:
    """To the engine data is a map like the others."""
    kind = kind_of(text)
    return str(Kind.MISSING_DATA if kind == Kind.NO_SUCH_KEY and text.endswith(_OF_DATA) else kind)


def on_lowered(program: Program, index: int, *, plain: bool = False) -> Outcome:
    facts: Facts = some_facts()[index]
    try:
        one = program.plain(facts.of_pod) if plain else program.for_pod(facts.of_pod)
        return Outcome(describe(one(facts.of_node, facts.now)))
    except (*CAUGHT, Abort) as error:
        return error_outcome(error if isinstance(error, Abort) else translate_error(error))
    except Exception as error:  # noqa: BLE001 - a fault of ours, to be told with its expression
        return Outcome("", f"crash {error!r}")


def error_outcome(error: CelError | Abort) -> Outcome:
    if isinstance(error, MissingDataError) and not error.unknown.what.endswith(DECLARED):
        return Outcome("", str(Kind.NO_SUCH_KEY), error.message)  # a key that the engine may have looked for anywhere
    return Outcome("", f"{'abort ' if isinstance(error, Abort) else ''}{error.kind}", error.message)


def _of_engine(value: cel.Value) -> str:
    name = str(value.type().name())
    try:
        content = value.value()
    except TypeError:
        return "opaque"
    if name in OPAQUE:
        return f"{name} {opaque_text(content)}"
    if name.startswith("kubernetes."):
        return _message(content)
    if name.startswith("LIST"):
        return "[" + ", ".join(_of_engine(item) for item in content) + "]"
    if name.startswith("MAP"):
        return _map((key, _of_engine(item)) for key, item in content.items())
    match name:
        case "BYTES":
            return repr(bytes(content))
        case "UINT":
            return f"{content}u"
        case "TIMESTAMP":
            return f"timestamp {(content - _EPOCH) // timedelta(microseconds=1)}"
        case "DURATION":
            return f"duration {content // timedelta(microseconds=1)}"
        case "TYPE":
            shown = str(content.name())
            return "type " + (shown if "." in shown else _NAMES.get(shown, shown.partition("<")[0].lower()))
    return describe(content)


def describe(value: Any) -> str:
    """A value of ours, so that equal text means the same value of the same type."""
    match value:
        case UInt():
            return f"{int(value)}u"
        case Timestamp():
            return f"timestamp {value // 1000}"
        case Duration():
            return f"duration {abs(value) // 1000 * (1 if value >= 0 else -1)}"
        case bool() | None:
            return str(value)
        case int() | str() | bytes() if value.__class__ in (int, str, bytes):
            return repr(value)
        case TypeName():
            return f"type {value!s}"
        case float():
            sign = "-" if math.copysign(1, value) < 0 else ""
            return f"double {sign}{abs(value)!r}" if value == value else "double nan"
        case list() | tuple():
            return "[" + ", ".join(map(describe, value)) + "]"
        case dict():
            return _map((key, describe(item)) for key, item in value.items())
        case Some() | Nothing():
            return "opaque"
        case Quantity() | IP() | CIDR() | Semver():
            return f"{value.cel_type} {OPAQUE[value.cel_type].write(value)}"
        case Struct():
            return _message(to_engine(type(value).__name__, value))
    return f"{type(value).__name__} {value!r}"


def _message(message: Any) -> str:
    return f"{message.DESCRIPTOR.name} {crc32(message.SerializeToString(deterministic=True)):x}"


def _map(entries: Iterator[tuple[Any, str]]) -> str:
    shown = {repr(int(key) if isinstance(key, UInt) else key): item for key, item in entries}
    return "{" + ", ".join(f"{key}: {shown[key]}" for key in sorted(shown)) + "}"
