"""What Fairlead itself writes: bindings, and the last good policies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from fairlead.cluster.client import Client
from fairlead.cluster.errors import AccessError, ClusterError, ConflictError, NotFoundError, UnreachableError
from fairlead.cluster.resources import PODS, Page, Resource, Where

REVISIONS: Final = Resource("apps", "v1", "controllerrevisions")
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode
_page: Final = msgspec.json.Decoder(Page[dict[str, Any]]).decode


@dataclass(frozen=True, slots=True)
class Bindings:
    """Pods that are bound to nodes."""

    client: Client

    async def bind(self, namespace: str, name: str, binding: bytes, within_s: float) -> None:
        """Post a Binding, once."""
        await self.client.post(PODS.of(namespace, name, "binding"), binding, within_s=within_s)

    async def pod(self, namespace: str, name: str, within_s: float) -> bytes:
        """The pod as it is now."""
        return await self.client.read(PODS.of(namespace, name), within_s=within_s)


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
    """A ConnectionError where it may go well another time."""
    passing = isinstance(error, UnreachableError | AccessError)
    return ConnectionError(str(error)) if passing else OSError(str(error))
