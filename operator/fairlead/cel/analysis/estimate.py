"""What an expression may cost, from above, before it is evaluated: an upper bound for any objects of the API.

What is bounded by the budget of `meter` needs no counting while it runs. Sizes follow from what the API server lets
through: a label has at most 63 characters and a name 253, annotations 256 KiB in all; a text or a list of which it is
not known how long it may be is without bound. Costs are in the units of `meter`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import inf
from typing import Final

from fairlead.cel.analysis.inference import NEVER, elements, join, type_of
from fairlead.cel.analysis.node_facts import VARIABLES
from fairlead.cel.functions.lists import RANGE_MAX
from fairlead.cel.functions.metered import DURATION_UNIT
from fairlead.cel.functions.regex import SEARCH, pattern_units, search_units
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
    walk,
)
from fairlead.cel.values.meter import ANNOTATION_MAX, ITEM, RAISED, SHORT_TEXT, STEP

LABEL: Final = 63
NAME: Final = 253
KEY: Final = 317  # of a label or an annotation, with its prefix
NUMBER: Final = 350  # characters of any number or time as text
LOOP_MAX: Final = 10_000

_TEXTS: Final = frozenset({"string", "bytes"})
_NAMES: Final = frozenset({"name", "namespace", "uid", "generateName"})
_NAMES_OF_SPEC: Final = frozenset({"nodeName", "schedulerName", "priorityClassName", "serviceAccountName"})
_NUMBERS: Final = frozenset({"bool", "int", "uint", "double", "timestamp", "duration", "type", "null"})
_HASHED: Final = (_NUMBERS | _TEXTS) - {"double", "null"}
_CONSTANT: Final[Mapping[str, int]] = {
    "timestamp": 300,
    **dict.fromkeys(("matches", "regex.extract", "regex.extractAll", "regex.replace"), SEARCH),
    "quantity": 400,
    "isQuantity": 400,
    "int": 40,
    "uint": 40,
    "double": 40,
    "bool": 15,
    "string": 30,
    "getDayOfYear": 100,
    **dict.fromkeys(
        ("sign", "isInteger", "asInteger", "asApproximateFloat", "add", "sub", "isGreaterThan", "isLessThan"), 100
    ),
}
"""Functions whose work is much the same whatever they are given, and is not small."""
_OPERATORS: Final = frozenset(
    {"_&&_", "_||_", "!_", "_?_:_", "@not_strictly_false", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_+_", "_-_"}
    | {"_*_", "_[_]", "_[?_]", "_?._", "@in", "size", "orValue", "or", "value", "hasValue"}
)
_JUNCTIONS: Final = frozenset({"_&&_", "_||_"})
_NEVER_RAISE: Final = frozenset(
    {*_JUNCTIONS, "!_", "_?_:_", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in", "@not_strictly_false", "size"}
    | {"_[?_]", "_?._", "or", "orValue", "hasValue", "optional.of", "optional.none", "dyn", "type"}
    | {"contains", "startsWith", "endsWith"}
)
"""Of operands whose types are known."""
_ADDED: Final = frozenset({"string", "bytes", "list", "double"})
"""Types that never overflow."""
_ITEM: Final = 2
"""Of an element of a list that is written out."""
_ENTRY: Final = 30
"""Of an entry of a map."""
_QUANTITY_THERE: Final = 1_500
"""Of an amount that the engine is given: it has it as text."""
_OF_ZERO: Final = 800
"""Of asking an object whether it has any field."""
_OF_ZONE: Final = ("_with_tz", "_tz")
_ZONE: Final = 3_000
_FORMATTED: Final = 1_400  # of a number: the engine takes up to 1,000 digits after the point
_CALL: Final = 15
_LOOKUP: Final = 2 * STEP
_OPTIONAL: Final = 20
"""Of a lookup that gives an optional, or a uint that is made, beside what any takes."""
LOOSE: Final = 60
"""Of an operator, beside what any takes, whose operands are asked for their types, or are times."""
_ON_VALUES: Final = frozenset(
    {"_+_", "_-_", "_*_", "_/_", "_%_", "-_", "_<_", "_<=_", "_>_", "_>=_", "_[_]", "_[?_]", "_?._", "@in", "size"}
)
_ARITHMETIC: Final = frozenset({"_+_", "_-_", "_*_"})
_OF_TIME: Final = frozenset({"timestamp", "duration"})
_PLAIN: Final = _NUMBERS | _TEXTS | {"list", "map"}


@dataclass(frozen=True, slots=True)
class Size:
    """How large a value may be: characters of a text, elements of a list, entries of a map; 1 for what is neither."""

    most: float = 1
    item: "Size | None" = None
    key: "Size | None" = None

    @property
    def inside(self) -> "Size":
        """Of an element, or of the value of an entry."""
        return self.item or UNKNOWN

    def joined(self, other: "Size") -> "Size":
        """Of a value that is one or the other."""
        if self is other:
            return self
        if self.item is None and other.item is None and self.key is None and other.key is None:
            return self if self.most >= other.most else other
        item = self.item.joined(other.item) if self.item and other.item else self.item or other.item
        key = self.key.joined(other.key) if self.key and other.key else self.key or other.key
        return Size(max(self.most, other.most), item, key)

    def walked(self, deep: int = 0) -> float:
        """Units of going through all of it."""
        if self.item is None:
            return ITEM + self.most / 32
        if deep > _DEEPEST:
            return inf
        key = self.key.most / 16 if self.key is not None else 0
        return ITEM + self.most * (2 + key + self.item.walked(deep + 1)) if self.most else ITEM


_DEEPEST: Final = 40
ONE: Final = Size()
UNKNOWN: Final = Size(inf)
_EMPTY: Final = Size(0)
_of_text: Final = lru_cache(maxsize=256)(Size)


@dataclass(frozen=True, slots=True)
class Limits:
    """What is known of the objects that an expression reads, and of what evaluates it."""

    text: float = inf
    """Characters of a text of which nothing else is known."""
    annotations: float = 262_144
    elements: float = inf
    is_engine: bool = False


LOWERED: Final = Limits()
_Bound = Mapping[str, tuple[Size, Type]]


@dataclass(slots=True)
class Estimate:
    """One expression, and the policy's variables that it uses."""

    checked: Checked
    variables: Mapping[str, Checked]
    limits: Limits = LOWERED
    sizes: dict[tuple[int, int], Size] = field(default_factory=dict)
    """By the identity of the tree and the id of the node."""
    types: dict[tuple[int, int], Type] = field(default_factory=dict)
    """What values surely are; the checker's types are promises about expressions."""
    cost: float = 0
    _done: dict[str, tuple[Size, float]] = field(default_factory=dict)
    _weights: dict[tuple[int, int], int] = field(default_factory=dict)
    raising: set[tuple[int, int]] = field(default_factory=set)
    """What may raise."""

    def __post_init__(self) -> None:
        self.cost = _Tree(self, self.checked).visit(self.checked.root, {})[1]

    def size(self, checked: Checked, node: Node) -> Size:
        """How large the value of a part may be."""
        return self.sizes.get((id(checked), node.id), UNKNOWN)

    def weight(self, checked: Checked, node: Node) -> int:
        """What a part costs at least, whatever is read: for each step of a loop in which it stands."""
        key = id(checked), node.id
        if key not in self._weights:
            self._weights[key] = self._weight(checked, node)
        return self._weights[key]

    def _weight(self, checked: Checked, node: Node) -> int:
        match node:
            case Const():
                return 0
            case Ident() if (full := checked.names.get(node.id, "")).startswith(VARIABLES):
                tree = self.variables[full.removeprefix(VARIABLES)]
                return STEP + self.weight(tree, tree.root)
            case Comprehension(range=range_) if not (isinstance(range_, ListExpr) and not range_.elements):
                outside = (node.range, node.init, node.result)  # what is inside is paid for when it begins
                return _CALL + sum(self.weight(checked, part) for part in outside)
            case Call(function=function):
                own = _CONSTANT.get(function, STEP if function in _OPERATORS else _CALL) + self.for_types(checked, node)
            case Select() if self._kind(checked, node.operand) == "dyn":
                own = STEP + LOOSE
            case ListExpr(elements=elements):
                own = _CALL + _ITEM * len(elements)
            case StructExpr(entries=entries):
                own = _CALL + _ENTRY * len(entries)
            case Comprehension():
                own = _CALL
            case _:
                own = STEP
        return own + sum(self.weight(checked, part) for part in children(node))

    def type(self, checked: Checked, node: Node) -> Type:
        """What a value surely is."""
        type_ = self.types.get((id(checked), node.id), DYN)
        return DYN if type_ == NEVER else type_

    def _kind(self, checked: Checked, node: Node) -> str:
        """What a value surely is; of an optional, what may be in it."""
        type_ = self.type(checked, node)
        return type_.params[0].name if type_.name == OPTIONAL and type_.params else type_.name

    def for_types(self, checked: Checked, node: Call) -> int:
        """What a call costs for the types of its operands, which may have to be found out each time."""
        types = {self._kind(checked, arg) for arg in node.args}
        if node.function == "string" and types & {*_OF_TIME, "double"}:
            return 2 * LOOSE
        if node.function == "optional.ofNonZeroValue":
            return 0 if types <= _PLAIN else _OF_ZERO
        if node.function not in _ON_VALUES:
            return 0
        if "dyn" in types or (node.function in _ARITHMETIC and types & _OF_TIME):
            return LOOSE
        if "uint" in types and node.function in _ARITHMETIC:
            return _OPTIONAL
        return _OPTIONAL if node.function in ("_[?_]", "_?._") else 0

    def pays(self, checked: Checked, node: Node) -> bool:
        """Whether its cost depends on what is read."""
        for part in walk(node):
            match part:
                case Comprehension() | Call(function="_+_" | "_==_" | "_!=_" | "@in"):
                    return True
                case Call(function=function) if function in _OF_FUNCTION and function not in _OPERATORS:
                    return True
                case Ident() if checked.names.get(part.id, "").startswith(VARIABLES):
                    return True
        return False

    def variable(self, name: str) -> tuple[Size, float]:
        """The size and the cost of a variable, which is computed anew wherever it is named."""
        if name not in self._done:
            tree = self.variables[name]
            self._done[name] = _Tree(self, tree).visit(tree.root, {})
        return self._done[name]


@dataclass(slots=True)
class _Tree:
    all: Estimate
    checked: Checked
    lazy: set[str] = field(default_factory=set)
    """Names of macros whose value is computed where they stand, and may raise there."""

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
            case Select(operand=operand, test_only=False) if self.type(operand).name in ("map", "dyn"):
                return True
            case Call(function=function, args=args):
                types = {self.type(arg).name for arg in args}
                never = function in _NEVER_RAISE or (function == "_+_" and types <= _ADDED)
                if not never or "dyn" in types:
                    return True
        return any((id(self.checked), part.id) in self.all.raising for part in children(node))

    def _type(self, node: Node, bound: _Bound) -> Type:
        """What a value surely is, when it is known of the parts."""
        match node:
            case Ident(name=name) if name in bound:
                return bound[name][1]
            case Ident(name=name):
                full = self.checked.names.get(node.id, name)
                if full.startswith(VARIABLES):
                    tree = self.all.variables[full.removeprefix(VARIABLES)]
                    return self.all.type(tree, tree.root)
                return self.checked.type_of(node)
            case Comprehension():
                return self._surely(node.result)
        return type_of(self.checked, node, [self._surely(part) for part in children(node)])

    def _surely(self, node: Node) -> Type:
        return self.all.types[id(self.checked), node.id]

    def type(self, node: Node) -> Type:
        """What the value of a part surely is."""
        return self.all.type(self.checked, node)

    def _visit(self, node: Node, bound: _Bound) -> tuple[Size, float]:
        match node:
            case Const(value=value):
                return _of_text(len(value)) if isinstance(value, str | bytes) else ONE, 0
            case Ident(name=name):
                return self._name(node, name, bound)
            case Select():
                return self._select(node, bound)
            case ListExpr(elements=elements):
                found = [self.visit(element, bound) for element in elements]
                return _list(len(found), [size for size, _ in found]), sum(cost for _, cost in found) + 2 * len(found)
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
        return self._fact(self.checked.type_of(node)), STEP

    def _fact(self, type_: Type) -> Size:
        """Of a part of an object about which nothing else is known."""
        limits = self.all.limits
        if type_.name in _NUMBERS:
            return ONE
        if type_.name == "string":
            return Size(limits.text)
        if type_.name == "list":
            return Size(limits.elements, self._fact(type_.params[0]))
        if type_.name == "map":
            return Size(limits.elements, self._fact(type_.params[1]), Size(min(limits.text, KEY)))
        if type_.name == OPTIONAL and type_.params:
            return self._fact(type_.params[0])
        return UNKNOWN

    def _select(self, node: Select, bound: _Bound) -> tuple[Size, float]:
        held, cost = self.visit(node.operand, bound)
        type_ = self.type(node.operand)
        if node.test_only:
            return ONE, cost + STEP + (LOOSE if type_ == DYN else 0)
        if type_.name == OPTIONAL and type_.params:
            type_ = type_.params[0]
        if type_.name == "map":
            return _read(node.operand, held), cost + STEP
        if type_ == DYN:
            return UNKNOWN, cost + STEP + LOOSE
        return self._field(type_, node.field, self.checked.type_of(node)), cost + STEP

    def _field(self, holder: Type, name: str, type_: Type) -> Size:
        """Of a field of an object: the API server lets no long names and labels through."""
        limits, short = self.all.limits, holder.name.rpartition(".")[2]
        of_metadata = short in ("ObjectMeta", "PlacedPodMeta")
        if of_metadata and name in _NAMES:
            return Size(NAME)
        if of_metadata and name == "labels":
            return Size(limits.elements, Size(LABEL), Size(KEY))
        if of_metadata and name == "annotations":
            # All of them together have so many characters, and so none has more.
            return Size(min(limits.elements, limits.annotations), Size(limits.annotations), Size(KEY))
        if short in ("PodSpec", "PlacedPodSpec") and name in _NAMES_OF_SPEC:
            return Size(NAME)
        if short == "Taint" and name in ("key", "value", "effect"):
            return Size(KEY)
        return self._fact(type_)

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
        return Size(len(values), _any(values), _any(keys)), cost

    def _fold(self, node: Comprehension, bound: _Bound) -> tuple[Size, float]:
        if isinstance(node.range, ListExpr) and not node.range.elements:  # cel.bind
            held, cost = self.visit(node.init, bound)
            if (id(self.checked), node.init.id) in self.all.raising:
                self.lazy.add(node.accumulator)
            result, more = self.visit(node.result, {**bound, node.accumulator: (held, self._surely(node.init))})
            return result, cost + more + _CALL
        range_, cost = self.visit(node.range, bound)
        times = max(1, min(range_.most, LOOP_MAX))  # what depends on the pod alone is computed before the loop
        inside = dict(bound)
        kind = self.type(node.range)
        sizes = {node.variable: UNKNOWN}  # of the elements of a list or the keys of a map, if it is not known which
        if kind.name == "list":
            sizes[node.variable] = ONE if node.variable2 else range_.inside
        elif kind.name == "map":
            sizes[node.variable] = range_.key or UNKNOWN
        if node.variable2:
            sizes[node.variable2] = range_.inside
        inside |= {name: (sizes[name], type_) for name, type_ in elements(node, kind).items()}
        init, more = self.visit(node.init, bound)
        inside[node.accumulator] = init, self._surely(node.init)
        cost += more
        for part in (node.condition, node.step):
            cost += _times(times, self.visit(part, inside)[1])
        if any((id(self.checked), part.id) in self.all.raising for part in (node.condition, node.step)):
            cost += times * RAISED
        step = self._step(node)
        made = init if step is None else Size(times, step)
        if step is not None and self.all.limits.is_engine:
            cost += times * times * STEP  # which makes the list anew for each element
        folded = join(self._surely(node.init), self._surely(node.step))
        result, more = self.visit(node.result, {**bound, node.accumulator: (made, folded)})
        if step is not None:
            result = made
        return result, cost + more + times * STEP

    def _step(self, node: Comprehension) -> Size | None:
        """Of an element that a macro adds to its list; None if it makes none."""
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
        if node.function in _JUNCTIONS and self._absorbs(node):
            cost += RAISED
        if node.function == "_?_:_":
            (_, test), (yes, then), (no, otherwise) = found
            return yes.joined(no), test + then + otherwise + STEP  # both may be computed before
        if (of := _OF_FUNCTION.get(node.function)) is not None:
            size, more = of(_Called(self, node, sizes))
            return size, cost + more
        type_ = self.checked.type_of(node)
        if self.all.limits.is_engine and any(self.type(arg).name.endswith(".Quantity") for arg in node.args):
            cost += _QUANTITY_THERE
        if all(self._is_plain(arg) for arg in node.args):
            size = self._of_result(type_)
            return size, cost + _CONSTANT.get(node.function, _CALL)
        if any(overload.endswith(_OF_ZONE) for overload in self.checked.overloads.get(node.id, ())):
            return ONE, cost + _ZONE
        return UNKNOWN, inf

    def _absorbs(self, node: Call) -> bool:
        """Whether an operand may raise; what a macro asks at each step is paid for with its loop."""
        left, _ = node.args
        is_step = isinstance(left, Ident) and left.name.startswith("@")
        return not is_step and any((id(self.checked), arg.id) in self.all.raising for arg in node.args)

    def _is_plain(self, node: Node) -> bool:
        """Whether it is a number or the like; its size does not count."""
        type_ = self.type(node)
        return type_.name in _NUMBERS or type_.name.endswith(".Quantity")

    @staticmethod
    def _of_result(type_: Type) -> Size:
        return Size(NUMBER) if type_.name in _TEXTS else ONE


@dataclass(frozen=True, slots=True)
class _Called:
    tree: _Tree
    node: Call
    sizes: Sequence[Size]

    def __getitem__(self, at: int) -> Size:
        return self.sizes[at] if at < len(self.sizes) else Size(0)

    def type(self, at: int = 0) -> str:
        return self.tree.type(self.node.args[at]).name

    @property
    def is_text(self) -> bool:
        return self.type() in _TEXTS

    @property
    def is_engine(self) -> bool:
        return self.tree.all.limits.is_engine

    @property
    def characters(self) -> float:
        """Of counting the characters of a text: the engine has it as UTF-8."""
        return self[0].most / 2 if self.is_engine and self.type() not in ("list", "map") else 0


_Found = tuple[Size, float]


def is_annotations(node: Node) -> bool:
    """Whether a part is the annotations of an object, of which long ones are refused when they are read."""
    match node:
        case Select(field="annotations", test_only=False) | Call(function="_?._", args=(_, Const(value="annotations"))):
            return True
    return False


def _read(holder: Node, held: Size) -> Size:
    """Of an element that is looked up."""
    inside = held.inside
    return Size(min(inside.most, ANNOTATION_MAX)) if is_annotations(holder) else inside


def _any(sizes: Sequence[Size]) -> Size | None:
    if not sizes:
        return _EMPTY
    found = sizes[0]
    for size in sizes[1:]:
        found = found.joined(size)
    return found


def _list(most: float, items: Sequence[Size]) -> Size:
    return Size(most, _any(items))


def _times(one: float, other: float) -> float:
    """The product; nothing times whatever is nothing."""
    return one * other if one and other else 0


def _search(text: float, part: float, *, backwards: bool = False) -> float:
    if part <= 1:
        return STEP + text / 16
    if text == inf or part == inf:
        return inf
    if backwards or part < 100 or text < 30_000:
        return STEP + text * part / 8
    return STEP + (text + part) / 4 + 2_500 * 1_250 / 8  # it is a bound: the text may as well be short


def _plus(call: _Called) -> _Found:
    left, right = call[0], call[1]
    if call.type() in _NUMBERS and call.type(1) in _NUMBERS:
        return ONE, STEP
    if call.is_text:
        return Size(left.most + right.most), STEP + (left.most + right.most) / 4
    item = _any([size.inside for size in (left, right) if size.most])
    return Size(left.most + right.most, item), STEP + (left.most + right.most) * 1.0


def _compared(call: _Called) -> _Found:
    left, right = call[0], call[1]
    if call.type() in _NUMBERS and call.type(1) in _NUMBERS:
        return ONE, STEP
    if call.is_text and call.type(1) in _TEXTS:
        return ONE, STEP + min(left.most, right.most) / 32
    return ONE, _CALL + min(left.walked(), right.walked())


def _among(call: _Called) -> _Found:
    item, held = call[0], call[1]
    if call.type(1) == "map":
        return ONE, STEP + item.most / 16
    each = min(item.walked(), held.inside.walked())
    return ONE, STEP + _times(held.most, each)


def _looked_up(call: _Called) -> _Found:
    key = call[1].most / 16 if len(call.sizes) > 1 and call.type(1) in _TEXTS else 0
    held = call.tree.type(call.node.args[0])
    if held.name == OPTIONAL and held.params:
        held = held.params[0]
    if held.name in ("map", "list", "dyn"):
        return _read(call.node.args[0], call[0]), _LOOKUP + key
    field_ = call.node.args[1]
    result = call.tree.checked.type_of(call.node)
    inner = result.params[0] if result.name == OPTIONAL and result.params else result
    name = field_.value if isinstance(field_, Const) and isinstance(field_.value, str) else ""
    return call.tree._field(held, name, inner), _LOOKUP  # noqa: SLF001 - one of a pair


def _made(units: float, grows: float = 1, more: float = 0) -> Callable[[_Called], _Found]:
    """Of what makes a text about as long as the one that it is given."""
    return lambda call: (Size(call[0].most * grows + more, call[0].item), _CALL + call[0].most * units)


def _replaced(call: _Called) -> _Found:
    text, old, new = call[0].most, call[1].most, call[2].most
    size = text + _times(text + 1, new)
    return Size(size), _search(text, old) + (text + 1) + size / 4


def _split(call: _Called) -> _Found:
    text, separator = call[0].most, call[1].most
    return Size(max(text, 1) + 1, Size(text)), _search(text, separator) + 12 * (text + 1) + text / 4


def _joined(call: _Called) -> _Found:
    each = call[0].inside.most + (call[1].most if len(call.sizes) > 1 else 0)
    size = _times(call[0].most, each)
    return Size(size), _CALL + call[0].most * 4 + size / 4


def _range(call: _Called) -> _Found:
    (end,) = call.node.args
    most = float(RANGE_MAX)
    if isinstance(end, Const) and isinstance(end.value, int):
        most = min(most, max(0, end.value)) if not call.is_engine else max(0, end.value)
    elif call.is_engine:
        most = inf
    return Size(most, ONE), _CALL + 2 * most


def _of_list(units: float) -> Callable[[_Called], _Found]:
    return lambda call: (Size(call[0].most, call[0].item), _CALL + call[0].most * units)


def _first(call: _Called) -> _Found:
    return call[0].inside, _CALL


def _flattened(call: _Called) -> _Found:
    size, most = call[0], call[0].most
    depth = 1
    if len(call.node.args) > 1:
        at = call.node.args[1]
        depth = at.value if isinstance(at, Const) and isinstance(at.value, int) else _DEEPEST
    for _ in range(min(depth, _DEEPEST)):
        inner = size.item
        if inner is None or inner.item is None:
            break
        most = _times(most, max(inner.most, 1))
        size = inner
    return Size(most, size.item), _CALL + most * 30


def _is_hashed(call: _Called, *at: int) -> bool:
    types = {call.tree.type(call.node.args[one]) for one in at}
    return all(one.params and one.params[0].name in _HASHED for one in types)


def _distinct(call: _Called) -> _Found:
    size, each = call[0], call[0].inside
    once = _times(size.most, 10 + each.most / 16)
    if not _is_hashed(call, 0):
        once += _times(size.most * size.most, each.walked())
    return size, _CALL + once


def _sorted(call: _Called) -> _Found:
    keys = call[-1] if call.node.function == "@sortByAssociatedKeys" else call[0]
    if keys.most == inf:
        return call[0], inf
    steps = keys.most * max(1, int(keys.most).bit_length())
    return call[0], _CALL + _times(steps, 60 + keys.inside.most / 16)


def _sets(call: _Called) -> _Found:
    left, right = call[0], call[1]
    cost = _times(left.most, 10 + left.inside.most / 16) + _times(right.most, 10 + right.inside.most / 16)
    if not _is_hashed(call, 0, 1):
        cost += 2 * _times(left.most * right.most, left.inside.walked() + right.inside.walked())
    return ONE, _CALL + cost


def _converted(call: _Called) -> _Found:
    function = call.node.function
    type_ = call.tree.checked.type_of(call.node)
    if function in ("string", "bytes") and call.type() in (*_TEXTS, "dyn"):
        most = call[0].most * (4 if function == "bytes" else 1)
        return Size(most if call.is_text else max(most, NUMBER)), _CALL + call[0].most
    if function == "duration":
        return ONE, _CONSTANT["timestamp"] + DURATION_UNIT * min(call[0].most, SHORT_TEXT)
    size = Size(NUMBER) if type_.name in _TEXTS else ONE
    text = call[0].most if call.is_engine else min(call[0].most, SHORT_TEXT)
    if call.is_engine and function == "quantity":
        text += _QUANTITY_THERE
    if not call.is_engine and function in ("int", "uint", "double"):
        text /= 4
    return size, _CONSTANT.get(function, 100) + text


def _matched(call: _Called) -> _Found:
    """Of `matches` and the functions of `regex`: a text, then a pattern."""
    text, pattern = call[0].most, call.node.args[1]
    if isinstance(pattern, Const) and isinstance(pattern.value, str):
        size, compiled = search_units(pattern.value), pattern_units(pattern.value) if call.is_engine else 0
    else:
        size, compiled = inf, inf
    once = SEARCH + (text + 10) * size
    if call.node.function in ("matches", "regex.extract"):
        return Size(text), compiled + once
    made = text + _times(text + 1, call[2].most + 10 * text) if call.node.function == "regex.replace" else text
    result = Size(made) if call.node.function == "regex.replace" else Size(text + 1, Size(text))
    return result, compiled + _times(text + 1, once) + made / 4


def _formatted(call: _Called) -> _Found:
    text = call[0].most
    arguments = call[1]
    each = max(_FORMATTED, 2 * arguments.inside.walked() if arguments.inside.item else 2 * arguments.inside.most)
    size = text + _times(text / 2, each)
    template = call.node.args[0]
    if isinstance(template, Const) and isinstance(template.value, str):
        if template.value.count("%") == template.value.count("%s") + template.value.count("%d"):
            each = max(32, 2 * arguments.inside.walked() if arguments.inside.item else arguments.inside.most)
        size = text + template.value.count("%") * each
    return Size(size), 10 * _CALL + size / 2


def _either(call: _Called) -> _Found:
    return call[0].joined(call[1]), STEP


def _same(call: _Called) -> _Found:
    return call[0], _CALL


def _number(units: float = _CALL) -> Callable[[_Called], _Found]:
    return lambda _: (ONE, units)


_OF_FUNCTION: Final[Mapping[str, Callable[[_Called], _Found]]] = {
    "_+_": _plus,
    **dict.fromkeys(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"), _compared),
    **dict.fromkeys(("_&&_", "_||_", "!_", "@not_strictly_false", "hasValue"), _number(STEP)),
    "size": lambda call: (ONE, STEP + call.characters),
    **dict.fromkeys(("math.@max", "math.@min"), lambda call: (ONE, _CALL + (call[0].most * 10 if call[0].item else 0))),
    **dict.fromkeys(("_-_", "_*_", "_/_", "_%_", "-_", "type"), _number()),
    "@in": _among,
    **dict.fromkeys(("_[_]", "_[?_]", "_?._"), _looked_up),
    **dict.fromkeys(("value", "optional.of", "optional.ofNonZeroValue", "dyn"), _same),
    "optional.none": lambda _: (Size(0), STEP),
    **dict.fromkeys(("orValue", "or"), _either),
    **dict.fromkeys(
        ("string", "bytes", "int", "uint", "double", "bool", "timestamp", "duration", "quantity", "isQuantity"),
        _converted,
    ),
    "contains": lambda call: (ONE, _search(call[0].most, call[1].most)),
    "indexOf": lambda call: (ONE, 2 * call.characters + _search(call[0].most, call[1].most)),
    "lastIndexOf": lambda call: (ONE, 2 * call.characters + _search(call[0].most, call[1].most, backwards=True)),
    "startsWith": lambda call: (ONE, _CALL + min(call[0].most, call[1].most) / 16),
    "endsWith": lambda call: (ONE, _CALL + min(call[0].most, call[1].most) / 16),
    "charAt": lambda call: (ONE, _CALL + call.characters),
    "lowerAscii": _made(5),
    "upperAscii": _made(5),
    "trim": _made(2),
    "substring": _made(0.25),
    "strings.quote": _made(5, grows=2, more=2),
    "base64.encode": _made(0.5, grows=2, more=4),
    "base64.decode": _made(5),
    "replace": _replaced,
    "split": _split,
    "join": _joined,
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
    **dict.fromkeys(("matches", "regex.extract", "regex.extractAll", "regex.replace"), _matched),
    "format": _formatted,
}
