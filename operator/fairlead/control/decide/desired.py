"""Which policies there are, and what they ask of each scheduler; no I/O."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead import __version__
from fairlead.api.errors import InvalidObjectError
from fairlead.api.names import DEFAULT_SCHEDULER_NAME, GROUP
from fairlead.api.parse import parse_policy
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.control.decide.decide import DesiredScheduler
from fairlead.render.extenders import Wiring
from fairlead.render.operator_settings import OperatorSettings
from fairlead.replica_state import ReplicaState

Obj = Mapping[str, Any]
PAUSED: Final = f"{GROUP}/paused"


@dataclass(slots=True, eq=False)
class PolicyIndex:
    """As the API server has told."""

    model: type[SchedulerExtenderPolicy]
    policies: dict[str, Obj] = field(default_factory=dict)
    """By their names; also those that are being deleted."""

    def apply_event(self, kind: str | None, policy: Obj) -> str:
        """Something has happened to a policy; the scheduler that it is for."""
        if kind == "DELETED":
            held = self.policies.get(policy["metadata"]["name"])
            if held is not None and held["metadata"]["uid"] == policy["metadata"]["uid"]:  # else one has come after it
                del self.policies[policy["metadata"]["name"]]
        else:
            self.policies[policy["metadata"]["name"]] = policy
        return scheduler_of(policy)

    def record_status(self, before: Obj, written: Obj) -> None:
        """Take the policy as a status was written to it, unless an event has told of a newer one.

        An edit that came with it is left to the watch: it is the event of an edit that enqueues the scheduler.
        """
        name = before["metadata"]["name"]
        if self.policies.get(name) is before:
            self.policies[name] = {
                **before,
                "metadata": {**before["metadata"], "resourceVersion": written["metadata"]["resourceVersion"]},
                "status": written.get("status", {}),
            }

    def policies_of(self, scheduler: str) -> list[Obj]:
        """Those that are for it, by their names."""
        names = [name for name, one in self.policies.items() if scheduler_of(one) == scheduler]
        return [self.policies[name] for name in sorted(names)]

    def desired_scheduler(
        self, scheduler: str, settings: OperatorSettings, answers: Mapping[str, ReplicaState | str]
    ) -> DesiredScheduler:
        """What is asked about a scheduler. Raises InvalidObjectError for one that cannot be had."""
        living = [one for one in self.policies_of(scheduler) if not is_leaving(one)]
        parsed, unreadable = list[SchedulerExtenderPolicy](), False
        for one in living:
            try:
                parsed.append(parse_policy(one, self.model))
            except InvalidObjectError:
                unreadable = True
        serving = Wiring(fails=True) if unreadable else Wiring()
        for policy in _serving(answers):
            if policy.scheduler == scheduler and living:
                serving |= Wiring(policy.fails, policy.ignores, policy.scores, policy.binds)
        return DesiredScheduler(
            settings=settings.scheduler(scheduler),
            listed=settings.lists(scheduler),
            policies=parsed,
            serving=serving,
            exists=bool(living),
            versions=[__version__, *map(edit_id, living)],
        )


def scheduler_of(policy: Obj) -> str:
    """The scheduler that a policy is for."""
    found = policy.get("spec", {}).get("schedulerName")
    return found if isinstance(found, str) and found else DEFAULT_SCHEDULER_NAME


def is_leaving(policy: Obj) -> bool:
    """Whether it is being deleted."""
    return "deletionTimestamp" in policy["metadata"]


def is_paused(policies: Sequence[Obj]) -> bool:
    """Whether one of them says that its scheduler is to stay as it is; one that is off, or goes, has no say in it."""
    return any(
        one["metadata"].get("annotations", {}).get(PAUSED) == "true"
        for one in policies
        if not is_leaving(one) and one.get("spec", {}).get("mode") != "Disabled"
    )


def _serving(answers: Mapping[str, ReplicaState | str]) -> Iterator[Any]:
    for one in answers.values():
        if isinstance(one, ReplicaState):
            yield from one.policies.values()


def edit_id(policy: Obj) -> str:
    """Becomes another with all that a person writes into a policy."""
    return f"{policy['metadata']['uid']}/{policy['metadata']['generation']}"
