"""Whether what a case expects is about things that there are: a misspelt node would otherwise never be refused."""

from collections.abc import Iterable, Iterator, Sequence

from fairlead.api.errors import FieldError, FieldPath
from fairlead.api.nearest import nearest
from fairlead.policy.compiled import CompiledPolicy
from fairlead.suites.compare import is_called
from fairlead.suites.objects import Asked, Key
from fairlead.suites.suite import Expect

_LISTED_MAX = 10


def faults(expect: Expect, asked: Asked, policies: Sequence[CompiledPolicy], path: FieldPath) -> Iterator[FieldError]:
    """Everything that is not there."""
    nodes = [str(node["metadata"]["name"]) for node in asked.nodes]
    for where, name in _nodes(expect):
        yield from _unknown("node", name, nodes, (*path, *where))
    names = [policy.name for policy in policies]
    for at, name in enumerate(expect.policies or ()):
        yield from _unknown("policy", name, names, (*path, "policies", at))
    filters = [(policy.name, rule.name) for policy in policies for rule in policy.filters]
    for node, refusal in expect.refused.items():
        if refusal.rule is not None:
            yield from _unknown_rule("filter", refusal.rule, filters, (*path, "refused", node))
    protections = [(policy.name, rule.name) for policy in policies for rule in policy.protections]
    for pod, rule in expect.protected.items():
        yield from _unknown_rule("protection", rule, protections, (*path, "protected", pod))
    for where, name in _pods(expect):
        yield from _lost(name, asked, (*path, *where))


def key_of(name: str, asked: Asked) -> Key | None:
    """The pod on a node that a case calls so, if there is one and only one."""
    keys = _keys(name, asked)
    return keys[0] if len(keys) == 1 else None


def pods_of(expect: Expect) -> list[str]:
    """The pods on nodes that it speaks of."""
    return [name for _, name in _pods(expect)]


def _nodes(expect: Expect) -> Iterator[tuple[FieldPath, str]]:
    for at, name in enumerate(expect.passed or ()):
        yield ("passed", at), name
    for at, group in enumerate(expect.order or ()):
        yield from ((("order", at), name) for name in group)
    for at, name in enumerate(expect.preferred or ()):
        yield ("preferred", at), name
    for field, names in (("refused", expect.refused), ("scores", expect.scores), ("annotations", expect.annotations)):
        yield from (((field, name), name) for name in names)


def _pods(expect: Expect) -> Iterator[tuple[FieldPath, str]]:
    yield from ((("protected", name), name) for name in expect.protected)
    yield from ((("evictable", at), name) for at, name in enumerate(expect.evictable))


def _keys(name: str, asked: Asked) -> list[Key]:
    space, _, own = name.rpartition("/")
    keys = [(str(pod["metadata"]["namespace"]), str(pod["metadata"]["name"])) for pod in asked.pods]
    return [key for key in keys if key[1] == own and space in ("", key[0])]


def _lost(name: str, asked: Asked, path: FieldPath) -> Iterator[FieldError]:
    keys = _keys(name, asked)
    if not keys:
        yield from _unknown("pod on a node", name, [str(pod["metadata"]["name"]) for pod in asked.pods], path)
    elif len(keys) > 1:
        several = " and ".join("/".join(key) for key in keys)
        yield FieldError(path, f"several pods are called {name}", f"say which one: {several}")


def _unknown(what: str, name: str, names: Iterable[str], path: FieldPath) -> Iterator[FieldError]:
    names = [*names]
    if name not in names:
        yield FieldError(path, f"there is no {what} {name!r} in this case", _meant(name, names))


def _unknown_rule(what: str, name: str, rules: Sequence[tuple[str, str]], path: FieldPath) -> Iterator[FieldError]:
    if not any(is_called(policy, rule, name) for policy, rule in rules):
        names = [rule for _, rule in rules]
        yield FieldError(path, f"no policy of this suite has a {what} {name!r}", _meant(name, names))


def _meant(name: str, names: Sequence[str]) -> str:
    near = nearest(name, names)
    if near:
        return f"did you mean {near}?"
    more = f" and {len(names) - _LISTED_MAX} more" if len(names) > _LISTED_MAX else ""
    return f"there are {', '.join(names[:_LISTED_MAX])}{more}" if names else "there is none at all"
