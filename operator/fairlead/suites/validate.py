"""Validation of suites: a case that expects something of a misspelt node, pod or rule could never fail."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from fairlead.api.closest_name import closest_name
from fairlead.api.errors import FieldError, FieldPath
from fairlead.api.parse import show_value
from fairlead.cel.functions.time_text import string_to_timestamp
from fairlead.cel.values.errors import CelError
from fairlead.cel.values.schema import NAMESPACE, NODE, POD, element, messages
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.simulation.as_stored import AMOUNTS
from fairlead.suites.compare import is_called
from fairlead.suites.created_affinity import NOT_PUBLISHED
from fairlead.suites.group_states import NO_GANGS
from fairlead.suites.node_values import FIELD, shape_errors
from fairlead.suites.objects import OURS, CaseInputs, Key
from fairlead.suites.suite import Case, Expect, ExpectedGroup, Object, Suite

_NAMES_MAX = 10


def name_errors(
    expect: Expect, inputs: CaseInputs, policies: Sequence[CompiledPolicy], path: FieldPath
) -> Iterator[FieldError]:
    """Yield an error for every name in a case that does not exist."""
    nodes = [str(node["metadata"]["name"]) for node in inputs.nodes]
    for where, name in _nodes(expect):
        yield from _unknown("node", name, nodes, (*path, *where))
    names = [policy.name for policy in policies]
    for at, name in enumerate(expect.policies or ()):
        yield from _unknown("policy", name, names, (*path, "policies", at))
    filters = [(policy.name, rule.name) for policy in policies for rule in policy.filters]
    filters += [(policy.name, rule.rule) for policy in policies for rule in policy.gangs]
    for node, rejection in expect.rejected.items():
        if rejection.rule is not None:
            yield from _unknown_rule("filter", rejection.rule, filters, (*path, "rejected", node))
    protections = [(policy.name, rule.name) for policy in policies for rule in policy.protections]
    for pod, rule in expect.protected.items():
        yield from _unknown_rule("protection", rule, protections, (*path, "protected", pod))
    for where, name in _pods(expect):
        yield from _lost(name, inputs, (*path, *where))
    if expect.group is not None and not any(policy.gangs for policy in policies):
        yield FieldError((*path, "group"), NO_GANGS, "add one, or remove this")
    if expect.affinity is not None and not any(policy.publishes for policy in policies):
        yield FieldError((*path, "affinity"), NOT_PUBLISHED, "add publish: NodeAffinity to one, or remove this")


def key_of(name: str, inputs: CaseInputs) -> Key | None:
    """Return the key of the placed pod with a name; None unless there is exactly one."""
    keys = _keys(name, inputs)
    return keys[0] if len(keys) == 1 else None


def pods_of(expect: Expect) -> list[str]:
    """Return the placed pods that the expectations name."""
    return [name for _, name in _pods(expect)]


def _nodes(expect: Expect) -> Iterator[tuple[FieldPath, str]]:
    for at, name in enumerate(expect.passed or ()):
        yield ("passed", at), name
    for at, group in enumerate(expect.order or ()):
        yield from ((("order", at), name) for name in group)
    for at, name in enumerate(expect.preferred or ()):
        yield ("preferred", at), name
    for field, names in (("rejected", expect.rejected), ("scores", expect.scores), ("annotations", expect.annotations)):
        yield from (((field, name), name) for name in names)


def _pods(expect: Expect) -> Iterator[tuple[FieldPath, str]]:
    yield from ((("protected", name), name) for name in expect.protected)
    yield from ((("evictable", at), name) for at, name in enumerate(expect.evictable))


def _keys(name: str, inputs: CaseInputs) -> list[Key]:
    space, _, own = name.rpartition("/")
    keys = [(str(pod["metadata"]["namespace"]), str(pod["metadata"]["name"])) for pod in inputs.pods]
    return [key for key in keys if key[1] == own and space in ("", key[0])]


def _lost(name: str, inputs: CaseInputs, path: FieldPath) -> Iterator[FieldError]:
    keys = _keys(name, inputs)
    if not keys:
        yield from _unknown("pod on a node", name, [str(pod["metadata"]["name"]) for pod in inputs.pods], path)
    elif len(keys) > 1:
        several = " and ".join("/".join(key) for key in keys)
        yield FieldError(path, f"several pods have the name {name}", f"write one of {several}")


def _unknown(what: str, name: str, names: Iterable[str], path: FieldPath) -> Iterator[FieldError]:
    names = [*names]
    if name not in names:
        yield FieldError(path, f"there is no {what} {name!r} in this case", _meant(name, names))


def _unknown_rule(what: str, name: str, rules: Sequence[tuple[str, str]], path: FieldPath) -> Iterator[FieldError]:
    if not any(is_called(policy, rule, name) for policy, rule in rules):
        names = [rule for _, rule in rules]
        yield FieldError(path, f"no policy of this suite has a {what} {name!r}", _meant(name, names))


def _meant(name: str, names: Sequence[str]) -> str:
    near = closest_name(name, names)
    if near:
        return f"did you mean {near}?"
    more = f" and {len(names) - _NAMES_MAX} more" if len(names) > _NAMES_MAX else ""
    return f"there are {', '.join(names[:_NAMES_MAX])}{more}" if names else "this case has none"


KINDS: Final = {"namespaces": NAMESPACE, "nodes": NODE, "pods": POD, "waiting": POD}
_ALL_KINDS: Final = {*KINDS.values()}
_WORDS: Final = {"string": "a string", "int": "a whole number", "bool": "true or false", "double": "a number"}
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "int": (int,),
    "bool": (bool,),
    "double": (int, float),
    "dyn": (int, str),
}
_NOTHING: Final = Expect()
_FIELDS_MAX: Final = 12
_NOT_READ: Final = ("managedFields",)  # kubectl may print it, and no rule can read it


def field_errors(suite: Suite) -> Iterator[FieldError]:
    """Yield every error in the objects of a suite."""
    objects = [*_objects(suite)]
    for name, template in suite.templates.items():
        kinds = {kind for one, kind, _ in objects if one.get("from") == name} or _ALL_KINDS
        each = [[*_of_object(template, kind, ("templates", name))] for kind in sorted(kinds)]
        # A template that no object uses must be valid for at least one kind.
        yield from max(each, key=len) if len(kinds) < len(_ALL_KINDS) else min(each, key=len)
    for one, kind, path in objects:
        yield from _of_object(one, kind, path)
    for at, case in enumerate(suite.cases):
        if case.expect == _NOTHING:
            hint = f"its fields are {', '.join(Expect.model_fields)}"
            yield FieldError(("cases", at, "expect"), "expects nothing, so the case cannot fail", hint)
        if case.expect.group == ExpectedGroup():
            hint = f"its fields are {', '.join(ExpectedGroup.model_fields)}"
            yield FieldError(("cases", at, "expect", "group"), "expects nothing of the group", hint)


def _objects(suite: Suite) -> Iterator[tuple[Object, str, FieldPath]]:
    """Yield all objects of a suite with their kinds and paths."""
    where: list[tuple[FieldPath, Suite | Case]] = [((), suite)]
    where += [(("cases", at), case) for at, case in enumerate(suite.cases)]
    for path, of in where:
        for field, kind in KINDS.items():
            yield from ((one, kind, (*path, field, index)) for index, one in enumerate(getattr(of, field)))
        if isinstance(of, Case):
            yield of.pod, POD, (*path, "pod")


def _of_object(value: object, kind: str, path: FieldPath) -> Iterator[FieldError]:
    if isinstance(value, Mapping):
        if kind == NODE and FIELD in value:
            yield from shape_errors(value[FIELD], (*path, FIELD))
            value = {key: one for key, one in value.items() if key != FIELD}
        value = {key: one for key, one in value.items() if key not in OURS}
    yield from _of(value, kind, path)


def _of(value: object, type_: str, path: FieldPath) -> Iterator[FieldError]:
    inner = element(type_)
    if value is None:
        return
    if type_.startswith("list"):
        if isinstance(value, list):
            for at, item in enumerate(value):
                yield from _of(item, inner or "", (*path, at))
        else:
            yield FieldError(path, f"must be a list, not {show_value(value)}", "each item begins with '- '")
    elif type_ in messages() or type_.startswith("map"):
        if isinstance(value, Mapping):
            for key, item in value.items():
                yield from _of_entry(key, item, type_, path)
        else:
            yield FieldError(path, f"must be a map, not {show_value(value)}", _fields_of(type_))
    else:
        yield from _of_value(value, type_, path)


def _of_entry(key: str, item: object, type_: str, path: FieldPath) -> Iterator[FieldError]:
    here = (*path, key)
    if type_ in messages():
        known = messages()[type_]
        if key in known:
            yield from _of(item, known[key], here)
        elif key not in _NOT_READ:
            near = closest_name(key, known)
            yield FieldError(here, "there is no such field", f"did you mean {near}?" if near else _fields_of(type_))
    elif not (path[-1] in AMOUNTS and isinstance(item, int | float) and not isinstance(item, bool)):
        yield from _of(item, element(type_) or "", here)


def _of_value(value: object, type_: str, path: FieldPath) -> Iterator[FieldError]:
    if type_ == "timestamp":
        try:
            string_to_timestamp(str(value))
        except CelError:
            yield FieldError(path, f"{show_value(value)} is not a time", "write it as 2027-01-15T12:00:00Z")
    elif not isinstance(value, _TYPES[type_]) or (isinstance(value, bool) and type_ != "bool"):
        hint = "write it in quotes" if type_ == "string" and not isinstance(value, list | Mapping) else ""
        yield FieldError(path, f"must be {_WORDS.get(type_, 'a number or a string')}, not {show_value(value)}", hint)


def _fields_of(type_: str) -> str:
    fields = messages().get(type_, {})
    return f"its fields are {', '.join(fields)}" if 0 < len(fields) <= _FIELDS_MAX else ""
