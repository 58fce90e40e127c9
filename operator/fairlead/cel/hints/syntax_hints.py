"""Hints for what CEL cannot parse: what is unexpected, missing or not allowed at a place.

There is no tree: the hints show only what the text itself has there.
"""

import re
from typing import Final

from fairlead.cel.hints.engine_messages import LITERAL, MACRO_VARIABLE, NO_FIELD_IN_HAS, RESERVED
from fairlead.cel.hints.rewrites import Hints, Rewriting
from fairlead.cel.hints.slips import PATH, QUOTED, hints_for, nearest

_TOKEN: Final = re.compile(r"\w+|&&|\|\||[<>=!]=|=>|.", re.DOTALL)
_EXPECTED: Final = re.compile(r"(?:expecting|missing) '([^']+)'")
_ESCAPE: Final = re.compile(r"(['\"])(?:(?!\1)[^\\]|\\[abfnrtv\\?\"'`0-7xXuU])*+(\\.)")
_HAS_KEY: Final = re.compile(
    rf"\bhas\(\s*+(?:(?P<map>{PATH})\[(?P<key>{QUOTED})\]|(?P<test>{QUOTED}\s++in\s++{PATH})|(?P<list>{PATH})\[0\])\s*+\)"
)
_ANY: Final = re.compile(rf"(?P<map>{PATH})\[(?P<key>[^\[\]]++)\]\s*+(?P<sign>[=!]=)\s*+\*\Z")
_LISTED: Final = re.compile(rf"\bin\s*+(?:[({{](?P<closed>[^(){{}}]*+)[)}}]|(?P<open>{QUOTED}(?:\s*+,\s*+{QUOTED})++))")


def of_syntax(message: str, source: str, at: int) -> tuple[int, str, Hints]:
    """Return the offset, what is wrong, and what would be right."""
    rest = source[at:]
    if rest[:1] in ("'", '"') and message.startswith("token recognition error"):
        if escape := _ESCAPE.match(rest):
            hint = f"put `r` before the quote, or write `\\{escape[2]}`"
            return at, f"syntax error: unknown escape `{escape[2]}`", iter((Rewriting(hint, "r", (at, at)),))
        hint = f"close it with `{rest[0]}`"
        end = len(source.rstrip())
        return at, "syntax error: the string does not end", iter((Rewriting(hint, rest[0], (end, end)), hint))
    slip = nearest(source, at)
    if slip is not None:
        return slip.start(), *hints_for(slip, source)
    return at, *_unexpected(message, source, at)


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
    for asked in _HAS_KEY.finditer(source):
        if not asked.start() <= at < asked.end():
            continue
        test, subject = asked["test"], "a map key"
        if asked["key"]:
            test = f"{asked['key']} in {asked['map']}"
        elif asked["list"]:
            test, subject = f"{asked['list']}.size() > 0", "an item of a list"
        if source[: asked.start()].rstrip()[-1:] not in ("", "(", "&", "|", "?", ":", ","):
            test = f"({test})"
        yield Rewriting(f"for {subject} write `{test}`", test, asked.span())


def _unexpected(message: str, source: str, at: int) -> tuple[str, Hints]:
    expected = _EXPECTED.search(message)
    hints = _expected(expected and expected[1], at)
    token = _TOKEN.match(source, at)
    if token is None or not source[at:].strip():
        return "syntax error: unexpected end of the expression", hints
    sign = token[0]
    wildcard = _ANY.search(source, 0, at + 1) if sign == "*" else None
    if wildcard is not None:
        test = f"{wildcard['key']} in {wildcard['map']}"
        test = test if wildcard["sign"] == "==" else f"!({test})"
        hints = iter((Rewriting(f"write `{test}`", test, wildcard.span()),))
    elif sign == ",":
        hints = _list(source)
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
