"""Desired PublishedAffinity of each scheduler: what its policies publish, once every replica serves it. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from fairlead.api.mode import mode_of
from fairlead.api.names import API_VERSION, PUBLISHED_KIND, scheduler_of
from fairlead.control.decide.desired import Obj, is_being_deleted
from fairlead.policy.affinity.published_policies import PublishedPolicy, affinity_of_scheduler
from fairlead.render.object_names import MANAGED_BY, MANAGER, OPERATOR_NAMESPACE
from fairlead.replica_state import PolicyState, ReplicaState, ReplicaStates

PUBLISHES: Final = "NodeAffinity"


def publishes(policy: Obj) -> bool:
    """Return whether a policy asks for its node affinity to be published, and is in force."""
    is_asked = (policy.get("spec") or {}).get("publish") == PUBLISHES
    return is_asked and mode_of(policy) not in ("Shadow", "Disabled") and not is_being_deleted(policy)


def desired_affinities(
    policies: Iterable[Obj], states: ReplicaStates, live: Mapping[str, Obj], namespace: str
) -> Mapping[str, Mapping[str, Any]]:
    """Return the desired object of each scheduler that has one. `live` are those that exist, by scheduler.

    They name the namespace of this operator, so that an uninstall of another one leaves them.

    A policy that publishes no more is left out at once. What a new generation publishes waits until that serves on
    every replica: until then the object keeps what it has of the policy.
    """
    by_scheduler: dict[str, list[PublishedPolicy]] = {}
    for policy in sorted(filter(publishes, policies), key=lambda one: str(one["metadata"]["name"])):
        scheduler = scheduler_of(policy)
        kept = _kept(live.get(scheduler), policy["metadata"]["uid"])
        published = _agreed(policy, states, kept)
        if published is not None:
            by_scheduler.setdefault(scheduler, []).append(published)
    return {scheduler: _object(scheduler, published, namespace) for scheduler, published in by_scheduler.items()}


def _states_of(policy: Obj, states: ReplicaStates) -> Sequence[PolicyState]:
    """Return the states of a policy on the replicas that have answered and know it."""
    name, uid = policy["metadata"]["name"], policy["metadata"]["uid"]
    answers = [one.policies.get(name) for one in states.values() if isinstance(one, ReplicaState)]
    return [one for one in answers if one is not None and one.uid == uid]


def _agreed(policy: Obj, states: ReplicaStates, kept: PublishedPolicy | None) -> PublishedPolicy | None:
    """Return what is published of a policy: what all replicas serve, or else what was published before."""
    found = _states_of(policy, states)
    if not found or len(found) < len(states) or len({one.serving for one in found}) != 1:
        return kept
    publications = [one.publication for one in found]
    if any(one is None for one in publications):  # of an older version, or not computed yet
        return kept
    return cast("PublishedPolicy | None", next(one.policy for one in publications if one is not None))


def _kept(live: Obj | None, uid: str) -> PublishedPolicy | None:
    policies = ((live or {}).get("spec") or {}).get("policies") or ()
    found: PublishedPolicy | None = next((one for one in policies if one.get("uid") == uid), None)
    return found


def _object(scheduler: str, policies: Sequence[PublishedPolicy], namespace: str) -> Mapping[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": PUBLISHED_KIND,
        "metadata": {"name": scheduler, "labels": {MANAGED_BY: MANAGER, OPERATOR_NAMESPACE: namespace}},
        "spec": affinity_of_scheduler(scheduler, policies),
    }
