"""Tree of an expression as the engine parses and checks it (cel.expr.CheckedExpr), in classes of our own.

`ast_decode` reads it straight from the protobuf wire format: seven messages, and nothing is ever written.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Type:
    """Type of a value. `list`, `map` and `optional_type` have parameters; messages have their full name."""

    name: str
    params: tuple["Type", ...] = ()

    def __str__(self) -> str:
        return f"{self.name}<{', '.join(map(str, self.params))}>" if self.params else self.name


DYN: Final = Type("dyn")
OPTIONAL: Final = "optional_type"


@dataclass(frozen=True, slots=True)
class Node:
    """Expression; `id` leads to its type and its position."""

    id: int


@dataclass(frozen=True, slots=True)
class Const(Node):
    """Literal."""

    value: object


@dataclass(frozen=True, slots=True)
class Ident(Node):
    """Name of a variable of the environment, of one that a macro binds, or of a type."""

    name: str


@dataclass(frozen=True, slots=True)
class Select(Node):
    """Selection `operand.field`, or `has(operand.field)`."""

    operand: Node
    field: str
    test_only: bool


@dataclass(frozen=True, slots=True)
class Call(Node):
    """Call of a function or an operator; `args` begin with the target of a method."""

    function: str
    args: tuple[Node, ...]
    member: bool = False


@dataclass(frozen=True, slots=True)
class ListExpr(Node):
    """List literal; elements at the `optional` positions are optionals that may be absent."""

    elements: tuple[Node, ...]
    optional: frozenset[int]


@dataclass(frozen=True, slots=True)
class StructEntry:
    """Entry of a map or message literal."""

    key: "Node | str"
    value: Node
    optional: bool


@dataclass(frozen=True, slots=True)
class StructExpr(Node):
    """Map literal, or a message literal if it has a name."""

    message: str
    entries: tuple[StructEntry, ...]


@dataclass(frozen=True, slots=True)
class Comprehension(Node):
    """Fold that a macro expands to."""

    variable: str
    variable2: str
    range: Node
    accumulator: str
    init: Node
    condition: Node
    step: Node
    result: Node


@dataclass(frozen=True, slots=True)
class Checked:
    """Checked expression, or one that was only parsed: then it has no types, names and overloads."""

    root: Node
    types: Mapping[int, Type]
    names: Mapping[int, str]  # identifiers as resolved, `variables.x` among them
    overloads: Mapping[int, Sequence[str]]
    positions: Mapping[int, int] = field(default_factory=dict)  # code points from the beginning

    def type_of(self, node: Node) -> Type:
        """Return the static type of a node."""
        return self.types.get(node.id, DYN)


def children(node: Node) -> tuple[Node, ...]:
    """Return the expressions directly below a node, in order of evaluation."""
    match node:
        case Select():
            return (node.operand,)
        case Call():
            return node.args
        case ListExpr():
            return node.elements
        case StructExpr():
            return tuple(part for entry in node.entries for part in (entry.key, entry.value) if isinstance(part, Node))
        case Comprehension():
            return (node.range, node.init, node.condition, node.step, node.result)
    return ()


def walk(node: Node) -> Iterator[Node]:
    """Yield all expressions of a tree, parents first."""
    yield node
    for child in children(node):
        yield from walk(child)
