"""Warnings about strings in an expression that are compared as if they were numbers.

Quantities, labels and annotations are strings to Kubernetes: `'9' > '10'` is true.
"""

import re
from typing import Final

from fairlead.api.errors import FieldPath
from fairlead.cel.functions.quantity import to_float
from fairlead.cel.syntax.ast import Call, Select, walk
from fairlead.cel.syntax.diagnostics import place
from fairlead.cel.syntax.unparse import text
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.lint.codes import LintCode, LintWarning, LintWarnings
from fairlead.policy.lint.symbolic import Term, TooLargeError, read, read_optionally, term_of

_ORDERS: Final = ("_<_", "_<=_", "_>_", "_>=_")
QUANTITIES: Final = ("allocatable", "capacity", "limits", "requests", "overhead")
"""Fields whose strings are quantities."""
_NODES_PER_PAUSE: Final = 50
_STRINGS: Final = ("labels", "annotations")
_NUMBER: Final = re.compile(r"[-+]?(0|[1-9][0-9]*)(\.[0-9]+)?")  # leading zeros may be there for the order


def check_comparisons(path: FieldPath, expression: CompiledExpression) -> LintWarnings:
    """Yield a warning for each comparison of strings that are numbers."""
    checked = expression.expression.checked
    for at, node in enumerate(walk(checked.root)):
        if at % _NODES_PER_PAUSE == 0:
            yield None
        if isinstance(node, Call) and node.function in _ORDERS and (found := _numbers(expression, node)):
            what, hint = found
            message = f"{what} are strings, and `{node.function.strip('_')}` compares them character by character"
            here = place(expression.expression.text, checked.positions.get(node.id, 0))
            yield LintWarning(LintCode.COMPARED_AS_TEXT, path, message, hint, here)


def _numbers(expression: CompiledExpression, node: Call) -> tuple[str, str] | None:
    """Return what a comparison of strings compares, if these are numbers, and what to write instead."""
    whole = term_of(expression)
    if not any(overload.endswith("_string") for overload in whole.checked.overloads.get(node.id, ())):
        return None
    sign = node.function.strip("_")
    try:
        one, other = (whole.at(side) for side in node.args)
        ways = ((_entry(one), other.constant(), False), (_entry(other), one.constant(), True))
    except TooLargeError:
        return None
    left, right = map(text, node.args)
    for entry, value, is_turned in ways:
        if entry is None:
            continue
        holder, key = entry
        if holder.field in QUANTITIES:
            hint = f"write `quantity({left}).compareTo(quantity({right})) {sign} 0`"
            number = to_float(value) if isinstance(value, str) else None
            if text(holder) == "node.status.allocatable" and number is not None:
                amount = f"allocatable[{key!r}]"
                hint += f", or `{number!r} {sign} {amount}`" if is_turned else f", or `{amount} {sign} {number!r}`"
            return "quantities", hint
        if holder.field in _STRINGS and isinstance(value, str) and _NUMBER.fullmatch(value):
            convert = "double" if "." in value else "int"
            better = f"{value} {sign} {convert}({right})" if is_turned else f"{convert}({left}) {sign} {value}"
            version = "; for versions, compare the parts as numbers" if "." in value else ""
            return holder.field, f"write `{better}`{version}"
    return None


def _entry(term: Term) -> tuple[Select, str] | None:
    """Return the map and the key that a string is read from; None if it is not read from a map."""
    if found := term.args("orValue", "value"):
        term = found[0]
    entry = read(term) or read_optionally(term)
    if entry is None or not isinstance(entry[0].node, Select):
        return None
    return entry[0].node, str(entry[1])
