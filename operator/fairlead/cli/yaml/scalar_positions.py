"""From an offset in the value of a YAML scalar to its index in the file, for every style of scalar.

YAML changes only blanks, line ends and escapes. All other characters of a value are in the file in the same order, so
the two are aligned by them. If they cannot be aligned, the index is that of the scalar.
"""

import re
from collections.abc import Iterator
from typing import Final

from fairlead.cli.yaml.yaml_tree import YamlScalar

_COMMENT: Final = re.compile(r"[ \t]+#([^\r\n]*)")
# Messages of `cel.hints` about an expression that is cut short, and about one whose result has another type.
_CUT_SHORT: Final = re.compile("unexpected end of the expression|does not end")
_OTHER_TYPE: Final = re.compile(r"expected an? \w++, got ")
_BLANKS: Final = " \t\r\n\x85\u2028\u2029"
_ESCAPES: Final = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_DIGITS: Final = {"x": 2, "u": 4, "U": 8}
_HEADER: Final = re.compile(r"[|>][-+0-9]*[ \t]*(?:#[^\r\n]*)?(?:\r\n|[\r\n\x85\u2028\u2029])")


def index_in_file(text: str, scalar: YamlScalar, offset: int) -> int:
    """Return the index of the character at an offset of the value; for the end of the value, the one after its last."""
    found = offsets(text, scalar)
    if not found:
        return scalar.start
    return found[offset] if offset < len(found) else found[-1] + 1


def cut_off(text: str, scalar: YamlScalar, fault: str) -> str:
    """Return a hint if YAML probably read the rest of an expression as a comment; "" if not."""
    comment = _COMMENT.match(text, scalar.end) if not scalar.style else None
    is_short = _CUT_SHORT.search(fault) or (comment and _OTHER_TYPE.search(fault) and not comment[1].startswith(" "))
    return f"YAML reads #{comment[1][:20]} as a comment: quote the string" if comment and is_short else ""


def offsets(text: str, scalar: YamlScalar) -> list[int] | None:
    """Return the index of each character of the value; None if they cannot be aligned."""
    source = _characters(text, scalar)
    found: list[int] = []
    character, index = next(source, ("", scalar.start))
    for wanted in scalar.value:
        while character != wanted and wanted not in _BLANKS and character and character in _BLANKS:
            character, index = next(source, ("", index))
        if character != wanted and wanted not in _BLANKS:
            return None
        found.append(index)
        if character == wanted or (character and character in _BLANKS):
            character, index = next(source, ("", index))
    return found


def _characters(text: str, scalar: YamlScalar) -> Iterator[tuple[str, int]]:
    """Yield the characters of a scalar with their indices, escapes resolved and nothing folded."""
    at, end = scalar.start, scalar.end
    if scalar.style in ("|", ">"):
        header = _HEADER.match(text, at)
        at = header.end() if header else end
    elif scalar.style:
        at, end = at + 1, end - 1
    while at < end:
        character, step = text[at], 1
        if scalar.style == "'" and character == "'":
            step = 2
        elif scalar.style == '"' and character == "\\":
            character, step = _escaped(text, at)
        yield character, at
        at += step


def _escaped(text: str, at: int) -> tuple[str, int]:
    """Return the character that an escape stands for, and the length of the escape."""
    following = text[at + 1]
    if following in _DIGITS:
        length = _DIGITS[following] + 2
        return chr(int(text[at + 2 : at + length], 16)), length
    return _ESCAPES.get(following, following), 2
