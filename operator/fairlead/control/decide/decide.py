"""From the policies of a scheduler and what is there, to what is to be there; pure, however often it is done."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.control.decide.persisted_state import PersistedState
from fairlead.control.decide.retention import retained_wiring, retention_decision
from fairlead.control.decide.rollout import Phase, next_step
from fairlead.control.decide.rollout_observation import RolloutObservation
from fairlead.render.cluster_facts import ClusterFacts, samples_all_nodes
from fairlead.render.extenders import Wiring, wire
from fairlead.render.object_names import Names, digest
from fairlead.render.operator_settings import SchedulerSettings
from fairlead.render.plan import Plan, plan, renewed
from fairlead.render.templates import Object, TemplateEngine, read

Lifecycle = Literal["Stays", "Waits", "Goes"]
CONFIG_MAPS_KEPT: Final = 3
_ENDS_S: Final = 2.0
"""Pods of a scheduler that others are to run from now on."""
_LATE_S: Final = 10.0
"""What was put away and runs all the same may come late: an image that could not be pulled, a node that was missing."""
_UNSEEN: Final = RolloutObservation()
_NO_WIRING: Final = Wiring()
_NOTHING: Final = PersistedState()


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredScheduler:
    """What is asked of the operator about one scheduler."""

    settings: SchedulerSettings
    listed: bool
    policies: Sequence[SchedulerExtenderPolicy]
    """All that name it and can be read, also those that are off."""
    exists: bool = True
    """Whether there is any, readable or not."""
    serving: Wiring = _NO_WIRING
    """What replicas serve needs this: where an edit does not compile, what serves in its place."""
    denied: bool = False
    """Whether it may not be there: it goes though pods wait for it."""
    paused: bool = False
    """Whether it is to stay as it is, but for its certificates."""
    versions: Sequence[str]
    """Of each policy its UID and its generation, and of the operator its version: what a person can change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedScheduler:
    """What is there."""

    rollout: RolloutObservation = _UNSEEN
    config_maps: Mapping[str, Mapping[str, Any]]
    """The configurations that are kept, by their hashes."""
    published: Mapping[str, Any] | None = None
    """What others were given who run the scheduler themselves; None where somebody has edited it."""
    persisted: PersistedState = _NOTHING
    pods: int = 0
    """Its own."""
    unbound: int = 0
    """Pods that wait for a node and name this scheduler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What follows."""

    lifecycle: Lifecycle
    plan: Plan | None = None
    """What is to be there; None: nothing is written."""
    persisted: PersistedState = _NOTHING
    """To be written before the plan is."""
    phase: Phase | None = None
    message: str = ""
    requeue_after_s: float | None = None
    """When to look again though nothing happens."""


def decide_lifecycle(asked: DesiredScheduler, there: ObservedScheduler, now: float) -> Decision:
    """What follows whatever is known of the cluster: whether there is to be a scheduler at all."""
    if not (asked.exists or asked.listed or there.rollout.config or there.persisted != _NOTHING):
        return Decision(lifecycle="Goes", message="no policy uses it, and only leftovers exist")
    uses = wire(asked.policies) | asked.serving if asked.exists else None
    need = retained_wiring(uses, there.persisted.lasting, now)
    fate, why = retention_decision(listed=asked.listed, lasting=need.retention, unbound=there.unbound, now=now)
    if fate == "Goes":
        return Decision(lifecycle=fate, message=why)
    remembered = PersistedState(rollout=there.persisted.rollout, lasting=need.retention)
    return Decision(lifecycle=fate, persisted=remembered, message=why, requeue_after_s=need.requeue_after_s)


def decide(
    engine: TemplateEngine, asked: DesiredScheduler, facts: ClusterFacts, there: ObservedScheduler, now: float
) -> Decision:
    """One pass over one scheduler. Raises InvalidObjectError where the settings cannot be had."""
    first = decide_lifecycle(asked, there, now)
    if first.lifecycle == "Goes":
        return first
    lasting = first.persisted.lasting
    running = there.config_maps.get(there.rollout.config)
    facts = replace(
        facts, asked_all=samples_all_nodes(None if running is None else read(running["data"]["config.yaml"]))
    )
    wanted = plan(engine, asked.settings, lasting.wiring or _NO_WIRING, facts)
    if asked.settings.management == "ConfigOnly":
        if asked.paused and there.published is not None:
            wanted = wanted.with_configuration_of(there.published)
        again_s = _ENDS_S if there.pods else first.requeue_after_s
        return replace(
            first, plan=wanted, persisted=PersistedState(lasting=lasting), phase="Steady", requeue_after_s=again_s
        )
    if asked.paused and running is not None:
        wanted = wanted.rolled_back_to(renewed(running, wanted.names, facts.ca_bundle))
    inputs = digest(asked.settings.model_dump_json(), *sorted(asked.versions))
    done = next_step(wanted.config_hash, inputs, there.persisted.rollout, there.rollout, now)
    chosen: Plan | None = wanted
    message = done.message or first.message
    if done.config != wanted.config_hash:
        kept = there.config_maps.get(done.config)
        chosen = None if kept is None else wanted.rolled_back_to(kept)
        if kept is None:
            message = f"{message}; it cannot be rolled back, because that ConfigMap is gone"
    return replace(
        first,
        plan=chosen,
        persisted=PersistedState(rollout=done.state, lasting=lasting),
        phase=done.phase,
        message=message,
        requeue_after_s=_LATE_S if done.phase == "Rejected" and not there.rollout.failure else first.requeue_after_s,
    )


def objects_to_prune(
    names: Names, decided: Decision, there: ObservedScheduler, found: Sequence[Object]
) -> list[Object]:
    """Of the objects with our label those that are not wanted any more, in the order in which they go.

    While pods are there that are not wanted either, they keep what they call with and may do.
    """
    if decided.plan is None:
        return []
    wanted = {(one["kind"], one["metadata"]["name"]) for one in decided.plan.objects}
    memory = decided.persisted.rollout
    hashes = {memory.good, there.rollout.config, decided.plan.config_hash}
    newest = sorted(
        there.config_maps, key=lambda one: (one in hashes, there.config_maps[one]["metadata"]["creationTimestamp"])
    )[-CONFIG_MAPS_KEPT:]
    kept = {there.config_maps[one]["metadata"]["name"] for one in newest} | {names.state}
    gone = deletion_order(
        [
            one
            for one in found
            if (one["kind"], one["metadata"]["name"]) not in wanted
            and one["kind"] not in _KEPT
            and not (one["kind"] == "ConfigMap" and one["metadata"]["name"] in kept)
        ]
    )
    ends = there.pods and not any(kind == "Deployment" for kind, _ in wanted)
    return [one for one in gone if one["kind"] == "Deployment"] if ends else gone


def deletion_order(objects: Sequence[Object]) -> list[Object]:
    """Who calls goes before what it calls with, and what it may do goes last of all."""
    return sorted(objects, key=lambda one: _FIRST.index(one["kind"]) if one["kind"] in _FIRST else len(_FIRST))


_FIRST: Final = ("Deployment", "PodDisruptionBudget", "NetworkPolicy", "Lease", "ConfigMap", "Secret")
_KEPT: Final = frozenset({"Secret"})
"""Certificates are looked after elsewhere."""
