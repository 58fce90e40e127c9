"""The annotations that policies write when a pod is bound."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from fairlead.policy.compiled import CompiledPolicy
from fairlead.policy.facts import NodeView, PodView
from fairlead.policy.nodes import Nodes
from fairlead.policy.rules import RAISED, raised
from fairlead.policy.select import Matched

MAX_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two policies want one annotation; the later one's is not written."""

    key: str
    winner: str
    loser: str


@dataclass(slots=True)
class Annotations:
    """What is written; or why the pod is not bound."""

    values: dict[str, str] = field(default_factory=dict)
    refusal: str | None = None
    conflicts: list[Conflict] = field(default_factory=list)


def annotations(pod: PodView, matched: Sequence[Matched], nodes: Nodes, node: str, now: int) -> Annotations:
    """The annotations for a pod that is bound to a node, in the order of the policies."""
    made = Annotations()
    owner: dict[str, str] = {}
    slot = nodes.slots.get(node)
    for each in matched:
        view = nodes.seen_by(each.policy.name, bool(each.policy.data))(slot) if slot is not None else None
        if each.undecided:
            continue
        _write(each.policy, pod, view, now, made, owner)
        if made.refusal:
            return made
    return made


def _write(
    policy: CompiledPolicy, pod: PodView, view: NodeView | None, now: int, made: Annotations, owner: dict[str, str]
) -> None:
    for rule in policy.annotations:
        if rule.key in pod.annotations:
            continue  # what the pod has is never replaced
        if rule.key in owner:
            made.conflicts.append(Conflict(rule.key, owner[rule.key], policy.name))
            continue
        why = f"policy {policy.name} cannot compute the annotation {rule.key}"
        try:
            if view is None:
                value = None
            else:
                value = str(rule.expression.for_pod(pod)(view, now))
        except RAISED as error:
            value, why = None, f"{why}: {raised(error).detail}"
        if value is not None and len(value.encode()) > MAX_BYTES:
            value, why = None, f"{why}: it has more than {MAX_BYTES} bytes"
        if value is not None:
            made.values[rule.key] = value
            owner[rule.key] = policy.name
        elif rule.rejects_on_error:
            made.refusal = why
            return


def conflicts(policies: Sequence[CompiledPolicy]) -> list[Conflict]:
    """Annotation keys that several policies of one scheduler write, whichever pods they match."""
    found: list[Conflict] = []
    owner: dict[tuple[str, str], str] = {}
    for policy in policies:
        for rule in policy.annotations:
            key = (policy.scheduler_name, rule.key)
            if key in owner:
                found.append(Conflict(rule.key, owner[key], policy.name))
            else:
                owner[key] = policy.name
    return found
