"""Text of a file with lines and columns as editors count them."""

import bisect
import codecs
import re
from functools import cached_property
from typing import Final

_BREAK: Final = re.compile(r"\r\n|\r|\n")
_MARKS: Final = (  # the longer ones first: one begins like another
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_UNPRINTABLE: Final = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class BrokenError(ValueError):
    """Error for text that is not YAML or is unsafe to read, with its index and a hint."""

    def __init__(self, index: int, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.index = index
        self.message = message
        self.hint = hint


class SourceText:
    """Text with its lines. Indices, lines and columns count code points; lines and columns begin at 1."""

    def __init__(self, text: str) -> None:
        self.text: Final = text

    def place(self, index: int) -> tuple[int, int]:
        """Return the line and column of an index."""
        line = bisect.bisect_right(self._starts, index)
        return line, index - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """Return a line without its line break."""
        start = self._starts[number - 1]
        end = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(found.end() for found in _BREAK.finditer(self.text))]


def decode(data: bytes) -> SourceText:
    """Return the text of a file in one of YAML's encodings. Raises BrokenError with an index into `so_far`."""
    encoding, skipped = _encoding(data)
    body = data[skipped:]
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        before = body[: error.start].decode(encoding, "replace")
        byte = body[error.start]
        raise BrokenError(
            len(before), f"this is not {encoding.upper()} text: byte 0x{byte:02x}", "save the file as UTF-8"
        ) from None
    return SourceText(text)


def so_far(data: bytes) -> SourceText:
    """Return the readable text of a file that cannot be decoded as a whole, to find the line of an error."""
    encoding, skipped = _encoding(data)
    return SourceText(data[skipped:].decode(encoding, "replace"))


def refuse_unprintable(source: SourceText) -> None:
    """Raise BrokenError at the first character that YAML does not allow."""
    if found := _UNPRINTABLE.search(source.text):
        code = f"U+{ord(found[0]):04X}"
        raise BrokenError(
            found.start(),
            f"the character {code} is not allowed in YAML",
            "remove it, or write it as an escape in double quotes",
        )


def _encoding(data: bytes) -> tuple[str, int]:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding, len(mark)
    if len(data) > 1 and (data[0] == 0) != (data[1] == 0):  # the first character is ASCII
        return ("utf-16-be" if data[0] == 0 else "utf-16-le"), 0
    return "utf-8", 0
