"""State of what has to answer for a pod to be placed: its scheduler, and the operator's replicas."""

import asyncio
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from fairlead.api.names import CLUSTERS_OWN_SCHEDULER
from fairlead.cli.inputs.live_policies import LivePolicy
from fairlead.cli.inputs.operator_survey import home_of, operator_namespaces
from fairlead.cli.installation.scheduler_names import GATED, meant_by, trace_of
from fairlead.control.decide.rollout_observation import is_ready, observe_rollout
from fairlead.control.reconcile.foreign_owner import is_lease_held
from fairlead.control.reconcile.object_client import ObjectClient, resource
from fairlead.kube.errors import RequestError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import PODS, ObjectRef
from fairlead.pki.identities import REPLICAS
from fairlead.render.extenders import Wiring
from fairlead.render.object_names import SCHEDULER_LABEL, ObjectNames
from fairlead.simulation.snapshot import Raw

_MAIN_LEASE: Final = ObjectRef(resource("Lease"), "kube-system", "kube-scheduler")
_NO_LEADER: Final = "none of its pods that are ready holds the Lease"
Obj = Mapping[str, Any]


class PodScheduled(msgspec.Struct, frozen=True, rename="camel"):
    """The condition PodScheduled of a pod: the last word of its scheduler."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerState:
    """State of the scheduler that a pod names."""

    name: str
    ready: bool | None
    """None: not known."""
    message: str
    """Its pods, or why it is not ready."""
    missing: bool = False
    """Whether there is none of this name, as far as that can be seen."""
    meant: str = ""
    """The name that was probably meant."""
    ours: bool = False
    """Whether policies name it, so that it asks the operator's replicas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorState:
    """Replicas of the operator."""

    namespace: str
    ready: int = 0
    replicas: int = 0
    unread: str = ""
    """Why they may not be read."""

    @property
    def is_silent(self) -> bool:
        """Return whether no replica answers."""
        return not self.ready and not self.unread


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduling:
    """The last word of a pod's scheduler, and whether it and the operator are alive, as far as they were read."""

    last: PodScheduled | None = None
    scheduler: SchedulerState | None = None
    operator: OperatorState | None = None
    wiring: Wiring = field(default_factory=Wiring)
    """What the policies of the scheduler need of it."""
    is_new: bool = False
    """Whether the pod is that of a file, and need not exist yet."""

    @property
    def is_unanswered(self) -> bool:
        """Return whether the scheduler asks replicas of the operator, and none answers."""
        ours, operator = self.scheduler is not None and self.scheduler.ours, self.operator
        return ours and operator is not None and operator.is_silent

    @property
    def waits(self) -> bool:
        """Return whether no pod of the scheduler is placed, as nothing answers a call that must be answered."""
        return self.is_unanswered and (self.wiring.fails or self.wiring.binds)


class _Status(msgspec.Struct, frozen=True):
    conditions: list[PodScheduled] | None = None


class _Pod(msgspec.Struct, frozen=True):
    status: _Status = _Status()


def last_word(raw: Raw) -> PodScheduled | None:
    """Return the condition PodScheduled of a pod that is not placed; None if no scheduler has looked at it."""
    try:
        conditions = msgspec.json.decode(raw, type=_Pod).status.conditions or ()
    except msgspec.DecodeError:  # who judges it says so
        return None
    found = next((one for one in conditions if one.type == "PodScheduled"), None)
    return None if found is None or found.status == "True" or found.reason == GATED else found


async def scheduling_of(client: Client, raw: Raw, scheduler: str, live: Sequence[LivePolicy]) -> Scheduling:
    """Read the state of a pod's scheduler and of the operator; `live` are the policies of the cluster."""
    last = last_word(raw)
    wiring = Wiring()
    for one in live:
        if one.scheduler == scheduler:
            wiring |= one.wiring
    state, operator = await _read(client, scheduler, live, last)
    return Scheduling(last=last, scheduler=state, operator=operator, wiring=wiring)


def scheduling_in_files(raw: Raw, scheduler: str, named: AbstractSet[str]) -> Scheduling:
    """Return what files say of a pod's scheduling; `named` are the schedulers of the policies in them."""
    state = None
    if scheduler not in {*named, CLUSTERS_OWN_SCHEDULER}:
        meant = meant_by(scheduler, named)
        state = SchedulerState(name=scheduler, ready=None, message="no policy here has this name", meant=meant)
    return Scheduling(last=last_word(raw), scheduler=state)


async def _read(
    client: Client,
    scheduler: str,
    live: Sequence[LivePolicy],
    last: PodScheduled | None,
) -> tuple[SchedulerState, OperatorState]:
    objects = ObjectClient(client)
    home = home_of(await operator_namespaces(objects))
    named = {one.scheduler for one in live}
    is_named = scheduler in named
    operator, state = await asyncio.gather(_operator(objects, home), _ours(objects, home, scheduler, is_named))
    if state is None and is_named:
        gone = not operator.replicas and not operator.unread
        why = "no operator is there to create it" if gone else "the operator has created nothing for it"
        said = f"there is no Deployment of it in {home}: {why}"
        state = SchedulerState(name=scheduler, ready=False, message=said, ours=True)
    if state is None:
        state = await _others(objects, home, scheduler, named, last)
    return state, operator


async def _operator(objects: ObjectClient, home: str) -> OperatorState:
    try:
        pods = await objects.all(ObjectRef(PODS.resource, home), labelSelector=REPLICAS)
    except RequestError as error:
        return OperatorState(namespace=home, unread=error.message)
    staying = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    return OperatorState(namespace=home, ready=sum(map(is_ready, staying)), replicas=len(staying))


async def _ours(
    objects: ObjectClient,
    home: str,
    scheduler: str,
    is_named: bool,  # noqa: FBT001 - the last of four
) -> SchedulerState | None:
    """Return the state of a scheduler that the operator manages or configures; None if there is none.

    `is_named`: a policy names it.
    """
    names = ObjectNames(scheduler, home)
    try:
        deployment = await objects.get(ObjectRef(resource("Deployment"), home, names.object_name))
        if deployment is None:
            published = await objects.get(ObjectRef(resource("ConfigMap"), home, names.object_name))
            if published is None:
                return None
            said = f"its configuration is in ConfigMap {home}/{names.object_name}; the operator does not run it"
            return SchedulerState(name=scheduler, ready=None, message=said, ours=True)
        selector = f"{SCHEDULER_LABEL}={scheduler}"
        pods = await objects.all(ObjectRef(PODS.resource, home), labelSelector=selector)
        lease = await objects.get(ObjectRef(resource("Lease"), home, names.object_name))
    except RequestError as error:
        return SchedulerState(name=scheduler, ready=None, message=error.message, ours=True) if is_named else None
    seen = observe_rollout(deployment, pods, lease)
    fault = seen.failure or seen.pending_reason
    ready = [pod["metadata"]["name"] for pod in pods if is_ready(pod)]
    holder = ((lease or {}).get("spec") or {}).get("holderIdentity") or ""
    leads = any(holder.startswith(f"{name}_") for name in ready)
    said = fault or (f"{len(ready)} of {deployment['spec']['replicas']} pods ready" if leads else _NO_LEADER)
    return SchedulerState(name=scheduler, ready=leads, message=said, ours=True)  # one is enough, also while it rolls


async def _others(
    objects: ObjectClient, home: str, scheduler: str, known: set[str], last: PodScheduled | None
) -> SchedulerState:
    """Return the state of a scheduler that is not Fairlead's, as far as it can be seen."""
    if scheduler == CLUSTERS_OWN_SCHEDULER:
        try:
            lease = await objects.get(_MAIN_LEASE)
        except RequestError as error:
            return SchedulerState(name=scheduler, ready=None, message=error.message)
        is_held = lease is not None and is_lease_held(lease, datetime.now(UTC))
        said = "it holds its Lease" if is_held else f"its Lease {_MAIN_LEASE.namespace}/{_MAIN_LEASE.name} is not held"
        return SchedulerState(name=scheduler, ready=is_held or None, message=said)
    if last is not None:
        return SchedulerState(name=scheduler, ready=None, message="no policy names it; it has tried this pod")
    trace, unseen = await trace_of(objects, home, scheduler)
    if trace:
        return SchedulerState(name=scheduler, ready=None, message=f"no policy names it; {trace}")
    with suppress(RequestError):  # also those that no policy names
        deployments = await objects.all(ObjectRef(resource("Deployment"), home), labelSelector=SCHEDULER_LABEL)
        known = known | {str(one["metadata"]["labels"][SCHEDULER_LABEL]) for one in deployments}
    said = "no policy and no scheduler has this name" + (f", as far as can be seen: {unseen}" if unseen else "")
    meant = meant_by(scheduler, known)
    return SchedulerState(name=scheduler, ready=False, message=said, missing=True, meant=meant)
