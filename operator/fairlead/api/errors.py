"""Errors in an object, as values: the field, the message and a hint."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

FieldPath = tuple[str | int, ...]

_PLAIN = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_SEGMENT_MAX = 80


@dataclass(frozen=True, slots=True)
class FieldError:
    """Error in one field that the owner of the object can fix."""

    path: FieldPath
    message: str
    hint: str = ""

    def __str__(self) -> str:
        said = f"{self.message}; {self.hint}" if self.hint else self.message
        return f"{render_path(self.path)}: {said}" if self.path else said


class InvalidObjectError(ValueError):
    """Error for an invalid object, with all of its field errors."""

    def __init__(self, errors: Iterable[FieldError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(map(str, self.errors)))


def render_path(path: FieldPath) -> str:
    """Return a path as Kubernetes writes it, such as `spec.filters[2].expression` or `matchLabels[team/x]`."""
    text = ""
    for segment in path:
        shown = _cut(str(segment))
        text += f".{shown}" if _PLAIN.fullmatch(shown) else f"[{shown}]"
    return text.removeprefix(".")


def _cut(text: str) -> str:
    shown = text if len(text) <= _SEGMENT_MAX else f"{text[:_SEGMENT_MAX]}..."
    return shown if shown.isprintable() else repr(shown)
