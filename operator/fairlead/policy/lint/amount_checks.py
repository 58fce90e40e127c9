"""Warnings about amounts: units that cannot be meant, and scores that are bytes or fractions of 1.

Only what the range of an expression shows is told: a score that a strategy, data or `normalize` scales may have any
value.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from fairlead.api.errors import FieldPath
from fairlead.cel.analysis.ranges import OF_TIME, Range, Ranges, in_bytes, operands
from fairlead.cel.hints.rewrites import is_amount
from fairlead.cel.syntax.ast import Call, Checked, Const, ListExpr, Node, Select, walk
from fairlead.cel.syntax.diagnostics import place
from fairlead.cel.syntax.unparse import operand_text, text
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.lint.codes import LintCode, LintWarning, LintWarnings

_NODES_PER_PAUSE: Final = 50
_CORES_MAX: Final = 1_000
"""Cores that no node has."""
_BYTES_MIN: Final = 1 << 20
"""Bytes of which no pod and no node has fewer."""
_FULL: Final = 100.0
_SMALL_SHARE: Final = 0.01 * (1 << 32)
"""A hundredth of a small node's memory, in bytes."""
_SHARES_MAX: Final = 2
"""Greatest sum of shares of 1 that is compared with a share: what is requested, and what one more pod does."""
_LONGEST: Final = 80
_PRODUCT: Final = 5  # how tightly `*` binds
_CONVERSIONS: Final = ("double", "int", "uint")


def _ranges(expression: CompiledExpression) -> Ranges:
    return Ranges({name: variable.expression.checked for name, variable in expression.variables.items()})


def check_amounts(path: FieldPath, expression: CompiledExpression) -> LintWarnings:
    """Yield a warning for each comparison in which an amount meets a number of another unit."""
    checked, ranges = expression.expression.checked, _ranges(expression)
    for at, node in enumerate(walk(checked.root)):
        if at % _NODES_PER_PAUSE == 0:
            yield None
        found = _read_without_unit(node) or _of_whole_numbers(checked, node) or _never_reached(checked, node)
        if sides := operands(node):
            found = found or _compared(sides, [ranges.of(checked, side) for side in sides])
        if found is not None:
            here = place(expression.expression.text, checked.positions.get(node.id, 0))
            yield LintWarning(LintCode.WRONG_UNIT, path, *found, here)


def _compared(sides: Sequence[Node], ranges: list[Range]) -> tuple[str, str] | None:
    """Return what is wrong with a comparison, and what to write."""
    one, other = ranges
    if one.resource and other.resource:
        if in_bytes(one.resource) == in_bytes(other.resource) or _COMPARABLE.isdisjoint((one.resource, other.resource)):
            return None
        return f"this compares {_unit(one.resource)} with {_unit(other.resource)}", "compare amounts of one resource"
    for amount, number, node in ((one, other, sides[0]), (other, one, sides[1])):
        scale = max(abs(amount.low), abs(amount.high))
        if amount.resource and amount.is_known and scale and number.low == number.high:
            return _implausible(_named(node), amount.resource, number.low / scale, scale)
        if number.low == number.high and (wrong := _of_other_whole(node, amount, number.low)):
            return wrong
    return None


def _named(node: Node) -> str:
    return text(node) if len(text(node)) <= _LONGEST else "this"


def _of_other_whole(node: Node, share: Range, number: float) -> tuple[str, str] | None:
    """Return what is wrong with a share of 1 that is compared with a percentage, or the other way round."""
    if share.resource or share.low != 0 or isinstance(node, Const):
        return None
    fault = f"`{_named(node)}` is from 0 to {share.high:g}, and this compares it with {number:g}"
    if 0 < share.high <= _SHARES_MAX and 2 * share.high <= number <= _FULL:
        return fault, f"write `{number / _FULL!r}`, if {number:g}% are meant"
    if _FULL <= share.high <= _SHARES_MAX * _FULL and 0 < number < 1:
        return fault, f"write `{number * _FULL!r}`, if {number * _FULL:g}% are meant"
    return None


_COMPARABLE: Final = frozenset({"cpu", "pods"})


def _unit(resource: str) -> str:
    return "bytes" if in_bytes(resource) else "cores" if resource == "cpu" else resource


def _implausible(what: str, resource: str, number: float, scale: float) -> tuple[str, str] | None:
    """Return why an amount cannot be meant, and what may be; None if it can."""
    if resource == "cpu" and number >= _CORES_MAX:
        fault = f"`{what}` is in cores, and no node has {number:,.10g} of them"
        return fault, f"write `{number * scale / 1000!r}`, if millicores are meant"
    if in_bytes(resource) and 0 < number < _BYTES_MIN:
        gibibytes = f"{number:.10g}Gi"
        fault = f"`{what}` is in bytes, and {number:,.10g} bytes are less than anything needs"
        return fault, f"write `{number * scale * (1 << 30)!r}`, if {gibibytes} is meant"
    return None


def _of_whole_numbers(checked: Checked, node: Node) -> tuple[str, str] | None:
    """Return what is wrong with a percentage of ints: their quotient is cut to a whole number first."""
    match node:
        case Call(function="_*_", args=(Call(function="_/_", args=(part, whole)), Const(value=factor))) if (
            factor == int(_FULL) and checked.type_of(node).name == "int"
        ):
            fault = f"`/` of whole numbers drops the rest, so `{_named(node)}` is a multiple of {factor}"
            made = f"100 * {operand_text(part, _PRODUCT)} / {operand_text(whole, _PRODUCT + 1)}"
            return fault, f"write `{made}`"
    return None


def _never_reached(checked: Checked, node: Node) -> tuple[str, str] | None:
    """Return what is wrong with a part of a time that is one of some numbers, of which it can be only others."""
    match node:
        case Call(function="@in", args=(Call(function=function, args=(time, *_)) as part, ListExpr(elements=elements))):
            numbers = [one.value for one in elements if isinstance(one, Const) and isinstance(one.value, int)]
        case Call(function="_==_", args=(Call(function=function, args=(time, *_)) as part, Const(value=int(number)))):
            numbers = [] if node is checked.root else [number]
        case _:
            return None
    if function not in OF_TIME or checked.type_of(time).name != "timestamp":
        return None
    low, high = OF_TIME[function]
    outside = [str(one) for one in numbers if not low <= one <= high]
    if not outside or (len(outside) == len(numbers) and node is checked.root):
        return None  # that the whole rule never passes is told
    first = {"getDayOfWeek": ": Sunday is 0", "getMonth": ": January is 0"}.get(function, "")
    return f"`{text(part)}` is from {low} to {high}, and never {' or '.join(outside)}", f"count from {low}{first}"


def _read_without_unit(node: Node) -> tuple[str, str] | None:
    """Return what is wrong with a quantity that is read as a plain number."""
    match node:
        case Call(function=function, args=(amount,)) if function in _CONVERSIONS and is_amount(amount):
            if _has_unit(amount):
                fault = f"{function}() reads no units: it raises an error for a quantity such as 16Gi or 500m"
                return fault, f"write `quantity({text(amount)}).asApproximateFloat()`"
    return None


def _has_unit(amount: Node) -> bool:
    match amount:
        case Select(field=key) | Call(args=(_, Const(value=str(key)))):
            return key == "cpu" or in_bytes(key)
        case Call(args=(inner, *_)):
            return _has_unit(inner)
    return False


def check_score_range(path: FieldPath, expression: CompiledExpression) -> Iterator[LintWarning]:
    """Yield a warning about a score without `normalize` that can tell hardly any node from another."""
    root = expression.expression.checked.root
    found = _ranges(expression).of(expression.expression.checked, root)
    if found.high <= 0 and found.low < 0:
        message = "scores range from 0 to 100, and this is never above 0: every node gets 0"
        hint = "set normalize: MinMax or Rank, which scale any values to 0 to 100"
    elif found.resource and in_bytes(found.resource) and _SMALL_SHARE * found.high >= _FULL:
        message = "scores range from 0 to 100, and this is a number of bytes: every node gets 100"
        hint = f"set normalize: MinMax, or write a share such as `{_share(root, found)}`"
    elif not found.resource and found.low >= _FULL:
        message = f"scores range from 0 to 100, and this is never below {found.low:g}: every node gets 100"
        hint = "set normalize: MinMax or Rank, which scale any values to 0 to 100"
    elif not found.resource and found.is_known and found.low >= -1 and found.high <= 1:
        message = "scores range from 0 to 100, and this is never above 1: every node gets 0 or 1, which the scheduler "
        message += "rounds to the same"
        hint = f"write `{_of_hundred(expression, root)}`, or set normalize: MinMax"
    elif not found.resource and found.is_known and found.high - found.low <= 1:
        message = f"scores range from 0 to 100, and this is from {found.low:g} to {found.high:g}, which the scheduler "
        message += "rounds to the same"
        better = _stretched(expression, root)
        apart = f"write `{better}`" if better else "give values farther apart, such as 0 and 100"
        hint = f"{apart}, or set normalize: MinMax"
    else:
        return
    yield LintWarning(LintCode.SCORE_OUT_OF_RANGE, path, message, hint)


def _of_hundred(expression: CompiledExpression, node: Node) -> str:
    """Return a hundred times a part of a score."""
    return f"{'100.0' if expression.expression.type.name == 'double' else '100'} * {operand_text(node, _PRODUCT)}"


def _stretched(expression: CompiledExpression, root: Node) -> str:
    """Return a sum or a difference with its share times a hundred, such as `100.0 - 100.0 * share`; "" for others."""
    match root:
        case Call(function="_-_", args=(Const(value=whole), share)) if whole == _FULL:
            return f"{text(root.args[0])} - {_of_hundred(expression, share)}"
        case Call(function="_+_", args=(Const(), share) | (share, Const())):
            return _of_hundred(expression, share)
    return ""


def _share(root: Node, range_: Range) -> str:
    resource = range_.resource
    written = operand_text(root, _PRODUCT)
    whole = f"100.0 * {written} / allocatable['{resource}']"
    return (
        whole
        if range_.low < range_.high == 1 and len(whole) <= _LONGEST
        else f"100.0 * free['{resource}'] / allocatable['{resource}']"
    )
