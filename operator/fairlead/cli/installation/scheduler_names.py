"""Names of schedulers in a cluster: those that something serves, and those that were probably meant."""

import asyncio
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

import msgspec

from fairlead.api.closest_name import closest_name
from fairlead.api.names import CLUSTERS_OWN_SCHEDULER, scheduler_of
from fairlead.cli.inputs.operator_survey import Survey, Unread
from fairlead.control.reconcile.foreign_owner import ForeignSchedulers
from fairlead.control.reconcile.missing_permissions import UnloggedPermissions
from fairlead.control.reconcile.object_client import ObjectClient
from fairlead.kube.errors import RequestError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import NOT_ENDED, PODS, Page
from fairlead.render.object_names import SCHEDULER_LABEL

_UNPLACED: Final = {"fieldSelector": f"spec.nodeName=,{NOT_ENDED}"}
_PAGE: Final = 500
_TRACED_MAX: Final = 20
"""Names for which a cluster is searched."""
_SEARCH: Final = "schedulers of others"
GATED: Final = "SchedulingGated"


@dataclass(frozen=True, slots=True)
class StrayPods:
    """Unplaced pods whose schedulerName nothing serves."""

    scheduler: str
    count: int
    pod: str
    """Namespace and name of one of them."""
    meant: str
    """The name that was probably meant; "" if none is similar."""
    unseen: str = ""
    """Objects that could not be searched for a scheduler of that name."""


async def trace_of(objects: ObjectClient, namespace: str, scheduler: str) -> tuple[str, str]:
    """Return what shows that another scheduler of this name runs or ran, and what could not be searched for that."""
    unseen = UnloggedPermissions()
    search = ForeignSchedulers(
        objects=objects, namespace=namespace, missing_permissions=unseen, now=lambda: datetime.now(UTC)
    )
    try:
        found = await search.trace(scheduler)
    except RequestError as error:
        return "", str(error)
    return found, "; ".join(unseen.messages)


def meant_by(name: str, schedulers: Iterable[str]) -> str:
    """Return the scheduler's name that was probably meant; "" if none is similar."""
    return closest_name(name, {*schedulers, CLUSTERS_OWN_SCHEDULER} - {name})


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""


class _Status(msgspec.Struct, frozen=True):
    conditions: list[_Condition] | None = None


class _Spec(msgspec.Struct, frozen=True):
    schedulerName: str = ""  # noqa: N815 - as in the API


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    deletionTimestamp: str | None = None  # noqa: N815


class _Unplaced(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()

    @property
    def scheduled(self) -> _Condition | None:
        """The condition PodScheduled, which a scheduler writes that could not place the pod."""
        return next((one for one in self.status.conditions or () if one.type == "PodScheduled"), None)


_page: Final = msgspec.json.Decoder(Page[_Unplaced]).decode


async def add_strays(client: Client, survey: Survey) -> tuple[Survey, Sequence[StrayPods]]:
    """Return a survey with the pods that wait for a scheduler that nothing serves, if they may be listed."""
    labels = [one["metadata"].get("labels", {}).get(SCHEDULER_LABEL, "") for one in survey.deployments]
    served = {*map(scheduler_of, survey.policies), *labels, CLUSTERS_OWN_SCHEDULER} - {""}
    try:
        strays = await _stray_pods(client, survey.namespace, served)
    except RequestError as error:
        unread = Unread("pods of others", "pods that wait, in all namespaces", error.message)
        return replace(survey, unread=[*survey.unread, unread]), ()
    unseen = dict.fromkeys(one.unseen for one in strays if one.unseen)
    return replace(survey, unread=[*survey.unread, *(Unread("pods of others", _SEARCH, why) for why in unseen)]), strays


async def _stray_pods(client: Client, namespace: str, served: AbstractSet[str]) -> Sequence[StrayPods]:
    waiting: dict[str, list[str]] = {}
    tried = set[str]()
    async for page in client.pages(PODS, _page, query=_UNPLACED, limit=_PAGE):
        for one in page.items or ():
            name, scheduled = one.spec.schedulerName, one.scheduled
            if scheduled is None and one.metadata.deletionTimestamp is None:
                waiting.setdefault(name, []).append(f"{one.metadata.namespace}/{one.metadata.name}")
            elif scheduled is not None and scheduled.reason != GATED:
                tried.add(name)  # a scheduler of that name is there
    names = sorted(waiting.keys() - tried - served - {""})
    objects = ObjectClient(client)
    traces = await asyncio.gather(*(trace_of(objects, namespace, name) for name in names[:_TRACED_MAX]))
    return [
        StrayPods(name, len(waiting[name]), waiting[name][0], meant_by(name, served), unseen)
        for name, (trace, unseen) in zip(names, traces, strict=False)
        if not trace
    ]
