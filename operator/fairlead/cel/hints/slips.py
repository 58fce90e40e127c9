"""Hints for slips: signs and words of other languages, units, quotes, and other text that no expression of CEL has."""

import re
import unicodedata
from typing import Final

from fairlead.cel.functions.quantity import to_float
from fairlead.cel.hints.rewrites import Hints, Rewriting
from fairlead.cel.hints.time_hints import PARTS, in_hours, time_of_day
from fairlead.cel.syntax.source_refs import code

PATH: Final = r"(?<![\w.])[\w.]++"
_VALUE: Final = rf"{PATH}(?:\[[^\[\]]*+\])?+"
_CALLED: Final = rf"{_VALUE}(?:\.\w++\([^()]*+\))*+"
QUOTED: Final = r"(?:'[^']*+'|\"[^\"]*+\")"
_OPERATORS: Final = {
    **dict.fromkeys(("and", "AND", "&"), "&&"),
    **dict.fromkeys(("or", "OR", "|"), "||"),
    **dict.fromkeys(("not", "NOT"), "!"),
    **dict.fromkeys(("=", "===", "= =", ":="), "=="),
    **dict.fromkeys(("!==", "<>", "=!", "=!=", "! ="), "!="),
    **dict.fromkeys(("=<", "< ="), "<="),
    "> =": ">=",
    "?.": ".?",
    "??": ".orValue(...)",
    **dict.fromkeys(("=~", "~="), ".matches('...')"),
    "!~": "!(... .matches('...'))",
    "not in": "!(... in ...)",
    "if": "condition ? one : other",
}
# Nothing here fits an expression that CEL accepts.
_SLIP: Final = re.compile(
    r"(?P<word>(?<![.\w])(?:not\s+in|and|AND|or|OR|not|NOT|if)(?!\w))"
    r"|(?P<is>(?<![.\w])is\s+(?:not\s+)?(?:null|None|nil|NULL)(?!\w))"
    r"|(?P<pattern>(?<=[(~,])\s*/[^/\n]++/(?=\s*[),]|\s*\Z))"
    r"|(?P<comment>(?<!\w)\#)"
    r"|(?P<end>;)"
    r"|(?P<arrow>->|=>)"
    r"|(?P<sign>===|!==|<>|:=|~=|(?<![=!<>])(?:=!=?|[=!<>]\s++=(?![=>]))|=<|=~|!~|\?\?|(?<=[\w\])])\?\.|(?<![=!<>])=(?![=>])|(?<!&)&(?!&)|(?<!\|)\|(?!\|))"
    r"|(?P<template>\{\{|\$[{(]?)"
    r"|(?P<character>[`\u2018-\u201e\xab\xbb\xa0\u2000-\u200b\u202f\u205f\u2060\u3000\ufeff\u2010-\u2015\u2212])"
    r"|(?P<dot>(?<![\w.])\d++\.(?![\d.]))"
    r"|(?P<clock>(?<![\w.])(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?(?![\w:]))"
    r"|(?P<percent>(?<![\w.])\d++(?:\.\d++)?\s?%(?=\s*+(?:\Z|[)\]&|?:<>=*+,])))"
    r"|(?P<number>(?<![\w.])\d++(?:\.\d++)?(?:[KMGTPE]i?B?|k|m|s|ms|h|d)\b)"
)
_NOT_IN: Final = re.compile(rf"(?P<item>{_VALUE})\s+not\s+in\s+(?P<list>\[[^\[\]]*+\]|{_VALUE})")
_MATCHES: Final = re.compile(rf"(?P<text>{_CALLED})\s*+[=!]~\s*+(?P<pattern>{QUOTED}|/[^/\n]++/)")
_OR_VALUE: Final = re.compile(rf"(?P<map>{PATH})\[(?P<key>[^\[\]]++)\]\s*+\?\?\s*+(?P<value>{QUOTED}|[\w.]++)")
_OF_ABSENT: Final = re.compile(
    rf"(?:(?P<map>{PATH})\[(?P<key>[^\[\]?]++)\]|(?P<labels>(?<![\w.])[\w.]*\.(?:labels|annotations))\.(?P<field>\w++))"
    r"\?\.(?=\w++\()"
)
_LAMBDA: Final = re.compile(r"[(,]\s*+\(?(?P<names>\w++(?:\s*+,\s*+\w++)?+)\)?\s*+\Z")
_BEFORE: Final = re.compile(rf"(?P<map>{PATH})(?:\[(?P<key>{QUOTED})\])?+\s*+\Z")
_DEFAULT: Final = re.compile(rf"(?P<map>{PATH})\[(?P<key>[^\[\]?]++)\]\s*+\|\s*+default\((?P<value>[^()]++)\)")
_COMPARED: Final = re.compile(rf"(?P<path>{PATH})(?P<call>\(\))?\s*+(?P<sign><=|>=|<|>|==|!=)\s*+\Z")

_LONGEST: Final = 120
_FAR: Final = {"end": 0, "comment": 0, "word": 1, "clock": 0}
"""Greatest distance from the error of a slip that could be meant as it is written."""


def nearest(source: str, at: int) -> re.Match[str] | None:
    """Return the slip nearest to a place; one of a template before all others."""
    distances = [(max(slip.start() - at, at - slip.end(), 0), slip) for slip in _SLIP.finditer(code(source))]
    close = [(far, slip) for far, slip in distances if far <= _FAR.get(slip.lastgroup or "", len(source))]
    if not close:
        return None
    return min(close, key=lambda one: (one[1].lastgroup != "template", one[0]))[1]


def hints_for(slip: re.Match[str], source: str) -> tuple[str, Hints]:
    """Return what is wrong with a slip, and what would be right."""
    found = " ".join(slip[0].split())
    match slip.lastgroup:
        case "comment":
            hint = "a comment begins with `//`"
            return "syntax error: CEL has no `#`", iter((Rewriting(hint, "//", slip.span()), hint))
        case "is":
            return f"syntax error: CEL has no `{found}`", _is_null(slip, source)
        case "pattern":
            quoted = f"'{found[1:-1]}'"
            whole = Rewriting(f"a pattern is a string: write `{quoted}`", quoted, slip.span())
            return f"syntax error: `{found}` is not a value", iter((whole,))
        case "end" | "arrow" as kind:
            hints = _end(slip, source) if kind == "end" else _arrow(slip, source)
            return f"syntax error: unexpected `{found}`", hints
        case "template":
            return f"syntax error: unexpected `{found}`", iter(("render templates before the policy is used",))
        case "character":
            fault = f"syntax error: unexpected {slip[0]!r} ({unicodedata.name(slip[0])})"
            return fault, iter(("use plain ASCII quotes, spaces and signs",))
        case "dot":
            whole = Rewriting(f"write `{found}0`", f"{found}0", slip.span())
            return f"syntax error: `{found}` is not a number", iter((whole,))
        case "percent":
            return "syntax error: numbers have no units", _percent(found, slip.span(), source)
        case "clock":
            return f"syntax error: `{found}` is not a value", _clock(slip, source)
        case "number":
            return "syntax error: numbers have no units", _amount(found, source[: slip.start()], slip.span())
    return f"syntax error: CEL has no `{found}`", _operator(found, slip, source)


def _is_null(slip: re.Match[str], source: str) -> Hints:
    is_set = "not" in slip[0].split()
    if one := _BEFORE.search(source[: slip.start()]):
        asked = f"{one['key']} in {one['map']}" if one["key"] else f"has({one['map']})"
        made = asked if is_set else f"!({asked})" if one["key"] else f"!{asked}"
        yield Rewriting(f"absent is not null: write `{made}`", made, (one.start(), slip.end()))
    yield "absent is not null: ask `has(...)` for a field, `'key' in map` for a map key"


def _end(slip: re.Match[str], source: str) -> Hints:
    if source[slip.end() :].strip():
        hint = "a rule is one expression: join its parts with `&&`"
        yield Rewriting(hint, " &&", slip.span())
        yield hint
    else:
        yield Rewriting("leave it out", "", (slip.start(), len(source)))


def _arrow(slip: re.Match[str], source: str) -> Hints:
    left, right = source[: slip.start()], source[slip.end() :]
    if variables := _LAMBDA.search(left):  # pods.exists(p => ...)
        part = (variables.start() + 1, slip.end())
        yield Rewriting("the variable of a macro is followed by a comma", f"{variables['names']},", part)
    elif slip[0] == "->" and not left[-1:].isspace():
        yield Rewriting("fields are read with `.`", ".", slip.span())
    elif slip[0] == "=>" and not re.search(r"[=<>&|]", left):
        yield Rewriting("write `>=`", ">=", slip.span())
    elif left.count("(") == left.count(")"):
        made = f"!({left.strip()}) || {right.strip()}"
        yield Rewriting(f"a rule that follows from another is `!(...) || ...`: write `{made}`", made, (0, len(source)))


def _optional_call(source: str, slip: re.Match[str]) -> Hints:
    """Yield what to write for a method of what may be absent, such as `labels['zone']?.startsWith('a')`."""
    for one in _OF_ABSENT.finditer(source):
        if one.start() <= slip.start() < one.end():
            made = f"{one['map']}[?{one['key']}]" if one["key"] else f"{one['labels']}[?'{one['field']}']"
            made += ".orValue('')"
            yield Rewriting(f"read it with a default: write `{made}`", f"{made}.", one.span())
    if re.match(r"\w++\(", source[slip.end() :]):
        yield Rewriting("write `.`", ".", slip.span())


def _conditional(source: str) -> str:
    """Return `if test then one else other`, or `one if test else other`, with `?` and `:`; "" for others."""
    if source.startswith("if "):
        test, _, ways = source.removeprefix("if ").partition(" then ")
        one, _, other = ways.partition(" else ")
    else:
        one, _, ways = source.partition(" if ")
        test, _, other = ways.partition(" else ")
    return f"{test.strip()} ? {one.strip()} : {other.strip()}" if test and one and other else ""


def _operator(text: str, slip: re.Match[str], source: str) -> Hints:
    if text == "?.":
        yield from _optional_call(source, slip)
    if text == "if":
        if made := _conditional(source.strip()):
            yield Rewriting(f"write `{made}`", made, (0, len(source)))
        yield f"write `{_OPERATORS[text]}`"
        return
    for one in _DEFAULT.finditer(source) if text == "|" else ():
        made = f"{one['map']}[?{one['key']}].orValue({one['value']})"
        yield Rewriting(f"write `{made}`", made, one.span())
    hint = f"write `{_OPERATORS[text]}`"
    whole = {"not in": _NOT_IN, "=~": _MATCHES, "!~": _MATCHES, "??": _OR_VALUE}.get(text)
    for one in whole.finditer(source) if whole is not None else ():
        if one.start() <= slip.start() < one.end():
            made = {
                "not in": "!({item} in {list})",
                "=~": "{text}.matches({pattern})",
                "!~": "!{text}.matches({pattern})",
                "??": "{map}[?{key}].orValue({value})",
            }[text]
            parts = one.groupdict()
            if (pattern := parts.get("pattern", "")).startswith("/"):
                parts["pattern"] = f"'{pattern.strip('/')}'"
            code_ = made.format(**parts)
            yield Rewriting(f"write `{code_}`" if len(code_) <= _LONGEST else hint, code_, one.span())
    if whole is None and "..." not in hint:
        yield Rewriting(hint, _OPERATORS[text], slip.span())
    yield hint


def _percent(text: str, part: tuple[int, int], source: str) -> Hints:
    number = float(text.rstrip("% "))
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


def _amount(text: str, before: str, part: tuple[int, int]) -> Hints:
    text = in_hours(text)
    if text.endswith(("s", "h")) or (text.endswith("m") and re.search(r"\bnow\b|Timestamp\b|duration", before)):
        yield Rewriting(f"write `duration('{text}')`", f"duration('{text}')", part)
        return
    quantity = text.removesuffix("B")
    if (number := to_float(quantity)) is not None:
        hint = f"write `{number}`, or `quantity('{quantity}')` beside a quantity"
        yield Rewriting(hint, repr(number), part)
