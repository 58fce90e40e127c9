"""The last good generation of each policy, kept in the API server as a ControllerRevision.

Its data can never be changed, so that a later generation is a new object and the earlier ones are deleted after it is
there. Several replicas do this at once and come to the same: the name says which generation it is, and nobody deletes
what is newer than what he has written himself. Policies of files and those of the API server are kept apart by the
value of the label: who knows the ones says nothing of the others.
"""

import asyncio
import hashlib
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import msgspec

from fairlead.kube.errors import AccessError, ClusterError, ConflictError, ForbiddenError, NotFoundError, RequestError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef, Page, Resource
from fairlead.webhook.serving.policy_status import CompiledGeneration

LOG: Final = logging.getLogger(__name__)
LABEL: Final = "fairlead.dev/last-good"
AGAIN_S: Final = 60.0
_LOAD_AGAIN_S: Final = 1.0
"""What could not be written is tried again."""
REFUSALS: Final = 4
"""An API server that has just begun refuses everybody for a moment: before that many nobody believes it."""
_NAME: Final = "fairlead.dev/policy"
_UID: Final = "fairlead.dev/policy-uid"
_GENERATION: Final = "fairlead.dev/policy-generation"


class RevisionApi(Protocol):
    """What is needed of the API server: ControllerRevisions of one namespace.

    Raises OSError when it cannot be done, a ConnectionError when nobody has answered, a PermissionError for want of a
    right.
    """

    async def list(self, selector: str) -> Sequence[Mapping[str, Any]]:
        """Those with this label."""

    async def create(self, obj: Mapping[str, Any]) -> bool:
        """Whether it was made; it was not if there is one of that name."""

    async def delete(self, name: str, uid: str) -> None:
        """Gone, if it still is the one of this UID."""


def revision_of(good: CompiledGeneration, number: int, source: str) -> dict[str, Any]:
    """The object that keeps a generation."""
    identity = hashlib.sha256(f"{source}/{good.name}/{good.uid}/{good.generation}".encode()).hexdigest()
    labels = {LABEL: source}
    annotations = {_NAME: good.name, _UID: good.uid, _GENERATION: good.generation}
    metadata = {"name": f"fairlead-policy-{identity[:16]}", "labels": labels, "annotations": annotations}
    written = {key: value for key, value in good.obj.items() if key in ("apiVersion", "kind", "spec")}
    kept = {field: value for field, value in good.obj["metadata"].items() if field in ("name", "uid", "generation")}
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": metadata,
        "revision": number,
        "data": written | {"metadata": kept},
    }


def good_of(revision: Mapping[str, Any]) -> CompiledGeneration | None:
    """What such an object keeps; None if it is none of ours."""
    notes = revision.get("metadata", {}).get("annotations", {})
    data = revision.get("data")
    if not isinstance(data, Mapping) or not notes.get(_NAME):
        return None
    return CompiledGeneration(notes[_NAME], notes.get(_UID, ""), notes.get(_GENERATION, ""), data)


@dataclass(slots=True, eq=False)
class LastGoodStore:
    """Writes what is good, one after the other, in the background."""

    api: RevisionApi
    source: str
    """Where the policies come from: a word for the label."""
    fault: str = ""
    """Why nothing can be kept, where that is so."""
    missing_permission: str = ""
    """The right without which nothing can be; empty where it is not that."""
    _refusals: int = 0
    _waiting: dict[str, CompiledGeneration | None] = field(default_factory=dict)  # None: the policy went
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    async def load(self) -> dict[tuple[str, str], CompiledGeneration] | None:
        """What was kept by an earlier process: of each policy, by name and UID, the newest. None: ask again."""
        try:
            revisions = await self.api.list(f"{LABEL}={self.source}")
        except OSError as error:
            self._failed(error)
            self._refusals += isinstance(error, PermissionError)
            passes = isinstance(error, ConnectionError) or 0 < self._refusals < REFUSALS
            return None if passes else {}
        self.fault = self.missing_permission = ""
        held: dict[tuple[str, str], CompiledGeneration] = {}
        for revision in sorted(revisions, key=_number):
            if (good := good_of(revision)) is not None:
                held[good.name, good.uid] = good
        return held

    async def loaded(self) -> dict[tuple[str, str], CompiledGeneration]:
        """Return the same, once the API server has said it."""
        while (held := await self.load()) is None:
            await asyncio.sleep(_LOAD_AGAIN_S)
        return held

    def keep(self, good: CompiledGeneration) -> None:
        """Write it soon."""
        self._waiting[good.name] = good
        self._wake.set()

    def forget(self, name: str) -> None:
        """Delete what was kept of it soon."""
        self._waiting[name] = None
        self._wake.set()

    async def run(self) -> None:
        """Write what waits, for ever."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), AGAIN_S if self._waiting else None)
            self._wake.clear()
            failed: dict[str, CompiledGeneration | None] = {}
            while self._waiting:
                name = next(iter(self._waiting))
                good = self._waiting.pop(name)
                try:
                    await self._settle(name, good)
                except OSError as error:
                    failed[name] = good
                    self._failed(error)
            self._waiting = failed | self._waiting
            if self.fault and not failed:
                self.fault = self.missing_permission = ""
                LOG.info("last_good.kept")

    async def _settle(self, name: str, good: CompiledGeneration | None) -> None:
        held = [one for one in await self.api.list(f"{LABEL}={self.source}") if _is_of(one, name)]
        superseded = held if good is None else await self._write(good, held)
        for metadata in (one["metadata"] for one in superseded):
            await self.api.delete(metadata["name"], metadata["uid"])

    async def _write(self, good: CompiledGeneration, held: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """Write one, and tell what it supersedes."""
        generation = good.obj["metadata"].get("generation")
        # Those of files have no order: the last written is the newest.
        number = int(generation) if generation else max(map(_number, held), default=0) + 1
        made = revision_of(good, number, self.source)
        await self.api.create(made)
        others = (one for one in held if one["metadata"]["name"] != made["metadata"]["name"])
        return [one for one in others if _number(one) < number or not _is_of(one, good.name, good.uid)]

    def _failed(self, error: OSError) -> None:
        if not self.fault:
            LOG.warning("last_good.in_memory_only", extra={"error": str(error)})
        self.fault = str(error)
        self.missing_permission = str(error) if isinstance(error, PermissionError) else ""


def _number(revision: Mapping[str, Any]) -> int:
    return int(revision.get("revision", 0))


def _is_of(revision: Mapping[str, Any], name: str, uid: str | None = None) -> bool:
    notes = revision["metadata"].get("annotations", {})
    return bool(notes.get(_NAME) == name and uid in (None, notes.get(_UID)))


REVISIONS: Final = Resource("apps", "v1", "controllerrevisions")


_PASSING: Final = frozenset({0, 401, 408, 429, 502, 503, 504})  # of somebody before the API server; 0 is no answer


_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


_page: Final = msgspec.json.Decoder(Page[dict[str, Any]]).decode


@dataclass(frozen=True, slots=True)
class RevisionClient:
    """The ControllerRevisions of a namespace."""

    client: Client
    namespace: str

    async def list(self, selector: str) -> Sequence[Mapping[str, Any]]:
        """Those with this label."""
        found: list[Mapping[str, Any]] = []
        try:
            async for page in self.client.pages(
                ObjectRef(REVISIONS, self.namespace), _page, query={"labelSelector": selector}
            ):
                found += page.items or []
        except ClusterError as error:
            raise _as_os_error(error) from error
        return found

    async def create(self, obj: Mapping[str, Any]) -> bool:
        """Whether it was made; it was not if there is one of that name."""
        try:
            await self.client.create(ObjectRef(REVISIONS, self.namespace), obj, _decode)
        except ConflictError:
            return False
        except ClusterError as error:
            raise _as_os_error(error) from error
        return True

    async def delete(self, name: str, uid: str) -> None:
        """Gone, if it still is the one of this UID."""
        try:
            await self.client.delete(ObjectRef(REVISIONS, self.namespace, name), uid=uid)
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
