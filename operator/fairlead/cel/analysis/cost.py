"""Loop steps that a rule may take, and the time it may take on the engine, reckoned before it runs.

The worst case is a cluster at the limits of Kubernetes: 5,000 nodes with 250 pods each. Lists inside an object are
short, literals have the elements that they have, and parts that depend on the pod alone are computed once and not for
each node. `estimate` bounds a single evaluation for hostile objects; this is about the whole cluster with common ones.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from fairlead.cel.analysis.expression_reads import Path, reads
from fairlead.cel.analysis.node_facts import VARIABLES
from fairlead.cel.syntax.ast import (
    Call,
    Checked,
    Comprehension,
    Const,
    Ident,
    ListExpr,
    Node,
    Select,
    StructExpr,
    children,
)
from fairlead.cel.values.schema import NODE, element, messages

NODES: Final = 5_000
PODS: Final = 250
FIELD: Final = 5  # containers, taints, conditions, labels of most objects
UNKNOWN: Final = 100  # elements of what split() and others compute
BUDGET: Final = 10_000_000
OF_POD: Final = frozenset({"pod", "namespaceObject", "request", "now"})

_KEEPING: Final = ("filter", "sort", "reverse", "distinct", "slice", "@sortByAssociatedKeys")


@dataclass(frozen=True, slots=True)
class _Estimate:
    """Estimate for one expression and the policy's variables."""

    checked: Checked
    variables: Mapping[str, Checked]

    def steps(self, node: Node, sizes: Mapping[str, int]) -> int:
        """Return the loop steps of one evaluation."""
        match node:
            case Ident() if (name := self.variable(node)) is not None:
                inner = self.variables[name]
                return _Estimate(inner, self.variables).steps(inner.root, {})
            case Comprehension(range=ListExpr(elements=())):
                bound = {**sizes, node.accumulator: self.size(node.init, sizes)}
                return self.steps(node.init, sizes) + self.steps(node.result, bound)
            case Comprehension():
                size = self.size(node.range, sizes)
                bound = {**sizes, node.accumulator: size}
                bound |= dict.fromkeys((node.variable, node.variable2), FIELD)
                inside = sum(self.steps(part, bound) for part in (node.condition, node.step))
                return self.steps(node.range, sizes) + size * (1 + inside) + self.steps(node.result, bound)
        return sum(self.steps(child, sizes) for child in children(node))

    def size(self, node: Node, sizes: Mapping[str, int]) -> int:
        """Return the number of elements of a list or a map."""
        match node:
            case Ident(name=name) if name in sizes:
                return sizes[name]
            case Ident() if (variable := self.variable(node)) is not None:
                inner = self.variables[variable]
                return _Estimate(inner, self.variables).size(inner.root, {})
            case Ident():
                return PODS if self.checked.names.get(node.id) == "pods" else FIELD
            case Select():
                return FIELD
            case ListExpr(elements=elements):
                return len(elements)
            case StructExpr(entries=entries):
                return len(entries)
            case Comprehension(range=ListExpr(elements=())):
                return self.size(node.result, {**sizes, node.accumulator: self.size(node.init, sizes)})
            case Comprehension():
                return self.size(node.range, sizes)
            case Call(function="_+_", args=(left, right)):
                return self.size(left, sizes) + self.size(right, sizes)
            case Call(function="orValue" | "or", args=(left, right)):
                return max(self.size(left, sizes), self.size(right, sizes))
            case Call(function="_?_:_", args=(_, left, right)):
                return max(self.size(left, sizes), self.size(right, sizes))
            case Call(function="lists.range", args=(Const(value=int(size)),)):
                return max(size, 0)
            case Call(function=function, args=(first, *_)) if function in _KEEPING:
                return self.size(first, sizes)
            case Call(function="_[_]" | "_[?_]" | "_?._" | "value"):
                return FIELD
        return UNKNOWN

    def variable(self, node: Ident) -> str | None:
        """Return the name of the policy's variable that an identifier stands for; None for any other."""
        full = self.checked.names.get(node.id, "")
        return full.removeprefix(VARIABLES) if full.startswith(VARIABLES) else None


def worst_case(checked: Checked, variables: Mapping[str, Checked]) -> int:
    """Return the loop steps of a rule over all nodes of the largest cluster."""
    steps = _Estimate(checked, variables).steps(checked.root, {})
    is_of_pod = all(path[0] in OF_POD for path in reads(checked, variables))
    return steps if is_of_pod else steps * NODES


ENGINE_BUDGET: Final = 25.0
"""Microseconds for a node that a rule on the engine may take."""
ENGINE_COST: Final = 300_000
"""Units of the meter that an evaluation on the engine may cost, where nothing counts them while it runs."""
_SCALARS: Final = frozenset({"string", "int", "bool", "double", "timestamp", "dyn"})
_CALL, _SCALAR, _SEVERAL, _WHOLE_NODE, _STEP = 8.0, 2.0, 10.0, 400.0, 1.0
"""Microseconds of a call, of converting a value, several values or a whole node, and of a loop step; rounded up."""


def engine_time(paths: Collection[Path], steps: int) -> float:
    """Return the microseconds that a rule may take for a node on the engine; 0 if it depends on the pod alone."""
    if all(path[0] in OF_POD for path in paths):
        return 0.0
    read = {path[:1] if path[0] == "pods" else path for path in paths if path[0] not in OF_POD}
    return _CALL + steps * _STEP + sum(map(_conversion, read))


def _conversion(path: Path) -> float:
    if path[0] == "pods":
        return PODS * (_CALL + _SEVERAL)
    if path[0] != "node":
        return _SCALAR
    if len(path) == 1:
        return _WHOLE_NODE
    type_ = NODE
    for step in path[1:]:
        inner = element(type_)
        if inner is not None:  # the step is a key of a map
            return _SCALAR
        type_ = messages()[type_][step]
    return _SCALAR if type_ in _SCALARS else _SEVERAL
