"""Publisher of node affinity: keeps a PublishedAffinity for each scheduler whose policies publish something.

It writes objects that the chart's MutatingAdmissionPolicy takes as parameters, and has no right to change that policy.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from fairlead.control.decide.desired import Obj, PolicyIndex
from fairlead.control.decide.desired_affinity import desired_affinities, publishes
from fairlead.control.reconcile.missing_permissions import MissingPermissions
from fairlead.control.reconcile.object_client import ObjectClient
from fairlead.kube.errors import ConflictError, NotFoundError
from fairlead.kube.resources import PUBLISHED_AFFINITIES, ObjectRef, Resource, decode_object
from fairlead.render.object_names import MANAGED_BY, MANAGER
from fairlead.render.operator_settings import OperatorSettings
from fairlead.render.rbac import PUBLISHED_AFFINITY
from fairlead.replica_state import ReplicaStates

LOG: Final = logging.getLogger(__name__)
ADDED_BY: Final = tuple(
    ObjectRef(Resource("admissionregistration.k8s.io", "v1", kind))
    for kind in ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings")
)
"""The chart's admission policy and its binding."""
LOOK_S: Final = 20.0
"""Time between two looks at what no event tells: edits of the objects by hand, and the admission policy."""
_LEAST_S: Final = 0.05
_SWITCHED_OFF: Final = (
    "the chart's value publishedAffinity.enabled is false: ask the operator's administrator to set it"
)
_NO_KIND: Final = (
    "the CustomResourceDefinition of PublishedAffinity is missing: upgrade the chart with publishedAffinity.enabled"
)
_NOT_WRITTEN: Final = "node affinity is not published"


@dataclass(slots=True, eq=False, kw_only=True)
class AffinityPublisher:
    """Publisher of one leader."""

    objects: ObjectClient
    policy_index: PolicyIndex
    states: Callable[[], ReplicaStates]
    settings: Callable[[], OperatorSettings]
    namespace: str
    missing_permissions: MissingPermissions
    is_leader: Callable[[], bool]
    on_change: Callable[[], None] = lambda: None
    """Called when statuses may have to say something else."""
    not_installed: str | None = None
    """Reason that nothing is added to pods, and what to do; "" if it is, None before the first look."""
    live: dict[str, Obj] = field(default_factory=dict)
    """Objects that exist, by scheduler."""
    time: Callable[[], float] = field(default_factory=lambda: asyncio.get_running_loop().time)
    _looked: tuple[bool, float] | None = None
    """State of the setting at the last look, and the time of that."""
    _requested: asyncio.Event = field(default_factory=asyncio.Event)

    def request(self) -> None:
        """Publish soon: a policy was edited, or a replica serves something else."""
        self._requested.set()

    async def run(self) -> NoReturn:
        """Publish at each request, and look now and then, until cancelled."""
        while True:
            self._requested.clear()
            await self.missing_permissions.attempt(_NOT_WRITTEN, self._sync)
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._requested.wait()
                    await asyncio.sleep(_LEAST_S)
            except TimeoutError:
                pass

    async def _sync(self) -> None:
        """Write what differs from what was seen last. Raises ClusterError."""
        if not self.is_leader():
            return
        policies = [*self.policy_index.policies.values()]
        is_enabled = self.settings().published_affinity.enabled
        if not is_enabled and not self.live and not any(map(publishes, policies)):
            return
        await self._look(is_enabled=is_enabled)
        if self.not_installed == _NO_KIND:
            return
        desired = desired_affinities(policies, self.states(), self.live, self.namespace) if is_enabled else {}
        for scheduler, obj in desired.items():
            if not _is_like(self.live.get(scheduler), obj):
                at = PUBLISHED_AFFINITIES.named("", scheduler)
                self.live[scheduler] = await self.objects.client.apply(
                    at, obj, decode_object, manager=MANAGER, force=True
                )
                LOG.info("affinity.published", extra={"scheduler": scheduler, "hash": obj["spec"]["hash"]})
                self.on_change()
        for scheduler in self.live.keys() - desired.keys():
            await self._delete(self.live.pop(scheduler))
            self.on_change()

    async def _look(self, *, is_enabled: bool) -> None:
        """Look at what exists, unless that was a moment ago."""
        now = self.time()
        if self._looked is not None and self._looked[0] is is_enabled and now - self._looked[1] < LOOK_S:
            return
        why = await self._why_not_installed() if is_enabled else _SWITCHED_OFF
        if is_enabled:
            try:
                existing = await self.objects.all(PUBLISHED_AFFINITIES, labelSelector=f"{MANAGED_BY}={MANAGER}")
            except NotFoundError:
                existing, why = [], _NO_KIND
            self.live = {one["metadata"]["name"]: one for one in existing}
        self._looked = is_enabled, now
        if why != self.not_installed:
            self.not_installed = why
            self.on_change()

    async def _delete(self, obj: Mapping[str, Any]) -> None:
        metadata = obj["metadata"]
        try:
            await self.objects.client.delete(
                PUBLISHED_AFFINITIES.named("", metadata["name"]), uid=metadata.get("uid", "")
            )
        except (NotFoundError, ConflictError):
            return
        LOG.info("affinity.unpublished", extra={"scheduler": metadata["name"]})

    async def _why_not_installed(self) -> str:
        """Return which part of what the chart adds to pods with is missing; "" if none is."""
        name = PUBLISHED_AFFINITY.replace("{namespace}", self.namespace)
        for kind in ADDED_BY:
            at = kind.named("", name)
            if await self.objects.get(at) is None:
                return f"{at} is missing, which adds it to pods: upgrade the chart, or install it again"
        return ""


def _is_like(live: Obj | None, desired: Mapping[str, Any]) -> bool:
    if live is None or live.get("spec") != desired["spec"]:
        return False
    labels = live["metadata"].get("labels") or {}
    return all(labels.get(key) == value for key, value in desired["metadata"]["labels"].items())
