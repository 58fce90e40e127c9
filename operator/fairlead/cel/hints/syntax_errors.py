"""Syntax errors in the words of the language; for common slips, what to write.

The engine lists every token that could have followed. There is no tree to look at, so that hints show only what the
text itself has at the place.
"""

import re
import unicodedata
from typing import Final

from fairlead.cel.functions.quantity import to_float
from fairlead.cel.syntax.source_refs import code

_TOKEN: Final = re.compile(r"\w+|&&|\|\||[<>=!]=|=>|.", re.DOTALL)
_EXPECTED: Final = re.compile(r"(?:expecting|missing) '([^']+)'")
_OPERATORS: Final = {
    **dict.fromkeys(("and", "AND", "&"), "&&"),
    **dict.fromkeys(("or", "OR", "|"), "||"),
    **dict.fromkeys(("not", "NOT"), "!"),
    **dict.fromkeys(("=", "==="), "=="),
    **dict.fromkeys(("!==", "<>"), "!="),
    "=<": "<=",
    "?.": ".?",
    "??": ".orValue(...)",
    "=~": ".matches('...')",
    "not in": "!(... in ...)",
    "if": "condition ? one : other",
}
# Nothing here fits an expression that CEL accepts.
_SLIP: Final = re.compile(
    r"(?P<word>(?<![.\w])(?:not\s+in|and|AND|or|OR|not|NOT|if)(?!\w))"
    r"|(?P<sign>===|!==|<>|=<|=~|\?\?|(?<=[\w\])])\?\.|(?<![=!<>])=(?![=>])|(?<!&)&(?!&)|(?<!\|)\|(?!\|))"
    r"|(?P<template>\{\{|\$[{(]?)"
    r"|(?P<character>[`\u2018-\u201e\xab\xbb\xa0\u2000-\u200b\u202f\u205f\u2060\u3000\ufeff\u2010-\u2015\u2212])"
    r"|(?P<dot>(?<![\w.])\d++\.(?![\d.]))"
    r"|(?P<number>(?<![\w.])\d++(?:\.\d++)?(?:[KMGTPE]i?B?|k|m|s|ms|h)\b)"
)
_ESCAPE: Final = re.compile(r"(['\"])(?:(?!\1)[^\\]|\\[abfnrtv\\?\"'`0-7xXuU])*+(\\.)")


def of_syntax(message: str, source: str, at: int) -> tuple[int, str, str]:
    """Return the offset, what is wrong, and what would be right."""
    rest = source[at:]
    if rest[:1] in ("'", '"') and message.startswith("token recognition error"):
        if escape := _ESCAPE.match(rest):
            return (
                at,
                f"syntax error: unknown escape `{escape[2]}`",
                f"put `r` before the quote, or write `\\{escape[2]}`",
            )
        return at, "syntax error: the string does not end", f"close it with `{rest[0]}`"
    slips = [(max(one.start() - at, at - one.end(), 0), one) for one in _SLIP.finditer(code(source))]
    slips = [(far, one) for far, one in slips if one.lastgroup != "word" or far <= 1]
    if slips:
        _, near = min(slips, key=lambda one: (one[1].lastgroup != "template", one[0]))
        return _of_slip(near, source)
    expected = _EXPECTED.search(message)
    hint = f"expected `{expected[1]}`" if expected else ""
    if rest.startswith(","):
        hint = "write a list as `['a', 'b']`"
    if not rest.strip():
        return at, "syntax error: unexpected end of the expression", hint
    return at, f"syntax error: unexpected `{_TOKEN.match(rest)[0]}`", hint  # type: ignore[index]


def _of_slip(slip: re.Match[str], source: str) -> tuple[int, str, str]:
    at, found = slip.start(), " ".join(slip[0].split())
    match slip.lastgroup:
        case "template":
            return at, f"syntax error: unexpected `{found}`", "render templates before the policy is used"
        case "character":
            return (
                at,
                f"syntax error: unexpected {slip[0]!r} ({unicodedata.name(slip[0])})",
                "use plain ASCII quotes, spaces and signs",
            )
        case "dot":
            return at, f"syntax error: `{found}` is not a number", f"write `{found}0`"
        case "number":
            return at, "syntax error: numbers have no units", _amount(found, source[:at])
    return at, f"syntax error: CEL has no `{found}`", f"write `{_OPERATORS[found]}`"


def _amount(found: str, before: str) -> str:
    if found.endswith(("s", "h")) or (found.endswith("m") and re.search(r"\bnow\b|Timestamp\b|duration", before)):
        return f"write `duration('{found}')`"
    quantity = found.removesuffix("B")
    number = to_float(quantity)
    return f"write `{number}`, or `quantity('{quantity}')` beside a quantity" if number is not None else ""
