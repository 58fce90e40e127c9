"""What was compared: kinds of nodes by their types and by what came of the expressions that they stand in."""

from collections import Counter
from collections.abc import Iterable

from fairlead.cel.functions.extensions import CIDR, DECLARATIONS, IP, OPAQUE, SEMVER
from fairlead.cel.syntax.ast import Call, Checked, Comprehension, Const, Ident, ListExpr, Node, Select, StructExpr, walk
from fairlead.cel.values.errors import Kind

OK = ""
_NOT_ERRORS = (Kind.DUPLICATE_KEY, Kind.LIMIT, Kind.COST, Kind.INTERNAL, Kind.NO_OVERLOAD)  # the last: only with `dyn`
ERRORS = tuple(str(kind) for kind in Kind if kind not in _NOT_ERRORS)
ABORTS = (f"abort {Kind.DUPLICATE_KEY}", f"abort {Kind.LIMIT}")
OUTCOMES = (OK, *ERRORS, *ABORTS)
"""Columns. MissingData is what the engine calls a missing key, of a name that only data has."""
OTHER = "other"

_GROUPS = {
    "_&&_": "and", "_||_": "or", "!_": "not", "_?_:_": "conditional", "_==_": "equal", "_!=_": "equal",
    "_<_": "order", "_<=_": "order", "_>_": "order", "_>=_": "order", "@in": "in", "_[_]": "index",
    "_+_": "add", "_-_": "subtract", "_*_": "multiply", "_/_": "divide", "_%_": "modulo", "-_": "negate",
    "_?._": "optional field", "_[?_]": "optional index", "optional.of": "optional.of", "hasValue": "hasValue",
    "optional.none": "optional.none", "optional.ofNonZeroValue": "ofNonZeroValue", "value": "value", "or ": "or else",
    "orValue": "orValue", "size": "size", "type": "type", "join": "strings", "matches": "regex",
}  # fmt: skip
_CONVERSIONS = frozenset({"int", "uint", "double", "bool", "string", "bytes", "timestamp", "duration"})
_LISTS = frozenset({"slice", "flatten", "distinct", "first", "last", "sort", "@sortByAssociatedKeys"})
_ADDRESSED = {IP, CIDR}
_OF_ADDRESSES = frozenset(
    {one.name for one in DECLARATIONS if _ADDRESSED & {*one.parameters, one.result}} - {"string"}
    | {"isIP", "isCIDR", "ip.isCanonical"}
)
_OF_VERSIONS = frozenset(one.name for one in DECLARATIONS if SEMVER in (*one.parameters, one.result)) | {"isSemver"}
_MACHINERY = frozenset({"@not_strictly_false"})

Row = tuple[str, str]
Cell = tuple[str, str, str]


def kind_of(node: Node) -> str | None:
    """The kind of a node; None for what macros are made of."""
    match node:
        case Const():
            return "literal"
        case Ident(name=name):
            return None if name.startswith(("@", "#")) else "name"
        case Select(test_only=test_only):
            return "has" if test_only else "field"
        case ListExpr():
            return "list"
        case StructExpr():
            return "map"
        case Comprehension():
            return _macro(node)
        case Call(function=function) if function not in _MACHINERY:
            return _function(function, node)
    return None


def _macro(node: Comprehension) -> str:
    two = " of two" if node.variable2 else ""
    match node.step, node.init:
        case Const(value=bool()) | Ident(), _ if isinstance(node.range, ListExpr) and not node.range.elements:
            return "bind"
        case Call(function="_||_"), _:
            return f"exists{two}"
        case Call(function="_&&_"), _:
            return f"all{two}"
        case _, Const(value=0):
            return f"exists_one{two}"
        case Call(function="_?_:_"), _:
            return f"filter{two}"
    return f"map{two}"


def _function(function: str, node: Call) -> str:
    if function == "or":
        return "or else"
    if group := _GROUPS.get(function):
        return group
    if function in _CONVERSIONS:
        return "conversion"
    if function in _LISTS or function == "lists.range" or (function == "reverse" and len(node.args) == 1):
        return "lists"
    head = function.partition(".")[0]
    if head in ("math", "sets", "regex"):
        return head
    if function in _OF_ADDRESSES or function in _OF_VERSIONS:
        return "addresses" if function in _OF_ADDRESSES else "versions"
    return "times" if function.startswith("get") else "strings"


def rows(checked: Checked) -> frozenset[Row]:
    """The kinds of its nodes with their types: each once, however often it is there."""
    return frozenset((kind, _type(checked, node)) for node in walk(checked.root) if (kind := kind_of(node)) is not None)


def cells(checked: Checked, outcomes: Iterable[str]) -> Iterable[Cell]:
    """The cells that a case fills."""
    found = rows(checked)
    for outcome in outcomes:
        for kind, type_ in found:
            yield kind, type_, outcome if outcome in OUTCOMES else OTHER


def _type(checked: Checked, node: Node) -> str:
    name = checked.type_of(node).name.partition("<")[0]  # of a variable that holds an optional: optional_type<STRING>
    if name in OPAQUE:
        return name.rpartition(".")[2]
    return "message" if name.startswith("kubernetes.") else name.removesuffix("_type")


def show(counts: Counter[Cell]) -> str:
    """The table, a line for each kind and type."""
    heads = ("value", *(name.removeprefix("abort ") for name in OUTCOMES[1:]))
    lines = [f"{'node':<16}{'type':<10}" + "".join(f"{head[:11]:>12}" for head in heads)]
    for kind, type_ in sorted({cell[:2] for cell in counts}):
        row = "".join(f"{counts[kind, type_, outcome]:>12}" for outcome in OUTCOMES)
        lines.append(f"{kind:<16}{type_:<10}{row}")
    return "\n".join(lines)


def low(counts: Counter[Cell], least: int) -> list[Cell]:
    """Cells that have fewer than that, the least first."""
    every = [(kind, type_, outcome) for kind, type_ in {cell[:2] for cell in counts} for outcome in OUTCOMES]
    return sorted((cell for cell in every if counts[cell] < least), key=lambda cell: (counts[cell], cell))
