"""Discovery of Kubernetes' own groups: whether every API server that answers serves them, looked at once a minute."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NoReturn

import msgspec

from fairlead.kube.errors import ClusterError, ForbiddenError, NotFoundError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import POD_GROUPS_DISCOVERY

LOG: Final = logging.getLogger(__name__)
_LOOK_S: Final = 60.0
_LACKS_FOR: Final = timedelta(minutes=10)
"""For so long an answer without them counts: while a control plane is upgraded, API servers of several kinds answer."""


class _Kind(msgspec.Struct):
    name: str = ""


class _Kinds(msgspec.Struct):
    resources: list[_Kind] | None = None


_kinds: Final = msgspec.json.Decoder(_Kinds).decode


@dataclass(slots=True, eq=False, kw_only=True)
class PodGroupsDiscovery:
    """Discovery by one leader."""

    client: Client
    now: Callable[[], datetime]
    on_change: Callable[[], None] = lambda: None
    """Called when schedulers may have to run with other feature gates."""
    are_served: bool = False
    _lacked_at: datetime | None = None

    async def run(self) -> NoReturn:
        """Look once a minute until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            await self.look()

    async def begin(self) -> None:
        """Look before anything is rendered: otherwise a scheduler would roll only because the leader is new.

        Raises ClusterError if the API server does not answer.
        """
        try:
            self._take(is_served=await self._ask())
        except ForbiddenError as error:
            LOG.warning("pod_groups.look_failed", extra={"error": str(error)})

    async def look(self) -> None:
        """Look once. If the API server does not answer, what was known remains."""
        try:
            self._take(is_served=await self._ask())
        except ClusterError as error:
            LOG.debug("pod_groups.look_failed", extra={"error": str(error)})

    def _take(self, *, is_served: bool) -> None:
        now, before = self.now(), self.are_served
        if not is_served:
            self._lacked_at = now
        self.are_served = is_served and (self._lacked_at is None or now - self._lacked_at >= _LACKS_FOR)
        if self.are_served != before:
            LOG.info("pod_groups.changed", extra={"state": "served" if self.are_served else "not served"})
            self.on_change()

    async def _ask(self) -> bool:
        try:
            found = await self.client.get(POD_GROUPS_DISCOVERY, _kinds)
        except NotFoundError:
            return False
        return any(one.name == POD_GROUPS_DISCOVERY.resource.plural for one in found.resources or ())
