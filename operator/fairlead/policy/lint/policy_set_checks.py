"""Warnings about several policies together: annotations, devices and groups of which one loses its own. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from fairlead.api.errors import FieldPath
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import undivided
from fairlead.policy.compile.policy_conflicts import conflicts, layout_conflicts, share_collisions
from fairlead.policy.lint.match_checks import are_apart
from fairlead.policy.symbolic.terms import can_be_together

_SHARES: Final[FieldPath] = ("spec", "binding", "deviceShare")
_GANGS: Final[FieldPath] = ("spec", "binding", "gang")


@dataclass(frozen=True, slots=True)
class PolicyConflict:
    """A field of a policy that loses to another policy."""

    loser: CompiledPolicy
    winner: CompiledPolicy
    path: FieldPath
    """Field of the loser."""
    rule: str
    """Name of the entry, or key of the annotation, that loses."""
    message: str
    """What the winner does; its name stands before it."""
    hint: str


def policy_set_conflicts(policies: Iterable[CompiledPolicy]) -> Iterator[PolicyConflict]:
    """Yield all conflicts, in the order of the policies that lose."""
    ordered = sorted(filter(can_conflict, policies), key=lambda one: one.order)
    for at, one in enumerate(ordered):
        yield from filter(None, _losses(one, ordered[:at]))
    yield from _layouts(ordered)


def conflicts_with(policy: CompiledPolicy, others: Iterable[CompiledPolicy]) -> Iterator[PolicyConflict | None]:
    """Yield the conflicts of one policy with others, and None between two others, so that work can be paused."""
    if not can_conflict(policy):
        return
    ordered = sorted(
        (one for one in others if can_conflict(one) and one.name != policy.name), key=lambda one: one.order
    )
    yield from _losses(policy, [one for one in ordered if one.order < policy.order])
    for one in ordered:
        if one.order > policy.order:
            yield from _losses(one, [policy])
    yield from (one for one in _layouts([*ordered, policy]) if policy in (one.loser, one.winner))


def can_conflict(policy: CompiledPolicy) -> bool:
    """Return whether a policy has anything that another one may have, too."""
    return policy.binds


def _losses(policy: CompiledPolicy, earlier: Sequence[CompiledPolicy]) -> Iterator[PolicyConflict | None]:
    """Yield what a policy loses to earlier ones that may match the same pod, each annotation and share once.

    Its gangs lose once, and also where only conditions keep the two apart: they are taken as true for pods on nodes.
    """
    told, colliding, has_lost_gangs = set[str](), set[int](), False
    for other in earlier:
        yield None
        if other.name == policy.name:
            continue
        keys = {one.key for one in conflicts([other, policy])} - told
        alike = other.enforced and policy.enforced and other.scheduler_name == policy.scheduler_name
        shares = [one for one in share_collisions(other, policy) if one.at not in colliding] if alike else []
        if alike and policy.gangs and other.gangs and not has_lost_gangs and not _are_apart(policy, other):
            has_lost_gangs = True
            said = f"may give the same pods a group before it: {_why_first(other, policy)}"
            name, hint = (
                policy.gangs[0].name,
                "keep their pods apart by namespaces or labels, or put the gangs together",
            )
            yield PolicyConflict(policy, other, (*_GANGS, 0), name, said, hint)
        if not (keys or shares) or not _can_meet(policy, other):
            continue
        told |= keys
        colliding |= {one.at for one in shares}
        why = _why_first(other, policy)
        for key in sorted(keys):
            at = [rule.key for rule in undivided(policy).annotations].index(key)
            said = f"also writes {key} and wins where both match a pod: {why}"
            path = ("spec", "binding", "annotations", at, "key")
            yield PolicyConflict(policy, other, path, key, said, "write another key, or let no pod match both")
        for share in shares:
            name = policy.device_shares[share.at].share.entry.name
            yield PolicyConflict(policy, other, (*_SHARES, share.at), name, f"comes first and {share.why}", share.cure)


def _why_first(winner: CompiledPolicy, loser: CompiledPolicy) -> str:
    return "its priority is higher" if winner.priority > loser.priority else "its name comes first"


def _are_apart(first: CompiledPolicy, second: CompiledPolicy) -> bool:
    return are_apart(first.match.written, second.match.written)


def _can_meet(first: CompiledPolicy, second: CompiledPolicy) -> bool:
    """Return whether some pod may match both."""
    if _are_apart(first, second):
        return False
    return can_be_together(condition.expression for condition in (*first.match.conditions, *second.match.conditions))


def _layouts(policies: Sequence[CompiledPolicy]) -> Iterator[PolicyConflict]:
    """Yield each resource to which a policy gives another layout than the first one, of whatever schedulers."""
    by_name = {one.name: one for one in sorted(policies, key=lambda one: one.order)[::-1]}
    for one in layout_conflicts(policies):
        loser, winner = by_name[one.loser], by_name[one.winner]
        at = [one.resource in rule.share.entry.resources for rule in loser.device_shares].index(True)
        said = f"gives {one.resource} another layout of devices"
        hint = "both grant from the same devices: write the same layout, whatever schedulers and pods they are for"
        name = loser.device_shares[at].share.entry.name
        yield PolicyConflict(loser, winner, (*_SHARES, at, "layout"), name, said, hint)
