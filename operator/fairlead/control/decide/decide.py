"""Decision about a scheduler, from its desired and its observed state; pure and idempotent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.control.decide.deletion import deletion_order
from fairlead.control.decide.persisted_state import PersistedState
from fairlead.control.decide.retention import retained_wiring, retention_decision
from fairlead.control.decide.rollout import RolloutPhase, next_step
from fairlead.control.decide.rollout_observation import RolloutObservation
from fairlead.render.cluster_facts import ALL_UP_TO, ClusterFacts, samples_all_nodes
from fairlead.render.extenders import Wiring, wire
from fairlead.render.object_names import Object, ObjectNames, digest
from fairlead.render.plan import Plan, plan, renewed
from fairlead.render.scheduler_settings import SchedulerSettings
from fairlead.render.templates import TemplateEngine, read

Lifecycle = Literal["Keep", "Retain", "Delete"]
CONFIG_MAPS_KEPT: Final = 3
_CLEANUP_S: Final = 2.0
"""Requeue time while pods of a scheduler that is now ConfigOnly still exist."""
_REJECTED_S: Final = 10.0
"""Requeue time of a rejected configuration that may still start: once its image can be pulled or a node joins."""
_NOT_OBSERVED: Final = RolloutObservation()
_NO_WIRING: Final = Wiring()
_NOTHING: Final = PersistedState()


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredScheduler:
    """Desired state of one scheduler."""

    settings: SchedulerSettings
    listed: bool
    policies: Sequence[SchedulerExtenderPolicy]
    """The policies that name it and can be parsed, including disabled ones."""
    exists: bool = True
    """True if any policy names it, readable or not."""
    serving: Wiring = _NO_WIRING
    """Wiring of the generations that replicas serve: where an edit does not compile, the last good one serves."""
    denied: bool = False
    """True if it may not exist: it is deleted even if pods wait for it."""
    metrics_from: Sequence[Mapping[str, Any]] = ()
    """Peers that may scrape its metrics; empty: all."""
    paused: bool = False
    """True if nothing of it is to change except certificates."""
    versions: Sequence[str]
    """Edit ids of the policies and the version of the operator: everything that users can change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedScheduler:
    """Observed state of one scheduler."""

    rollout: RolloutObservation = _NOT_OBSERVED
    config_maps: Mapping[str, Mapping[str, Any]]
    """ConfigMaps of its configurations, by hash."""
    published: Mapping[str, Any] | None = None
    """The ConfigMap that is published for a ConfigOnly scheduler; None if it was edited by others."""
    persisted: PersistedState = _NOTHING
    pods: int = 0
    """Number of its own pods."""
    pending_pods: int = 0
    """Number of pending pods that name this scheduler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileDecision:
    """Decision about one scheduler."""

    lifecycle: Lifecycle
    plan: Plan | None = None
    """Objects to apply; None if nothing is written."""
    persisted: PersistedState = _NOTHING
    """State to persist before the plan is applied."""
    phase: RolloutPhase | None = None
    message: str = ""
    requeue_after_s: float | None = None
    """Time until the next reconcile if no event comes."""
    asked_nodes: tuple[str, str] | None = None
    """Warning, as reason and message, for policies that need calls with all nodes."""


def decide_lifecycle(desired: DesiredScheduler, observed: ObservedScheduler, now: float) -> ReconcileDecision:
    """Return the part of the decision that needs no cluster facts: whether the scheduler exists at all."""
    if not (desired.exists or desired.listed or observed.rollout.config or observed.persisted != _NOTHING):
        return ReconcileDecision(lifecycle="Delete", message="no policy uses it, and only leftovers exist")
    uses = wire(desired.policies) | desired.serving if desired.exists else None
    retained = retained_wiring(uses, observed.persisted.retention, now)
    lifecycle, why = retention_decision(
        listed=desired.listed, retention=retained.retention, pending_pods=observed.pending_pods, now=now
    )
    if lifecycle == "Delete":
        return ReconcileDecision(lifecycle=lifecycle, message=why)
    persisted = PersistedState(rollout=observed.persisted.rollout, retention=retained.retention)
    return ReconcileDecision(
        lifecycle=lifecycle, persisted=persisted, message=why, requeue_after_s=retained.requeue_after_s
    )


def decide(
    engine: TemplateEngine, desired: DesiredScheduler, facts: ClusterFacts, observed: ObservedScheduler, now: float
) -> ReconcileDecision:
    """Return the decision about one scheduler. Raises InvalidObjectError if its settings cannot be used."""
    start = decide_lifecycle(desired, observed, now)
    if start.lifecycle == "Delete":
        return start
    retention = start.persisted.retention
    running = observed.config_maps.get(observed.rollout.config)
    facts = replace(
        facts, asked_all=samples_all_nodes(None if running is None else read(running["data"]["config.yaml"]))
    )
    start = replace(start, asked_nodes=_asked_nodes(desired.settings.node_sample, facts.nodes))
    wanted = plan(engine, desired.settings, retention.wiring or _NO_WIRING, facts, desired.metrics_from)
    if desired.settings.management == "ConfigOnly":
        if desired.paused and observed.published is not None:
            wanted = wanted.with_configuration_of(observed.published)
        requeue_s = _CLEANUP_S if observed.pods else start.requeue_after_s
        return replace(
            start, plan=wanted, persisted=PersistedState(retention=retention), phase="Steady", requeue_after_s=requeue_s
        )
    if desired.paused and running is not None:
        wanted = wanted.rolled_back_to(renewed(running, wanted.names, facts.ca_bundle))
    inputs = digest(desired.settings.model_dump_json(), *sorted(desired.versions))
    step = next_step(wanted.config_hash, inputs, observed.persisted.rollout, observed.rollout, now)
    chosen: Plan | None = wanted
    message = step.message or start.message
    if step.config != wanted.config_hash:
        kept = observed.config_maps.get(step.config)
        chosen = None if kept is None else wanted.rolled_back_to(kept)
        if kept is None:
            message = f"{message}; it cannot be rolled back, because that ConfigMap is gone"
    return replace(
        start,
        plan=chosen,
        persisted=PersistedState(rollout=step.state, retention=retention),
        phase=step.phase,
        message=message,
        requeue_after_s=_REJECTED_S
        if step.phase == "Rejected" and not observed.rollout.failure
        else start.requeue_after_s,
    )


def _asked_nodes(node_sample: str, nodes: int | None) -> tuple[str, str] | None:
    """Return what a policy that needs calls with all nodes costs, or does not get."""
    if node_sample not in ("Auto", "100%"):
        why = (
            f"its scheduler is set to ask about {node_sample} of the nodes (nodeSample), which may have none of the "
            "domain that a group has to share: set it to Auto"
        )
        return "SampledTopology", why
    if nodes is not None and nodes > ALL_UP_TO:
        why = (
            "its scheduler asks about all nodes for each pod, though there are many, because members of groups have to "
            "share a domain: give these pods a scheduler of their own"
        )
        return "AsksAllNodes", why
    return None


def objects_to_prune(
    names: ObjectNames, decided: ReconcileDecision, observed: ObservedScheduler, objects: Sequence[Object]
) -> list[Object]:
    """Return the objects with our label that are not desired any more, in the order in which to delete them.

    While pods exist that are not desired either, they keep their certificates and permissions.
    """
    if decided.plan is None:
        return []
    wanted = {(one["kind"], one["metadata"]["name"]) for one in decided.plan.objects}
    rollout = decided.persisted.rollout
    hashes = {rollout.last_good, observed.rollout.config, decided.plan.config_hash}
    newest = sorted(
        observed.config_maps,
        key=lambda one: (one in hashes, observed.config_maps[one]["metadata"]["creationTimestamp"]),
    )[-CONFIG_MAPS_KEPT:]
    kept = {observed.config_maps[one]["metadata"]["name"] for one in newest} | {names.state}
    gone = deletion_order(
        [
            one
            for one in objects
            if (one["kind"], one["metadata"]["name"]) not in wanted
            and one["kind"] not in _KEPT
            and not (one["kind"] == "ConfigMap" and one["metadata"]["name"] in kept)
        ]
    )
    ends = observed.pods and not any(kind == "Deployment" for kind, _ in wanted)
    return [one for one in gone if one["kind"] == "Deployment"] if ends else gone


_KEPT: Final = frozenset({"Secret"})
"""Kinds that are never pruned: certificates have their own life cycle."""
