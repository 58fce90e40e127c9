"""What the engine complains of: its text taken apart, and what only follows from another complaint left out."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from fairlead.cel.hints.excerpt import Excerpt
from fairlead.cel.hints.foreign_syntax import MACRO_NAMES, VARIABLES
from fairlead.cel.syntax.diagnostics import Diagnostic, place

_LOOKED_AT: Final = 32
UNDECLARED: Final = re.compile(r"undeclared reference to '(.*)' \(in container")
_ERROR: Final = re.compile(r"ERROR: <input>:(-?\d+):(-?\d+): (.*?)(?=\n \| |\nERROR: |\Z| \[[A-Z_]+\]\Z)", re.DOTALL)
# What is read from a map as if it were a field. Keys of labels may have dots alone, names of resources have not.
_READ: Final = re.compile(
    r"\b(?:(labels|annotations|nodeSelector|matchLabels)\.(\w++(?:[-./]++\w++)*+)"
    r"|(allocatable|capacity|requests|limits|free|requested|request|data)\.([\w.]++(?:[-/]++[\w.]++)*+))"
)


@dataclass(frozen=True, slots=True)
class EngineMessage:
    """Where, and what."""

    at: int
    message: str


def engine_messages(error: str, source: str) -> list[EngineMessage]:
    """The first of them, but for those that name another fault."""
    return [
        EngineMessage(_offset(source, int(found[1]), int(found[2])), found[3])
        for found in islice(_ERROR.finditer(error), _LOOKED_AT)
        if int(found[1]) > 0 and "*error*" not in found[3]
    ]


def _offset(source: str, line: int, column: int) -> int:
    lines = source.split("\n")
    return min(sum(len(one) + 1 for one in lines[: line - 1]) + column - 1, len(source))


def unquoted_keys(source: str, said: list[EngineMessage]) -> tuple[list[Diagnostic], list[EngineMessage]]:
    """Keys that are read as fields, and what else is wrong."""
    found, rest = list[Diagnostic](), said
    for start, name in _written_as_fields(Excerpt(source, 0).code):
        inside = [one for one in rest if start - 1 <= one.at <= start + len(name)]
        if any(not one.message.startswith("found") or "_-_" in one.message for one in inside):
            holder = Excerpt(source, start - 1).target
            fault = f"a key with `{re.sub(r'[^-./]', '', name)[0]}` in it is not read as a field"
            found.append(Diagnostic(*place(source, start), fault, f"write `{holder}['{name}']`"))
            rest = [one for one in rest if one not in inside]
    return found, rest


def _written_as_fields(code: str) -> Iterator[tuple[int, str]]:
    """Where keys with a dash, a slash or a dot stand that are written as if they were fields, and the keys."""
    for found in _READ.finditer(code):
        of_labels = found[2] is not None
        name, parting = (found[2], "-./") if of_labels else (found[4], "-/")
        if code.startswith("(", found.end()):  # what is called is no part of it
            name = name[: max(map(name.rfind, parting))].rstrip(parting) if any(map(name.count, parting)) else ""
        if any(map(name.count, parting)):
            yield found.start(2 if of_labels else 4), name


def drop_follow_ups(said: list[EngineMessage], source: str) -> list[EngineMessage]:
    """Once a call is wrong, what it would have bound, and what is called on its result, are no news."""
    kept = list(said)
    for call in [one for one in said if called(one, source)]:
        name, place = called(call, source), Excerpt(source, call.at)
        begins = place.target_span[0]
        before = [one for one in kept if begins <= one.at < call.at - len(name)]
        if any(called(one, source) or _root(one) in VARIABLES for one in before):
            kept = [one for one in kept if one is not call]
            continue
        bound = {argument for argument in place.arguments if argument.isidentifier()}
        kept = [
            one
            for one in kept
            if not (one in before and _root(one))
            and not (call.at < one.at <= place.end and _root(one) and (name in MACRO_NAMES or _root(one) in bound))
        ]
    return kept


def called(one: EngineMessage, source: str) -> str:
    """The name of the function, if it is one that there is not."""
    found = UNDECLARED.match(one.message)
    is_call = found and source.startswith("(", one.at) and source[: one.at].rstrip().endswith(found[1])
    return found[1] if found and is_call else ""


def _root(one: EngineMessage) -> str:
    """The variable, if it is one that there is not."""
    found = UNDECLARED.match(one.message)
    return found[1].split(".")[0] if found else ""
