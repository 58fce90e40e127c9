"""Reconcile of one scheduler: observe, verify, gather facts, decide, apply, and return the result.

It is level-triggered: everything is decided from the observed state, and nothing depends on an event.
"""

import ssl
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from fairlead.api.errors import InvalidObjectError
from fairlead.control.decide.decide import DesiredScheduler, ReconcileDecision, decide, decide_lifecycle
from fairlead.control.decide.drift import Drift, DriftLog
from fairlead.control.decide.rollout_observation import RolloutObservation
from fairlead.control.reconcile.apply import Applier
from fairlead.control.reconcile.facts_gatherer import FactsGatherer
from fairlead.control.reconcile.foreign_owner import ForeignSchedulers
from fairlead.control.reconcile.object_client import ObjectClient, resource
from fairlead.control.reconcile.observe import ObservedObjects, observe
from fairlead.control.reconcile.replicas import ReplicaClient
from fairlead.control.reconcile.result import FinishedRollout, ReconcileResult
from fairlead.control.reconcile.scheduler_registry import SchedulerRegistry
from fairlead.control.reconcile.verify_rollout import probe_extender_urls, recent_scheduler_errors
from fairlead.kube.errors import ClusterError, RequestError
from fairlead.kube.watch.secrets import Secrets
from fairlead.pki.authority import AuthorityError
from fairlead.pki.tls_context import client_context
from fairlead.render.cluster_facts import ClusterFacts
from fairlead.render.extenders import Wiring
from fairlead.render.object_names import CONFIG_HASH, ObjectNames
from fairlead.render.plan import urls
from fairlead.render.templates import TemplateEngine, read

_MESSAGE_MAX: Final = 500
_SHOWN: Final = 3
_NO_WIRING: Final = Wiring()
_DENIED_GOES: Final = "; its scheduler is deleted 10 minutes after that was set"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciler:
    """Reconciler of the schedulers of one operator."""

    registry: SchedulerRegistry
    objects: ObjectClient
    secrets: Secrets
    replicas: ReplicaClient
    foreign: ForeignSchedulers
    facts: FactsGatherer
    applier: Applier
    drifts: DriftLog
    namespace: str
    engine: TemplateEngine
    now: Callable[[], datetime]

    async def reconcile(self, scheduler: str) -> ReconcileResult:
        """Reconcile a scheduler; the result has an `error` if it has to be retried."""
        try:
            return await self._reconcile(scheduler)
        except (ClusterError, AuthorityError) as error:
            return ReconcileResult(error=error)

    async def _reconcile(self, scheduler: str) -> ReconcileResult:
        registry, denied = self.registry, ""
        await registry.managed.read()
        try:
            desired = registry.policy_index.desired_scheduler(scheduler, registry.settings(), self.replicas.states)
            denied = registry.denial_reason(scheduler) if desired.exists else ""
            if not registry.is_there(scheduler) and (why := denied or registry.no_room_reason(scheduler)):
                return ReconcileResult(refused=why, full=not denied)
            if denied:
                desired = replace(desired, policies=(), serving=_NO_WIRING, exists=False, denied=True)
            elif registry.is_paused(scheduler):
                desired = replace(desired, paused=True)
            result = await self._reconcile_desired(ObjectNames(scheduler, self.namespace), desired)
        except InvalidObjectError as error:
            result = ReconcileResult(refused=str(error))
        if result.gone and scheduler in registry.managed.existing:
            await registry.managed.record_gone(scheduler, self.now())
        if denied and not result.refused:
            return replace(result, refused=denied + ("" if result.gone else _DENIED_GOES))
        if result.refused and not registry.is_there(scheduler) and (why := registry.no_room_reason(scheduler)):
            return ReconcileResult(refused=why, full=True)
        return result

    async def _reconcile_desired(self, names: ObjectNames, desired: DesiredScheduler) -> ReconcileResult:
        """Reconcile a scheduler that may exist. Raises InvalidObjectError if it cannot be managed."""
        registry, scheduler, now = self.registry, names.scheduler, self.now().timestamp()
        managed, started = desired.settings.management == "Managed", scheduler in registry.managed.existing
        if managed and (why := await self._foreign_owner(names, desired)):
            return ReconcileResult(refused=why)

        observed = await observe(self.objects, names, counts=not (desired.exists or desired.denied))
        if not (desired.exists or desired.listed or observed.objects or observed.pods):
            return ReconcileResult(gone=True)
        if observed.forged:
            shown = ", ".join(sorted(observed.forged)[:_SHOWN])
            text = f"ConfigMap {shown} does not match its name and hash: it is not used"
            self.drifts.record(Drift(scheduler, "ConfigMap", text))
        observed = await self._verify(names, observed)

        decision, facts = decide_lifecycle(desired, observed.scheduler, now), None
        if decision.lifecycle != "Delete":  # missing facts must not keep an unused scheduler alive
            facts = await self._gather_facts(names, desired, observed, decision)
            decision = decide(self.engine, desired, facts, observed.scheduler, now)
            if managed and not (started or desired.paused):
                await registry.start(scheduler)

        gone, idle = False, desired.paused and not _renews(decision, observed, managed=managed)
        before = registry.result(scheduler).decision
        if not idle:
            try:
                gone = await self.applier.apply(names, observed, decision, before, paused=desired.paused)
            except RequestError as error:
                if facts is None:
                    raise
                observed = _with_invalid_deployment(error, observed, decision)
                decision = decide(self.engine, desired, facts, observed.scheduler, now)
                if decision.phase == "RolledBack":
                    await self.applier.apply(names, observed, decision, None)
                elif decision.persisted != observed.scheduler.persisted:
                    await self.applier.persist(names, decision, observed)
        if desired.paused:  # its account is bound all the same: other schedulers share the bindings
            await self.applier.bindings.ensure(names.object_name)
        return ReconcileResult(
            decision=decision,
            policy_edits=desired.versions,
            gone=gone,
            paused=idle,
            started_with_ca=_started_with_ca(observed),
            rollout=_finished_rollout(observed, decision, now),
        )

    async def _foreign_owner(self, names: ObjectNames, desired: DesiredScheduler) -> str:
        registry, scheduler = self.registry, names.scheduler
        known = desired.listed or registry.is_there(scheduler)
        known |= scheduler in registry.managed and not desired.exists
        return await self.foreign.conflict(names, known=known, gone=registry.managed.gone_since(scheduler))

    async def _gather_facts(
        self, names: ObjectNames, desired: DesiredScheduler, observed: ObservedObjects, decision: ReconcileDecision
    ) -> ClusterFacts:
        """Return the facts for rendering, once the certificate is issued. Raises InvalidObjectError."""
        started_with = self.registry.started_with_ca(names.scheduler)
        try:
            return await self.facts.facts(
                names.scheduler, started_with, self.registry.paused_before_start(started_with)
            )
        except InvalidObjectError:
            unused = not (desired.exists or desired.listed or desired.paused)
            if unused and decision.persisted != observed.scheduler.persisted:
                await self.applier.persist(names, decision, observed)  # the time since which it is unused
            raise

    async def _verify(self, names: ObjectNames, observed: ObservedObjects) -> ObservedObjects:
        """Return the observation with probed URLs and logged errors, if a rollout is to be verified."""
        live, rollout = observed.scheduler, observed.scheduler.rollout
        unverified = live.persisted.rollout.unverified
        if not unverified or unverified != rollout.config or rollout.pending_reason or rollout.failure:
            return observed
        if not rollout.has_lease or (kept := live.config_maps.get(rollout.config)) is None:
            return observed
        if (context := await self._context_of(names)) is None:
            return observed
        failure = await probe_extender_urls(urls(read(kept["data"]["config.yaml"])), context, names.scheduler)
        new = [
            one for one in observed.pods if one["metadata"].get("annotations", {}).get(CONFIG_HASH) == rollout.config
        ]
        errors = self.replicas.refused_callers([one["status"].get("podIP", "") for one in new])
        errors = errors or await recent_scheduler_errors(self.objects.client, new)
        return _with_rollout(observed, replace(rollout, probe_failure=failure, errors=errors))

    async def _context_of(self, names: ObjectNames) -> ssl.SSLContext | None:
        """Return the TLS context of the scheduler, from its Secret; None if it has no certificate yet."""
        secret = await self.secrets.get(names.certificate)
        if secret is None:
            return None
        return client_context(secret.data["ca.crt"], secret.data["tls.crt"], secret.data["tls.key"])


def _with_rollout(observed: ObservedObjects, rollout: RolloutObservation) -> ObservedObjects:
    return replace(observed, scheduler=replace(observed.scheduler, rollout=rollout))


def _with_invalid_deployment(
    error: RequestError, observed: ObservedObjects, decision: ReconcileDecision
) -> ObservedObjects:
    """Return the observation as if the pods of the new Deployment had failed, because the API server rejects it.

    Raises the error if it is about something else.
    """
    if not error.is_invalid or error.where.resource != resource("Deployment"):
        raise error
    if decision.plan is None or decision.phase not in ("Rolling", "Rejected"):
        raise error
    failure = f"the API server rejects it: {error.message}"[:_MESSAGE_MAX]
    return _with_rollout(observed, RolloutObservation(config=decision.plan.config_hash, failure=failure))


def _renews(decision: ReconcileDecision, observed: ObservedObjects, *, managed: bool) -> bool:
    """Return whether the pods of a paused scheduler need new authorities, or are being rolled for them."""
    live = observed.scheduler
    if decision.lifecycle == "Delete" or decision.plan is None:
        return False
    if not managed:
        before = live.published
        return before is not None and before["metadata"]["annotations"][CONFIG_HASH] != decision.plan.config_hash
    if live.rollout.config not in live.config_maps:
        return False
    return decision.plan.config_hash != live.rollout.config or live.persisted.rollout.candidate is not None


def _finished_rollout(observed: ObservedObjects, decision: ReconcileDecision, now: float) -> FinishedRollout | None:
    before, after = observed.scheduler.persisted.rollout, decision.persisted.rollout
    trying, rejected = before.candidate, after.rejected
    if rejected is not None and rejected != before.rejected:
        since = trying.since if trying is not None and trying.config == rejected.config else now
        return FinishedRollout("rolled_back" if decision.phase == "RolledBack" else "rejected", now - since)
    if trying is not None and after.candidate is None and after.last_good == trying.config:
        return FinishedRollout("verified", now - trying.since)
    return None


def _started_with_ca(observed: ObservedObjects) -> str:
    found = {one["metadata"].get("annotations", {}).get(CONFIG_HASH, "") for one in observed.pods}
    kept = observed.scheduler.config_maps.get(found.pop()) if len(found) == 1 else None
    return kept["data"]["ca.crt"] if kept is not None else ""
