"""Outcomes of an expression for an object that does not have an entry, beside those for one that has it.

An entry is a key of a map, or the first element of a list. Two objects are followed side by side through `!`, `&&`,
`||`, `?:` and the macros: one without the entry, and one that has it with a value that the expression does not name.
Each part is true, false or an error for the one and for the other. Everything else that the expression reads may have
any value, the same one for both.

An amount that is absent is meant as 0, and so is a number that a text is converted to and that `<` or `>` compares: in
`request['example.com/gpu'] < 2.0` the other object has 0.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import inf
from operator import ge, gt, le, lt
from typing import Final

from fairlead.cel.functions.quantity import to_float
from fairlead.cel.syntax.ast import Call, Comprehension, Const, Ident, ListExpr, Select, children
from fairlead.cel.syntax.unparse import text
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.symbolic.terms import UNKNOWN, Key, Term, TooLargeError, read, read_optionally, term_of, tested_for

Truth = bool | None
"""None: an error."""
OutcomePairs = frozenset[tuple[Truth, Truth]]
"""Possible outcomes, in pairs: without the entry, and with another value."""

_EITHER: Final[OutcomePairs] = frozenset({(True, True), (False, False)})
_ALWAYS: Final[OutcomePairs] = frozenset({(True, True)})
_THERE: Final[OutcomePairs] = frozenset({(False, True)})
_UNLIKE: Final[OutcomePairs] = frozenset({(None, False)})
_LIKE: Final[OutcomePairs] = frozenset({(None, True)})


AMOUNTS: Final = frozenset({"allocatable", "free", "request", "requested"})
"""Variables that hold amounts by resource."""
QUANTITIES: Final = ("allocatable", "capacity", "limits", "requests", "overhead")
"""Fields whose strings are quantities."""


@dataclass(frozen=True, slots=True)
class MapEntry:
    """Entry of a map of strings or of amounts, or of a list."""

    holder: Key
    key: str | None
    """None: any element of a list."""
    map: str = field(compare=False)
    """Source text of the map or list, such as `pod.metadata.labels`."""
    root: str = field(compare=False)
    """Name that the text begins with: a variable of the environment or of a macro."""

    @property
    def is_of_variable(self) -> bool:
        """Report whether it is an amount of a variable such as `request`."""
        return self.map in AMOUNTS and self.holder[0] == "name"

    @property
    def is_amount(self) -> bool:
        """Report whether absent is meant as 0."""
        return self.is_of_variable or self.map.rpartition(".")[2] in QUANTITIES


class _GiveUpError(Exception):
    """The entry's presence is tested in a way that is not followed."""


def entries(compiled: CompiledExpression) -> list[MapEntry]:
    """Return the entries that raise an error if they are absent, each once."""
    try:
        return list(dict.fromkeys(_read_in(term_of(compiled))))
    except TooLargeError:
        return []


def outcomes(compiled: CompiledExpression, entry: MapEntry) -> OutcomePairs:
    """Return the outcomes of an expression; none if they are not known."""
    try:
        return _pairs(term_of(compiled), entry)
    except (TooLargeError, _GiveUpError):
        return frozenset()


def all_of(conditions: Iterable[OutcomePairs]) -> OutcomePairs:
    """Return the outcomes of several conditions joined by `&&`."""
    whole = _ALWAYS
    for one in conditions:
        whole = _joined(_and, whole, one)
    return whole


def _read_in(term: Term) -> Iterator[MapEntry]:
    if (entry := _entry(term)) is not None:
        yield entry
    for child in children(term.node):
        yield from _read_in(term.at(child))


def _entry(term: Term) -> MapEntry | None:
    """Return the entry that a term reads, if reading it raises an error where it is absent."""
    if found := read(term):
        holder, key = found
        if isinstance(holder.node, Ident):
            name = holder.checked.names.get(holder.node.id, "")
            return MapEntry(holder.key(), str(key), name, name) if name in AMOUNTS else None
        return _made(holder, str(key)) if holder.checked.type_of(holder.node).params[1].name == "string" else None
    if indexed := term.args("_[_]"):
        of_list = indexed[0].checked.type_of(indexed[0].node).name == "list"
        return _made(indexed[0], None) if of_list else None
    return None


def _made(holder: Term, key: str | None) -> MapEntry | None:
    inner = holder.node
    if not isinstance(inner, Select):
        return None
    while isinstance(inner, Select):
        inner = inner.operand
    root = holder.checked.names.get(inner.id, inner.name) if isinstance(inner, Ident) else ""
    return MapEntry(holder.key(), key, text(holder.node), root)


def _is(equality: tuple[Term, object] | None, entry: MapEntry) -> bool:
    return equality is not None and equality[1] == entry.key and equality[0].key() == entry.holder


def _pairs(term: Term, entry: MapEntry) -> OutcomePairs:
    """Return the outcomes of a condition."""
    match term.node:
        case Comprehension() as macro:
            return _of_macro(term, macro, entry)
        case Const(value=bool(value)):
            return frozenset({(value, value)})
    parts = [_pairs(one, entry) for one in term.args("!_", "_&&_", "_||_", "_?_:_")]
    match term.function:
        case "!_":
            return frozenset((_not(a), _not(b)) for a, b in parts[0])
        case "_&&_":
            return _joined(_and, *parts)
        case "_||_":
            return _joined(_or, *parts)
        case "_?_:_":
            return _joined(_chosen, *parts)
    if _is(tested_for(term), entry):
        return _THERE
    if (compared := _with_default(term, entry)) is not None:
        return compared
    match _raises(term, entry):
        case True:
            unnamed = _LIKE if term.function == "_!=_" else _UNLIKE
            if (outcome := _with_nothing(term, entry)) is None:
                return unnamed
            return frozenset({(None, outcome)}) | (frozenset() if entry.is_of_variable else unnamed)
        case False:
            return _EITHER
    return _EITHER | _LIKE | _UNLIKE


def _of_macro(term: Term, macro: Comprehension, entry: MapEntry) -> OutcomePairs:
    if isinstance(macro.range, ListExpr) and not macro.range.elements:  # cel.bind
        return _pairs(term.at(macro.result), entry)
    if term.at(macro.range).key()[:3] == entry.holder[:3]:
        raise _GiveUpError
    if _raises(term.at(macro.range), entry):
        return _UNLIKE
    match macro.step:
        case Call(function="_||_" | "_&&_" as function, args=(Ident(), condition)):  # exists, all
            of_none = function == "_&&_"
        case Call(function="_?_:_", args=(condition, *_)) if isinstance(macro.result, Call):  # exists_one
            of_none = False
        case _:
            return _EITHER
    return _pairs(term.at(condition), entry) | {(of_none, of_none)}


def _with_default(term: Term, entry: MapEntry) -> OutcomePairs | None:
    """Return the outcomes of comparing the entry or its default with constants; another value equals none of them."""
    sides = term.args("_==_", "_!=_", "@in")
    for what, other in (sides, sides[::-1]) if sides else ():
        if (found := what.args("orValue")) and _is(read_optionally(found[0]), entry):
            default, wanted = found[1].constant(), _constants(other)
            if default is UNKNOWN or UNKNOWN in wanted:
                raise _GiveUpError
            is_other = term.function == "_!=_"
            return frozenset({((default in wanted) is not is_other, is_other)})
    return None


_SIGNS: Final = ("_<_", "_<=_", "_>_", "_>=_", "isLessThan", "isGreaterThan")
_ORDERS: Final[Mapping[str, Callable[[float, float], bool]]] = dict(zip(_SIGNS, (lt, le, gt, ge, lt, gt), strict=True))
_EQUALITIES: Final = ("_==_", "_!=_")
_CONVERSIONS: Final = ("int", "uint", "double", "quantity", "duration", "asApproximateFloat", "asInteger")
_Bounds = tuple[float, float]
_NOTHING: Final[_Bounds] = (0.0, 0.0)
_SOMETHING: Final[_Bounds] = (1e-9, inf)
_ANYTHING: Final[_Bounds] = (-inf, inf)


def _with_nothing(term: Term, entry: MapEntry) -> bool | None:
    """Return the outcome of comparing numbers if the entry is 0 and all others are above 0; None if it is not known."""
    if not (sides := term.args(*_ORDERS, *(_EQUALITIES if entry.is_amount else ()))):
        return None
    one, other = (_bounds(side, entry) for side in sides)
    if term.function in _EQUALITIES:
        if one == other and one[0] == one[1]:
            return term.function == "_==_"
        are_apart = one[1] < other[0] or other[1] < one[0]
        return term.function == "_!=_" if are_apart else None
    holds = {_ORDERS[term.function](a, b) for a in one for b in other}
    # A pod that requests none of a resource is what such a rule forgets, and the error rejects it on every node.
    return (entry.map == "request" or None) if len(holds) > 1 else holds.pop()


def _bounds(term: Term, entry: MapEntry) -> _Bounds:
    """Return the bounds of a number if the entry is 0."""
    if _entry(term) == entry:
        return _NOTHING
    constant = term.constant()
    if isinstance(constant, str):
        constant = to_float(constant)
    if isinstance(constant, int | float):
        return float(constant), float(constant)
    if converted := term.args(*_CONVERSIONS):
        return _bounds(converted[0], entry)
    if found := term.args("orValue"):
        return _bounds(found[1], entry)  # the writer has thought of an object without it
    if not (sides := term.args("_+_", "_-_", "_*_", "_/_")):
        return _SOMETHING
    (low, high), (least, most) = one, other = [_bounds(side, entry) for side in sides]
    match term.function:
        case "_+_":
            return low + least, high + most
        case "_-_":
            return low - most, high - least
        case _ if one == _NOTHING or (other == _NOTHING and term.function == "_*_"):
            return _NOTHING
    return _SOMETHING if low > 0 and least > 0 else _ANYTHING


def _constants(term: Term) -> list[object]:
    if isinstance(term.node, ListExpr):
        return [term.at(one).constant() for one in term.node.elements]
    return [term.constant()]


def _raises(term: Term, entry: MapEntry) -> bool | None:
    """Report whether a part raises an error where the entry is absent; None: it may."""
    if _entry(term) == entry:
        return True
    # Whether a list is empty can be tested in many ways: has(list), size(list), list.exists(...).
    if _is(read_optionally(term), entry) or (entry.key is None and term.key()[:3] == entry.holder[:3]):
        raise _GiveUpError
    if term.checked.type_of(term.node).name == "bool" and (term.args(*_LOGIC) or _is(tested_for(term), entry)):
        return _any({a is None for a, _ in _pairs(term, entry)})
    if chosen := term.args("_?_:_"):
        conditions = {a for a, _ in _pairs(chosen[0], entry)}
        ways = {_raises(chosen[2 - int(way)], entry) for way in conditions if way is not None}
        return _any(ways | ({True} if None in conditions else set()))
    if isinstance(term.node, Comprehension):
        inner = [_raises(term.at(part), entry) for part in (term.node.range, term.node.step, term.node.result)]
        return None if any(one is not False for one in inner) else False
    parts = {_raises(term.at(child), entry) for child in children(term.node)}
    return True if True in parts else None if None in parts else False


_LOGIC: Final = ("!_", "_&&_", "_||_")


def _any(ways: set[bool | None] | set[bool]) -> bool | None:
    """Return the answer that all ways agree on, else None."""
    (only, *others) = ways or {False}
    return None if others else only


def _joined(join: Callable[..., Truth], *parts: OutcomePairs) -> OutcomePairs:
    return frozenset(
        (join(*(one for one, _ in taken)), join(*(other for _, other in taken))) for taken in product(*parts)
    )


def _not(outcome: Truth) -> Truth:
    return None if outcome is None else not outcome


def _and(first: Truth, second: Truth) -> Truth:
    if False in (first, second):
        return False
    return None if None in (first, second) else True


def _or(first: Truth, second: Truth) -> Truth:
    return _not(_and(_not(first), _not(second)))


def _chosen(condition: Truth, yes: Truth, no: Truth) -> Truth:
    return None if condition is None else yes if condition else no
