"""One pass over one scheduler: look, decide, write what differs, verify."""

import logging
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from fairlead.api.errors import InvalidObjectError
from fairlead.control.decide.decide import (
    Decision,
    DesiredScheduler,
    ObservedScheduler,
    decide,
    decide_lifecycle,
    deletion_order,
    objects_to_prune,
)
from fairlead.control.decide.persisted_state import to_config_map
from fairlead.control.decide.rollout_observation import RolloutObservation
from fairlead.control.reconcile.foreign_owner import ForeignSchedulers
from fairlead.control.reconcile.object_client import ObjectClient, resource
from fairlead.control.reconcile.observe import ObservedObjects, observe
from fairlead.control.reconcile.owner_references import NamespaceOwner
from fairlead.control.reconcile.verify_rollout import probe_extender_urls, recent_scheduler_errors
from fairlead.kube.errors import RequestError
from fairlead.render.cluster_facts import ClusterFacts
from fairlead.render.config import urls
from fairlead.render.object_names import CONFIG_HASH, Names
from fairlead.render.templates import TemplateEngine, read

LOG: Final = logging.getLogger(__name__)
_WORDS_MAX: Final = 500
_SHOWN: Final = 3
_OF_PODS: Final = frozenset({"ConfigMap", "Deployment"})
"""What is another when its pods are to be others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileResult:
    """What a pass came to."""

    decision: Decision | None = None
    policy_edits: Sequence[str] = ()
    """The versions of what it was decided from."""
    refused: str = ""
    """Why the scheduler cannot be had."""
    full: bool = False
    """Whether that is only because there are too many others."""
    missing_permission: str = ""
    """A permission that is missing: the pass failed for want of it."""
    failed: str = ""
    """Why else the last pass failed. It is done again."""
    gone: bool = False
    paused: bool = False
    """Whether nothing is to be written for that."""
    started_with_ca: str = ""
    """The authorities that all of its pods were started with, as PEM; empty if they differ, or nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciler:
    """Who does them."""

    objects: ObjectClient
    foreign: ForeignSchedulers
    owner: NamespaceOwner
    namespace: str
    engine: TemplateEngine
    context: Callable[[str], Awaitable[ssl.SSLContext | None]]
    """What the scheduler of this name shows to those whom it calls; None: it has no certificate yet."""
    refused_callers: Callable[[Sequence[str]], str]
    """Why one of these addresses was turned away lately by one of those who serve; empty if none was."""
    now: Callable[[], float]

    async def reconcile(
        self,
        asked: DesiredScheduler,
        facts: Callable[[], Awaitable[ClusterFacts]],
        *,
        paused: bool,
        known: bool,
        gone: datetime | None,
        noted: bool,
        before: Decision | None,
        begin: Callable[[], Awaitable[None]],
        drifted: Callable[[str], None],
    ) -> ReconcileResult:
        """One pass. Raises ClusterError where it has to be done again.

        `facts` are asked for only where there is to be a scheduler: a certificate comes with them. `begin` is called
        before there is one of ours that is not noted. `drifted` is told of each object that somebody had edited or
        deleted, once it is as it was; `before` is what the last pass came to that went well. `known` and `gone` are
        what `Foreign.why` asks for.
        """
        names, asked = Names(asked.settings.name, self.namespace), replace(asked, paused=paused)
        try:
            managed = asked.settings.management == "Managed"
            if managed and (refused := await self.foreign.why(names, known=known, gone=gone)):
                return ReconcileResult(refused=refused)
            looked = await observe(self.objects, names, counts=not (asked.exists or asked.denied))
            if not (asked.exists or asked.listed or looked.objects or looked.pods):
                return ReconcileResult(gone=True)
            _report_forged(looked, names, drifted)
            looked = await self._verified(looked, names)
            decide_on = await self._decider(names, asked, looked, facts, paused=paused)
            decision = decide_on(looked.scheduler)
            if managed and decision.lifecycle != "Goes" and not (noted or paused):
                await begin()
            ended, idle = False, paused and not _renews(decision, looked.scheduler, managed=managed)
            if not idle:
                try:
                    ended = await self._write(names, looked, decision, before, drifted, paused=paused)
                except RequestError as error:
                    decision = await self._reject_invalid_deployment(error, names, looked, decision, decide_on)
            return ReconcileResult(
                decision=decision,
                policy_edits=asked.versions,
                gone=ended,
                paused=idle,
                started_with_ca=_started_with_ca(looked),
            )
        except InvalidObjectError as error:
            return ReconcileResult(refused=str(error))

    async def _decider(
        self,
        names: Names,
        asked: DesiredScheduler,
        looked: ObservedObjects,
        facts: Callable[[], Awaitable[ClusterFacts]],
        *,
        paused: bool,
    ) -> Callable[[ObservedScheduler], Decision]:
        """What decides. Facts that cannot be had keep no scheduler that nobody needs any more."""
        now = self.now()
        first = decide_lifecycle(asked, looked.scheduler, now)
        if first.lifecycle == "Goes":
            return lambda _: first
        try:
            known = await facts()
        except InvalidObjectError:
            if not (asked.exists or asked.listed or paused or first.persisted == looked.scheduler.persisted):
                await self.objects.apply_if_changed(to_config_map(names, first.persisted))  # since when nobody does
            raise
        return lambda there: decide(self.engine, asked, known, there, now)

    async def _reject_invalid_deployment(
        self,
        error: RequestError,
        names: Names,
        looked: ObservedObjects,
        decision: Decision,
        decide_on: Callable[[ObservedScheduler], Decision],
    ) -> Decision:
        """What follows where the API server finds the new Deployment invalid: it is put away as one that failed.

        Raises the error where it says something else.
        """
        if not error.is_invalid or error.where.resource != resource("Deployment"):
            raise error
        if decision.plan is None or decision.phase not in ("Rolling", "Rejected"):
            raise error
        failed = RolloutObservation(
            config=decision.plan.config_hash, failure=f"the API server refuses it: {error.message}"[:_WORDS_MAX]
        )
        looked = replace(looked, scheduler=replace(looked.scheduler, rollout=failed))
        after = decide_on(looked.scheduler)
        if after.phase == "RolledBack":
            await self._write(names, looked, after, None, lambda _: None)
        elif after.persisted != looked.scheduler.persisted:
            await self.objects.apply_if_changed(to_config_map(names, after.persisted))
        return after

    async def _verified(self, looked: ObservedObjects, names: Names) -> ObservedObjects:
        """With what only asking can tell, where there is something to verify."""
        there, seen = looked.scheduler, looked.scheduler.rollout
        unverified = there.persisted.rollout.unverified
        if not unverified or unverified != seen.config or seen.pending_reason or seen.failure or not seen.has_lease:
            return looked
        kept, context = there.config_maps.get(seen.config), await self.context(names.scheduler)
        if kept is None or context is None:
            return looked
        said = await probe_extender_urls(urls(read(kept["data"]["config.yaml"])), context, names.scheduler)
        new = [one for one in looked.pods if one["metadata"].get("annotations", {}).get(CONFIG_HASH) == seen.config]
        errors = self.refused_callers([one["status"].get("podIP", "") for one in new])
        errors = errors or await recent_scheduler_errors(self.objects.client, new)
        return replace(looked, scheduler=replace(there, rollout=replace(seen, probe_failure=said, errors=errors)))

    async def _write(
        self,
        names: Names,
        looked: ObservedObjects,
        decision: Decision,
        before: Decision | None,
        drifted: Callable[[str], None],
        *,
        paused: bool = False,
    ) -> bool:
        """Whether nothing is left of it.

        The memory comes first: whatever happens next, the pass after that knows what was begun. While it is paused only
        its pods are others, so that they know the authorities of now.
        """
        there = looked.scheduler
        if decision.lifecycle == "Goes":
            return await self._delete_all(names, looked)
        if decision.persisted != there.persisted:
            await self.objects.apply_if_changed(to_config_map(names, decision.persisted))
        if (plan := decision.plan) is None:
            return False
        settled = decision.persisted.rollout.good == plan.config_hash
        settled |= decision.phase == "Steady" and before is not None and decision.persisted == before.persisted
        for obj in plan.objects:
            if paused and (obj["kind"] not in _OF_PODS or plan.config_hash == there.rollout.config):
                continue
            state = await self.objects.apply_if_changed(obj)
            if state == "edited" or (state == "missing" and settled):
                text = f"{obj['kind']} {obj['metadata']['name']} was {state}"
                LOG.warning("somebody changed what is managed", extra={"scheduler": names.scheduler, "what": text})
                drifted(text)
        extra = () if paused else objects_to_prune(names, decision, there, looked.objects)
        for obj in extra:
            await self.objects.remove(obj)
        if not paused:  # what is made here is owned in the next pass
            await self.owner.have(one for one in looked.objects if one not in extra)
        return False

    async def _delete_all(self, names: Names, looked: ObservedObjects) -> bool:
        """Whether it is gone. While one of its pods is there, it keeps what it calls with and may do."""
        deployments = [one for one in looked.objects if one["kind"] == "Deployment"]
        for one in deployments:
            await self.objects.remove(one)
        if deployments or looked.pods:
            return False
        rest = deletion_order(looked.objects)
        for one in sorted(rest, key=lambda one: one["metadata"]["name"] == names.state):  # the memory goes last
            await self.objects.remove(one)
        return True


def _renews(decision: Decision, there: ObservedScheduler, *, managed: bool) -> bool:
    """Whether the pods of one that is paused are to know other authorities, or are about to."""
    if decision.lifecycle == "Goes" or decision.plan is None:
        return False
    if not managed:
        before = there.published
        return before is not None and before["metadata"]["annotations"][CONFIG_HASH] != decision.plan.config_hash
    if there.rollout.config not in there.config_maps:
        return False
    return decision.plan.config_hash != there.rollout.config or there.persisted.rollout.trying is not None


def _report_forged(looked: ObservedObjects, names: Names, drifted: Callable[[str], None]) -> None:
    if looked.forged:
        shown = ", ".join(sorted(looked.forged)[:_SHOWN])
        text = f"ConfigMap {shown} holds another configuration than its name and hash say: it is not used"
        LOG.warning("somebody changed what is managed", extra={"scheduler": names.scheduler, "what": text})
        drifted(text)


def _started_with_ca(looked: ObservedObjects) -> str:
    found = {one["metadata"].get("annotations", {}).get(CONFIG_HASH, "") for one in looked.pods}
    kept = looked.scheduler.config_maps.get(found.pop()) if len(found) == 1 else None
    return kept["data"]["ca.crt"] if kept is not None else ""
