"""Mistakes that the checker accepts: expressions that always raise an error, or mean something else than they say."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from fairlead.api.closest_name import closest_name
from fairlead.cel.functions.overloads import FUNCTIONS, PATTERN_METHODS
from fairlead.cel.functions.regex import compile_pattern
from fairlead.cel.hints.rewrites import substitute
from fairlead.cel.hints.time_hints import in_hours
from fairlead.cel.syntax.ast import Call, Checked, Const, Ident, Node, Select, walk
from fairlead.cel.syntax.diagnostics import Diagnostic, place
from fairlead.cel.syntax.source_refs import code
from fairlead.cel.syntax.unparse import text as unparsed
from fairlead.cel.values.errors import CelError
from fairlead.cel.values.schema import PACKAGE
from fairlead.cooperative import NODES, Steps, gather_items

NO_RESOURCE: Final = "no pod can request a resource"
"""Beginning of a fault that was there before a hint was followed: types are looked at first."""
_RESOURCES: Final = ("cpu", "ephemeral-storage", "memory", "pods", "storage")
_NICKNAMES: Final = {"mem": "memory", "gpu": "nvidia.com/gpu"}
_AMOUNTS: Final = frozenset({"request", "requested", "allocatable", "free"})
_LITERALS: Final[Mapping[str, str]] = {
    "string_to_timestamp": "write a time such as 2026-01-31T08:00:00Z",
    "string_to_duration": "write a duration such as 90s, 5m or 36h; days are not supported",
    "string_to_quantity": "write a quantity such as 500m, 2, 16Gi or 16G",
    "string_to_int64": "write a whole number",
    "string_to_uint64": "write a whole number that is not negative",
    "string_to_double": "write a number",
    "string_to_bool": "write true or false",
}
_RE2: Final = "RE2 has no globs, lookaheads or backreferences; a literal * is [*]"
_HAS_OF_VARIABLE: Final = re.compile(r"\bhas\(\s*+(variables)\s*+\.\s*+\w++\s*+\)")
_ZONE: Final = re.compile(r"[A-Za-z0-9_+-]{1,32}(?:/[A-Za-z0-9_+-]{1,32}){0,2}")
_OFFSET: Final = re.compile(r"[+-]?(?:[01][0-9]|2[0-3]):[0-5][0-9]")
_WRITE_A_ZONE: Final = "write one such as 'Europe/Berlin', or an offset such as '+02:00'"


def likely_mistakes_steps(text: str, checked: Checked) -> Steps[list[Diagnostic]]:
    """Return all such mistakes in an expression, with pauses."""
    return gather_items(_likely_mistakes(text, checked))


def _likely_mistakes(text: str, checked: Checked) -> Iterator[Diagnostic | None]:
    """Yield the mistakes, and None where a pause may be made."""
    yield None
    for found in _HAS_OF_VARIABLE.finditer(code(text)):
        fault = "has() needs a field, and a variable always exists"
        yield Diagnostic(*place(text, found.start(1)), fault, "use the variable itself")
    for at, node in enumerate(walk(checked.root)):
        if at % NODES == 0:
            yield None
        yield from _unknown_resource(text, checked, node)
        match node:
            case Call(function="_==_" | "_!=_", args=(one, other)) if _is_never_null(checked, one, other):
                sign = node.function.strip("_")
                fault = f"`{sign} null` cannot tell whether a field is set: absent is not null"
                yield Diagnostic(*_place(text, checked, node), fault, "use has(...) or !has(...)")
            case Call(function=function, args=(_, zone)) if function.startswith("get"):
                yield from _invalid_zone(text, checked, node, zone)
            case Call(function="semver", args=(Select(field="kubeletVersion" | "kubeProxyVersion") as version,)):
                fault = "this always raises an error: versions of nodes begin with v"
                made = f"semver({unparsed(version)}, true)"
                followed = substitute(checked.root, node, made)
                yield Diagnostic(*_place(text, checked, node), fault, f"write `{made}`", followed)
            case Call(args=args):
                yield from _always_raises(text, checked, node, args)


def _unknown_resource(text: str, checked: Checked, node: Node) -> Iterator[Diagnostic]:
    """Find resources that no pod can request: they have no prefix and are none of Kubernetes' own."""
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
        hint = f"did you mean `{near}`?" if near else "extended resources have a prefix, as in nvidia.com/gpu"
        yield Diagnostic(*place(text, at), f"{NO_RESOURCE} `{key}`", hint)


def _is_never_null(checked: Checked, first: Node, second: Node) -> bool:
    """Return whether an object or a time is compared with null."""
    for value, constant in ((first, second), (second, first)):
        if isinstance(constant, Const) and constant.value is None:
            type_ = checked.type_of(value).name
            return type_.startswith(f"{PACKAGE}.") or type_ in ("timestamp", "duration")
    return False


def _always_raises(text: str, checked: Checked, node: Call, args: tuple[Node, ...]) -> Iterator[Diagnostic | None]:
    """Find string literals that cannot be converted, and patterns that do not compile."""
    overloads = checked.overloads.get(node.id, ())
    if len(overloads) != 1:
        return
    (overload,) = overloads
    literal = args[0] if overload in _LITERALS else args[1] if overload in PATTERN_METHODS and len(args) > 1 else None
    if not isinstance(literal, Const) or not isinstance(literal.value, str):
        return
    try:
        if overload in _LITERALS:
            FUNCTIONS[overload](literal.value)
        else:
            yield None
            compile_pattern(literal.value)
    except CelError as error:
        fault = f"this always raises an error: {error.message}"
        hint, hours = _LITERALS.get(overload, _RE2), in_hours(literal.value)
        if overload == "string_to_duration" and hours != literal.value:
            made = f"duration('{hours}')"
            followed = substitute(checked.root, node, made)
            yield Diagnostic(*_place(text, checked, literal), fault, f"there are no days: write `{made}`", followed)
            return
        yield Diagnostic(*_place(text, checked, literal), fault, hint)


def _invalid_zone(text: str, checked: Checked, node: Node, zone: Node) -> Iterator[Diagnostic | None]:
    """Find time zones that do not exist or are computed.

    The engine opens whatever file a time zone names, blocks until it has read it, and caches every name: it gets only
    names of the system's database, and offsets.
    """
    if not isinstance(zone, Const) or not isinstance(zone.value, str):
        yield Diagnostic(*_place(text, checked, node), "a time zone must be a literal", _WRITE_A_ZONE)
        return
    if not _is_zone(zone.value):
        yield Diagnostic(*_place(text, checked, zone), "there is no such time zone", _WRITE_A_ZONE)
    yield None


@lru_cache(maxsize=1_024)
def _is_zone(name: str) -> bool:
    """Return whether a time zone of this name exists; the empty one is UTC."""
    if not name or _OFFSET.fullmatch(name):
        return True
    if not _ZONE.fullmatch(name):
        return False
    try:
        ZoneInfo.no_cache(name)
    except (KeyError, ValueError, OSError):
        return False
    return True


def _place(text: str, checked: Checked, node: Node) -> tuple[int, int]:
    return place(text, checked.positions.get(node.id, 0))
