"""The checked expression that the engine serialises (cel.expr.CheckedExpr), as values of our own.

Read straight from the protobuf wire format: seven messages, of which nothing is ever written.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Type:
    """A type of the language: `list` and `map` and `optional_type` have parameters, messages are known by full name."""

    name: str
    params: tuple["Type", ...] = ()

    def __str__(self) -> str:
        return f"{self.name}<{', '.join(map(str, self.params))}>" if self.params else self.name


DYN: Final = Type("dyn")
OPTIONAL: Final = "optional_type"


@dataclass(frozen=True, slots=True)
class Node:
    """An expression; `id` leads to its type and its place."""

    id: int


@dataclass(frozen=True, slots=True)
class Const(Node):
    """A literal."""

    value: object


@dataclass(frozen=True, slots=True)
class Ident(Node):
    """A name: a variable of the environment, one that a macro binds, or a type."""

    name: str


@dataclass(frozen=True, slots=True)
class Select(Node):
    """`operand.field`, or `has(operand.field)`."""

    operand: Node
    field: str
    test_only: bool


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function or an operator; `args` begin with the target if it is a member."""

    function: str
    args: tuple[Node, ...]
    member: bool = False


@dataclass(frozen=True, slots=True)
class ListExpr(Node):
    """A list literal; elements at `optional` places are optionals that may be absent."""

    elements: tuple[Node, ...]
    optional: frozenset[int]


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a map or message literal."""

    key: "Node | str"
    value: Node
    optional: bool


@dataclass(frozen=True, slots=True)
class StructExpr(Node):
    """A map literal, or a message literal if it has a name."""

    message: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Comprehension(Node):
    """What the macros become: a fold."""

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
    """A checked expression."""

    root: Node
    types: Mapping[int, Type]
    names: Mapping[int, str]  # identifiers as resolved, `variables.x` among them
    overloads: Mapping[int, Sequence[str]]
    positions: Mapping[int, int] = field(default_factory=dict)  # code points from the beginning

    def type_of(self, node: Node) -> Type:
        """The static type."""
        return self.types.get(node.id, DYN)


def children(node: Node) -> tuple[Node, ...]:
    """The expressions directly below, in order of evaluation."""
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
    """All expressions of a tree, parents first."""
    yield node
    for child in children(node):
        yield from walk(child)
