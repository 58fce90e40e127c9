"""From a place in the value of a YAML scalar to its place in the file, for every way in which a text can be written.

What YAML does to a text on the way is done again, each character kept with where it came from. The result is only used
if it is the value that the parser has found; otherwise the place is that of the scalar.
"""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

from fairlead.cli.yaml.documents import Scalar

_Kept = tuple[str, int]
_COMMENT: Final = re.compile(r"[ \t]+#([^\r\n]*)")
_ENDS: Final = re.compile("ends too early|does not end")
_BLANKS: Final = " \t"
_BREAKS: Final = "\r\n\x85\u2028\u2029"
_ESCAPES: Final = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "\\": "\\", "/": "/", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip
_DIGITS: Final = {"x": 2, "u": 4, "U": 8}
_HEADER: Final = re.compile(r"[|>][-+0-9]*[ \t]*(?:#[^\r\n]*)?(?:\r\n|[\r\n\x85\u2028\u2029])")


def index_in_file(text: str, scalar: Scalar, offset: int) -> int:
    """Where the character at an offset of the value stands; for the end of the value, the place behind its last."""
    found = offsets(text, scalar)
    if not found:
        return scalar.start
    return found[offset] if offset < len(found) else found[-1] + 1


def cut_off(text: str, scalar: Scalar, fault: str) -> str:
    """The cure, if a text may be wrong because YAML takes the rest of its line for a comment."""
    comment = _COMMENT.match(text, scalar.end) if not scalar.style else None
    is_short = _ENDS.search(fault) or (comment and "wanted" in fault and not comment[1].startswith(" "))
    return f"YAML takes #{comment[1][:20]} for a comment: put the text in quotes" if comment and is_short else ""


def offsets(text: str, scalar: Scalar) -> list[int] | None:
    """Where each character of the value stands."""
    read = _READERS[scalar.style]
    kept = read(text, scalar)
    if kept is None or "".join(character for character, _ in kept) != scalar.value:
        return None
    return [index for _, index in kept]


def _plain(text: str, scalar: Scalar) -> list[_Kept]:
    return _folded_lines((text[at], at, False) for at in range(scalar.start, scalar.end))


def _single(text: str, scalar: Scalar) -> list[_Kept]:
    def characters() -> Iterator[tuple[str, int, bool]]:
        at = scalar.start + 1
        while at < scalar.end - 1:
            yield text[at], at, False
            at += 2 if text[at] == "'" else 1

    return _folded_lines(characters())


def _double(text: str, scalar: Scalar) -> list[_Kept]:
    def characters() -> Iterator[tuple[str, int, bool]]:
        at = scalar.start + 1
        while at < scalar.end - 1:
            if text[at] != "\\":
                yield text[at], at, False
                at += 1
                continue
            following = text[at + 1]
            if following in _DIGITS:
                digits = _DIGITS[following]
                yield chr(int(text[at + 2 : at + 2 + digits], 16)), at, True
                at += 2 + digits
            elif following in _BREAKS:
                yield "", at, True  # what stands before it is kept, and the line goes on
                at += 1
            else:
                yield _ESCAPES.get(following, following), at, True
                at += 2

    return _folded_lines(characters())


def _folded_lines(characters: Iterator[tuple[str, int, bool]]) -> list[_Kept]:
    """Blanks at both sides of a line's end go, one end becomes a space, more become one less."""
    kept: list[tuple[str, int, bool]] = []
    ends: list[int] = []  # of lines, since the last character that is no blank
    joined = False
    before = ""
    for character, index, escaped in characters:
        if not escaped and character in _BREAKS:
            if before == "\r" and character == "\n":
                before = "\n"
                continue
            if not ends:
                joined = bool(kept) and kept[-1][0] == ""
                while kept and not kept[-1][2] and kept[-1][0] in _BLANKS:
                    kept.pop()
            ends.append(index)
        elif not escaped and character in _BLANKS and ends:
            continue
        else:
            kept += _line_end(ends, joined=joined)
            ends = []
            kept.append((character, index, escaped))
        before = character
    kept += _line_end(ends, joined=joined)
    return [(character, index) for character, index, _ in kept if character]


def _line_end(ends: list[int], *, joined: bool) -> list[tuple[str, int, bool]]:
    if not ends:
        return []
    if len(ends) == 1:
        return [] if joined else [(" ", ends[0], False)]
    return [("\n", index, False) for index in ends[1:]]


def _block(text: str, scalar: Scalar) -> list[_Kept] | None:
    """Only blanks and ends of lines differ between a block and its value: the rest stands in both in one order."""
    header = _HEADER.match(text, scalar.start)
    if header is None:
        return [] if not scalar.value else None
    at = header.end()
    kept: list[_Kept] = []
    for value_blanks, word in _runs(scalar.value):
        start = at
        while at < len(text) and text[at] in _BLANKS + _BREAKS:
            at += 1
        places = range(start, at)
        kept += zip(value_blanks, _spread(value_blanks, text, places), strict=True)
        if not text.startswith(word, at):
            return None
        kept += [(character, at + further) for further, character in enumerate(word)]
        at += len(word)
    return kept


_BLANK_RUNS: Final = re.compile(r"[ \t\r\n\x85\u2028\u2029]+")


def _runs(value: str) -> Iterator[tuple[str, str]]:
    """A value as blanks and what follows them, in turn."""
    spans = [(found.start(), found.end()) for found in _BLANK_RUNS.finditer(value)]
    if not spans or spans[0][0] > 0:
        spans.insert(0, (0, 0))
    for (start, end), (following, _) in pairwise([*spans, (len(value), len(value))]):
        yield value[start:end], value[end:following]


def _spread(blanks: str, text: str, places: range) -> list[int]:
    """Give each blank of a value a place.

    Ends of lines in turn, what stands before them from the left, the rest from the right, behind the indentation.
    """
    if not places:
        return [places.start] * len(blanks)
    ends = [at for at in places if text[at] in _BREAKS and text[at - 1 : at + 1] != "\r\n"]
    last = max((at for at, character in enumerate(blanks) if character in _BREAKS), default=-1)
    found, seen = [], 0
    for at, character in enumerate(blanks):
        if character in _BREAKS and ends:
            found.append(ends[min(seen, len(ends) - 1)])
            seen += 1
        elif at > last and last >= 0:
            found.append(places.stop - (len(blanks) - at))
        else:
            found.append(places.start + at)
    return [max(places.start, min(at, places.stop - 1)) for at in found]


_READERS: Final[dict[str, Callable[[str, Scalar], list[_Kept] | None]]] = {
    "": _plain,
    "'": _single,
    '"': _double,
    "|": _block,
    ">": _block,
}
