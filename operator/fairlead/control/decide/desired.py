"""Index of the policies, and the desired state of each scheduler; no I/O."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead import __version__
from fairlead.api.errors import InvalidObjectError
from fairlead.api.mode import decides_nothing, mode_of
from fairlead.api.names import GROUP, scheduler_of
from fairlead.api.parse import parse_policy
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.control.decide.decide import DesiredScheduler
from fairlead.render.extenders import Wiring
from fairlead.render.operator_settings import OperatorSettings
from fairlead.replica_state import ReplicaState, ReplicaStates

Obj = Mapping[str, Any]
PAUSED: Final = f"{GROUP}/paused"


@dataclass(slots=True, eq=False)
class PolicyIndex:
    """Index of the policies as the API server has them."""

    model: type[SchedulerExtenderPolicy]
    policies: dict[str, Obj] = field(default_factory=dict)
    """Policies by name, including those that are being deleted."""

    def apply_event(self, kind: str | None, policy: Obj) -> str:
        """Apply a watch event; return the scheduler of the policy."""
        if kind == "DELETED":
            held = self.policies.get(policy["metadata"]["name"])
            # with another UID it is a new policy of that name
            if held is not None and held["metadata"]["uid"] == policy["metadata"]["uid"]:
                del self.policies[policy["metadata"]["name"]]
        else:
            self.policies[policy["metadata"]["name"]] = policy
        return scheduler_of(policy)

    def record_status(self, before: Obj, written: Obj) -> None:
        """Update the index with a status that was written, unless an event brought a newer version.

        The spec is left to the watch, because the event of an edit enqueues the scheduler.
        """
        name = before["metadata"]["name"]
        if self.policies.get(name) is before:
            self.policies[name] = {
                **before,
                "metadata": {**before["metadata"], "resourceVersion": written["metadata"]["resourceVersion"]},
                "status": written.get("status", {}),
            }

    def policies_of(self, scheduler: str) -> list[Obj]:
        """Return the policies of a scheduler, sorted by name."""
        names = [name for name, one in self.policies.items() if scheduler_of(one) == scheduler]
        return [self.policies[name] for name in sorted(names)]

    def first_policy(self, scheduler: str) -> Obj | None:
        """Return the first policy of a scheduler, or with "" of all; None if there is none."""
        names = [name for name, one in self.policies.items() if not scheduler or scheduler_of(one) == scheduler]
        return self.policies[min(names)] if names else None

    def desired_scheduler(self, scheduler: str, settings: OperatorSettings, answers: ReplicaStates) -> DesiredScheduler:
        """Return the desired state of a scheduler. Raises InvalidObjectError if it cannot be managed."""
        living = [one for one in self.policies_of(scheduler) if not is_being_deleted(one)]
        parsed, unreadable = list[SchedulerExtenderPolicy](), False
        for one in living:
            try:
                parsed.append(parse_policy(one, self.model))
            except InvalidObjectError:
                unreadable = unreadable or not decides_nothing(one)
        serving = Wiring(fails=True) if unreadable else Wiring()
        for policy in _serving(answers):
            if policy.scheduler == scheduler and living:
                serving |= Wiring(
                    policy.fails, policy.ignores, policy.scores, policy.binds, policy.hold_s, policy.asks_all
                )
        return DesiredScheduler(
            settings=settings.scheduler(scheduler),
            listed=settings.lists(scheduler),
            policies=parsed,
            serving=serving,
            exists=bool(living),
            metrics_from=settings.network_policy.metrics_from,
            versions=[__version__, *map(edit_id, living)],
        )


def is_being_deleted(policy: Obj) -> bool:
    """Return whether a policy is being deleted."""
    return "deletionTimestamp" in policy["metadata"]


def is_paused(policies: Sequence[Obj]) -> bool:
    """Return whether a policy pauses its scheduler; policies that are disabled or being deleted do not count."""
    return any(
        one["metadata"].get("annotations", {}).get(PAUSED) == "true"
        for one in policies
        if not is_being_deleted(one) and mode_of(one) != "Disabled"
    )


def _serving(answers: ReplicaStates) -> Iterator[Any]:
    for one in answers.values():
        if isinstance(one, ReplicaState):
            yield from one.policies.values()


def edit_id(policy: Obj) -> str:
    """Return an id that changes with every edit of a policy."""
    return f"{policy['metadata']['uid']}/{policy['metadata']['generation']}"
