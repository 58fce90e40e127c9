"""Loop steps that a rule may take, and the time it may take on the engine, reckoned before it runs.

The worst case is a cluster at the limits of Kubernetes: 5,000 nodes with 250 pods each. Lists inside an object are
short, and parts that depend on the pod alone are computed once and not for each node. `estimate` bounds the sizes, here
for common objects instead of hostile ones.
"""

from collections.abc import Collection, Mapping
from math import inf
from typing import Final

from fairlead.cel.analysis.estimate import Estimate
from fairlead.cel.analysis.expression_reads import Path, reads
from fairlead.cel.analysis.node_facts import VARIABLES
from fairlead.cel.analysis.sizes import SizeLimits
from fairlead.cel.analysis.trace import is_loop
from fairlead.cel.syntax.ast import Checked, Ident, ListExpr, Node, children
from fairlead.cel.values.schema import NODE, element, messages

NODES: Final = 5_000
PODS: Final = 250
FIELD: Final = 5  # containers, taints, conditions, labels of most objects
UNKNOWN: Final = 100  # elements of what split() and others compute
BUDGET: Final = 10_000_000
OF_POD: Final = frozenset({"pod", "namespaceObject", "request", "now"})

_COMMON: Final = SizeLimits(text=UNKNOWN - 1, annotations=UNKNOWN - 1, elements=FIELD, pods=PODS, range=UNKNOWN)


def _steps(estimate: Estimate, checked: Checked, node: Node) -> int:
    """Return the loop steps of one evaluation of a part."""
    if isinstance(node, Ident) and (full := checked.names.get(node.id, "")).startswith(VARIABLES):
        inner = estimate.variables[full.removeprefix(VARIABLES)]
        return _steps(estimate, inner, inner.root)
    steps = [_steps(estimate, checked, part) for part in children(node)]
    if not is_loop(node) or (isinstance(node.range, ListExpr) and not node.range.elements):
        return sum(steps)
    range_, init, condition, step, result = steps
    size = estimate.size(checked, node.range).most
    return range_ + init + (UNKNOWN if size == inf else int(size)) * (1 + condition + step) + result


def worst_case(checked: Checked, variables: Mapping[str, Checked]) -> int:
    """Return the loop steps of a rule over all nodes of the largest cluster."""
    steps = _steps(Estimate(checked, variables, _COMMON), checked, checked.root)
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
