"""What is said of an expression takes work that grows no faster than the expression: lines of ours are counted."""

import sys
from types import FrameType
from typing import Any

import pytest

from fairlead.cel.check import BOOL, MAX_BYTES, Environment, ExpressionError, check
from fairlead.cel.engine.environment import RULE
from fairlead.cel.syntax.ast import Type

RULES = Environment(RULE, {"wants": Type("string"), "zones": Type("list", (Type("string"),))}, ("load",))
_TEXTS = (
    ("f(", " ", "a + ;"), ("f(", " a", "+ ;"), ("", "a+", "a"), ("", "a.b(c)+", "a"), ("", "'a'+1+", "a"),
    ("", "(", "1"), ("", "1)", ""), ("", "[", ""), ("", "- ", "x"), ("", '\\"', ""), ('"', '\\"', ""), ("", "'", ""),
    ("", '\\"""', ""), ("", "free.", "("), ("free.", "a-", ""), ("", "labels.a-b+", "1"), ("", "x.y.z(", "1"),
    ("", "a ? ", "b"), ("", "1 < ", "3"), ("", "a in ", "b"), ("", "not ", ""), ("", "a=", "b"), ("", "f(a,", "1"),
    ("", "variables.a + ", "1"), ("", "has(variables.a) && ", "true"), ("", "x.exists(a, ", "1"),
    ("", "wants == 'a' || ", "'b'"), ("wants in ('a'", ",'b'", ")"), ("", "// a\n", ""), ("", "\n", "a b"),
    ("", "int('x') + ", "1"), ("", "free['cpu'] > '1' && ", "true"), ("", "cel.bind(a, 1, ", "1"), ("1", "5", "x"),
    ("", "1..2 ", ""), ("", "5m ", ""), ("", "1 - ", "'a'"), ("(", "a, ", ") => b"), ("", "x ?? ", ""),
    ("wants.", "a", "()"), ("wants['a'] == 'b' ", "|| 'c'", ""), ("1.5 > '", "9", "'"),
)  # fmt: skip


@pytest.mark.parametrize(("before", "repeated", "behind"), _TEXTS)
def test_twice_the_text_is_twice_the_work(before: str, repeated: str, behind: str) -> None:
    _lines(before + repeated + behind)  # what is kept from now on is no work of the others
    times = (MAX_BYTES - len(before + behind)) // len(repeated)
    half, whole = (_lines(before + repeated * (times // parts) + behind) for parts in (2, 1))
    assert whole < 2.5 * half, f"{half}, {whole}"


@pytest.mark.parametrize("text", ["1.5 > '1e350'", "1 > '" + "9" * 500 + "'", "free['cpu'] > '1e308'"])
def test_an_amount_that_no_double_holds_is_no_cure(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        check(text, RULES, BOOL)
    assert "inf" not in str(caught.value)


def _lines(text: str) -> int:
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        if "fairlead" not in frame.f_code.co_filename:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        check(text, RULES, BOOL)
    except ExpressionError:
        pass
    finally:
        sys.settrace(before)
    return count
