"""Symbolic evaluation: whether an expression is constant, and whether it can be true or false at all.

`can_be` follows `!`, `&&`, `||` and `?:` through the policy's variables and looks for contradictions among the parts
that must hold together: `x == 'a' && x == 'b'`, `free['cpu'] > 4.0 && free['cpu'] < 2.0`. Where it cannot be sure, it
says that anything is possible.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

from fairlead.cel.analysis.expression_reads import reads
from fairlead.cel.analysis.node_facts import VARIABLES, analyse
from fairlead.cel.analysis.ranges import OF_TIME, Ranges
from fairlead.cel.engine.environment import ROOTS
from fairlead.cel.lowering.program import Program
from fairlead.cel.syntax.ast import Call, Checked, Const, Ident, ListExpr, Node, Select, walk
from fairlead.cel.values.errors import NotLoweredError
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.views.faults import RAISED

_STEPS_MAX: Final = 3_000  # variables that use each other twice double the size with each level
_CONSTANT_MAX: Final = 200
"""Nodes of a constant that is worth evaluating."""
_EVALUATION: Final = 400
"""Steps that evaluating a constant counts for, besides those for its nodes and for its cost."""
_OF_NODE: Final = 8
_OF_BUDGET: Final = 2_000
_NOT: Final = {"_==_": "_!=_", "_!=_": "_==_", "_<_": "_>=_", "_>=_": "_<_", "_>_": "_<=_", "_<=_": "_>_"}
TURNED: Final = {"_==_": "_==_", "_!=_": "_!=_", "_<_": "_>_", "_>_": "_<_", "_<=_": "_>=_", "_>=_": "_<=_"}
"""Operators that say the same when the two sides are exchanged."""
_BOUNDED: Final = frozenset({"size", *OF_TIME})
UNKNOWN: Final = object()
"""Stands for the value of an expression that is not constant, or may not be."""

Key = tuple[object, ...]


class TooLargeError(Exception):
    """An expression is too large to be followed through its variables."""


@dataclass(slots=True)
class _Steps:
    left: int = _STEPS_MAX

    def take(self, count: int = 1) -> None:
        """Count steps, each as long as looking at one node. Raises TooLargeError."""
        self.left -= count
        if self.left < 0:
            raise TooLargeError


@dataclass(frozen=True, slots=True)
class Term:
    """A part of an expression, with what is needed to follow its variables; never one inside a loop."""

    node: Node
    checked: Checked
    variables: Mapping[str, Checked]
    steps: _Steps = field(default_factory=_Steps)

    def at(self, node: Node) -> "Term":
        """Return another part of the same expression; a variable of the policy is replaced by its expression."""
        self.steps.take()
        name = self.checked.names.get(node.id, "") if isinstance(node, Ident) else ""
        if name.startswith(VARIABLES):
            inner = self.variables[name.removeprefix(VARIABLES)]
            return Term(inner.root, inner, self.variables, self.steps).at(inner.root)
        return Term(node, self.checked, self.variables, self.steps)

    def args(self, *functions: str) -> tuple["Term", ...]:
        """Return the arguments if this is a call of one of these functions, else none."""
        if isinstance(self.node, Call) and self.node.function in functions:
            return tuple(self.at(arg) for arg in self.node.args)
        return ()

    @property
    def function(self) -> str:
        """Return the name of the function if this is a call, else ""."""
        return self.node.function if isinstance(self.node, Call) else ""

    def constant(self) -> object:
        """Return the value if it depends on nothing, else UNKNOWN."""
        if isinstance(self.node, Const):
            return self.node.value
        size = self._size()
        self.steps.take(size)
        if size > _CONSTANT_MAX:
            return UNKNOWN
        alone = replace(self.checked, root=self.node)
        if reads(alone, self.variables):
            return UNKNOWN
        try:
            if analyse(alone, self.variables)[""].names[self.node.id] & ROOTS.keys():
                return UNKNOWN  # it names a root without reading a field of it
            program = Program(alone, self.variables)
            self.steps.take(_EVALUATION + _OF_NODE * size + (_OF_BUDGET if program.is_metered else 0))
            return program.plain(None)(None, 0)
        except (*RAISED, NotLoweredError):
            return UNKNOWN

    def key(self) -> Key:
        """Return a key that is equal for equal expressions."""
        self.steps.take(self._size())
        return _key(self.checked, self.node)

    def _size(self) -> int:
        return sum(1 for _ in islice(walk(self.node), _STEPS_MAX + 1))


def term_of(compiled: CompiledExpression) -> Term:
    """Return the term of a whole expression."""
    checked = compiled.expression.checked
    variables = {name: variable.expression.checked for name, variable in compiled.variables.items()}
    whole = Term(checked.root, checked, variables)
    return whole.at(checked.root)


def can_be(compiled: CompiledExpression, *, want: bool) -> bool:
    """Report whether a condition can have this value at all; True if that is not known."""
    try:
        return _possible([term_of(compiled)], want=want)
    except TooLargeError:
        return True


def can_be_together(conditions: Iterable[CompiledExpression]) -> bool:
    """Report whether all conditions can hold at once; True if that is not known."""
    try:
        return _possible([term_of(one) for one in conditions], want=True)
    except TooLargeError:
        return True


def term_outcomes(compiled: CompiledExpression) -> frozenset[float] | None:
    """Return all results of an expression that chooses among constants; None if that is not known."""
    try:
        return frozenset(_outcomes(term_of(compiled)))
    except (TooLargeError, _NotConstantError):
        return None


class _NotConstantError(Exception):
    pass


def _outcomes(term: Term) -> Iterator[float]:
    if chosen := term.args("_?_:_"):
        condition, *branches = chosen
        for want, branch in zip((True, False), branches, strict=True):
            if _possible([condition], want=want):
                yield from _outcomes(branch)
        return
    value = term.constant()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _NotConstantError
    yield float(value)


def _possible(terms: list[Term], *, want: bool) -> bool:
    """Report whether all terms can have this value at once."""
    allowed: dict[Key, _Allowed] = {}
    decided: dict[Key, bool] = {}
    for literal, wanted in (literal for term in terms for literal in _literals(term, want=want)):
        value = literal.constant()
        if isinstance(value, bool) and value is not wanted:
            return False
        if decided.setdefault(literal.key(), wanted) is not wanted:
            return False
        if either := literal.args("_||_" if wanted else "_&&_"):
            if not any(_possible([one], want=wanted) for one in either):
                return False
        elif chosen := literal.args("_?_:_"):
            condition, yes, no = chosen
            ways = ((yes, True), (no, False))
            if not any(_possible([condition], want=way) and _possible([one], want=wanted) for one, way in ways):
                return False
        elif compared := _comparison(literal, want=wanted):
            what, operator, values = compared
            if not allowed.setdefault(what.key(), _Allowed.of(what)).narrow(operator, values):
                return False
    return True


def _literals(term: Term, *, want: bool) -> Iterator[tuple[Term, bool]]:
    """Yield the parts that must all hold, each with the value that it must have."""
    if negated := term.args("!_"):
        yield from _literals(negated[0], want=not want)
    elif parts := term.args("_&&_" if want else "_||_"):
        for part in parts:
            yield from _literals(part, want=want)
    else:
        yield term, want


def _comparison(term: Term, *, want: bool) -> tuple[Term, str, list[object]] | None:
    """Return what is compared, the operator and the constants; None if this is no comparison with constants."""
    if found := term.args("@in"):
        what, among = found
        if not isinstance(among.node, ListExpr) or among.node.optional:
            return None
        values = [among.at(element).constant() for element in among.node.elements]
        return None if UNKNOWN in values else (what, "in" if want else "not in", values)
    if not (sides := term.args(*_NOT)):
        return None
    left, right = sides
    operator = term.function if want else _NOT[term.function]
    if (value := right.constant()) is not UNKNOWN:
        return left, operator, [value]
    if (value := left.constant()) is not UNKNOWN:
        return right, TURNED[operator], [value]
    return None


@dataclass(slots=True)
class _Allowed:
    """Values that an expression may still have."""

    among: list[object] | None = None
    without: list[object] = field(default_factory=list)
    low: tuple[float, bool] = (float("-inf"), False)  # the bound, and whether it is exclusive
    high: tuple[float, bool] = (float("inf"), False)

    @classmethod
    def of(cls, term: Term) -> "_Allowed":
        """Return the values that a part of a time or a size can have, and any for other terms."""
        if term.function not in _BOUNDED:
            return cls()
        found = Ranges({}).of(term.checked, term.node)
        return cls(low=(found.low, False), high=(found.high, False))

    def narrow(self, operator: str, values: list[object]) -> bool:
        """Apply a comparison; report whether any value is left."""
        match operator:
            case "_==_" | "in":
                self.among = values if self.among is None else [one for one in self.among if one in values]
            case "_!=_" | "not in":
                self.without += values
            case _ if isinstance(values[0], int | float) and not isinstance(values[0], bool):
                bound = (values[0], operator in ("_<_", "_>_"))
                if operator in ("_<_", "_<=_"):
                    self.high = min(self.high, bound, key=lambda one: (one[0], not one[1]))
                else:
                    self.low = max(self.low, bound)
        if self.among is not None:
            return any(self._has(one) for one in self.among)
        return self.low[0] < self.high[0] or (self.low[0] == self.high[0] and not (self.low[1] or self.high[1]))

    def _has(self, value: object) -> bool:
        if value in self.without:
            return False
        if not isinstance(value, int | float):
            return True
        (low, above), (high, below) = self.low, self.high
        return (value > low if above else value >= low) and (value < high if below else value <= high)


def _key(checked: Checked, node: Node) -> Key:
    match node:
        case Const(value=value):
            return "const", type(value).__name__, value
        case Ident(name=name):
            return "name", checked.names.get(node.id, name)
        case Select(operand=holder, field=field_, test_only=False) if checked.type_of(holder).name == "map":
            return "call", "_[_]", _key(checked, holder), ("const", "str", field_)
        case Select(operand=holder, field=field_, test_only=test_only):
            return "select", _key(checked, holder), field_, test_only
        case Call(function=function, args=args):
            return ("call", function, *(_key(checked, arg) for arg in args))
        case ListExpr(elements=elements):
            return ("list", node.optional, *(_key(checked, element) for element in elements))
    return "unlike any other", id(checked), node.id


_OPTIONAL: Final = ("_[?_]", "_?._")

MapKey = tuple[Term, object]
"""A map and a key of it."""


def read(term: Term) -> MapKey | None:
    """Return the entry that a term reads with an error if it is absent: `map['key']`, `map.key`."""
    match term.node:
        case Select(operand=holder, field=key, test_only=False):
            return _in_map(term.at(holder), key)
    found = term.args("_[_]")
    return _in_map(found[0], found[1].node.value) if found and isinstance(found[1].node, Const) else None


def read_optionally(term: Term) -> MapKey | None:
    """Return the entry that a term reads as an optional: `map[?'key']`, `map.?key`."""
    found = term.args(*_OPTIONAL)
    return (found[0], found[1].node.value) if found and isinstance(found[1].node, Const) else None


def tested_for(term: Term) -> MapKey | None:
    """Return the entry whose presence a term tests: `'key' in map`, `has(map.key)`, `map[?'key'].hasValue()`."""
    match term.node:
        case Select(operand=holder, field=key, test_only=True):
            return _in_map(term.at(holder), key)
    if found := term.args("hasValue"):
        return read_optionally(found[0])
    found = term.args("@in")
    return _in_map(found[1], found[0].node.value) if found and isinstance(found[0].node, Const) else None


def _in_map(holder: Term, key: object) -> MapKey | None:
    return (holder, key) if holder.checked.type_of(holder.node).name == "map" else None
