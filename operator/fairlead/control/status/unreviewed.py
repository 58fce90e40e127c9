"""Generations of policies that no replica reviewed: the API server does not reach the admission check. Pure.

With failurePolicy Ignore such a policy is stored all the same, after a timeout. Only what is certain counts: a
generation that was stored while this leader watched, and while all replicas had been up for a while and stayed up. So
neither a policy from before a restart nor a rollout of the operator is reported. What an earlier leader found is in the
status.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead.control.decide.desired import Obj
from fairlead.control.status.reasons import NOT_REVIEWED
from fairlead.replica_state import ReplicaState

SETTLED_S: Final = 20.0
"""Time that replicas have to be up: by then every API server knows them and their CA."""
KNOWN_S: Final = 10.0
"""Time after which a review must be known: it comes before the policy is stored."""


@dataclass(frozen=True, slots=True)
class _Generation:
    """A generation that is stored."""

    uid: str
    number: int

    def is_reviewed(self, states: Iterable[ReplicaState], policy: str) -> bool:
        known = [found for state in states if (found := state.policies.get(policy)) is not None]
        return any(one.uid == self.uid and one.reviewed >= self.number for one in known)


@dataclass(frozen=True, slots=True)
class _Arrival:
    """A generation of which it is not known yet whether it was reviewed."""

    generation: _Generation
    at: float
    processes: frozenset[str]
    """The replicas that could review it."""


@dataclass(slots=True, eq=False)
class UnreviewedGenerations:
    """Unreviewed generations, as one leader sees them."""

    clock: Callable[[], float]
    _found: dict[str, _Generation] = field(default_factory=dict)
    """By policy; until the generation is reviewed after all, or another one is stored."""
    _arrivals: dict[str, _Arrival] = field(default_factory=dict)
    _since: dict[str, float] = field(default_factory=dict)
    """Time at which each reviewing process was first seen; empty while a replica does not answer or does not review."""

    def __contains__(self, policy: str) -> bool:
        """Return whether no replica reviewed the current generation of a policy."""
        return policy in self._found

    def __iter__(self) -> Iterator[str]:
        """Return the names of the policies whose current generation no replica reviewed."""
        return iter([*self._found])

    def add_stored(self, policy: Mapping[str, Any]) -> None:
        """Take a policy whose generation was stored just now."""
        name = policy["metadata"]["name"]
        self.forget(name)
        now = self.clock()
        if self._since and all(now - since >= SETTLED_S for since in self._since.values()):
            self._arrivals[name] = _Arrival(_generation(policy), now, frozenset(self._since))

    def add_listed(self, policy: Mapping[str, Any]) -> None:
        """Take a policy whose generation may have been stored at any time."""
        name, status = policy["metadata"]["name"], policy.get("status") or {}
        self.forget(name)
        reasons = [one["reason"] for one in status.get("warnings", ())]
        if NOT_REVIEWED in reasons and status.get("observedGeneration") == policy["metadata"]["generation"]:
            self._found[name] = _generation(policy)

    def forget(self, policy: str) -> None:
        """Forget a policy that was deleted or changed."""
        self._arrivals.pop(policy, None)
        self._found.pop(policy, None)

    def on_poll(self, answers: Mapping[str, ReplicaState | str]) -> bool:
        """Take the states of all replicas; return whether the unreviewed generations changed."""
        before, now = dict(self._found), self.clock()
        states = [one for one in answers.values() if isinstance(one, ReplicaState) and one.reviews]
        processes = {one.process for one in states}
        self._since = {one: self._since.get(one, now) for one in processes} if len(states) == len(answers) else {}
        for policy, one in [*self._arrivals.items()]:
            # a replica that is gone may have reviewed it
            if one.generation.is_reviewed(states, policy) or not one.processes <= processes:
                del self._arrivals[policy]
            elif now - one.at >= KNOWN_S:
                del self._arrivals[policy]
                self._found[policy] = one.generation
        for policy, generation in before.items():
            if generation.is_reviewed(states, policy):
                del self._found[policy]
        return self._found != before


def _generation(policy: Obj) -> _Generation:
    return _Generation(policy["metadata"]["uid"], policy["metadata"]["generation"])
