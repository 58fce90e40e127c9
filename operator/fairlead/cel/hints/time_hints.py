"""Hints for times: a time of day, a day or a month in words, an age."""

import re
from collections.abc import Iterator
from typing import Final

from fairlead.cel.hints.rewrites import Hints, Operand, Rewriting, write
from fairlead.cel.syntax.ast import Call, Const, Ident, ListExpr, Node
from fairlead.cel.syntax.unparse import operand_text, text

_CLOCK: Final = re.compile(r"(?P<hour>[01]?\d|2[0-3])(?::(?P<minute>[0-5]\d))(?::[0-5]\d)?")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_IN_DAYS: Final = re.compile(r"(\d{1,6})d")
_DAYS: Final = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_SHORTEST: Final = 3
COUNTED: Final = {
    "getDayOfWeek": (_DAYS, "days are numbers, Sunday is 0: "),
    "getMonth": (_MONTHS, "months are numbers, January is 0: "),
}
"""Parts of a time that people write in words, with the words and what is said."""
_TURNED: Final = {">": "<", "<": ">", ">=": "<=", "<=": ">=", "==": "==", "!=": "!="}
_NOT_BEFORE: Final = {">": ">=", ">=": ">=", "<": "<", "<=": "<", "==": "==", "!=": "!="}
"""Comparisons with a time of day, as ones with the hour in which it begins."""


def in_hours(length: str) -> str:
    """Return a length of time in hours if it is one in days, which CEL does not have."""
    days = _IN_DAYS.fullmatch(length)
    return f"{24 * int(days[1])}h" if days else length


def of_clock(call: Call, left: Operand, right: Operand) -> Iterator[Rewriting]:
    """Yield hints for a time compared with a time of day, or a part of a time with a word."""
    sign = "in" if call.function == "@in" else call.function.strip("_")
    for (node, type_), (other, _), way in ((left, right, sign), (right, left, _TURNED.get(sign, ""))):
        if not way:
            continue
        if type_.name == "timestamp" and way in _NOT_BEFORE and isinstance(other, Const):
            yield from write(time_of_day(operand_text(node), way, str(other.value)), call, before=PARTS)
        elif isinstance(node, Call) and node.function == "getHours" and way in _NOT_BEFORE and isinstance(other, Const):
            held = operand_text(node.args[0])
            yield from write(time_of_day(held, way, str(other.value), text(node)), call, before=PARTS)
        elif isinstance(node, Call) and node.function in COUNTED:
            yield from of_word(node.function, other)


PARTS: Final = "a time of day is compared in its parts, in UTC: "


def time_of_day(literal: str, sign: str, clock: str, hours: str = "") -> str:
    """Return a comparison of a time with a time of day; "" if the text is none."""
    if not (found := _CLOCK.fullmatch(clock)):
        return ""
    hour, minute = int(found["hour"]), int(found["minute"])
    hours = hours or f"{literal}.getHours()"
    if not minute:
        return f"{hours} {_NOT_BEFORE[sign]} {hour}"
    return f"{hours} * 60 + {literal}.getMinutes() {_NOT_BEFORE[sign]} {hour * 60 + minute}"


def of_word(function: str, other: Node) -> Iterator[Rewriting]:
    """Yield the number of a day or a month in place of its name, also in a list."""
    names, before = COUNTED[function]
    words = [*other.elements] if isinstance(other, ListExpr) else [other]
    numbers = [_number(_word(word), names) for word in words]
    if numbers and all(number is not None for number in numbers):
        made = ", ".join(map(str, numbers))
        yield from write(f"[{made}]" if isinstance(other, ListExpr) else made, other, before=before)


def _word(node: Node) -> str:
    match node:
        case Const(value=str(word)) | Ident(name=word):
            return word.lower()
    return ""


def _number(word: str, names: tuple[str, ...]) -> int | None:
    if len(word) < _SHORTEST:
        return None
    return next((at for at, name in enumerate(names) if name.startswith(word)), None)


def of_times(sign: str, call: Call, left: Operand, right: Operand) -> Hints:
    """Yield hints for times and durations beside something else."""
    if sign in ("*", "/", "%"):
        return
    for (node, type_), (other, other_type), is_turned in ((left, right, False), (right, left, True)):
        match type_.name, other_type.name, other:
            case ("timestamp", "duration", _):
                yield from _of_age(node)
            case ("timestamp" | "duration" as name, "string", Const(value=str(written))):
                if _DATE.fullmatch(written):
                    yield from write(f"timestamp('{written}T00:00:00Z')", other)
                length = f"duration({text(Const(0, in_hours(written)))})"
                yield from write(f"timestamp({text(other)})" if name == "timestamp" else length, other)
                if name == "timestamp":
                    yield from write(length, other)
                    yield from _aged(sign, call, node, length, is_turned=is_turned)
            case ("timestamp" | "duration" as name, "int", Const()):
                yield from write(f"duration('{text(other)}s')", other)
                if name == "timestamp":
                    yield from _aged(sign, call, node, f"duration('{text(other)}s')", is_turned=is_turned)
    yield "write a duration as `duration('90s')`"


def _of_age(node: Node) -> Iterator[Rewriting]:
    if text(node) == "now":
        example = "now - node.metadata.creationTimestamp"
        yield from write(example, node, " for the age of the node, for example", before="a time is no age: ")
    else:
        yield from write(f"now - {operand_text(node)}", node, " for an age")


def _aged(sign: str, call: Call, node: Node, length: str, *, is_turned: bool) -> Iterator[Rewriting]:
    """Yield the comparison of an age, for a time that is compared with a length of time."""
    if sign not in _TURNED or text(node) == "now":
        return
    age = f"now - {operand_text(node)}"
    yield from write(f"{length} {sign} {age}" if is_turned else f"{age} {sign} {length}", call, " for an age")
