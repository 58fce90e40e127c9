"""Types as text, and the lines of the table of functions: which of them give a type, and of what they make it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from differential.functions import TABLE
from fairlead.cel.values.schema import element, messages

KEYS = ("string", "string", "int", "uint")
NUMBERS = ("int", "uint", "double")
ORDERED = (*NUMBERS, "string", "bool", "bytes", "timestamp", "duration")
DOMAINS = {"K": KEYS, "N": NUMBERS, "O": ORDERED}
ROOTS = {
    "pod": "Pod", "node": "Node", "namespaceObject": "Namespace", "victim": "PlacedPod", "pods": "[PlacedPod]",
    "free": "{string:double}", "requested": "{string:double}", "allocatable": "{string:double}",
    "request": "{string:double}", "data": "{string:double}", "now": "timestamp",
}  # fmt: skip
PATHS = {
    "Pod": ("pod",), "Node": ("node",), "Namespace": ("namespaceObject",), "PlacedPod": ("victim", "pods[0]"),
    "ObjectMeta": ("pod.metadata", "node.metadata", "namespaceObject.metadata"), "PodSpec": ("pod.spec",),
    "PodStatus": ("pod.status",), "NodeSpec": ("node.spec",), "NodeStatus": ("node.status",),
    "PlacedPodMeta": ("victim.metadata",), "PlacedPodSpec": ("victim.spec",), "Container": ("pod.spec.containers[0]",),
    "Toleration": ("pod.spec.tolerations[0]",), "Taint": ("node.spec.taints[0]",),
    "NodeCondition": ("node.status.conditions[0]",), "Probe": ("pod.spec.containers[0].livenessProbe",),
    "HTTPGetAction": ("pod.spec.containers[0].livenessProbe.httpGet",), "Affinity": ("pod.spec.affinity",),
    "OwnerReference": ("pod.metadata.ownerReferences[0]",), "NodeSystemInfo": ("node.status.nodeInfo",),
}  # fmt: skip


@dataclass(frozen=True)
class Production:
    """A line of the table."""

    result: str
    template: str
    takes: tuple[str, ...]
    is_operator: bool


@cache
def productions() -> tuple[Production, ...]:
    made = []
    for line in TABLE.strip().splitlines():
        result, _, rest = line.partition(": ")
        template, _, takes = rest.rpartition(" |")
        is_operator = re.search(r"\} (\S+) \{|^[-!]\{", template) is not None and not template.startswith(("[", "{{"))
        made.append(Production(result, template, tuple(takes.split()), is_operator))
    return tuple(made)


def optional(type_: str) -> str:
    """An optional of a type; an optional is one already."""
    return type_ if type_[0] == "?" else f"?{type_}"


def unify(pattern: str, type_: str, known: dict[str, str]) -> bool:
    """Bind the letters of a pattern so that it is this type."""
    if pattern == "T" or pattern in DOMAINS:
        if pattern in DOMAINS and type_ not in DOMAINS[pattern]:
            return False
        return known.setdefault(pattern, type_) == type_
    if pattern[0] != type_[0] or pattern[0] not in "[{?":
        return pattern == type_
    if pattern[0] == "?":
        return unify(pattern[1:], type_[1:], known)
    if pattern[0] == "[":
        return unify(pattern[1:-1], type_[1:-1], known)
    key, _, value = pattern[1:-1].partition(":")
    other_key, _, other = type_[1:-1].partition(":")
    return unify(key, other_key, known) and unify(value, other, known)


def unified(pattern: str, type_: str) -> dict[str, str] | None:
    """What the letters of a pattern stand for if it is this type."""
    known: dict[str, str] = {}
    return known if unify(pattern, type_, known) else None


def fill(pattern: str, known: Mapping[str, str]) -> str:
    """A pattern with its letters replaced."""
    return re.sub(r"\b[TKNO]\b", lambda match: known[match[0]], pattern)


@cache
def fields_of(type_: str) -> tuple[tuple[str, str], ...]:
    """Messages and their fields that are of a type."""
    return tuple((m, f) for m in PATHS for f, t in messages()[m].items() if own_type(t) == type_)


def own_type(type_: str) -> str:
    """A type of the schema as it is written here."""
    inner = element(type_)
    if inner is None:
        return type_
    return f"[{inner}]" if type_.startswith("list") else f"{{string:{inner}}}"


@cache
def fitting(type_: str) -> Sequence[tuple[Production, Mapping[str, str]]]:
    """The lines that give a type, and what their letters stand for then."""
    return [(line, known) for line in productions() if (known := unified(line.result, type_)) is not None]
