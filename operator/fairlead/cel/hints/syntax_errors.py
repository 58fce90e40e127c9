"""What is no expression at all, in words: the slips of those who know another language first."""

import re
import unicodedata
from typing import Final

from fairlead.cel.hints import suggestions
from fairlead.cel.hints.excerpt import Excerpt, parenthesised
from fairlead.cel.hints.foreign_syntax import FOREIGN_PATTERNS

_Worded = tuple[int, str, str]
_SHOWN: Final = 20
_ESCAPES: Final = {  # what stands in quotes up to the first escape that there is not
    quote: re.compile(rf"{quote}(?:[^{quote}\\]|\\[abfnrtv\\?\"'`0-7xXuU])*+(\\.).*{quote}") for quote in "'\""
}
_TIMES: Final = {"s": 1, "h": 3600, "m": 60, "ms": 0.001, "min": 60, "d": 86400}


def of_syntax(message: str, place: Excerpt) -> _Worded:
    """Where it is, what is wrong, what would be right."""
    text = message.removeprefix("Syntax error: ")
    if text.startswith("token recognition error") and place.rest[:1] in ("'", '"'):
        return _text_that_does_not_end(place)
    if place.rest[:1].isalpha() and place.before[-1:] in ("'", '"'):
        quote = place.before[-1]
        other = '"' if quote == "'" else "'"
        return (
            place.at - 1,
            f"syntax error: the quote ends the string here, and `{_word(place)}` follows",
            (f"write `\\{quote}` for one inside, or put `{other}` around it"),
        )
    if place.rest[:1] in ("'", '"') and (prefix := re.search(r"(?<!\w)[A-Za-z]+$", place.before)):
        at = place.at - len(prefix[0])
        return (
            at,
            f"syntax error: there is no `{prefix[0]}` before a text",
            "join texts with `+`, or write `.format([...])`",
        )
    if slip := _slip(place):
        return slip
    if "<EOF>' expecting ':'" in text:
        hint = "write `... ? ... : ...`; an optional field is read with `.?`"
        return place.at, "syntax error: `?` wants a `:`", hint
    if not place.source[place.at :].strip():
        return place.at, "syntax error: the expression ends too early", _what_is_open(place)
    if place.rest[:1] in (")", "]", "}") and Excerpt(place.source[: place.at], 0).unclosed() is not None:
        return place.at, f"syntax error near `{place.rest[0]}`", "something is missing before it"
    if place.rest[:1] in (")", "]", "}"):
        return place.at, f"syntax error: nothing opens what `{place.rest[0]}` closes", "remove it, or open it before"
    if text.startswith("token recognition error"):
        return place.at, f"syntax error: {place.rest[:1]!r} means nothing here", ""
    if operator := re.match(r"&&|\|\||[<>=!]=|[<>*/%+]", place.rest):
        return place.at, f"syntax error near `{operator[0]}`", f"`{operator[0]}` stands between two values"
    if place.rest.startswith(","):
        return (
            place.at,
            "syntax error near `,`",
            "an expression is one value: join texts with `+`, conditions with `&&`",
        )
    if place.rest.startswith(":"):
        return place.at, "syntax error near `:`", "it stands behind a `?` and in maps, and nowhere else"
    hint = "between two values stands an operator, such as `&&` or `==`" if re.match(r"[\w'\"]", place.rest) else ""
    return place.at, f"syntax error near `{_word(place)}`", hint


def _word(place: Excerpt) -> str:
    words = place.rest.split()
    return words[0][:_SHOWN] if words else ""


def _text_that_does_not_end(place: Excerpt) -> _Worded:
    quote = place.rest[0]
    if escape := _ESCAPES[quote].match(place.rest):
        fault = f"syntax error: no character is written `{escape[1]}`"
        return place.at, fault, f"write `r` before the quote, or `\\{escape[1]}`"
    return place.at, "syntax error: the string does not end", f"close the quote with `{quote}`"


def _slip(place: Excerpt) -> _Worded | None:
    """The slip that is nearest to where the engine stopped."""
    found = [
        (-1 if at == 0 else max(match.start() - place.at, place.at - match.end(), 0), at, match, fault, cure)
        for at, (pattern, fault, cure) in enumerate(FOREIGN_PATTERNS)
        for match in pattern.finditer(place.code)
    ]
    if not found:
        return None
    _, _, match, fault, cure = min(found, key=lambda one: one[:2])
    at = match.end() - len(match[0].lstrip(" \n\t"))
    here = Excerpt(place.source, at)
    names = {
        "0": match[0].strip(" \n\t"),
        "plain": match[0].replace("_", ""),
        "1": match[1] or "" if match.re.groups else "",
        "2": match[2] or "" if match.re.groups > 1 else "",
        "share": f"{float(match[1]) / 100:g}" if "percent" in fault else "",
        "name": (re.findall(r"\w+", match[0]) or [""])[0],
        "character": f"{match[0]!r} ({unicodedata.name(match[0][:1], '')})" if len(match[0]) == 1 else "",
        "left": here.left,
        "target": parenthesised(here.left),
        "right": Excerpt(place.source, match.end()).operand,
        "pattern": re.sub(r"^/(.*)/$", r"'\1'", Excerpt(place.source, match.end()).operand),
        "there": suggestions.presence(here.left),
        "absent": suggestions.absence(here.left),
        "optional": suggestions.optional(here.left),
    }
    hint = suggestions.filled(cure, names) or _quantity(match, here)
    return at, f"syntax error: {suggestions.filled(fault, names)}", hint


def _quantity(match: re.Match[str], place: Excerpt) -> str:
    """A number with a unit, as the language has it."""
    if len(match.groups()) < 2:
        return ""
    number, unit = match[1], match[2]
    is_time = re.search(r"\bnow\b|Timestamp\b|duration", place.before)
    if unit in _TIMES and (unit != "m" or is_time):
        shown = f"{number}{unit}" if unit not in ("min", "d") else f"{float(number) * _TIMES[unit] / 60:.0f}m"
        return f"write `duration('{shown}')`"
    unit = unit.removesuffix("B") if unit != "B" else ""
    unit = "k" if unit == "K" else unit
    return f"write `{suggestions.amount(number + unit)}`, or `quantity('{number}{unit}')` beside a quantity"


def _what_is_open(place: Excerpt) -> str:
    opened = place.unclosed()
    if opened is None:
        return "something must follow"
    begins = place.source[opened:].partition("\n")[0]
    return f"nothing closes `{begins[:_SHOWN]}{'...' if len(begins) > _SHOWN else ''}`"
