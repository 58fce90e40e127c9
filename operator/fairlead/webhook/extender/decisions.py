"""Decisions: a call of a scheduler and what came of it, for those who listen.

A listener is called after the reply was sent and before the next call is answered, so that it costs no call anything.
What it reads of a decision is computed at that time, from caches that the next call may change: read it then, and keep
no decision.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from msgspec import Struct

from fairlead.grants.entry import Grant
from fairlead.logs import FaultError, RateLimiter
from fairlead.policy.evaluate.filter_result import Filtered, RuleRef
from fairlead.policy.evaluate.matching import PolicySet
from fairlead.webhook.extender.call import Caller, Considered, Outcome, Verb

LOG: Final = logging.getLogger(__name__)
_NO_GRANT: Final[Grant] = {}


class PodRef(NamedTuple):
    """A pod; namespace and name are empty if the call could not be read that far."""

    namespace: str
    name: str
    uid: str


class Decision(Struct, frozen=True, eq=False):
    """A call of a scheduler and what came of it."""

    outcome: Outcome
    caller: Caller
    policies: PolicySet | None
    """The policies that decided; None if the call was answered before they were asked."""
    answered_ns: int
    """When the reply was ready, on the clock of the deadlines."""
    received_ns: int = 0
    """When the call was received, on the same clock."""
    considered: Considered | None = None
    """Pod and nodes; None if the call failed before they were known."""
    position: int = 0
    """Position in the journal of the nodes when the reply was ready."""
    size: int = 0
    """Bytes of the request."""

    @property
    def verb(self) -> Verb:
        """Verb of the call."""
        return self.outcome.verb

    @property
    def pod(self) -> PodRef:
        """Pod of the call."""
        pod = None if self.considered is None else self.considered.pod
        return PodRef("", "", self.outcome.pod) if pod is None else PodRef(pod.namespace, pod.name, self.outcome.pod)

    @property
    def candidates(self) -> Sequence[str] | None:
        """Names of the nodes of the call; None if they were not read, because no policy decides about the pod."""
        return None if self.considered is None else self.considered.nodes

    @property
    def passed(self) -> Sequence[str] | None:
        """Candidates that no rule rejected, or to which the pod was bound."""
        return None if self.considered is None else self.considered.passed

    @property
    def rejected(self) -> Mapping[RuleRef, Sequence[str]]:
        """Names of rejected candidates that are known, by the rule that is the reason."""
        rejected = None if self.considered is None else self.considered.rejected
        if rejected is None:
            return {}
        return rejected.names_by_rule if isinstance(rejected, Filtered) else rejected

    @property
    def points(self) -> Mapping[str, int]:
        """Points of the candidates as they were sent, by name."""
        considered = self.considered
        if considered is None or considered.nodes is None:
            return {}
        return dict(zip(considered.nodes, considered.points, strict=False))

    @property
    def node(self) -> str:
        """Node to which the pod was bound; "" for other verbs, and if it was not bound."""
        passed = self.passed
        return passed[0] if self.verb == "bind" and passed else ""

    @property
    def grant(self) -> Grant:
        """Devices that were granted with the bind, by device share."""
        grant = None if self.considered is None else self.considered.grant
        return _NO_GRANT if grant is None else grant


Listener = Callable[[Decision], None]


@dataclass(slots=True, eq=False)
class Listeners:
    """Listeners to decisions. A fault of one keeps neither the others nor the next call from going on."""

    each: Sequence[Listener] = ()
    rate_limiter: RateLimiter = field(default_factory=RateLimiter)

    def add(self, listener: Listener) -> None:
        """Let a listener hear each decision from now on."""
        if listener not in self.each:
            self.each = (*self.each, listener)

    def discard(self, listener: Listener) -> None:
        """Let a listener hear no more decisions."""
        if listener in self.each:
            self.each = tuple(one for one in self.each if one != listener)

    def tell(
        self,
        outcome: Outcome,
        caller: Caller,
        policies: PolicySet | None,
        answered_ns: int,
        considered: Considered | None,
        received_ns: int = 0,
        position: int = 0,
        size: int = 0,
    ) -> None:
        """Pass a decision to each listener, once its reply was sent."""
        decision = Decision(outcome, caller, policies, answered_ns, received_ns, considered, position, size)
        for listener in self.each:
            try:
                listener(decision)
            except Exception as error:
                if (more := self.rate_limiter.allow(decision.verb)) is not None:
                    extra = {"verb": decision.verb, "pod": outcome.pod, **more}
                    LOG.exception("decision_listener.fault", exc_info=FaultError(error), extra=extra)
