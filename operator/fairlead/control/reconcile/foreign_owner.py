"""Detection of schedulers that others run under the same name: two schedulers must not place the same pods.

Only names that are new, or that were gone, are checked. Checks without permission are skipped and reported as missing
permissions.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import msgspec

from fairlead.api.names import DEFAULT_SCHEDULER_NAME
from fairlead.control.reconcile.missing_permissions import MissingPermissions
from fairlead.control.reconcile.object_client import ObjectClient, resource
from fairlead.kube.errors import ClusterError, ForbiddenError
from fairlead.kube.resources import PODS, ObjectRef, Page, Resource
from fairlead.render.object_names import MANAGED_BY, MANAGER, Object, ObjectNames

LOG: Final = logging.getLogger(__name__)
_PLACED: Final = "spec.nodeName!=,spec.schedulerName="
_LEASES: Final = "schedulers run by others cannot be found by their Leases"
_WORKLOADS: Final = "schedulers run by others cannot be found by their arguments"
WORKLOADS: Final = {
    "Deployment": Resource("apps", "v1", "deployments"),
    "StatefulSet": Resource("apps", "v1", "statefulsets"),
    "DaemonSet": Resource("apps", "v1", "daemonsets"),
}
IMAGES: Final = {
    "kube-batch": "kube-batch",
    "koord-scheduler": "koord-scheduler",
    "vc-scheduler": "volcano",
    "yunikorn": "yunikorn",
}
"""Names that schedulers have without an argument, by the last part of their images."""
_NODE_LEASES: Final = "kube-node-lease"
_GRACE: Final = timedelta(minutes=1)
"""Tolerance for clock differences and late renewals."""
_CACHE_S: Final = 20.0
"""Minimum time between two searches of the workloads for one name."""
_RETRY_S: Final = 5.0
_HINT: Final = (
    "give the policy another schedulerName or, if that scheduler does not run any more, list it in the operator's "
    "setting schedulers"
)


class _Container(msgspec.Struct, frozen=True):
    image: str = ""
    command: list[str] | None = None
    args: list[str] | None = None


class _Pod(msgspec.Struct, frozen=True):
    containers: list[_Container] | None = None


class _Template(msgspec.Struct, frozen=True):
    spec: _Pod = _Pod()


class _Spec(msgspec.Struct, frozen=True):
    template: _Template = _Template()


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None


class _Workload(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()


class _Condition(msgspec.Struct, frozen=True, rename="camel"):
    type: str = ""
    status: str = ""
    last_transition_time: datetime | None = None


class _PlacedMetadata(msgspec.Struct, frozen=True, rename="camel"):
    creation_timestamp: datetime | None = None


class _PlacedStatus(msgspec.Struct, frozen=True):
    conditions: list[_Condition] | None = None


class _Placed(msgspec.Struct, frozen=True):
    metadata: _PlacedMetadata = _PlacedMetadata()
    status: _PlacedStatus = _PlacedStatus()

    @property
    def at(self) -> datetime | None:
        """Time at which the pod was placed."""
        placed = (one for one in self.status.conditions or () if (one.type, one.status) == ("PodScheduled", "True"))
        return next((one.last_transition_time for one in placed), None) or self.metadata.creation_timestamp


_page: Final = msgspec.json.Decoder(Page[_Workload]).decode
_placed: Final = msgspec.json.Decoder(Page[_Placed]).decode


@dataclass(slots=True, eq=False, kw_only=True)
class ForeignSchedulers:
    """Detector of foreign schedulers for one operator, while it leads."""

    objects: ObjectClient
    namespace: str
    missing_permissions: MissingPermissions
    now: Callable[[], datetime]
    _searched: dict[str, tuple[datetime, str]] = field(default_factory=dict)
    """Time and result of the last search of the workloads, by scheduler name."""
    _search_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _forbidden: asyncio.Event = field(default_factory=asyncio.Event)

    async def conflict(self, names: ObjectNames, *, known: bool, gone: datetime | None = None) -> str:
        """Return why this scheduler name is in use by others, and what to do about it; "" if it is free or ours.

        `known`: it is listed in the settings or managed; then only objects that are in the way count. `gone`: the time
        since which our scheduler of that name is gone; pods placed before that may be its own.
        """
        # A Lease that was deleted is created by its scheduler again, without our label.
        for kind in ("Deployment",) if known else ("Deployment", "Lease"):
            at = ObjectRef(resource(kind), names.namespace, names.object_name)
            one = await self.objects.get(at)
            if one is not None and one["metadata"].get("labels", {}).get(MANAGED_BY) != MANAGER:
                return f"{at} exists and is not the operator's: remove it, or give the policy another schedulerName"
        found = "" if known else await self.trace(names.scheduler, gone)
        return f"{found}: {_HINT}" if found else ""

    async def trace(self, scheduler: str, gone: datetime | None = None) -> str:
        """Return what shows that others run, or ran, a scheduler of this name; "" if nothing does."""
        if await self._has_placed(scheduler, gone):
            return f"another scheduler named {scheduler} has placed pods"
        if who := await self._allowed(_LEASES, lambda: self._leased(scheduler)):
            return f"another scheduler named {scheduler} holds {who}"
        if who := await self._allowed(_WORKLOADS, lambda: self._run(scheduler)):
            return f"{who} runs another scheduler named {scheduler}"
        return ""

    async def run(self) -> None:
        """Check repeatedly whether missing permissions are granted by now: otherwise only a new name would check."""
        while True:
            await self._forbidden.wait()
            await asyncio.sleep(_RETRY_S)
            try:
                if _LEASES in self.missing_permissions:
                    await self._allowed(_LEASES, lambda: self._any(resource("Lease")))
                if _WORKLOADS in self.missing_permissions:
                    await self._allowed(_WORKLOADS, lambda: self._any(*WORKLOADS.values()))
            except ClusterError as error:
                LOG.warning("permissions.review_failed", extra={"error": str(error)})
            if _LEASES not in self.missing_permissions and _WORKLOADS not in self.missing_permissions:
                self._forbidden.clear()

    async def _allowed(self, what: str, check: Callable[[], Awaitable[str]]) -> str:
        """Return the result of a check; "" if a permission is missing."""
        try:
            found = await check()
        except ForbiddenError as error:
            self.missing_permissions.record(what, error)
            self._forbidden.set()
            return ""
        self.missing_permissions.clear(what)
        return found

    async def _has_placed(self, scheduler: str, gone: datetime | None) -> bool:
        query = {"fieldSelector": _PLACED + scheduler}
        if gone is None:
            return await self.objects.any(PODS, **query)
        async for page in self.objects.client.pages(PODS, _placed, query=query):
            if any(one.at is not None and one.at > gone + _GRACE for one in page.items or ()):
                return True
        return False

    async def _any(self, *kinds: Resource) -> str:
        for kind in kinds:
            await self.objects.any(ObjectRef(kind))
        return ""

    async def _leased(self, scheduler: str) -> str:
        """Return a Lease of its name that is held: schedulers with leader election use one, in any namespace."""
        for one in await self.objects.all(ObjectRef(resource("Lease")), fieldSelector=f"metadata.name={scheduler}"):
            namespace = one["metadata"]["namespace"]
            by_operators = (
                scheduler == DEFAULT_SCHEDULER_NAME
            )  # other operators use a Lease of that name for leader election
            if not by_operators and namespace not in (self.namespace, _NODE_LEASES) and is_lease_held(one, self.now()):
                return f"Lease {namespace}/{scheduler}"
        return ""

    async def _run(self, scheduler: str) -> str:
        async with self._search_lock:
            now = self.now()
            known = {name: one for name, one in self._searched.items() if (now - one[0]).total_seconds() < _CACHE_S}
            if scheduler not in known:
                known[scheduler] = now, await self._workload(scheduler)
            self._searched = known
            return known[scheduler][1]

    async def _workload(self, scheduler: str) -> str:
        """Return the first workload that runs a scheduler of this name."""
        for kind, plural in WORKLOADS.items():
            async for page in self.objects.client.pages(ObjectRef(plural), _page):
                for one in page.items or ():
                    if scheduler in _named(one) and not self._is_ours(one.metadata):
                        return f"{kind} {one.metadata.namespace}/{one.metadata.name}"
        return ""

    def _is_ours(self, metadata: _Metadata) -> bool:
        return metadata.namespace == self.namespace and (metadata.labels or {}).get(MANAGED_BY) == MANAGER


def is_lease_held(lease: Object, now: datetime) -> bool:
    """Return whether a Lease is being renewed."""
    spec = lease.get("spec") or {}
    try:
        renewed = datetime.fromisoformat(spec["renewTime"])
        lasts = timedelta(seconds=spec.get("leaseDurationSeconds") or 0)
        return bool(spec.get("holderIdentity")) and now < renewed + lasts + _GRACE
    except (KeyError, TypeError, ValueError, OverflowError):
        return False


def scheduler_names(image: str, words: Sequence[str]) -> frozenset[str]:
    """Return the names of the schedulers that a container runs, by its image and its arguments."""
    repository = image.partition("@")[0].rpartition("/")[2].partition(":")[0]
    found = {IMAGES[repository]} if repository in IMAGES else set[str]()
    return frozenset(found | {*_name_arguments(words)})


def _name_arguments(words: Sequence[str]) -> Iterator[str]:
    """Yield values of `--scheduler-name` and similar: after `=` or as separate words, also in a shell command."""
    is_value = False
    for word in " ".join(words).replace("=", " ").replace(",", " ").replace('"', " ").replace("'", " ").split():
        if word.startswith("-"):
            is_value = word.lower().replace("-", "").replace("_", "").rstrip("s").endswith("schedulername")
        elif is_value:
            yield word


def _named(workload: _Workload) -> frozenset[str]:
    containers = workload.spec.template.spec.containers or ()
    return frozenset(
        name for one in containers for name in scheduler_names(one.image, [*(one.command or ()), *(one.args or ())])
    )
