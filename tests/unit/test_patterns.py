"""No pattern of the product takes time that grows faster than the text it is looked for in."""

import re

import pytest

from support.patterns.attacks import worse_than_linear
from support.patterns.found import EACH, FULLMATCH, MATCH, Found, Unknown, inline, module_patterns
from support.patterns.steps import Matcher, Tree

_FOUND = [*module_patterns(), *inline()]
_MADE = {  # where patterns are made of what is given; all that come of it are held by some module
    "self.pattern": "api.values",
}
_PATTERNS = {(one.pattern.pattern, one.pattern.flags, one.how): one for one in _FOUND if isinstance(one, Found)}
"""Patterns, each with one place where it was found: which one, and in which order, is another in each process."""
_BAD = (
    (r"\[\s*(-?\d*)\s*:\s*(-?\d*)\s*\]", EACH),
    (r"(?<=[(,])\s*\(?\s*\w+\s*\)?\s*(?:=>|->)", EACH),
    (r"\d+\s*\.\.+\s*\d+", EACH),
    (r"(?<=\bin)\s*[({][^(){}:]*,[^(){}:]*[)}]", EACH),
    (r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", FULLMATCH),
    (r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?", FULLMATCH),
    (r"(.*?[<>=!]=?)\s*([^<>=!&|?]+)", FULLMATCH),
    (r"([\w.]+(?:\[[^\]]*\])?)\s*(==|!=)\s*('[^']*'|\"[^\"]*\")$", EACH),
    (r"([^/]+?)\s*/\s*(\d+)", FULLMATCH),
    (r"(.+)\[(?!\?)\s*([^\[\]]+)\]", FULLMATCH),
    (r"\b(free|data)\.([\w.]+(?:[-/]+[\w.]+)+)(?![\w(])", EACH),
    (r"_.+_\(.*, optional_type\((?:string|bool)\)\)", FULLMATCH),
    (r"'(?:[^'\\]|\\[abfnrtv])*(\\.).*'", MATCH),
    (r'"(?:\\.|[^"\\\n])*"', EACH),
    (r"^\s*(?:<{7}|={7}|>{7})(?= |$)", EACH),
    (r"\{APIGroups:\[(.*?)\], Resources:\[(.*?)\],.*? Verbs:\[(.*?)\]\}", EACH),
    (r"(?:[-?][ \t]+){1000}", EACH),
    (r"\s*\(byte (\d+)\)", EACH),
    (r"(?:a+)+b", FULLMATCH),
    (r"(?:a|a)*b", MATCH),
    (r"(?<!\w)[a-z.]+x", EACH),
)


@pytest.mark.parametrize(("pattern", "flags", "how"), sorted(_PATTERNS, key=repr))
def test_no_text_is_hard_for_a_pattern(pattern: str | bytes, flags: int, how: str) -> None:
    one = _PATTERNS[pattern, flags, how]
    assert not worse_than_linear(one.pattern, one.how), f"{one.where}: {one.pattern.pattern}"


@pytest.mark.parametrize(("pattern", "how"), _BAD)
def test_a_hard_text_is_found_for_a_pattern_that_has_one(pattern: str, how: str) -> None:
    assert worse_than_linear(re.compile(pattern, re.MULTILINE), how)


@pytest.mark.parametrize(
    ("pattern", "how"),
    [
        (r"\s+x", MATCH),
        (r"(?<!\s)\s++x", EACH),
        (r"\w+", EACH),
        (r"[0-9]++(?:\.[0-9]*+)?", FULLMATCH),
        (r"'[^']*'", MATCH),
    ],
)
def test_no_hard_text_is_found_where_there_is_none(pattern: str, how: str) -> None:
    assert not worse_than_linear(re.compile(pattern), how)


def test_patterns_of_all_kinds_are_found() -> None:
    places = {one.where.removeprefix("fairlead.") for one in _FOUND}
    assert {
        "cel.hints.slips._SLIP",
        "cel.hints.engine_messages.NO_OVERLOAD",
        "cel.functions.conversions._DECIMAL",
    } <= places
    assert {"cli.yaml.parse_errors._HINTS", "plain_data._IN_A_ROW", "webhook.https.fast_path._HEAD"} <= places
    assert any(place.startswith("cel.hints.type_hints:") for place in places)
    assert len(_PATTERNS) > 100


def test_no_pattern_is_put_together_of_what_is_not_known_before() -> None:
    unknown = [one for one in _FOUND if isinstance(one, Unknown)]
    assert {one.source: one.where.removeprefix("fairlead.").partition(":")[0] for one in unknown} == _MADE


@pytest.mark.parametrize(
    ("pattern", "how", "one", "two"),
    [("a*b", MATCH, "a" * 8, "a" * 16), ("a*b", EACH, "a" * 8, "a" * 16), ("a*+b", FULLMATCH, "a" * 8, "a" * 16)],
)
def test_steps_are_counted_and_not_time(pattern: str, how: str, one: str, two: str) -> None:
    matcher = Matcher(Tree(re.compile(pattern)))
    counted = [matcher.count(text, how) for text in (one, two, one)]
    assert counted[0] == counted[2] < counted[1]
    assert (counted[1] > 3 * counted[0]) is (how == EACH)
