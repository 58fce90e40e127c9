"""Functions of strings and bytes. Sizes, positions and order are those of code points."""

from collections.abc import Sequence
from typing import Final

from fairlead.cel.values.errors import CelError, Kind

_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}


def contains_string(text: str, part: str) -> bool:
    """Return whether a text contains another."""
    return part in text


def starts_with_string(text: str, part: str) -> bool:
    """Return whether a text starts with another."""
    return text.startswith(part)


def ends_with_string(text: str, part: str) -> bool:
    """Return whether a text ends with another."""
    return text.endswith(part)


def string_char_at_int(text: str, position: int) -> str:
    """Return one character; "" at the very end."""
    if not 0 <= position <= len(text):
        bound = "less than 0" if position < 0 else "greater than <string>.size()"
        raise CelError(Kind.ARGUMENT, f"<string>.charAt(<pos>): <pos> is {bound}")
    return text[position : position + 1]


def string_index_of_string(text: str, part: str) -> int:
    """Return the first position of a text, or -1."""
    return text.find(part)


def string_index_of_string_int(text: str, part: str, start: int) -> int:
    """Return the first position of a text at or after a position, or -1."""
    _require_position(text, start)
    return text.find(part, start)


def string_last_index_of_string(text: str, part: str) -> int:
    """Return the last position of a text, or -1."""
    return text.rfind(part)


def string_last_index_of_string_int(text: str, part: str, last: int) -> int:
    """Return the last position of a text at or before a position, or -1."""
    _require_position(text, last)
    return text.rfind(part, 0, last + len(part))


def string_lower_ascii(text: str) -> str:
    """Convert ASCII letters to lower case."""
    return text.lower() if text.isascii() else text.translate(_LOWER)


def string_upper_ascii(text: str) -> str:
    """Convert ASCII letters to upper case."""
    return text.upper() if text.isascii() else text.translate(_UPPER)


def string_replace_string_string(text: str, old: str, new: str) -> str:
    """Replace all occurrences; the empty text occurs before each character and at the end."""
    return text.replace(old, new)


def string_replace_string_string_int(text: str, old: str, new: str, limit: int) -> str:
    """Replace the first occurrences; a negative limit means all."""
    return text.replace(old, new, limit)


def string_split_string(text: str, separator: str) -> list[str]:
    """Split; an empty separator splits into characters."""
    if separator:
        return text.split(separator)
    return list(text) or [""]


def string_split_string_int(text: str, separator: str, limit: int) -> list[str]:
    """Split into at most so many parts; a negative limit means all."""
    if limit == 0:
        return []
    if limit < 0:
        return string_split_string(text, separator)
    if separator:
        return text.split(separator, limit - 1)
    parts = list(text[: limit - 1])
    rest = text[limit - 1 :]
    return [*parts, rest] if rest or not parts else parts


def string_substring_int(text: str, start: int) -> str:
    """Return the text from a position on."""
    if not 0 <= start <= len(text):
        bound = "less than 0" if start < 0 else "greater than <string>.size()"
        raise CelError(Kind.ARGUMENT, f"<string>.substring(<start>): <start> is {bound}")
    return text[start:]


def string_substring_int_int(text: str, start: int, end: int) -> str:
    """Return the text from one position up to another.

    cel-cpp rejects the size of the text as the end, unless it is the start too (`SubstringImpl` in its
    `string_value.cc`). Remove this once the engine accepts it.
    """
    if start < 0:
        bound = "<start> is less than 0"
    elif end < start:
        bound = "<end> is less than <start>"
    elif end > len(text) or start < end == len(text):
        bound = "<start> or <end> is greater than <string>.size()"
    else:
        return text[start:end]
    raise CelError(Kind.ARGUMENT, f"<string>.substring(<start>, <end>): {bound}")


def string_trim(text: str) -> str:
    """Trim Unicode white space from both ends."""
    return text.strip(_SPACE)


def list_join(parts: Sequence[str]) -> str:
    """Join without a separator."""
    return list_join_string(parts, "")


def list_join_string(parts: Sequence[str], separator: str) -> str:
    """Join with a separator between each two."""
    return separator.join(parts)


def string_reverse(text: str) -> str:
    """Reverse the order of the code points."""
    return text[::-1]


def _require_position(text: str, position: int) -> None:
    if not 0 <= position <= len(text):
        raise CelError(Kind.ARGUMENT, f"index out of range: {position}")
