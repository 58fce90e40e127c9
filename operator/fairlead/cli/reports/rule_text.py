"""Text for what rules compared."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fairlead.cel.functions.time_text import timestamp_to_string
from fairlead.cel.values.value_types import Duration
from fairlead.policy.explain.explanation import Change, Element, Items, RuleExplained, Step
from fairlead.policy.explain.format_value import shown
from fairlead.policy.explain.mismatch import Unmatched

_INDENT: Final = "    "
_MOMENTS: Final = frozenset({"now", "since", "until"})
_DURATIONS: Final = frozenset({"holdOff"})


def of_flip(flip: Change) -> tuple[str, str]:
    """Return a comparison and its values, without those that its text already shows."""
    values = [value for value in (flip.left, flip.right) if value is not None and not _is_written(value, flip.text)]
    said = " against ".join(map(value_of, values))
    if not said:
        said = "unknown" if flip.value is None else value_of(flip.value)
    if flip.everywhere:
        return flip.text, f"{said}, and likewise for all{_at(flip.at, ', such as ')}"
    return flip.text, said + _at(flip.at, ", at ")


def of_step(step: Step) -> tuple[str, str]:
    """Return a part of an expression and its value."""
    return step.text, value_of(step.value) + _at(step.at, ", at ")


def of_items(items: Items) -> Iterator[tuple[str, str]]:
    """Yield the values that a strategy read, without absent ones."""
    for name, value in items.values.items():
        if value is not None:
            yield name, _noted(name, value)
    for name, values in items.items:
        yield name, ", ".join(f"{key} {_noted(key, value)}" for key, value in values.items() if value is not None)


def in_words(items: Items) -> Items:
    """Return the items with times as text instead of nanoseconds."""
    return Items(_timed(items.values), [(name, _timed(values)) for name, values in items.items])


def of_rejection(rule: RuleExplained) -> list[tuple[str, str]]:
    """Return what keeps a rule from passing: the comparisons that would have to change, else all steps."""
    if rule.flips:
        return [of_flip(flip) for flip in rule.flips]
    if rule.noted is not None:
        return [*of_items(rule.noted)]
    return [of_step(step) for step in rule.steps]


def of_unmatched(one: Unmatched) -> str:
    """Return why a policy does not match a pod."""
    said = "; ".join(f"{text}: {value}" for text, value in map(of_flip, one.flips))
    return f"{one.policy}: {one.why}" + (f" ({said})" if said else "")


def value_of(value: object) -> str:
    """Return a value as CEL writes it."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:.10g}"
        case str():
            return f"'{value}'"
        case list() | tuple():
            return f"[{', '.join(map(value_of, value))}]"
    return str(value)


def indented(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield indented lines with the values in a column."""
    width = min(max((len(text) for text, _ in rows), default=0), 60)
    for text, value in rows:
        yield f"{_INDENT}{text:<{width}}   {value}"


def _noted(name: str, value: object) -> str:
    written = _time(name, value)
    return value_of(value) if written is None else written


def _timed(values: Mapping[str, object]) -> Mapping[str, object]:
    return {name: value if (text := _time(name, value)) is None else text for name, value in values.items()}


def _time(name: str, value: object) -> str | None:
    """Return the text of a time, which strategies count in nanoseconds; None for other values."""
    if isinstance(value, int) and name in _MOMENTS:
        return timestamp_to_string(value)
    return str(shown(Duration(value))) if isinstance(value, int) and name in _DURATIONS else None


def _is_written(value: object, text: str) -> bool:
    forms = {f"'{value}'", f'"{value}"'} if isinstance(value, str) else {value_of(value), str(value)}
    return any(text.startswith(f"{one} ") or text.endswith(f" {one}") for one in forms)


def _at(elements: Sequence[Element], before: str) -> str:
    return before + ", ".join(map(str, elements)) if elements else ""
