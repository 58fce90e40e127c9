"""Paths that an expression reads, from the variables of the environment.

`pod.metadata.labels['gpu']` reads `("pod", "metadata", "labels", "gpu")`. A path stands for everything below it, and
ends at a list, since any of its elements may be meant. Only for `pods` and `victim` it continues into the fields of the
pods, because the mirror keeps only the fields that are read.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from fairlead.cel.analysis.node_facts import VARIABLES
from fairlead.cel.syntax.ast import Call, Checked, Comprehension, Const, Ident, ListExpr, Node, Select, children

Path = tuple[str, ...]
_OPTIONAL_ACCESS: Final = ("_[_]", "_[?_]", "_?._")
OF_PODS: Final = ("pods", "victim")
_Bound = Mapping[str, Path | None]


def reads(checked: Checked, variables: Mapping[str, Checked]) -> frozenset[Path]:
    """Return all paths that an expression reads, with the policy's variables resolved; none is below another."""
    found = set(_walk(checked, variables, checked.root, {}))
    return frozenset(path for path in found if path[0] in OF_PODS or not _covered(path, found))


def _covered(path: Path, paths: set[Path]) -> bool:
    return any(path[:end] in paths for end in range(1, len(path)))


def _walk(checked: Checked, variables: Mapping[str, Checked], node: Node, bound: _Bound) -> Iterator[Path]:
    match node:
        case Ident() if node.name not in bound and (name := _variable(checked, node)):
            if name in variables:
                yield from reads(variables[name], variables)
            return
        case Comprehension():
            yield from _walk_fold(checked, variables, node, bound)
            return
    path = _path(checked, node, bound)
    if path is not None:
        yield path
        yield from _keys(checked, variables, node, bound)
        return
    for child in children(node):
        yield from _walk(checked, variables, child, bound)


def _keys(checked: Checked, variables: Mapping[str, Checked], node: Node, bound: _Bound) -> Iterator[Path]:
    """Yield the paths that are read to compute the keys along a path."""
    match node:
        case Select(operand=holder):
            yield from _keys(checked, variables, holder, bound)
        case Call(function="@in"):
            return
        case Call(args=(holder, *rest)):
            yield from _keys(checked, variables, holder, bound)
            for key in rest:
                yield from _walk(checked, variables, key, bound)


def _walk_fold(
    checked: Checked, variables: Mapping[str, Checked], node: Comprehension, bound: _Bound
) -> Iterator[Path]:
    yield from _walk(checked, variables, node.range, bound)
    inner = dict(bound)
    is_bind = isinstance(node.range, ListExpr) and not node.range.elements
    inner[node.accumulator] = _path(checked, node.init, bound) if is_bind else None
    if inner[node.accumulator] is None:
        yield from _walk(checked, variables, node.init, bound)
    else:
        yield from _keys(checked, variables, node.init, bound)
    element = _path(checked, node.range, bound)
    is_list = checked.type_of(node.range).name == "list"
    for name in (node.variable, node.variable2):
        inner[name] = element if is_list else None
    if node.variable2:
        inner[node.variable] = None
    for part in (node.result,) if is_bind else (node.condition, node.step, node.result):
        yield from _walk(checked, variables, part, inner)


def _path(checked: Checked, node: Node, bound: _Bound) -> Path | None:
    """Return the path that an expression is; None if it is none."""
    match node:
        case Ident(name=name):
            if name in bound:
                return bound[name]
            full = checked.names.get(node.id, name)
            return None if full.startswith(VARIABLES) or checked.type_of(node).name == "type" else (full,)
        case Select(operand=holder, field=field):
            return _below(checked, holder, field, bound)
        case Call(function=function, args=(holder, Const(value=str(key)))) if function in _OPTIONAL_ACCESS:
            return _below(checked, holder, key, bound)
        case Call(function="@in", args=(Const(value=str(key)), holder)):
            return _below(checked, holder, key, bound) if checked.type_of(holder).name == "map" else None
        case Call(function="_[_]" | "_[?_]", args=(holder, _)):
            return _path(checked, holder, bound)
    return None


def _below(checked: Checked, holder: Node, field: str, bound: _Bound) -> Path | None:
    path = _path(checked, holder, bound)
    if path is None or _is_element(checked, holder, path):
        return path
    return (*path, field)


def _is_element(checked: Checked, holder: Node, path: Path) -> bool:
    """Return whether a path has already passed through a list, where it ends."""
    if path[0] in OF_PODS:
        return False
    return _through_list(checked, holder)


def _through_list(checked: Checked, node: Node) -> bool:
    match node:
        case Select(operand=holder):
            return _through_list(checked, holder)
        case Call(args=(holder, *_)):
            inner = checked.type_of(holder)
            name = inner.params[0].name if inner.name == "optional_type" else inner.name
            return name == "list" or _through_list(checked, holder)
    return False


def _variable(checked: Checked, node: Ident) -> str | None:
    full = checked.names.get(node.id, "")
    return full.removeprefix(VARIABLES) if full.startswith(VARIABLES) else None
