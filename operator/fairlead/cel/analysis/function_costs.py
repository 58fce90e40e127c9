"""Upper bounds of the cost of a call of each function, and of the size of its result, by the sizes of its operands.

Costs are in the units of `meter`.
"""

from collections.abc import Callable, Mapping
from math import inf
from typing import Final

from fairlead.cel.analysis.sizes import (
    DEEPEST,
    NUMBERS,
    ONE,
    TEXTS,
    Size,
    element_size,
    field_size,
    largest,
    product,
)
from fairlead.cel.analysis.text_costs import (
    CALL,
    Called,
    Cost,
    converted,
    formatted,
    joined,
    matched,
    parsed,
    proportional,
    replaced,
    search,
    split,
)
from fairlead.cel.functions.addresses import NETWORK_MAX
from fairlead.cel.functions.lists import RANGE_MAX
from fairlead.cel.functions.semver import VERSION_MAX
from fairlead.cel.syntax.ast import OPTIONAL, Const
from fairlead.cel.values.meter import STEP

_HASHED: Final = (NUMBERS | TEXTS) - {"double", "null"}
_LOOKUP: Final = 2 * STEP


def _plus(call: Called) -> Cost:
    left, right = call[0], call[1]
    if call.type() in NUMBERS and call.type(1) in NUMBERS:
        return ONE, STEP
    if call.is_text:
        return Size(left.most + right.most), STEP + (left.most + right.most) / 4
    item = largest([size.inside for size in (left, right) if size.most])
    return Size(left.most + right.most, item), STEP + (left.most + right.most) * 1.0


def _compared(call: Called) -> Cost:
    left, right = call[0], call[1]
    if call.type() in NUMBERS and call.type(1) in NUMBERS:
        return ONE, STEP
    if call.is_text and call.type(1) in TEXTS:
        return ONE, STEP + min(left.most, right.most) / 32
    return ONE, CALL + min(left.walked(), right.walked())


def _among(call: Called) -> Cost:
    item, held = call[0], call[1]
    if call.type(1) == "map":
        return ONE, STEP + item.most / 16
    each = min(item.walked(), held.inside.walked())
    return ONE, STEP + product(held.most, each)


def _looked_up(call: Called) -> Cost:
    key = call[1].most / 16 if len(call.sizes) > 1 and call.type(1) in TEXTS else 0
    held = call.types[0]
    if held.name == OPTIONAL and held.params:
        held = held.params[0]
    if held.name in ("map", "list", "dyn"):
        return element_size(call.node.args[0], call[0]), _LOOKUP + key
    field_ = call.node.args[1]
    result = call.result
    inner = result.params[0] if result.name == OPTIONAL and result.params else result
    name = field_.value if isinstance(field_, Const) and isinstance(field_.value, str) else ""
    return field_size(held, name, inner, call.limits), _LOOKUP


def _range(call: Called) -> Cost:
    (end,) = call.node.args
    most = float(RANGE_MAX)
    if isinstance(end, Const) and isinstance(end.value, int):
        most = min(most, max(0, end.value)) if not call.is_engine else max(0, end.value)
    else:
        most = inf if call.is_engine else min(most, call.limits.range)
    return Size(most, ONE), CALL + 2 * most


def _of_list(units: float) -> Callable[[Called], Cost]:
    return lambda call: (Size(call[0].most, call[0].item), CALL + call[0].most * units)


def _first(call: Called) -> Cost:
    return call[0].inside, CALL


def _flattened(call: Called) -> Cost:
    size, most = call[0], call[0].most
    depth = 1
    if len(call.node.args) > 1:
        at = call.node.args[1]
        depth = at.value if isinstance(at, Const) and isinstance(at.value, int) else DEEPEST
    for _ in range(min(depth, DEEPEST)):
        inner = size.item
        if inner is None or inner.item is None:
            break
        computed = max(most, inner.most, call.limits.range)
        most = min(product(most, max(inner.most, 1)), computed)
        size = inner
    return Size(most, size.item), CALL + most * 30


def _is_hashed(call: Called, *at: int) -> bool:
    types = [call.types[one] for one in at]
    return all(one.params and one.params[0].name in _HASHED for one in types)


def _distinct(call: Called) -> Cost:
    size, each = call[0], call[0].inside
    once = product(size.most, 10 + each.most / 16)
    if not _is_hashed(call, 0):
        once += product(size.most * size.most, each.walked())
    return size, CALL + once


def _sorted(call: Called) -> Cost:
    keys = call[-1] if call.node.function == "@sortByAssociatedKeys" else call[0]
    if keys.most == inf:
        return call[0], inf
    steps = keys.most * max(1, int(keys.most).bit_length())
    return call[0], CALL + product(steps, 60 + keys.inside.most / 16)


def _sets(call: Called) -> Cost:
    left, right = call[0], call[1]
    cost = product(left.most, 10 + left.inside.most / 16) + product(right.most, 10 + right.inside.most / 16)
    if not _is_hashed(call, 0, 1):
        cost += 2 * product(left.most * right.most, left.inside.walked() + right.inside.walked())
    return ONE, CALL + cost


def _either(call: Called) -> Cost:
    return call[0].joined(call[1]), STEP


def _same(call: Called) -> Cost:
    return call[0], CALL


def _number(units: float = CALL) -> Callable[[Called], Cost]:
    return lambda _: (ONE, units)


FUNCTION_COSTS: Final[Mapping[str, Callable[[Called], Cost]]] = {
    "_+_": _plus,
    **dict.fromkeys(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"), _compared),
    **dict.fromkeys(("_&&_", "_||_", "!_", "@not_strictly_false", "hasValue"), _number(STEP)),
    "size": lambda call: (ONE, STEP + call.characters),
    **dict.fromkeys(("math.@max", "math.@min"), lambda call: (ONE, CALL + (call[0].most * 10 if call[0].item else 0))),
    **dict.fromkeys(("_-_", "_*_", "_/_", "_%_", "-_", "type"), _number()),
    "@in": _among,
    **dict.fromkeys(("_[_]", "_[?_]", "_?._"), _looked_up),
    **dict.fromkeys(("value", "optional.of", "optional.ofNonZeroValue", "dyn"), _same),
    "optional.none": lambda _: (Size(0), STEP),
    **dict.fromkeys(("orValue", "or"), _either),
    **dict.fromkeys(
        ("string", "bytes", "int", "uint", "double", "bool", "timestamp", "duration", "quantity", "isQuantity"),
        converted,
    ),
    **dict.fromkeys(("ip", "isIP", "ip.isCanonical", "cidr", "isCIDR"), parsed(0, NETWORK_MAX)),
    **dict.fromkeys(("containsIP", "containsCIDR"), parsed(1, NETWORK_MAX)),
    **dict.fromkeys(("semver", "isSemver"), parsed(0, VERSION_MAX)),
    "contains": lambda call: (ONE, search(call[0].most, call[1].most)),
    "indexOf": lambda call: (ONE, 2 * call.characters + search(call[0].most, call[1].most)),
    "lastIndexOf": lambda call: (ONE, 2 * call.characters + search(call[0].most, call[1].most, backwards=True)),
    "startsWith": lambda call: (ONE, CALL + min(call[0].most, call[1].most) / 16),
    "endsWith": lambda call: (ONE, CALL + min(call[0].most, call[1].most) / 16),
    "charAt": lambda call: (ONE, CALL + call.characters),
    "lowerAscii": proportional(5),
    "upperAscii": proportional(5),
    "trim": proportional(2),
    "substring": proportional(0.25),
    "strings.quote": proportional(5, grows=2, more=2),
    "base64.encode": proportional(0.5, grows=2, more=4),
    "base64.decode": proportional(5),
    "replace": replaced,
    "split": split,
    "join": joined,
    "lists.range": _range,
    "slice": _of_list(1),
    "reverse": _of_list(1),
    "first": _first,
    "last": _first,
    "flatten": _flattened,
    "distinct": _distinct,
    "sort": _sorted,
    "@sortByAssociatedKeys": _sorted,
    **dict.fromkeys(("sets.contains", "sets.equivalent", "sets.intersects"), _sets),
    **dict.fromkeys(("matches", "regex.extract", "regex.extractAll", "regex.replace"), matched),
    "format": formatted,
}
