"""Hints for what needs quotes: keys of maps that are written as fields, and texts with dashes."""

import re
from collections.abc import Iterator
from typing import Final

from fairlead.cel.engine.environment import ROOTS
from fairlead.cel.hints.engine_messages import NO_OVERLOAD, EngineMessage
from fairlead.cel.hints.rewrites import Hints, Rewriting
from fairlead.cel.syntax.source_refs import code

# Keys of maps that are written as fields. A key of a label may have dots alone, the name of a resource has not.
_KEY: Final = re.compile(
    r"\b(?:(?:labels|annotations|nodeSelector|matchLabels)\.\??(?P<label>\w++(?:[-./]++\w++)*+)"
    r"|(?:allocatable|capacity|requests|limits|free|requested|request|data)\.\??(?P<resource>[\w.]++(?:[-/]++[\w.]++)*+))"
)
_HOLDER: Final = re.compile(r"(?<![\w.\[\]])[\w.\[\]]++$")


def unquoted_keys(
    source: str, messages: list[EngineMessage]
) -> tuple[list[tuple[int, str, Hints]], list[EngineMessage]]:
    """Return keys that are written as fields, and the messages about something else."""
    keys = list[tuple[int, str, Hints]]()
    for start, key, is_optional in _written_as_fields(code(source)):
        end = start + len(key)
        inside = [one for one in messages if start - 1 <= one.at <= end]
        if any(not NO_OVERLOAD.match(one.text) or "_-_" in one.text for one in inside):
            dot = start - 2 if is_optional else start - 1
            holder = _HOLDER.search(source[:dot])
            fault = f"a key with `{next(filter('-./'.__contains__, key))}` cannot be written as a field"
            made = f"[{'?' if is_optional else ''}'{key}']"
            hint = f"write `{holder[0] if holder else '...'}{made}`"
            keys.append((start, fault, iter((Rewriting(hint, made, (dot, end), is_name=True),))))
            messages = [one for one in messages if one not in inside]
    return keys, messages


def _written_as_fields(blanked: str) -> Iterator[tuple[int, str, bool]]:
    """Yield keys with a dash, a slash or a dot that are written as fields: offset, key, whether after `.?`."""
    for found in _KEY.finditer(blanked):
        group = found.lastgroup or ""
        key, separators = found[group], "-./" if group == "label" else "-/"
        if blanked.startswith("(", found.end()):  # the last name is a function
            key = key[: max(map(key.rfind, separators))].rstrip(separators)
        if any(map(key.count, separators)):
            yield found.start(group), key, blanked[found.start(group) - 1] == "?"


_ROOT_PATHS: Final = re.compile(rf"(?:{'|'.join((*ROOTS, 'variables'))})(?![\w-])")
_BARE: Final = re.compile(r"(?:[=!]=|\bin\s*\[|,)\s*+(?P<word>[A-Za-z_]\w*+(?:-\w++)++)(?![\w(.])")


def unquoted_word(source: str, messages: list[EngineMessage]) -> tuple[int, str, Hints] | None:
    """Return a text with dashes that stands without quotes where it is compared, such as eu-north-1b."""
    for bare in _BARE.finditer(code(source)):
        start, end = bare.span("word")
        if _ROOT_PATHS.match(bare["word"]) or not any(start <= one.at <= end for one in messages):
            continue
        quoted = f"'{bare['word']}'"
        hints = iter((Rewriting(f"a string needs quotes: `{quoted}`", quoted, (start, end)),))
        return start, f"`{bare['word']}` is neither a name nor a number", hints
    return None
