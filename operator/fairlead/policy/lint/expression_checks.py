"""What is said of parts of an expression, whatever the expression is for.

Of texts that are compared as if they were numbers, of what always raises, and of names that mean something else inside
of a macro.
"""

import re
from collections.abc import Collection, Iterator
from typing import Final

from fairlead.api.errors import FieldPath
from fairlead.cel.functions.quantity import to_float
from fairlead.cel.syntax.ast import Call, Checked, Comprehension, ListExpr, Node, Select, walk
from fairlead.cel.syntax.diagnostics import place
from fairlead.cel.syntax.unparse import text
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.lint.codes import LintCode, LintWarning
from fairlead.policy.lint.constant_errors import always_raising
from fairlead.policy.lint.symbolic import Term, TooLargeError, read, read_optionally, term_of

_ORDERS: Final = ("_<_", "_<=_", "_>_", "_>=_")
QUANTITIES: Final = ("allocatable", "capacity", "limits", "requests", "overhead")
"""Fields whose texts are amounts of resources."""
_RAISING_MAX: Final = 8
_LOOKED_AT: Final = 50
_TEXTS: Final = ("labels", "annotations")
_NUMBER: Final = re.compile(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?")  # with zeros in front its order may well be meant
_WORD: Final = re.compile(r"\w+")
_WHERE_RAISES: Final = {
    "by zero": "divide by something else",
}


def check_parts(
    path: FieldPath, expression: CompiledExpression, names: Collection[str]
) -> Iterator[LintWarning | None]:
    """All of it; `names` are the variables that the expression could read. None: a pause."""
    checked, source = expression.expression.checked, expression.expression.text
    left = _RAISING_MAX
    for raising in always_raising(expression):
        if raising is None:
            yield None
            continue
        node, said = raising
        hint = next((cure for what, cure in _WHERE_RAISES.items() if what in said), "mend it, or remove it")
        here = _place(source, checked, node)
        yield LintWarning(LintCode.ALWAYS_RAISES, path, f"`{text(node)}` always raises: {said}", hint, here)
        left -= 1
        if not left:
            break
    for at_node, node in enumerate(walk(checked.root)):
        if at_node % _LOOKED_AT == 0:
            yield None
        match node:
            case Comprehension():
                for name in {*names, "variables"}.intersection(_bound(node)):
                    said = f"inside of this macro `{name}` is what the macro goes over, and not the rule's `{name}`"
                    at = checked.positions.get(node.id, 0)
                    words = (found for found in _WORD.finditer(source, at) if found[0] == name)
                    here = place(source, next((found.start() for found in words), at))
                    yield LintWarning(LintCode.SHADOWS, path, said, f"call it otherwise, such as `{name[0]}`", here)
            case Call(function=function) if function in _ORDERS and (cured := _order_cure(expression, node)):
                what, hint = cured
                said = f"{what} are texts, and `{function.strip('_')}` compares them letter by letter"
                yield LintWarning(LintCode.COMPARED_AS_TEXT, path, said, hint, _place(source, checked, node))


def _bound(macro: Comprehension) -> Iterator[str]:
    """The names that a macro gives."""
    is_bind = isinstance(macro.range, ListExpr) and not macro.range.elements
    yield from (macro.accumulator,) if is_bind else (macro.variable, macro.variable2)


def _place(source: str, checked: Checked, node: Node) -> tuple[int, int]:
    return place(source, checked.positions.get(node.id, 0))


def _order_cure(expression: CompiledExpression, node: Call) -> tuple[str, str] | None:
    """What is compared that is no text by its meaning, and what would be right."""
    whole = term_of(expression)
    if not any(overload.endswith("_string") for overload in whole.checked.overloads.get(node.id, ())):
        return None
    sign = node.function.strip("_")
    try:
        one, other = (whole.at(side) for side in node.args)
        ways = ((_holder(one), other.constant(), False), (_holder(other), one.constant(), True))
    except TooLargeError:
        return None
    left, right = map(text, node.args)
    for held, value, turned in ways:
        if held is None:
            continue
        holder, key = held
        if holder.field in QUANTITIES:
            hint = f"write `quantity({left}).compareTo(quantity({right})) {sign} 0`"
            number = to_float(value) if isinstance(value, str) else None
            if text(holder) == "node.status.allocatable" and number is not None:
                amount = f"allocatable[{key!r}]"
                hint += f", or `{number!r} {sign} {amount}`" if turned else f", or `{amount} {sign} {number!r}`"
            return "quantities", hint
        if holder.field in _TEXTS and isinstance(value, str) and _NUMBER.fullmatch(value):
            convert = "double" if "." in value else "int"
            cure = f"{value} {sign} {convert}({right})" if turned else f"{convert}({left}) {sign} {value}"
            version = "; of versions, compare the parts as numbers" if "." in value else ""
            return holder.field, f"write `{cure}`{version}"
    return None


def _holder(term: Term) -> tuple[Select, str] | None:
    """The map of texts that a value is read from, and the key."""
    if found := term.args("orValue", "value"):
        term = found[0]
    entry = read(term) or read_optionally(term)
    if entry is None or not isinstance(entry[0].node, Select):
        return None
    return entry[0].node, str(entry[1])
