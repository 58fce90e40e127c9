"""Regular expressions match as in the engine, and are silent about bad ones."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cel.functions.overloads import PATTERN_METHODS
from fairlead.cel.functions.regex import Pattern
from fairlead.cel.values.errors import Abort, CelError, Kind
from oracle import ask, literal, outcome_of, overloads_of
from oracle import strategies as any_
from oracle.comparison import thorough

_good = st.sampled_from(
    [
        "a",
        "b",
        "aa",
        "ab",
        "a*",
        "a+",
        "é",
        "😀",
        ".",
        "..",
        "[ab]",
        "[^a]",
        r"\w",
        r"\pL",
        r"\b",
        "^",
        "$",
        "",
        "(?i)A",
    ]
)
_odd = (
    r"\s \d \x{e9} \Qa\E (?P<n>a) (?s). (?m)^ \A \z [[:alpha:]] \C a{2} [ ) * \1 \Z (?=a) a{1001}"  # some are refused
)
_atoms = _good | st.integers(0, 9).flatmap(lambda dice: _good if dice else st.sampled_from(re.findall(r"\S+", _odd)))
patterns = st.recursive(
    _atoms,
    lambda inner: (
        st.tuples(inner, inner).map("".join)
        | st.tuples(inner, inner).map("|".join)
        | st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "{0,2}", "{1,}"])).map("".join)
        | inner.map("({})".format)
        | inner.map("(?:{})".format)
    ),
    max_leaves=6,
)
_texts = st.text(st.sampled_from("aaabé😀"), max_size=8) | any_.texts
_replacements = st.sampled_from(["", "x", r"[\0]", r"\1", r"\\", "$&é"]) | st.text(
    st.sampled_from(r"x\012"), max_size=4
)
_counts = st.integers(-2, 5)

CALLS = {
    "matches_string": ("{0}.matches({1})", (_texts,)),
    "matches": ("matches({0}, {1})", (_texts,)),
    "regex_extract_string_string": ("regex.extract({0}, {1})", (_texts,)),
    "regex_extractAll_string_string": ("regex.extractAll({0}, {1})", (_texts,)),
    "regex_replace_string_string_string": ("regex.replace({0}, {1}, {2})", (_texts, _replacements)),
    "regex_replace_string_string_string_int": ("regex.replace({0}, {1}, {2}, {3})", (_texts, _replacements, _counts)),
}


@pytest.mark.parametrize("overload", PATTERN_METHODS)
def test_a_pattern_does_what_the_engine_says(overload: str, capfd: pytest.CaptureFixture[str]) -> None:
    template, operands = CALLS[overload]
    method = PATTERN_METHODS[overload]

    @thorough
    @given(patterns, st.tuples(*operands))
    def compare(pattern: str, arguments: tuple[object, ...]) -> None:
        text, *rest = map(literal, arguments)
        expression = template.format(text, literal(pattern), *rest)
        assert overload in overloads_of(expression)
        if method == "extract":
            expression = f"cel.bind(o, {expression}, o.hasValue() ? [o.value()] : [])"

        def ours() -> object:
            if method == "replace_some" and arguments[2] == 0:
                return arguments[0]
            result = getattr(Pattern(pattern), method)(*arguments)
            return ([result.value] if hasattr(result, "value") else []) if method == "extract" else result

        if r"\C" in pattern and method != "matches":
            return  # it takes characters apart, which neither side can show
        assert outcome_of(ours) == ask(expression), expression

    compare()
    assert not capfd.readouterr().err


@pytest.mark.parametrize(
    "pattern",
    [
        "a{1000}",
        "(a{500}){3}",
        r"\pL{1000}",
        r"(\pL{50}){20}",
        "(" * 500 + ")" * 500,
        "x{0,1000}",
        r"[^\x00-\x{10FFFF}]",
        "(?i)" + "é" * 1_000,
        "((a*)*)*",
        r"(\w+\s+){500}",
        "|".join(map(str, range(280))),
    ],
    ids=lambda pattern: pattern[:20],
)
def test_the_size_of_a_pattern_is_limited_as_in_the_engine(pattern: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert outcome_of(lambda: Pattern(pattern).matches("aé")) == ask(f"'aé'.matches(r'{pattern}')")
    assert not capfd.readouterr().err


@pytest.mark.parametrize(
    "pattern",
    ["a" * 1_025, r"\pL" * 33, "a{1000}" * 100, "(a|b)*" * 2_000, "|".join(map(str, range(5_000)))],
    ids=lambda pattern: pattern[:20],
)
def test_what_takes_long_to_compile_is_refused(pattern: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(CelError, match="regular expression too large: ") as found:
        Pattern(pattern)
    assert found.value.kind is Kind.PATTERN
    assert not capfd.readouterr().err


def test_a_bad_pattern_says_what_is_wrong() -> None:
    with pytest.raises(CelError, match="missing \\)") as caught:
        Pattern("(a")
    assert caught.value.kind is Kind.PATTERN


def test_replacing_nothing_without_end_gives_up() -> None:
    with pytest.raises(Abort):
        Pattern("a*").replace_some("b", "xx", 2**62)
