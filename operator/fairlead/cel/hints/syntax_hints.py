"""Hints for what CEL cannot parse: signs and words of other languages, units, quotes.

There is no tree: the hints show only what the text itself has at the place.
"""

import re
import unicodedata
from typing import Final

from fairlead.cel.functions.quantity import to_float
from fairlead.cel.hints.rewrites import Hints, Rewriting
from fairlead.cel.hints.time_hints import PARTS, in_hours, time_of_day
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
    r"|(?P<clock>(?<![\w.])(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?(?![\w:]))"
    r"|(?P<percent>(?<![\w.])\d++(?:\.\d++)?\s?%(?=\s*+(?:\Z|[)\]&|?:<>=*+,])))"
    r"|(?P<number>(?<![\w.])\d++(?:\.\d++)?(?:[KMGTPE]i?B?|k|m|s|ms|h|d)\b)"
)
_ESCAPE: Final = re.compile(r"(['\"])(?:(?!\1)[^\\]|\\[abfnrtv\\?\"'`0-7xXuU])*+(\\.)")
_PATH: Final = r"(?<![\w.])[\w.]++"
_VALUE: Final = rf"{_PATH}(?:\[[^\[\]]*+\])?+"
_QUOTED: Final = r"(?:'[^']*+'|\"[^\"]*+\")"
_NOT_IN: Final = re.compile(rf"(?P<item>{_VALUE})\s+not\s+in\s+(?P<list>\[[^\[\]]*+\]|{_VALUE})")
_MATCHES: Final = re.compile(rf"(?P<text>{_VALUE})\s*+=~\s*+(?P<pattern>{_QUOTED})")
_OR_VALUE: Final = re.compile(rf"(?P<map>{_PATH})\[(?P<key>[^\[\]]++)\]\s*+\?\?\s*+(?P<value>{_QUOTED}|[\w.]++)")
_ANY: Final = re.compile(rf"(?P<map>{_PATH})\[(?P<key>[^\[\]]++)\]\s*+(?P<sign>[=!]=)\s*+\*\Z")
_LISTED: Final = re.compile(
    rf"\bin\s*+(?:[({{](?P<closed>[^(){{}}]*+)[)}}]|(?P<open>{_QUOTED}(?:\s*+,\s*+{_QUOTED})++))"
)
_COMPARED: Final = re.compile(rf"(?P<path>{_PATH})(?P<call>\(\))?\s*+(?P<sign><=|>=|<|>|==|!=)\s*+\Z")

Slip = tuple[int, str, Hints]


def of_syntax(message: str, source: str, at: int) -> Slip:
    """Return the offset, what is wrong, and what would be right."""
    rest = source[at:]
    if rest[:1] in ("'", '"') and message.startswith("token recognition error"):
        if escape := _ESCAPE.match(rest):
            hint = f"put `r` before the quote, or write `\\{escape[2]}`"
            return at, f"syntax error: unknown escape `{escape[2]}`", iter((Rewriting(hint, "r", (at, at)),))
        hint = f"close it with `{rest[0]}`"
        end = len(source.rstrip())
        return at, "syntax error: the string does not end", iter((Rewriting(hint, rest[0], (end, end)), hint))
    slips = [(max(one.start() - at, at - one.end(), 0), one) for one in _SLIP.finditer(code(source))]
    slips = [(far, one) for far, one in slips if far <= _FAR.get(one.lastgroup or "", len(source))]
    if slips:
        _, near = min(slips, key=lambda one: (one[1].lastgroup != "template", one[0]))
        return near.start(), *_of_slip(near, source)
    return at, *_unexpected(message, source, at)


_FAR: Final = {"word": 1, "clock": 0}
"""Greatest distance from the error of a slip that could be meant as it is written."""


def _unexpected(message: str, source: str, at: int) -> tuple[str, Hints]:
    rest, expected = source[at:], _EXPECTED.search(message)
    if not rest.strip():
        return "syntax error: unexpected end of the expression", _expected(expected and expected[1], at)
    sign = _TOKEN.match(rest)[0]  # type: ignore[index]
    if sign == "*" and (found := _ANY.search(source, 0, at + 1)):
        key, labels = found["key"], found["map"]
        made = f"{key} in {labels}" if found["sign"] == "==" else f"!({key} in {labels})"
        return f"syntax error: unexpected `{sign}`", iter((Rewriting(f"write `{made}`", made, found.span()),))
    hints = _list(source) if sign == "," else _expected(expected and expected[1], at)
    return f"syntax error: unexpected `{sign}`", hints


def _expected(sign: str | None, at: int) -> Hints:
    if sign:
        yield Rewriting(f"expected `{sign}`", sign, (at, at))
        yield f"expected `{sign}`"


def _list(source: str) -> Hints:
    for found in _LISTED.finditer(source):
        group = found.lastgroup or ""
        start, end = found.span(group)
        part = (start - 1, end + 1) if group == "closed" else (start, end)
        yield Rewriting("write a list as `['a', 'b']`", f"[{found[group]}]", part)
    yield "write a list as `['a', 'b']`"


def _of_slip(slip: re.Match[str], source: str) -> tuple[str, Hints]:
    found = " ".join(slip[0].split())
    match slip.lastgroup:
        case "template":
            return f"syntax error: unexpected `{found}`", iter(("render templates before the policy is used",))
        case "character":
            fault = f"syntax error: unexpected {slip[0]!r} ({unicodedata.name(slip[0])})"
            return fault, iter(("use plain ASCII quotes, spaces and signs",))
        case "dot":
            hint = Rewriting(f"write `{found}0`", f"{found}0", slip.span())
            return f"syntax error: `{found}` is not a number", iter((hint,))
        case "percent":
            return "syntax error: numbers have no units", _percent(found, slip.span(), source)
        case "clock":
            return f"syntax error: `{found}` is not a value", _clock(slip, source)
        case "number":
            return "syntax error: numbers have no units", _amount(found, source[: slip.start()], slip.span())
    return f"syntax error: CEL has no `{found}`", _operator(found, slip, source)


def _operator(found: str, slip: re.Match[str], source: str) -> Hints:
    hint = f"write `{_OPERATORS[found]}`"
    whole = {"not in": _NOT_IN, "=~": _MATCHES, "??": _OR_VALUE}.get(found)
    for one in whole.finditer(source) if whole is not None else ():
        if one.start() <= slip.start() < one.end():
            made = {
                "not in": "!({item} in {list})",
                "=~": "{text}.matches({pattern})",
                "??": "{map}[?{key}].orValue({value})",
            }[found]
            yield Rewriting(hint, made.format(**one.groupdict()), one.span())
    if whole is None and "..." not in hint:
        yield Rewriting(hint, _OPERATORS[found], slip.span())
    yield hint


def _percent(found: str, part: tuple[int, int], source: str) -> Hints:
    number = float(found.rstrip("% "))
    fraction = repr(number / 100)
    if "/" in source and "100" not in source:
        yield Rewriting(f"write `{fraction}`: a quotient is of 1", fraction, part)
        return
    yield Rewriting(f"write `{fraction}` of 1, or `{number!r}` of 100", fraction, part)


def _clock(slip: re.Match[str], source: str) -> Hints:
    if before := _COMPARED.search(source[: slip.start()]):
        held, called = before["path"].removesuffix(".getHours"), before["call"]
        made = time_of_day(held, before["sign"], slip[0], f"{held}.getHours()" if called else "")
        yield Rewriting(f"{PARTS}write `{made}`", made, (before.start(), slip.end()))


def _amount(found: str, before: str, part: tuple[int, int]) -> Hints:
    found = in_hours(found)
    if found.endswith(("s", "h")) or (found.endswith("m") and re.search(r"\bnow\b|Timestamp\b|duration", before)):
        yield Rewriting(f"write `duration('{found}')`", f"duration('{found}')", part)
        return
    quantity = found.removesuffix("B")
    number = to_float(quantity)
    if number is not None:
        hint = f"write `{number}`, or `quantity('{quantity}')` beside a quantity"
        yield Rewriting(hint, repr(number), part)
