"""Text for what rules compared."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fairlead.cel.functions.time_text import timestamp_to_string
from fairlead.cel.values.value_types import Duration
from fairlead.policy.explain.explanation import Counterfactual, Element, Items, RuleExplained, Step, Unit
from fairlead.policy.explain.format_value import format_value
from fairlead.policy.explain.mismatch import Unmatched
from fairlead.policy.explain.units import is_in_bytes
from fairlead.simulation.scheduler_filters import amount

OR: Final = ("or", "")
"""Row between two ways."""
_INDENT: Final = "    "
_HEAD: Final = "COMPARED"
_WIDTH_MAX: Final = 80
_WHOLE_MAX: Final = 1e15
"""Whole numbers below this are written without an exponent."""
_MOMENTS: Final = frozenset({"now", "since", "until"})
_DURATIONS: Final = frozenset({"holdOff"})


def of_change(change: Counterfactual) -> tuple[str, str]:
    """Return a comparison and its values, without those that its text already shows."""
    left = [] if change.left is None or _is_written(change.left, change.text, begins=True) else [change.left]
    right = [] if change.right is None or _is_written(change.right, change.text, begins=False) else [change.right]
    said = " against ".join(value_of(value, change.unit) for value in (*left, *right))
    if not said:
        said = "cannot be evaluated" if change.value is None else value_of(change.value)
    if change.everywhere:
        return change.text, f"{said}, and likewise for all{_at(change.at, ', such as ')}"
    return change.text, said + _at(change.at, ", at ")


def of_step(step: Step) -> tuple[str, str]:
    """Return a part of an expression and its value."""
    return step.text, value_of(step.value, step.unit) + _at(step.at, ", at ")


def of_items(items: Items) -> Iterator[tuple[str, str]]:
    """Yield the values that a strategy read, without absent ones."""
    for name, value in items.values.items():
        if value is not None:
            yield name, _noted(name, value, "bytes" if is_in_bytes(name) else "")
    for name, values in items.items:
        unit: Unit = "bytes" if is_in_bytes(name) else ""
        yield name, ", ".join(f"{key} {_noted(key, value, unit)}" for key, value in values.items() if value is not None)


def in_words(items: Items) -> Items:
    """Return the items with times as text instead of nanoseconds."""
    return Items(_timed(items.values), [(name, _timed(values)) for name, values in items.items])


def of_rejection(rule: RuleExplained) -> list[tuple[str, str]]:
    """Return what keeps a rule from passing: each way in which comparisons would have to change, else all steps."""
    if rule.changes:
        return of_ways([rule.changes, *rule.alternatives])
    if rule.noted is not None:
        return [*of_items(rule.noted)]
    return [of_step(step) for step in rule.steps]


def of_ways(ways: Sequence[Sequence[Counterfactual]]) -> list[tuple[str, str]]:
    """Return the comparisons of each way, with a line between two ways."""
    rows = [of_change(change) for change in ways[0]]
    for way in ways[1:]:
        rows += [OR, *map(of_change, way)]
    return rows


def of_unmatched(unmatched: Unmatched) -> str:
    """Return why a policy does not match a pod."""
    ways = ("; ".join(f"{text}: {value}" for text, value in map(of_change, way)) for way in unmatched.ways)
    said = ", or ".join(ways)
    return f"{unmatched.policy}: {unmatched.why}" + (f" ({said})" if said else "")


def value_of(value: object, unit: Unit = "") -> str:
    """Return a value as CEL writes it; bytes as Kubernetes does, such as 16Gi."""
    if unit == "bytes" and isinstance(value, int | float) and not isinstance(value, bool):
        return amount("memory", float(value))
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer() and abs(value) < _WHOLE_MAX:
            return f"{value:.0f}"
        case float():
            return f"{value:.10g}"
        case str():
            return f"'{value}'"
        case list() | tuple():
            return f"[{', '.join(map(value_of, value))}]"
    return str(value)


def indent_rows(rows: Sequence[tuple[str, str]], title: str = "", most: int = 0) -> Iterator[str]:
    """Yield indented lines with the values in a column, which may have a title, and at most so many of them."""
    shown = rows[:most] if most else rows
    whole = [(_HEAD, title), *shown] if title and shown else shown
    width = min(max((len(text) for text, _ in whole), default=0), _WIDTH_MAX)
    for text, value in whole:
        yield f"{_INDENT}{text:<{width}}   {value}".rstrip()
    if len(shown) < len(rows):
        yield f"{_INDENT}... and {len(rows) - len(shown):,} more lines: -o json has all"


def _noted(name: str, value: object, unit: Unit) -> str:
    written = _time(name, value)
    return value_of(value, unit) if written is None else written


def _timed(values: Mapping[str, object]) -> Mapping[str, object]:
    return {name: value if (text := _time(name, value)) is None else text for name, value in values.items()}


def _time(name: str, value: object) -> str | None:
    """Return the text of a time, which strategies count in nanoseconds; None for other values."""
    if isinstance(value, int) and name in _MOMENTS:
        return timestamp_to_string(value)
    return str(format_value(Duration(value))) if isinstance(value, int) and name in _DURATIONS else None


def _is_written(value: object, text: str, *, begins: bool) -> bool:
    """Report whether a comparison begins, or ends, with this value."""
    forms = {f"'{value}'", f'"{value}"'} if isinstance(value, str) else {value_of(value), str(value)}
    return any(text.startswith(f"{one} ") if begins else text.endswith(f" {one}") for one in forms)


def _at(elements: Sequence[Element], before: str) -> str:
    return before + ", ".join(map(str, elements)) if elements else ""
