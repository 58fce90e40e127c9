"""Parts of an expression that change with `now`, and whether it is known how long their values hold.

Values that move at a steady rate may be added, subtracted, compared and read by their fields. If an expression does
anything else with one (puts it into a list, converts it to text), its result holds for one moment only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fairlead.cel.analysis import expiry
from fairlead.cel.analysis.node_facts import VARIABLES
from fairlead.cel.syntax.ast import Call, Checked, Comprehension, Ident, ListExpr, Node, children, walk

NOW: Final = "now"
_TIMES: Final = frozenset({"timestamp", "duration"})
_Rates = Mapping[str, int]
Watched = Mapping[tuple[int, int], expiry.ExpiringFunction]
"""Functions that note how long their values hold, by the identity of the tree and the id of the node."""


class _UnknownExpiryError(Exception):
    """Value of which it is not known how long it holds."""


def expiring_calls(checked: Checked, variables: Mapping[str, Checked]) -> Watched | None:
    """Return the calls that have to note how long they hold; None if the result changes in other ways too."""
    pass_ = _Pass(variables)
    try:
        return pass_.functions if pass_.rate_of_root("", checked) == 0 else None
    except _UnknownExpiryError:
        return None


def unit_of_fields(checked: Checked, variables: Mapping[str, Checked]) -> int | None:
    """Return at which multiples of nanoseconds an expression changes; None if it reads more than fields of `now`."""
    units: list[int] = []
    read = named = 0
    for tree in (checked, *variables.values()):
        for node in walk(tree.root):
            named += _is_now(tree, node)
            if isinstance(node, Call) and node.args and _is_now(tree, node.args[0]) and node.function in expiry.UNITS:
                # Offsets of time zones are whole minutes.
                units.append(min(expiry.UNITS[node.function], expiry.DAY if len(node.args) == 1 else expiry.MINUTE))
                read += 1
    return min(units) if units and read == named else None


def _is_now(tree: Checked, node: Node) -> bool:
    return isinstance(node, Ident) and tree.names.get(node.id, node.name) == NOW


@dataclass(slots=True)
class _Pass:
    variables: Mapping[str, Checked]
    functions: dict[tuple[int, int], expiry.ExpiringFunction] = field(default_factory=dict)
    _rates: dict[str, int] = field(default_factory=dict)

    def rate_of_root(self, name: str, tree: Checked) -> int:
        if name not in self._rates:
            self._rates[name] = _Tree(self, tree).rate(tree.root, {})
        return self._rates[name]


@dataclass(slots=True)
class _Tree:
    all: _Pass
    checked: Checked

    def rate(self, node: Node, bound: _Rates) -> int:
        match node:
            case Ident(name=name):
                return self.ident(node, name, bound)
            case Call(function="_?_:_", args=(test, then, otherwise)):
                self.still(test, bound)
                rate = self.rate(then, bound)
                if self.rate(otherwise, bound) != rate:
                    raise _UnknownExpiryError
                return rate
            case Call():
                return self.call(node, [self.rate(arg, bound) for arg in node.args])
            case Comprehension():
                return self.fold(node, bound)
        for part in children(node):
            self.still(part, bound)
        return 0

    def still(self, node: Node, bound: _Rates) -> None:
        if self.rate(node, bound) != 0:
            raise _UnknownExpiryError

    def ident(self, node: Ident, name: str, bound: _Rates) -> int:
        if name in bound:
            return bound[name]
        full = self.checked.names.get(node.id, name)
        if not full.startswith(VARIABLES):
            return int(full == NOW)
        variable = full.removeprefix(VARIABLES)
        return self.all.rate_of_root(variable, self.all.variables[variable])

    def call(self, node: Call, rates: list[int]) -> int:
        if not any(rates):
            return 0
        types = [self.checked.type_of(arg).name for arg in node.args]
        overloads = self.checked.overloads.get(node.id, ())
        if not _TIMES.issuperset(types) or len(overloads) > 1:
            raise _UnknownExpiryError
        noting: expiry.ExpiringFunction
        if node.function in expiry.COMPARISONS and types[0] == types[1]:
            rate, moves = 0, rates[0] - rates[1]
            noting = expiry.comparison(node.function, moves)
        elif node.function in expiry.SUMS and len(rates) == 2:
            rate = moves = rates[0] + expiry.SUMS[node.function] * rates[1]
            noting = expiry.arithmetic(overloads[0], moves)
        elif node.function in expiry.UNITS and (rates == [1] or (rates == [-1] and types == ["duration"])):
            rate, moves = 0, rates[0]
            noting = expiry.field(overloads[0], expiry.UNITS[node.function], moves)
        else:
            raise _UnknownExpiryError
        if moves:
            self.all.functions[id(self.checked), node.id] = noting
        return rate

    def fold(self, node: Comprehension, bound: _Rates) -> int:
        if isinstance(node.range, ListExpr) and not node.range.elements:  # cel.bind
            return self.rate(node.result, {**bound, node.accumulator: self.rate(node.init, bound)})
        inside = {**bound, node.variable: 0, node.variable2: 0, node.accumulator: 0}
        for part, names in ((node.range, bound), (node.init, bound)):
            self.still(part, names)
        for part in (node.condition, node.step, node.result):
            self.still(part, inside)
        return 0
