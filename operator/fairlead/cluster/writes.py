"""What Fairlead itself writes: bindings, and the last good policies."""

import logging
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import msgspec

from fairlead.cluster.client import Client
from fairlead.cluster.errors import (
    AccessError,
    ClusterError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    RequestError,
)
from fairlead.cluster.resources import PODS, Page, Resource, Where

LOG: Final = logging.getLogger(__name__)
T = TypeVar("T")
REVISIONS: Final = Resource("apps", "v1", "controllerrevisions")
_PASSING: Final = frozenset({0, 401, 408, 429, 502, 503, 504})  # of somebody before the API server; 0 is no answer
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode
_page: Final = msgspec.json.Decoder(Page[dict[str, Any]]).decode


@dataclass(slots=True, eq=False)
class Bindings:
    """Pods that are bound to nodes."""

    client: Client
    _lacks: dict[str, str] = field(default_factory=dict)

    @property
    def missing(self) -> str:
        """The right without which none is bound; empty where it is not that."""
        return next(iter(self._lacks.values()), "")

    async def bind(self, namespace: str, name: str, binding: bytes, within_s: float) -> None:
        """Post a Binding, once."""
        await self._told("create", self.client.post(PODS.of(namespace, name, "binding"), binding, within_s=within_s))

    async def pod(self, namespace: str, name: str, within_s: float) -> bytes:
        """The pod as it is now."""
        return await self._told("get", self.client.read(PODS.of(namespace, name), within_s=within_s))

    async def _told(self, verb: str, asked: Awaitable[T]) -> T:
        """Others than RBAC, such as quotas and admission, refuse one pod and not all."""
        try:
            answer = await asked
        except ForbiddenError as error:
            if error.is_of_rbac and verb not in self._lacks:
                self._lacks[verb] = str(error)
                LOG.warning("pods cannot be bound", extra={"why": str(error)})
            raise
        self._lacks.pop(verb, None)
        return answer


@dataclass(frozen=True, slots=True)
class RevisionsOf:
    """The ControllerRevisions of a namespace."""

    client: Client
    namespace: str

    async def list(self, selector: str) -> Sequence[Mapping[str, Any]]:
        """Those with this label."""
        found: list[Mapping[str, Any]] = []
        try:
            async for page in self.client.pages(
                Where(REVISIONS, self.namespace), _page, query={"labelSelector": selector}
            ):
                found += page.items or []
        except ClusterError as error:
            raise _as_os_error(error) from error
        return found

    async def create(self, obj: Mapping[str, Any]) -> bool:
        """Whether it was made; it was not if there is one of that name."""
        try:
            await self.client.create(Where(REVISIONS, self.namespace), obj, _decode)
        except ConflictError:
            return False
        except ClusterError as error:
            raise _as_os_error(error) from error
        return True

    async def delete(self, name: str, uid: str) -> None:
        """Gone, if it still is the one of this UID."""
        try:
            await self.client.delete(Where(REVISIONS, self.namespace, name), uid=uid)
        except (NotFoundError, ConflictError):
            pass
        except ClusterError as error:
            raise _as_os_error(error) from error


def _as_os_error(error: ClusterError) -> OSError:
    """A ConnectionError where it may go well another time, a PermissionError where a right is missing."""
    if isinstance(error, ForbiddenError) and error.is_of_rbac:
        return PermissionError(str(error))
    passing = isinstance(error, AccessError) or (isinstance(error, RequestError) and error.status in _PASSING)
    return ConnectionError(str(error)) if passing else OSError(str(error))
