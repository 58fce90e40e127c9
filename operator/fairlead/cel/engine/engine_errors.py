"""Kinds of the errors that the engine raises, and their texts without its jargon.

Its errors are text with a status code in front, and the code says less than the words. The first line of the table
whose words are in the text decides.
"""

import re
from typing import Final

from fairlead.cel.values.errors import Kind

_WORDS: Final = (
    ("duplicate key", Kind.DUPLICATE_KEY),
    ("Iteration budget exceeded", Kind.LIMIT),
    ("vector::reserve", Kind.LIMIT),
    ("std::bad_alloc", Kind.LIMIT),
    ("Key not found in map", Kind.NO_SUCH_KEY),
    ("Index error: index=", Kind.INDEX),
    ("No matching overloads found", Kind.NO_OVERLOAD),
    ("Index error: expected integer type", Kind.NO_OVERLOAD),
    ("Invalid map key type", Kind.NO_OVERLOAD),
    ("Invalid container type", Kind.NO_OVERLOAD),
    ("Applying SELECT to non-message type", Kind.NO_OVERLOAD),
    ("integer overflow", Kind.OVERFLOW),
    ("timestamp overflow", Kind.OVERFLOW),
    ("above maximum allowed", Kind.OVERFLOW),
    ("below minimum allowed", Kind.OVERFLOW),
    ("quantity out of range", Kind.OVERFLOW),
    ("divide by zero", Kind.DIVIDE_BY_ZERO),
    ("modulus by zero", Kind.DIVIDE_BY_ZERO),
    ("cannot convert", Kind.CONVERSION),
    ("conversion", Kind.CONVERSION),
    ("out of int64 range", Kind.CONVERSION),
    ("out of uint64 range", Kind.CONVERSION),
    ("malformed UTF-8", Kind.CONVERSION),
    ("invalid base64 data", Kind.CONVERSION),
    ("optional.none() dereference", Kind.NO_VALUE),
    ("regular expression", Kind.PATTERN),
    ("invalid replacement string", Kind.PATTERN),
    ("unable to find descriptor for type URL", Kind.NO_VALUE),  # a field of type dyn that is absent
    ("NOT_FOUND", Kind.NO_SUCH_KEY),
)


_CLEANED: Final = (
    (re.compile(r"^[A-Z_]+: "), ""),
    (re.compile(r"math\.@max"), "math.greatest"),
    (re.compile(r"math\.@min"), "math.least"),
    (re.compile(r"(?<= )@in\b"), "in"),
    (re.compile(r"(?<= )_?([-+*/%<>=!]=?|\[)_\]?(?=\()"), r"\1"),
    (re.compile(r"(?<=[(, ])(u?int)64(?=[,)])"), r"\1"),
    (re.compile(r"<jump_condition>"), "a condition that is no bool"),
    (re.compile(r"vector::reserve"), "a list cannot have so many items"),
    (re.compile(r"std::bad_alloc"), "there is no memory for it"),
)


def kind_of(message: str) -> Kind:
    """Return the kind of an error by the engine's text; one that the table does not know is an invalid argument."""
    return next((kind for words, kind in _WORDS if words in message), Kind.ARGUMENT)


def clean_message(message: str) -> str:
    """Return the engine's text without status codes and internal names of operators."""
    for pattern, word in _CLEANED:
        message = pattern.sub(word, message)
    return message
