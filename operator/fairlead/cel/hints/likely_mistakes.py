"""What is legal for the engine and surely a mistake: it means something else than it says, or always raises."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from fairlead.api.closest_name import closest_name
from fairlead.cel.functions.overloads import FUNCTIONS, PATTERN_METHODS
from fairlead.cel.functions.regex import compiled
from fairlead.cel.hints.time_zones import refused_zones
from fairlead.cel.syntax.ast import Call, Checked, Const, Ident, Node, Select, walk
from fairlead.cel.syntax.diagnostics import Diagnostic, place
from fairlead.cel.syntax.source_refs import references
from fairlead.cel.values.errors import CelError
from fairlead.cel.values.schema import PACKAGE
from fairlead.cooperative import NODES, Steps, gathered

_RESOURCES: Final = ("cpu", "ephemeral-storage", "memory", "pods", "storage")
_NICKNAMES: Final = {"cores": "cpu", "mem": "memory", "ram": "memory", "gpu": "nvidia.com/gpu"}
_CURES: Final[Mapping[str, str]] = {
    "string_to_timestamp": "write a moment such as 2026-01-31T08:00:00Z",
    "string_to_duration": "write a duration such as 90s, 5m or 36h; there are no days",
    "string_to_quantity": "write a quantity such as 500m, 2, 16Gi or 16G",
    "string_to_int64": "write a whole number",
    "string_to_uint64": "write a whole number that is not negative",
    "string_to_double": "write a number",
    "string_to_bool": "write true or false",
}


_NEAR: Final = 80  # characters that are looked at on either side of a name
_IN_HAS: Final = re.compile(r"(?s:.*)\bhas\(\s*")
_CLOSES: Final = re.compile(r"\s*\)")
_REFERENCES: Final = 20
_AMOUNTS: Final = frozenset({"request", "requested", "allocatable", "free"})


def never_meant_steps(text: str, checked: Checked) -> Steps[list[Diagnostic]]:
    """Everything of that kind in an expression."""
    return gathered(_never_meant(text, checked))


def _never_meant(text: str, checked: Checked) -> Iterator[Diagnostic | None]:
    """The same, None in between: a pause after some nodes, and after each pattern."""
    for at, (_, start, end) in enumerate(references(text)):
        if at % _REFERENCES == 0:
            yield None
        if _IN_HAS.fullmatch(text, max(0, start - _NEAR), start) and _CLOSES.match(text, end, end + _NEAR):
            fault = "has() asks for a field, and a variable is always there"
            yield Diagnostic(*place(text, start), fault, "use the variable itself")
    for at, node in enumerate(walk(checked.root)):
        if at % NODES == 0:
            yield None
        yield from _resource_of_no_node(text, checked, node)
        match node:
            case Call(function="_==_" | "_!=_", args=(one, other)) if _is_never_null(checked, one, other):
                sign = node.function.strip("_")
                fault = f"`{sign} null` does not ask whether something is there: what is absent is not null"
                yield Diagnostic(*_place(text, checked, node), fault, "ask has(...) or !has(...)")
            case Call(args=args):
                yield from _raises_always(text, checked, node, args)
    yield from refused_zones(text, checked)


def _resource_of_no_node(text: str, checked: Checked, node: Node) -> Iterator[Diagnostic]:
    """Resources without a prefix that are none of Kubernetes' own: no pod can request them."""
    match node:
        case Select(operand=Ident() as holder, field=key):
            at = checked.positions.get(node.id, 0) + 1
        case Call(function="_[_]" | "_[?_]" | "_?._", args=(Ident() as holder, Const(value=str(key)) as constant)):
            at = checked.positions.get(constant.id, 0)
        case Call(function="@in", args=(Const(value=str(key)) as constant, Ident() as holder)):
            at = checked.positions.get(constant.id, 0)
        case _:
            return
    of = checked.names.get(holder.id)
    if of not in _AMOUNTS or "/" in key or key in _RESOURCES or key.startswith(("hugepages-", "attachable-volumes-")):
        return
    near = _NICKNAMES.get(key.lower()) or closest_name(key, _RESOURCES, cutoff=0.8)
    if near or of in ("request", "requested"):
        hint = f"did you mean `{near}`?" if near else "but for Kubernetes' own, all have a prefix, as nvidia.com/gpu"
        yield Diagnostic(*place(text, at), f"no pod can request a resource `{key}`", hint)


def _is_never_null(checked: Checked, one: Node, other: Node) -> bool:
    """Whether an object or a time is compared with null."""
    for value, constant in ((one, other), (other, one)):
        if isinstance(constant, Const) and constant.value is None:
            type_ = checked.type_of(value).name
            return type_.startswith(f"{PACKAGE}.") or type_ in ("timestamp", "duration")
    return False


def _raises_always(text: str, checked: Checked, node: Call, args: tuple[Node, ...]) -> Iterator[Diagnostic | None]:
    """Texts that cannot be read as what they are said to be."""
    overloads = checked.overloads.get(node.id, ())
    if len(overloads) != 1:
        return
    (overload,) = overloads
    constants = [arg for arg in args if isinstance(arg, Const) and isinstance(arg.value, str)]
    try:
        if overload in _CURES and len(args) == 1 and constants:
            FUNCTIONS[overload](constants[0].value)
        elif overload in PATTERN_METHODS and len(args) > 1 and args[1] in constants:
            constants = [arg for arg in constants if arg is args[1]]
            yield None
            compiled(str(constants[0].value))
    except CelError as error:
        hint = _CURES.get(overload, "RE2 has no globs, lookaheads or backreferences; a literal * is [*]")
        yield Diagnostic(*_place(text, checked, constants[0]), f"this always raises: {error.message}", hint)


def _place(text: str, checked: Checked, node: Node) -> tuple[int, int]:
    return place(text, checked.positions.get(node.id, 0))
