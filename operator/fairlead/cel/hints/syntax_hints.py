"""Hints for what CEL cannot parse: signs and words of other languages, units, quotes.

There is no tree: the hints show only what the text itself has at the place.
"""

import re
import unicodedata
from typing import Final

from fairlead.cel.functions.quantity import to_float
from fairlead.cel.hints.engine_messages import LITERAL, MACRO_VARIABLE, NO_FIELD_IN_HAS, RESERVED
from fairlead.cel.hints.rewrites import Hints, Rewriting
from fairlead.cel.hints.time_hints import PARTS, in_hours, time_of_day
from fairlead.cel.syntax.source_refs import code

_TOKEN: Final = re.compile(r"\w+|&&|\|\||[<>=!]=|=>|.", re.DOTALL)
_EXPECTED: Final = re.compile(r"(?:expecting|missing) '([^']+)'")
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
_ESCAPE: Final = re.compile(r"(['\"])(?:(?!\1)[^\\]|\\[abfnrtv\\?\"'`0-7xXuU])*+(\\.)")
_PATH: Final = r"(?<![\w.])[\w.]++"
_VALUE: Final = rf"{_PATH}(?:\[[^\[\]]*+\])?+"
_CALLED: Final = rf"{_VALUE}(?:\.\w++\([^()]*+\))*+"
_QUOTED: Final = r"(?:'[^']*+'|\"[^\"]*+\")"
_NOT_IN: Final = re.compile(rf"(?P<item>{_VALUE})\s+not\s+in\s+(?P<list>\[[^\[\]]*+\]|{_VALUE})")
_MATCHES: Final = re.compile(rf"(?P<text>{_CALLED})\s*+[=!]~\s*+(?P<pattern>{_QUOTED}|/[^/\n]++/)")
_OR_VALUE: Final = re.compile(rf"(?P<map>{_PATH})\[(?P<key>[^\[\]]++)\]\s*+\?\?\s*+(?P<value>{_QUOTED}|[\w.]++)")
_OF_ABSENT: Final = re.compile(
    rf"(?:(?P<map>{_PATH})\[(?P<key>[^\[\]?]++)\]|(?P<labels>(?<![\w.])[\w.]*\.(?:labels|annotations))\.(?P<field>\w++))"
    r"\?\.(?=\w++\()"
)
_LAMBDA: Final = re.compile(r"[(,]\s*+\(?(?P<names>\w++(?:\s*+,\s*+\w++)?+)\)?\s*+\Z")
_HAS_KEY: Final = re.compile(
    rf"\bhas\(\s*+(?:(?P<map>{_PATH})\[(?P<key>{_QUOTED})\]|(?P<test>{_QUOTED}\s++in\s++{_PATH})|(?P<list>{_PATH})\[0\])\s*+\)"
)
_BEFORE: Final = re.compile(rf"(?P<map>{_PATH})(?:\[(?P<key>{_QUOTED})\])?+\s*+\Z")
_DEFAULT: Final = re.compile(rf"(?P<map>{_PATH})\[(?P<key>[^\[\]?]++)\]\s*+\|\s*+default\((?P<value>[^()]++)\)")
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


_LONGEST: Final = 120
_FAR: Final = {"end": 0, "comment": 0, "word": 1, "clock": 0}
"""Greatest distance from the error of a slip that could be meant as it is written."""


def of_parser(message: str, source: str, at: int) -> tuple[str, Hints]:
    """Return what is wrong with an expression that the parser knows all signs of, and what would be right."""
    if match := RESERVED.match(message):
        return f"`{match[1]}` is a reserved word in CEL", _reserved(match[1], source, at)
    if NO_FIELD_IN_HAS.match(message):
        hints = (*_presence(source, at), "for a map key write `'key' in map`")
        return "has() needs a field, as in has(pod.spec.priority)", iter(hints)
    if match := MACRO_VARIABLE.match(message):
        return f"{match[1]}() needs a variable name first", iter((f"write `{match[1]}(x, ...)`",))
    if match := LITERAL.match(message):
        return f"the number does not fit into {match[1]}", iter(("an int has 64 bits; write a double as 1e20",))
    return message, iter(())


def _reserved(word: str, source: str, at: int) -> Hints:
    if word == "namespace" and source.startswith(word, at):
        yield Rewriting("the pod's namespace is `namespaceObject`", "namespaceObject", (at, at + len(word)))
    if word == "if":
        yield "write `condition ? one : other`"


def _presence(source: str, at: int) -> Hints:
    """Yield what to write for a test for a key of a map: `has(labels['gpu'])`."""
    for one in _HAS_KEY.finditer(source):
        if one.start() <= at < one.end():
            made = one["test"] or (f"{one['key']} in {one['map']}" if one["key"] else f"{one['list']}.size() > 0")
            is_alone = source[: one.start()].rstrip()[-1:] in ("", "(", "&", "|", "?", ":", ",")
            made = made if is_alone else f"({made})"
            of = "an item of a list" if one["list"] else "a map key"
            yield Rewriting(f"for {of} write `{made}`", made, one.span())


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
