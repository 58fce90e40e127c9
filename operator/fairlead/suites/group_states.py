"""States of groups that people write, as `groups: [{namespace, value, state}]` of a suite, and groups as expected."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, NoReturn

from fairlead.api.closest_name import closest_name
from fairlead.api.errors import FieldError, FieldPath, InvalidObjectError
from fairlead.groups.group import Group, group_hash
from fairlead.groups.turns import PublishedRest, PublishedTurn, Turns
from fairlead.policy.explain.explanation import NodeExplained, RuleExplained, Step
from fairlead.policy.explain.group_explained import GroupExplained, GroupsOfPods
from fairlead.suites.suite import Case, ExpectedGroup, GivenGroup, Suite
from fairlead.time_units import SECOND_NS

_MINUTE_S: Final = 60
_NAMES_MAX: Final = 10
NO_GANGS: Final = "no policy of this suite has an entry of binding.gang"


class GivenGroupState(NamedTuple):
    """State of a group, and the path at which it is written."""

    path: FieldPath
    group: GivenGroup


def states_by_group(suite: Suite, at: int) -> dict[tuple[str, str], GivenGroupState]:
    """Return the states of groups in a case by namespace and value: those of the case, else those of the suite.

    Raises InvalidObjectError if two groups have the turn.
    """
    found = dict[tuple[str, str], GivenGroupState]()
    for path, of in _levels(suite, at):
        for index, one in enumerate(of.groups):
            found[one.namespace, one.value] = GivenGroupState((*path, "groups", index), one)
    turns = [one for one in found.values() if one.group.state == "Turn"]
    if turns[1:]:
        first, last = turns[0].group, turns[-1]
        said = f"{first.namespace}/{first.value} has the turn already, and a scheduler places one group at a time"
        _fail((*last.path, "state"), said, f"give one of them another state, such as {first.value}: Waiting")
    return found


def give_states(
    states: Mapping[tuple[str, str], GivenGroupState],
    groups: GroupsOfPods,
    own: Group,
    now: int,
) -> None:
    """Let groups have the states that a case says; `own` is that of its pod, with its scheduler. Value "": none.

    Raises InvalidObjectError.
    """
    if states and not groups:
        first = next(iter(states.values()))
        _fail(first.path, NO_GANGS, "add one, or remove the state")
    scheduler, now_s = own.scheduler, now / SECOND_NS
    turns = Turns()
    for path, one in states.values():
        group = Group(scheduler, one.namespace, one.value)
        if path[0] == "cases" and one.state in ("Started", "Resting") and group != own:
            _check_known(group, groups, own, path)
        if one.state == "Started":
            groups.start(group)
        elif one.state == "Resting":
            rest = PublishedRest(until=now_s + _MINUTE_S, attempt=1)
            turns = Turns(turns.turn, {**turns.rests, group_hash(group): rest})
        elif one.state == "Turn":
            turn = PublishedTurn(group_hash(group), now_s, now_s + _MINUTE_S, held_members=0, size=0, attempt=1)
            turns = Turns(turn, turns.rests)
    groups.turns[scheduler] = turns


def group_difference(wanted: ExpectedGroup, group: GroupExplained | None) -> tuple[str, str] | None:
    """Return what is expected of a pod's group and what is so, in words; None if these are the same."""
    expected = {name: one for name, one in wanted.model_dump().items() if one is not None}
    if group is not None and group.verdict == "Undecided":
        return _in_words(expected), f"cannot be decided: {group.why}"
    actual: Mapping[str, object] = {"name": ""}
    if group is not None:
        actual = {"name": group.value, "size": group.size, "known": group.known, "started": group.started}
    got = {name: actual.get(name) for name in expected}
    return None if got == expected else (_in_words(expected), "in no group" if group is None else _in_words(got))


def _in_words(fields: Mapping[str, object]) -> str:
    if fields.get("name") == "":
        return "in no group"
    started = "started" if fields.get("started") else "not started"
    return ", ".join(started if name == "started" else f"{name} {value}" for name, value in fields.items())


def _check_known(group: Group, groups: GroupsOfPods, own: Group, path: FieldPath) -> None:
    """Raise InvalidObjectError for a group that no pod of a case is in: its state would change nothing."""
    if groups.index.known(group) or groups.index.is_placed(group):
        return
    there = sorted({f"{one.namespace}/{one.value}" for one in (own, *groups.index.groups()) if one.value})
    name = f"{group.namespace}/{group.value}"
    near = closest_name(name, there)
    listed = f"there are {', '.join(there[:_NAMES_MAX])}" if there else "no pod of it is in any"
    hint = f"did you mean {near}?" if near else listed
    _fail((*path, "value"), f"no pod of this case is in the group {name}", hint)


def _levels(suite: Suite, at: int) -> Iterator[tuple[FieldPath, Suite | Case]]:
    yield (), suite
    yield ("cases", at), suite.cases[at]


def _fail(path: FieldPath, message: str, hint: str) -> NoReturn:
    raise InvalidObjectError([FieldError(path, message, hint)])


def as_filter_judges(node: NodeExplained, group: GroupExplained | None, steps: Sequence[Step]) -> NodeExplained:
    """Return the rules on a node with what filter says first: whether the pod may be placed as a member of its group.

    `steps` are what the group was computed from.
    """
    if group is None:
        return node
    if group.reason:  # no other rule is asked
        rule = RuleExplained(group.policy, group.rule, "Rejected", group.reason, steps=steps)
        return replace(node, passed=False, filters=[rule], scores=[])
    return replace(node, filters=[RuleExplained(group.policy, group.rule, "Passed", steps=steps), *node.filters])
