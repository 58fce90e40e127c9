"""A call of a scheduler: the caller, its deadline, the outcome and the reply."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol

from fairlead.grants.entry import Grant
from fairlead.groups.group import Group
from fairlead.policy.compile.policy_conflicts import Conflict
from fairlead.policy.evaluate.deadline import Clock
from fairlead.policy.evaluate.filter_result import Filtered, RuleRef
from fairlead.policy.evaluate.matching import Matched
from fairlead.webhook.extender.circuit_breaker import CircuitScope
from fairlead.webhook.extender.requests import Victims

FailurePolicy = Literal["Fail", "Ignore"]
"""Failure policy of an extender entry in the scheduler's configuration, and of the policies that this entry calls."""


Verb = Literal["filter", "prioritize", "preempt", "bind"]


GUARD: Final[RuleRef] = "", "guard"
"""Pseudo-rule that rejects pods of excluded namespaces."""


CallResult = Literal["passed", "refused", "empty", "error", "unready", "late"]
"""All nodes passed; some were rejected; all were rejected; or the call failed: with an error, because the mirror is not
complete yet, or because its body came too late.
"""


DEADLINE_SHARE: Final = 0.8
"""Share of the scheduler's timeout within which a call is answered: a reply after the timeout is lost."""


class CallClock(NamedTuple):
    """The time of day, and the deadline on a clock of its own.

    Neither goes back from one call of a serving state to the next.
    """

    now: int
    clock: Clock
    deadline_ns: int
    had_enough_time: bool = True
    """Whether there was enough time to blame a policy for missing the deadline: the wait before the policies are
    evaluated may take most of it.
    """
    hold_deadline_ns: int | None = None
    """Deadline of a bind while it is held for others of a group; None if the caller waits for none that long."""

    @property
    def held_until_ns(self) -> int:
        """Return the deadline of a bind that is held: the ordinary one where the caller does not wait longer."""
        return self.deadline_ns if self.hold_deadline_ns is None else self.hold_deadline_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A scheduler, with its settings."""

    schedulers: frozenset[str]
    """Scheduler names whose pods it may place. It may ask about other pods: no policy applies to them."""
    excluded_namespaces: frozenset[str] = frozenset()
    """Namespaces whose pods it must not place: their pods have to run before Fairlead can answer."""
    ignore_entry: bool = False
    """Whether it also calls the entry Ignore: then it reads the reasons of the entry Fail even if nodes are left."""
    wants_all_reasons: bool = False
    """True for ConfigOnly: others write its configuration, and more extenders may follow ours."""
    resolvable: bool = False
    """Whether its version can evict pods for a node that only an extender rejects: none up to 1.37 can."""
    timeout_s: float | None = None
    """How long it waits for a reply; None if unknown."""
    bind_timeout_s: float | None = None
    """How long it waits for the reply to a bind, by the policies that hold members of groups; None if none does."""
    asks_a_sample: bool = False
    """Whether its settings have it ask about a part of the nodes, however many are needed."""


def exclusion_reason(caller: Caller, namespace: str) -> str | None:
    """Return why the caller must not place pods of this namespace; None if it may."""
    if namespace not in caller.excluded_namespaces:
        return None
    return f"pods of namespace {namespace} must not depend on Fairlead: give them another scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Outcome of a call, for metrics and the status."""

    verb: Verb
    result: CallResult = "passed"
    entry: FailurePolicy | None = None
    pod: str = ""
    """UID of the pod."""
    candidates: int | None = None
    """Nodes in the request; None if they were not counted, because no policy applies."""
    refusals: Mapping[RuleRef, int] = field(default_factory=dict)
    """Rejected nodes by the rule that is the reason."""
    waits: tuple[str, str] | None = None
    """Namespace and name of a pod that was left without a node."""
    group: Group | None = None
    """Group of which that pod is a member."""
    waits_for_group: bool = False
    """Whether it was left without a node because of its group."""
    is_held: bool = False
    """Whether the pod is a member of a group that has not started, whose bind waits for others and may be refused."""
    unknown: tuple[str, ...] = ()
    """Nodes that were rejected because the mirror does not hold them yet."""
    missed_sample: bool = False
    """Whether all nodes of the scheduler's sample were rejected while a node outside of it passes."""
    simulated: bool = False
    """Whether the request brought its own nodes."""
    too_slow: str = ""
    """The policy that missed the deadline; "" if none did."""
    switched: CircuitScope | None = None
    """Pods for which its circuit opened; None if it did not."""
    conflicts: tuple[Conflict, ...] = ()
    """Annotations that a policy did not write because another policy had written them."""
    error: str = ""


@dataclass(frozen=True, slots=True)
class IncomingCall:
    """A call of an authorized caller."""

    name: str
    """Common name of the caller's certificate."""
    caller: Caller
    body: bytes
    received_ns: int
    """When its head was complete, on the clock of the deadlines."""
    is_abandoned: Callable[[], bool] = lambda: False
    """Returns whether the caller has closed the connection, and so takes the call for failed."""
    address: str = ""
    """Address that the connection comes from, or of a call that was passed on: that of the scheduler's process."""
    is_passed_on: bool = False
    """Whether another replica has passed it on, so that it is not passed on again."""


class NamedPod(Protocol):
    """A pod that has at least a name."""

    @property
    def namespace(self) -> str:
        """Namespace of the pod."""

    @property
    def name(self) -> str:
        """Name of the pod."""


class Considered(NamedTuple):
    """Pod and nodes of a call, as far as the call got. Only references, as most calls are not listened to."""

    pod: NamedPod
    nodes: Sequence[str] | None = None
    """Names in the request; None if they were not read, because no policy decides about the pod."""
    passed: Sequence[str] | None = None
    rejected: Filtered | Mapping[RuleRef, Sequence[str]] | None = None
    """Rejected nodes by rule, or what they can be computed from before the next call."""
    points: Sequence[int] = ()
    grant: Grant | None = None
    matched: Sequence[Matched] = ()
    """Policies that apply to the pod, for filter."""
    reason: str = ""
    """Reason for which every node was rejected, if not by what `rejected` says."""
    written: bytes | None = None
    """Names in the request as they were written, of a filter that read none of them and so rejected none."""
    victims: Mapping[str, Victims] | None = None
    """Pods that may be evicted, by candidate of a preemption."""


@dataclass(slots=True)
class Reply:
    """Reply to a caller."""

    body: bytes
    status: int = 200
    refused: str = ""
    """Why the call was refused before any verb: one of a few fixed texts, a metric label. "" if it was not."""
    sent: Callable[[], None] | None = field(default=None, compare=False)
    """Called once the reply was sent, or cannot be."""


@dataclass(slots=True)
class VerbReply(Reply):
    """Reply of a verb, with the outcome of the call."""

    outcome: Outcome = field(kw_only=True)
    considered: Considered | None = field(default=None, kw_only=True, compare=False)
    """Pod and nodes; None if the call failed before they were known."""
