"""Expressions as text mean what they meant."""

import pytest

from fairlead.cel.check import VALUE, Environment, check
from fairlead.cel.engine.environment import RULE
from fairlead.cel.syntax.ast import Call, Checked, Comprehension, Const, Ident, ListExpr, Node, Select, StructExpr
from fairlead.cel.syntax.unparse import text

RULES = Environment(RULE, {}, ("load",))

SAME = [
    "has(pod.spec) || true && !false",
    "(has(pod.spec) || true) && false",
    "1 - (2 - 3) - 4",
    "-(1 + 2) * 3",
    "pod.metadata.labels['a\\'b'] == 'x\"y'",
    "node.metadata.labels[?'gpu'].orValue('') == 'a'",
    "node.metadata.labels[?'gpu'].optMap(x, x + 'b').orValue('') == 'a'",
    "node.metadata.labels[?'gpu'].optFlatMap(x, node.metadata.labels[?x]).orValue('') == 'a'",
    "optional.of(1).optMap(x, optional.of(x).optMap(y, y + x)).value().hasValue()",
    "(optional.of(1).hasValue() ? cel.bind(x, 1, optional.of(x)) : optional.none()).value()",
    "pod.?spec.?nodeName.orValue('x')",
    "[1, 2, 3].exists(x, x > 1)",
    "pods.all(p, p.spec.priority < 3)",
    "pods.filter(p, p.spec.priority < 3)",
    "pods.map(p, p.metadata.name)",
    "pods.map(p, p.spec.priority > 1, p.metadata.name)",
    "pods.exists_one(p, p.spec.priority > 1)",
    "pods.transformList(i, p, i)",
    "cel.bind(x, 1 + 2, x * x)",
    "[3, 1].sortBy(x, -x)",
    "{'a': 1, 'b': 2}['a'] in [1, 2u == 2u ? 3 : 4]",
    "math.greatest(1, 2) == size('ab')",
    "now - timestamp('2020-01-01T00:00:00Z') > duration('1h')",
    "true ? 1 : false ? 2 : 3",
    "(true ? false : true) ? 1 : 2",
    "b'abc' == bytes('abc')",
]


@pytest.mark.parametrize("source", SAME)
def test_text_is_as_it_was_written(source: str) -> None:
    checked = check(source, RULES, VALUE).checked
    assert text(checked.root) == source
    again = check(text(checked.root), RULES, VALUE).checked
    assert _shape(again, again.root) == _shape(checked, checked.root)


def _shape(checked: Checked, node: Node) -> object:
    """A tree without its ids."""
    match node:
        case Const(value=value):
            return type(value).__name__, value
        case Ident(name=name):
            return name
        case Select():
            return _shape(checked, node.operand), node.field, node.test_only
        case Call():
            return node.function, [_shape(checked, arg) for arg in node.args]
        case ListExpr():
            return [_shape(checked, element) for element in node.elements]
        case StructExpr():
            return [
                (e.key if isinstance(e.key, str) else _shape(checked, e.key), _shape(checked, e.value))
                for e in node.entries
            ]
        case Comprehension():
            parts = (node.range, node.init, node.condition, node.step, node.result)
            return node.variable, node.variable2, [_shape(checked, part) for part in parts]
    raise TypeError(node)
