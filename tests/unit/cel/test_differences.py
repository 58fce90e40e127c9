"""What the reference says differs from CEL in Kubernetes does: the answers there are those of Kubernetes 1.37.1."""

from typing import Final

import pytest

from fairlead.cel.check import VALUE, Environment, ExpressionError, check
from fairlead.cel.engine.environment import RULE
from fairlead.cel.values.errors import CelError
from fairlead.policy.compile.expression import CompiledExpression

ERROR: Final = "error"
DIFFERENT: Final = {
    "'web'.substring(0, 3)": (ERROR, "web"),
    "'web'.indexOf('w', 9)": (ERROR, -1),
    "'web'.lastIndexOf('w', 9)": (ERROR, -1),
    "'abc'.lastIndexOf('', 7)": (ERROR, 3),
    "'%s'.format([['a']])": ("[a]", '["a"]'),
    "'%s'.format([{'b': 'x'}])": ("{b: x}", '{"b":"x"}'),
    "'%s'.format([1.0 / 0.0])": ("Infinity", "+Inf"),
    "'%.1e'.format([1234.5])": ("1.2e+03", "1.2\u00d710\u2070\u00b3"),
    "'%d'.format([1.5])": ("1.500000", ERROR),
    "'%f'.format([1])": ("1.000000", ERROR),
    "'%e'.format([1])": ("1.000000e+00", ERROR),
    "'%d'.format([1, 2])": ("1", ERROR),
    "'a\0'": (ERROR, "a\0"),
    "quantity('1.5Gi').isInteger()": (True, False),
}
SAME: Final = {
    r"'\x00'.size()": 1,
    "'web'.indexOf('', 3)": 3,
    "'web'.substring(0)": "web",
    "'%s'.format([1.5]) + '%s'.format([b'a']) + '%x'.format(['ab'])": "1.5a6162",
    "'%f'.format([0.0 / 0.0]) + '%b'.format([true])": "NaN1",
}
MISSING: Final = (
    "'a1'.find('[0-9]')", "'a1'.findAll('[0-9]')", "[1].indexOf(1)", "[1].lastIndexOf(1)", "[1].includes(1)",
    "[1].isSorted()", "[1].min()", "[1].sum()", "{'a': 1}.transformMap(k, v, v)", "[1].exists_one(i, v, v > 1)",
    "url('https://a.example').getHost()", "isURL('x')", "format.dns1123Label().validate('a')",
)  # fmt: skip
INSTEAD: Final = {
    "regex.extract('a1', '[0-9]').orValue('')": "1",
    "regex.extractAll('a1b2', '[0-9]')": ["1", "2"],
    "lists.range([5, 6, 5].size()).filter(i, [5, 6, 5][i] == 5).first().orValue(-1)": 0,
    "lists.range([5, 6, 5].size()).filter(i, [5, 6, 5][i] == 5).last().orValue(-1)": 2,
    "1 in [1]": True,
    "[2, 1] == [2, 1].sort()": False,
    "math.least([2, 1]) + math.greatest([2, 1])": 3,
    "{'a': 1}.transformList(k, v, v + 1)": [2],
    "[1, 2].existsOne(i, v, v > 1)": True,
    "'web-1'.matches('^[a-z0-9-]+$')": True,
}


def _result(text: str) -> object:
    try:
        return CompiledExpression(check(text, Environment(RULE), VALUE)).for_pod(None)(None, 0)
    except (ExpressionError, CelError):
        return ERROR


@pytest.mark.parametrize(("text", "results"), DIFFERENT.items())
def test_what_is_said_to_differ_differs(text: str, results: tuple[object, object]) -> None:
    ours, theirs = results
    assert _result(text) == ours
    assert ours != theirs


@pytest.mark.parametrize(("text", "want"), [*SAME.items(), *INSTEAD.items()])
def test_what_is_said_to_be_the_same_is(text: str, want: object) -> None:
    assert _result(text) == want


@pytest.mark.parametrize("text", MISSING)
def test_what_is_said_to_be_missing_is(text: str) -> None:
    with pytest.raises(ExpressionError):
        check(text, Environment(RULE), VALUE)
