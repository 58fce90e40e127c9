"""Conditions of a policy, from what is known of it; pure.

Users read `Ready` first, so it repeats the first problem: its reason, and what to do about it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from fairlead.api.mode import Mode
from fairlead.control.decide.rollout import RolloutPhase

Value = Literal["True", "False", "Unknown"]
Condition = Mapping[str, Any]
Reason = Literal[
    # Accepted
    "Accepted", "SchedulerRefused", "CRDOutdated", "InvalidSpec",
    # Compiled
    "Compiled", "LastGoodServes", "NothingServes", "NotCompiled", "InternalError",
    # Programmed
    "Programmed", "Shadow", "Disabled", "Pending", "ReplicaSilent", "ReplicaBehind", "TooSlow", "Rolling",
    "ConfigurationRejected", "SchedulerUnavailable", "Forbidden", "ReconcileFailed", "Paused",
    # DataReady
    "DataReady", "DataStale", "DataMissing", "PollFailed",
    # LearnedStateUnreadable
    "LearnedStateUnreadable",
    # Published
    "Exact", "Wider", "NotInstalled", "NothingToPublish", "MatchNotPublishable",
    # Ready, Reconciling and Stalled
    "Ready", "Progressing",
    # Programmed, DataReady, LearnedStateUnreadable and Ready, after the operator was uninstalled
    "Uninstalled",
]  # fmt: skip
_MESSAGE_MAX: Final = 4096
_NAMED: Final = 3
_NOT_APPLIED = "it is disabled, and no rule of it is applied"
_DECIDES_NOTHING = {"Shadow": "it is in shadow, and no rule of it decides", "Disabled": _NOT_APPLIED}


@dataclass(frozen=True, slots=True)
class ConditionValue:
    """Status of a condition, and why."""

    value: Value
    reason: Reason
    message: str = ""


_READY: Final[Mapping[Mode, ConditionValue]] = {
    "Enforce": ConditionValue("True", "Ready", "its rules serve"),
    "Shadow": ConditionValue("True", "Shadow", "it is in shadow: its rules are evaluated and decide nothing"),
    "Disabled": ConditionValue("True", "Disabled", "it is disabled: its rules are compiled but never applied"),
}
_PROGRAMMED: Final[Mapping[Mode, ConditionValue]] = {
    "Enforce": ConditionValue("True", "Programmed"),
    "Shadow": ConditionValue("True", "Shadow"),
    "Disabled": ConditionValue("True", "Disabled"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSummary:
    """State of one policy on one replica."""

    name: str
    silent: str = ""
    """Why the replica's state is unknown; empty if it answered."""
    serving: str | None = None
    """The generation that the replica serves, or would serve if the policy were not disabled."""
    mode: str = ""
    """The mode in which it applies the policy; "" if it does not say."""
    slow: bool = False
    """True if the policy's circuit is open for all pods."""
    missing: str = ""
    """A permission that the replica misses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionInputs:
    """Inputs of the conditions of one policy."""

    generation: int
    mode: Mode = "Enforce"
    refused: str = ""
    """Why its scheduler cannot be managed, and what to do about it."""
    crd_outdated: str = ""
    """Fields that it has lost because the CRD is older than the operator."""
    invalid: str = ""
    """What is wrong with the policy itself although it compiles."""
    compiled: Reason | None = None
    """Result of compiling this generation; None while it is being compiled."""
    fault: str = ""
    """Why it does not compile."""
    replicas: Sequence[ReplicaSummary] = ()
    phase: RolloutPhase | None = None
    """Phase of the scheduler's configuration; None until the first reconcile."""
    rollout_message: str = ""
    missing_permission: str = ""
    """The missing permission for which the reconcile failed."""
    failure: str = ""
    """Why else the reconcile failed."""
    missing_permissions: Sequence[str] = ()
    """Permissions that are missing for anything else."""
    paused: bool = False
    data: ConditionValue | None = None
    """Whether its measured values are there; None if it has none."""
    published: ConditionValue | None = None
    """Condition of the node affinity that it publishes; None if it publishes none."""
    unreadable: Sequence[str] = ()
    """Faults of what its rules have learned, where it cannot be read."""


def serving_generation(known: ConditionInputs) -> int | None:
    """Return the generation that every replica that answered serves; None if there is none, or they differ."""
    found = {one.serving for one in known.replicas if not one.silent}
    (serving,) = found if len(found) == 1 else (None,)
    return int(serving) if serving is not None and serving.isdecimal() else None


def conditions(known: ConditionInputs, before: Iterable[Condition], now: str) -> list[Condition]:
    """Return all conditions, in the order in which they come true; `now` is in the API's format."""
    accepted, compiled, programmed = _accepted(known), _compiled(known), _programmed(known)
    wrong = next((one for one in (accepted, compiled, programmed) if one.value != "True"), None)
    ready = _READY[known.mode] if wrong is None else wrong
    moves = wrong is not None and wrong.reason in _MOVING
    stalls = wrong is not None and wrong.reason in _STALLED
    values: dict[str, ConditionValue] = {
        "Accepted": accepted,
        "Compiled": compiled,
        "Programmed": programmed,
        **({"DataReady": known.data} if known.data is not None else {}),
        **({"Published": known.published} if known.published is not None else {}),
        **({"LearnedStateUnreadable": _unreadable(known.unreadable)} if known.unreadable else {}),
        "Ready": ready,
        "Reconciling": ConditionValue("True", "Progressing", ready.message)
        if moves
        else ConditionValue("False", ready.reason),
        "Stalled": ConditionValue("True", ready.reason, ready.message)
        if stalls
        else ConditionValue("False", ready.reason),
    }
    old = {one["type"]: one for one in before}
    return [condition_of(name, one, known.generation, old.get(name), now) for name, one in values.items()]


_MOVING: Final[frozenset[Reason]] = frozenset({"Pending", "ReplicaBehind", "Rolling"})
"""Problems that resolve by themselves."""
_STALLED: Final[frozenset[Reason]] = frozenset(
    {
        "SchedulerRefused",
        "CRDOutdated",
        "InvalidSpec",
        "LastGoodServes",
        "NothingServes",
        "NotCompiled",
        "ConfigurationRejected",
    }
)
"""Problems that stay until a user changes something."""


def _accepted(known: ConditionInputs) -> ConditionValue:
    if known.refused:
        return ConditionValue("False", "SchedulerRefused", known.refused)
    if known.crd_outdated:
        return ConditionValue("False", "CRDOutdated", known.crd_outdated)
    if known.invalid:
        return ConditionValue("False", "InvalidSpec", known.invalid)
    return ConditionValue("True", "Accepted")


def _compiled(known: ConditionInputs) -> ConditionValue:
    if known.compiled is None and known.replicas and all(one.silent for one in known.replicas):
        return _silent(known.replicas)
    if known.compiled is None:
        return ConditionValue("Unknown", "Pending", "it is being compiled")
    if known.compiled == "NotCompiled":
        why = _DECIDES_NOTHING.get(known.mode, _NOT_APPLIED)
        return ConditionValue("False", "NotCompiled", f"{why}; it does not compile: {known.fault}")
    return ConditionValue("True" if known.compiled == "Compiled" else "False", known.compiled, known.fault)


def _programmed(known: ConditionInputs) -> ConditionValue:
    """Return whether the policy is in effect: in every replica, and in its scheduler."""
    problems = [*_missing_permission(known), *_replicas(known), *_scheduler(known)]
    if problems:
        first = min(problems, key=lambda one: _ORDER.index(one.reason))
        rest = [one.message for one in problems if one is not first]
        return ConditionValue(first.value, first.reason, "; ".join([first.message, *rest]))
    return _PROGRAMMED[known.mode]


_ORDER: Final[Sequence[Reason]] = (
    "Forbidden",
    "ReconcileFailed",
    "ConfigurationRejected",
    "Paused",
    "SchedulerUnavailable",
    "ReplicaSilent",
    "TooSlow",
    "Rolling",
    "ReplicaBehind",
    "Pending",
)
"""Order of problems: those that do not resolve by themselves come first."""


def _missing_permission(known: ConditionInputs) -> Iterator[ConditionValue]:
    for one in known.missing_permissions:
        yield ConditionValue("False", "Forbidden", one)
    if found := [one for one in known.replicas if one.missing]:
        yield ConditionValue("False", "Forbidden", f"{_named(found)}: {found[0].missing}")


def _replicas(known: ConditionInputs) -> Iterator[ConditionValue]:
    if not known.replicas:
        yield ConditionValue("Unknown", "Pending", "no replica has been polled yet")
    if silent := [one for one in known.replicas if one.silent]:
        yield _silent(silent)
    in_another_mode = [one for one in known.replicas if _is_in_another_mode(one, known.mode)]
    if behind := in_another_mode or [one for one in known.replicas if _is_behind(one, known)]:
        yield ConditionValue("False", "ReplicaBehind", f"{_named(behind)}: {_served_by(behind[0], known)}")
    if slow := [one for one in known.replicas if one.slow]:
        message = "missed the deadline twice in a minute, so its failurePolicy answers for 5 minutes"
        hint = "make its rules cheaper, or raise the scheduler's timeout"
        yield ConditionValue("False", "TooSlow", f"{_named(slow)}: {message}; {hint}")


def _is_in_another_mode(replica: ReplicaSummary, mode: Mode) -> bool:
    # A replica that is too old to say its mode does not know Shadow, and enforces what it serves.
    is_old = mode == "Shadow" and not replica.mode and replica.serving is not None
    return not replica.silent and (is_old or replica.mode not in ("", mode))


def _is_behind(replica: ReplicaSummary, known: ConditionInputs) -> bool:
    # Nothing of a policy that does not compile has to serve if it decides nothing.
    is_served = known.mode == "Enforce" or known.compiled in (None, "Compiled")
    return not replica.silent and is_served and replica.serving != str(known.generation)


def _served_by(replica: ReplicaSummary, known: ConditionInputs) -> str:
    if replica.mode in ("Enforce", "") and _is_in_another_mode(replica, known.mode):
        what = "its failurePolicy" if replica.serving is None else f"generation {replica.serving}"
        return f"still applies {what}, although {_DECIDES_NOTHING[known.mode].partition(',')[0]}"
    if replica.mode not in ("", known.mode):
        return "still has it disabled" if replica.mode == "Disabled" else f"still has it in mode {replica.mode}"
    return f"serves generation {replica.serving}" if replica.serving is not None else "does not serve it"


def _scheduler(known: ConditionInputs) -> Iterator[ConditionValue]:
    if known.missing_permission:
        yield ConditionValue("False", "Forbidden", known.missing_permission)
    elif known.failure:
        yield ConditionValue("False", "ReconcileFailed", f"{known.failure}; it will be retried")
    elif known.paused:
        serves = "its rules serve; " if known.mode == "Enforce" else ""
        message = f"{serves}while it is paused, nothing of its scheduler is updated except certificates"
        yield ConditionValue("False", "Paused", message)
    elif known.mode == "Disabled":  # its scheduler has nothing to do for it
        return
    elif known.mode == "Shadow" and known.phase in ("RolledBack", "Rolling"):
        return  # every configuration has the calls that are compared
    elif known.phase in ("RolledBack", "Rejected"):
        yield ConditionValue("False", "ConfigurationRejected", known.rollout_message)
    elif known.phase == "Rolling":
        yield ConditionValue("False", "Rolling", known.rollout_message)
    elif known.phase is None:
        yield ConditionValue("Unknown", "Pending", "its scheduler has not been reconciled yet")
    elif known.rollout_message:
        yield ConditionValue("False", "SchedulerUnavailable", known.rollout_message)


def _unreadable(faults: Sequence[str]) -> ConditionValue:
    more = len(faults) - _NAMED
    message = "; ".join([*faults[:_NAMED], *([f"and {more} more ConfigMaps"] if more > 0 else [])])
    return ConditionValue("True", "LearnedStateUnreadable", message)


def _silent(replicas: Sequence[ReplicaSummary]) -> ConditionValue:
    return ConditionValue("Unknown", "ReplicaSilent", f"{_named(replicas)}: {replicas[0].silent}")


def _named(replicas: Sequence[ReplicaSummary]) -> str:
    names = [one.name for one in replicas]
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def condition_of(kind: str, value: ConditionValue, generation: int, before: Condition | None, now: str) -> Condition:
    """Return a condition as the API has it, with the time since which it has this status."""
    same = before is not None and before.get("status") == value.value
    return {
        "type": kind,
        "status": value.value,
        "observedGeneration": generation,
        "lastTransitionTime": before["lastTransitionTime"] if same and before is not None else now,
        "reason": value.reason,
        # kubectl shows only the first line of a cell
        "message": "; ".join(line.strip() for line in value.message.splitlines())[:_MESSAGE_MAX],
    }
