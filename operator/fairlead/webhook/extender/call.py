"""A call of a scheduler: who calls, when, what became of it, and the reply."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from fairlead.policy.evaluate.annotations import Conflict
from fairlead.policy.evaluate.deadline import Clock
from fairlead.policy.evaluate.filter_result import RuleRef
from fairlead.webhook.extender.circuit_breaker import Scope

FailurePolicy = Literal["Fail", "Ignore"]
"""An entry of the scheduler's configuration that filters, by the failure policy of those whom it asks."""


Verb = Literal["filter", "prioritize", "preempt", "bind"]


GUARD: Final[RuleRef] = "", "guard"
"""What refuses pods of namespaces that are guarded: no policy does."""


Result = Literal["passed", "refused", "empty", "error", "unready", "late"]
"""No node was rejected; some were; all were; or the call was answered with an error: of its own, because nothing is
listed yet, or because its body came too slowly."""


class CallClock(NamedTuple):
    """When something is asked: the time of day, and until when the answer must be there, by a clock of its own.

    Neither goes back from one call of a world to the next.
    """

    now: int
    clock: Clock
    deadline: int
    had_enough_time: bool = True
    """Whether there was time enough to call slow who misses the deadline: much of it may go before anybody is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks, and what it was told to do."""

    schedulers: frozenset[str]
    """The names whose pods it may place. It may ask about others: no policy is for them."""
    excluded_namespaces: frozenset[str] = frozenset()
    """Namespaces that a scheduler of ours must not have: what they hold has to run before we can answer."""
    ignore_gate: bool = False
    """Whether it asks the gate Ignore, too: the reasons of the gate Fail are then read even where nodes are left."""
    wants_all_reasons: bool = False
    """ConfigOnly: others write its configuration, and may let more extenders come after ours."""
    resolvable: bool = False
    """Whether its version can evict pods for a node that only an extender refuses: none up to 1.37 can."""
    timeout_s: float | None = None
    """How long it waits for an answer, where that is known of it."""


def exclusion_reason(caller: Caller, namespace: str) -> str | None:
    """Why the caller places no pods of a namespace; None if it may."""
    if namespace not in caller.excluded_namespaces:
        return None
    return f"pods of namespace {namespace} must not depend on Fairlead: give them another scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a call, for metrics and the status."""

    verb: Verb
    result: Result = "passed"
    gate: FailurePolicy | None = None
    pod: str = ""
    """Its UID."""
    candidates: int | None = None
    """Nodes that were asked about; None where nobody counted them, because no policy had a say."""
    refusals: Mapping[RuleRef, int] = field(default_factory=dict)
    """Nodes by the rule that is given as the reason."""
    waits: tuple[str, str] | None = None
    """Namespace and name of the pod, where none of the nodes that it could have gone to is left to it."""
    unknown: tuple[str, ...] = ()
    """Nodes that were refused because the mirror does not know them yet."""
    missed_sample: bool = False
    """The scheduler asked about a part of the nodes, all were refused, and another one would pass."""
    simulated: bool = False
    """The request brought its own nodes."""
    too_slow: str = ""
    """The policy that missed the deadline."""
    switched: Scope | None = None
    """For whom it is switched to its failure policy from now on."""
    conflicts: tuple[Conflict, ...] = ()
    """Annotations that the pod did not get from a policy, because it has them from another one."""
    error: str = ""


@dataclass(frozen=True, slots=True)
class IncomingCall:
    """A call whose caller is known, and may make it."""

    name: str
    """The common name of the caller's certificate."""
    caller: Caller
    body: bytes
    received_ns: int
    """When its head was there, by the clock that deadlines are of."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a caller is sent."""

    body: bytes
    status: int = 200
    refused: str = ""
    """Why the call was refused before any verb: one of a few words, a label of a metric."""


@dataclass(frozen=True, slots=True)
class VerbReply(Reply):
    """What a verb answers, and what became of the call."""

    outcome: Outcome = field(kw_only=True)
