"""Upper bounds of the cost of an expression before it is evaluated, for any objects of the API.

An expression whose bound is within the budget of `meter` needs no counting while it runs. Costs are in the units of
`meter`; `sizes` bounds the sizes of values, `function_costs` bounds calls, and `weights` has the least cost of each
part.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final

from fairlead.cel.analysis.function_costs import FUNCTION_COSTS
from fairlead.cel.analysis.node_facts import VARIABLES
from fairlead.cel.analysis.sizes import (
    LOWERED,
    ONE,
    UNKNOWN,
    Size,
    SizeLimits,
    element_size,
    fact_size,
    field_size,
    is_number,
    largest,
    list_size,
    of_text,
    product,
    result_size,
)
from fairlead.cel.analysis.static_types import JUNCTIONS, is_known, known_type, raises_itself
from fairlead.cel.analysis.text_costs import CALL, CONSTANT, ENGINE_OPAQUE, Called
from fairlead.cel.analysis.weights import own_weight, weight_for_types
from fairlead.cel.functions.extensions import OPAQUE
from fairlead.cel.syntax.ast import (
    DYN,
    OPTIONAL,
    Call,
    Checked,
    Comprehension,
    Const,
    Ident,
    ListExpr,
    Node,
    Select,
    StructExpr,
    Type,
    children,
)
from fairlead.cel.values.meter import ITEM, RAISED, STEP

LOOP_MAX: Final = 10_000

_OF_ZONE: Final = ("_with_tz", "_tz")
_ZONE: Final = 3_000
_Bound = Mapping[str, tuple[Size, bool]]
"""The names that macros bind: the size of each, and whether its type is known."""


@dataclass(slots=True)
class Estimate:
    """Bounds for one expression and the policy's variables that it uses."""

    checked: Checked
    variables: Mapping[str, Checked]
    limits: SizeLimits = LOWERED
    sizes: dict[tuple[int, int], Size] = field(default_factory=dict)
    """By the identity of the tree and the id of the node."""
    types: dict[tuple[int, int], Type] = field(default_factory=dict)
    """Types that values are known to have; DYN where the checker's type is only a promise."""
    cost: float = 0
    _done: dict[str, tuple[Size, float]] = field(default_factory=dict)
    _weights: dict[tuple[int, int], int] = field(default_factory=dict)
    raising: set[tuple[int, int]] = field(default_factory=set)
    """Parts that may raise, by the identity of the tree and the id of the node."""

    def __post_init__(self) -> None:
        self.cost = _Tree(self, self.checked).visit(self.checked.root, {})[1]

    def size(self, checked: Checked, node: Node) -> Size:
        """Return an upper bound of the size of a part's value."""
        return self.sizes.get((id(checked), node.id), UNKNOWN)

    def weight(self, checked: Checked, node: Node) -> int:
        """Return the least cost of a part, whatever it reads, for each step of a loop around it."""
        key = id(checked), node.id
        if key not in self._weights:
            self._weights[key] = self._weight(checked, node)
        return self._weights[key]

    def _weight(self, checked: Checked, node: Node) -> int:
        parts = children(node)
        match node:
            case Ident() if (full := checked.names.get(node.id, "")).startswith(VARIABLES):
                tree = self.variables[full.removeprefix(VARIABLES)]
                return STEP + self.weight(tree, tree.root)
            case Comprehension(range=range_) if not (isinstance(range_, ListExpr) and not range_.elements):
                parts = (node.range, node.init, node.result)  # the body is paid for when the loop begins
        more = self.for_types(checked, node) if isinstance(node, Call) else 0
        return own_weight(node, more) + sum(self.weight(checked, part) for part in parts)

    def for_types(self, checked: Checked, node: Call) -> int:
        """Return the cost of a call for the types of its operands."""
        return weight_for_types(node, {self._kind(checked, arg) for arg in node.args})

    def type(self, checked: Checked, node: Node) -> Type:
        """Return the type that a value is known to have."""
        return self.types.get((id(checked), node.id), DYN)

    def _kind(self, checked: Checked, node: Node) -> str:
        """Return the name of the type that a value is known to have; of an optional, that of its content."""
        type_ = self.type(checked, node)
        return type_.params[0].name if type_.name == OPTIONAL and type_.params else type_.name

    def variable(self, name: str) -> tuple[Size, float]:
        """Return the size and the cost of a variable, which is evaluated wherever it is named."""
        if name not in self._done:
            tree = self.variables[name]
            self._done[name] = _Tree(self, tree).visit(tree.root, {})
        return self._done[name]


@dataclass(slots=True)
class _Tree:
    all: Estimate
    checked: Checked
    lazy: set[str] = field(default_factory=set)
    """Names that macros bind to a value that is computed where the name stands, and may raise there."""

    def visit(self, node: Node, bound: _Bound) -> tuple[Size, float]:
        size, cost = self._visit(node, bound)
        self.all.sizes[id(self.checked), node.id] = size
        self.all.types[id(self.checked), node.id] = self._type(node, bound)
        if self._may_raise(node, bound):
            self.all.raising.add((id(self.checked), node.id))
        return size, cost

    def _may_raise(self, node: Node, bound: _Bound) -> bool:
        match node:
            case Const():
                return False
            case Ident(name=name):
                return name in self.lazy if name in bound else VARIABLES in self.checked.names.get(node.id, "")
            case Select(operand=operand) if raises_itself(node, {self.type(operand).name}):
                return True
            case Call(args=args) if raises_itself(node, {self.type(arg).name for arg in args}):
                return True
        return any((id(self.checked), part.id) in self.all.raising for part in children(node))

    def _type(self, node: Node, bound: _Bound) -> Type:
        match node:
            case Ident(name=name) if name in bound:
                return self.checked.type_of(node) if bound[name][1] else DYN
            case Ident(name=name):
                full = self.checked.names.get(node.id, name)
                if full.startswith(VARIABLES):
                    tree = self.all.variables[full.removeprefix(VARIABLES)]
                    return self.all.type(tree, tree.root)
                return self.checked.type_of(node)
            case Comprehension():
                return self.type(node.result)
        return known_type(self.checked, node, [self.type(part) for part in children(node)])

    def type(self, node: Node) -> Type:
        """Return the type that the value of a part is known to have."""
        return self.all.type(self.checked, node)

    def _visit(self, node: Node, bound: _Bound) -> tuple[Size, float]:
        match node:
            case Const(value=value):
                return of_text(len(value)) if isinstance(value, str | bytes) else ONE, 0
            case Ident(name=name):
                return self._name(node, name, bound)
            case Select():
                return self._select(node, bound)
            case ListExpr(elements=elements):
                found = [self.visit(element, bound) for element in elements]
                return list_size(len(found), [size for size, _ in found]), sum(cost for _, cost in found) + 2 * len(
                    found
                )
            case StructExpr():
                return self._map(node, bound)
            case Comprehension():
                return self._fold(node, bound)
            case Call():
                return self._call(node, bound)
        return UNKNOWN, inf

    def _name(self, node: Ident, name: str, bound: _Bound) -> tuple[Size, float]:
        if name in bound:
            return bound[name][0], STEP
        full = self.checked.names.get(node.id, name)
        if full.startswith(VARIABLES):
            size, cost = self.all.variable(full.removeprefix(VARIABLES))
            return size, cost + STEP
        size = fact_size(self.checked.type_of(node), self.all.limits)
        if full == "pods" and self.all.limits.pods is not None:
            size = Size(self.all.limits.pods, size.item)
        return size, STEP

    def _select(self, node: Select, bound: _Bound) -> tuple[Size, float]:
        held, cost = self.visit(node.operand, bound)
        type_ = self.type(node.operand)
        if node.test_only:
            return ONE, cost + STEP
        if type_.name == OPTIONAL and type_.params:
            type_ = type_.params[0]
        if type_.name == "map":
            return element_size(node.operand, held), cost + STEP
        if type_ == DYN:
            return UNKNOWN, cost + STEP
        return field_size(type_, node.field, self.checked.type_of(node), self.all.limits), cost + STEP

    def _map(self, node: StructExpr, bound: _Bound) -> tuple[Size, float]:
        keys, values, cost = [], [], 0.0
        for entry in node.entries:
            if isinstance(entry.key, Node):
                size, more = self.visit(entry.key, bound)
                keys.append(size)
                cost += more + size.most / 16
            size, more = self.visit(entry.value, bound)
            values.append(size)
            cost += more + ITEM
        return Size(len(values), largest(values), largest(keys)), cost

    def _fold(self, node: Comprehension, bound: _Bound) -> tuple[Size, float]:
        if isinstance(node.range, ListExpr) and not node.range.elements:  # cel.bind
            held, cost = self.visit(node.init, bound)
            if (id(self.checked), node.init.id) in self.all.raising:
                self.lazy.add(node.accumulator)
            known = is_known(self.type(node.init))
            result, more = self.visit(node.result, {**bound, node.accumulator: (held, known)})
            return result, cost + more + CALL
        range_, cost = self.visit(node.range, bound)
        times = max(1, min(range_.most, LOOP_MAX))  # parts that depend on the pod alone are computed before the loop
        inside = dict(bound)
        kind = self.type(node.range)
        sizes = {node.variable: UNKNOWN}  # the elements of a list or the keys of a map, if it is unknown which
        if kind.name == "list":
            sizes[node.variable] = ONE if node.variable2 else range_.inside
        elif kind.name == "map":
            sizes[node.variable] = range_.key or UNKNOWN
        if node.variable2:
            sizes[node.variable2] = range_.inside
        inside |= {name: (size, is_known(kind)) for name, size in sizes.items()}
        init, more = self.visit(node.init, bound)
        inside[node.accumulator] = init, True
        cost += more
        for part in (node.condition, node.step):
            cost += product(times, self.visit(part, inside)[1])
        if any((id(self.checked), part.id) in self.all.raising for part in (node.condition, node.step)):
            cost += times * RAISED
        step = self._step(node)
        made = init if step is None else Size(times, step)
        if step is not None and self.all.limits.is_engine:
            cost += times * times * STEP  # the engine copies the list for each element
        known = is_known(self.type(node.step))
        result, more = self.visit(node.result, {**bound, node.accumulator: (made, known)})
        if step is not None:
            result = made
        return result, cost + more + times * STEP

    def _step(self, node: Comprehension) -> Size | None:
        """Return the size of an element that a macro adds to its list; None if it makes no list."""
        if not isinstance(node.init, ListExpr):
            return None
        match node.step:
            case Call(function="_+_", args=(_, ListExpr(elements=(element,)))):
                return self.all.size(self.checked, element)
            case Call(function="_?_:_", args=(_, Call(function="_+_", args=(_, ListExpr(elements=(element,)))), _)):
                return self.all.size(self.checked, element)
        return UNKNOWN

    def _call(self, node: Call, bound: _Bound) -> tuple[Size, float]:
        found = [self.visit(arg, bound) for arg in node.args]
        sizes, cost = [size for size, _ in found], sum(cost for _, cost in found)
        cost += self.all.for_types(self.checked, node)
        if node.function in JUNCTIONS and self._absorbs(node):
            cost += RAISED
        if node.function == "_?_:_":
            (_, test), (yes, then), (no, otherwise) = found
            return yes.joined(no), test + then + otherwise + STEP  # both may be computed beforehand
        if (of := FUNCTION_COSTS.get(node.function)) is not None:
            types = [self.type(arg) for arg in node.args]
            size, more = of(Called(node, sizes, types, self.checked.type_of(node), self.all.limits))
            return size, cost + more
        type_ = self.checked.type_of(node)
        if self.all.limits.is_engine and any(self.type(arg).name in OPAQUE for arg in node.args):
            cost += ENGINE_OPAQUE
        if all(is_number(self.type(arg)) for arg in node.args):
            return result_size(type_), cost + CONSTANT.get(node.function, CALL)
        if any(overload.endswith(_OF_ZONE) for overload in self.checked.overloads.get(node.id, ())):
            return ONE, cost + _ZONE
        return UNKNOWN, inf

    def _absorbs(self, node: Call) -> bool:
        """Return whether an operand may raise; the junction in the step of a macro is paid for with its loop."""
        left, _ = node.args
        is_step = isinstance(left, Ident) and left.name.startswith("@")
        return not is_step and any((id(self.checked), arg.id) in self.all.raising for arg in node.args)
