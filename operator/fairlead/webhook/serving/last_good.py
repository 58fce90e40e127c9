"""Last good generation of each policy, stored in the API server as a ControllerRevision.

Its data is immutable, so a later generation is a new object, and the earlier ones are deleted once it exists. Several
replicas may do this at once with the same result: the object's name identifies the generation, no replica deletes
anything newer than what it has written itself, and one that is late deletes its own. The label's value separates
policies of files from those of the API server: a replica that knows the ones does not know the others.
"""

import asyncio
import hashlib
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import msgspec

from fairlead.api.names import POLICY_ANNOTATION, POLICY_GENERATION_ANNOTATION, POLICY_UID_ANNOTATION
from fairlead.documents import Document, DocumentTooLargeError, Format
from fairlead.kube.errors import AccessError, ClusterError, ConflictError, ForbiddenError, NotFoundError, RequestError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef, Page, Resource
from fairlead.webhook.serving.policy_status import CompiledGeneration

LOG: Final = logging.getLogger(__name__)
LABEL: Final = "fairlead.dev/last-good"
AGAIN_S: Final = 60.0
_LOAD_AGAIN_S: Final = 1.0
"""Interval of retries after a failed write."""
REFUSALS: Final = 4
"""Refusals that count as transient: an API server that has just started refuses every request for a moment."""
_BYTES_MAX: Final = 1_400_000
"""A little less than an API server sends to etcd."""


class RevisionApi(Protocol):
    """Access to the ControllerRevisions of one namespace.

    Raises OSError on failure: ConnectionError if there was no answer, PermissionError if a permission is missing.
    """

    async def list(self, selector: str) -> Sequence[Mapping[str, Any]]:
        """Return the objects with this label."""

    async def create(self, obj: Mapping[str, Any]) -> bool:
        """Create an object; return False if one of that name exists."""

    async def delete(self, name: str, uid: str) -> None:
        """Delete an object if it still has this UID."""


def revision_of(good: CompiledGeneration, number: int, source: str) -> dict[str, Any]:
    """Return the object that stores a generation."""
    identity = hashlib.sha256(f"{source}/{good.name}/{good.uid}/{good.generation}".encode()).hexdigest()
    labels = {LABEL: source}
    annotations = {
        POLICY_ANNOTATION: good.name,
        POLICY_UID_ANNOTATION: good.uid,
        POLICY_GENERATION_ANNOTATION: good.generation,
        **LAST_GOOD.annotations(),
    }
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


def _decode_revision(revision: Mapping[str, Any]) -> CompiledGeneration:
    annotations = revision["metadata"].get("annotations") or {}
    name, uid = annotations.get(POLICY_ANNOTATION, ""), annotations.get(POLICY_UID_ANNOTATION, "")
    data = revision.get("data")
    kept = data.get("metadata") if isinstance(data, Mapping) else None
    if not name or not isinstance(data, Mapping) or not isinstance(kept, Mapping):
        raise ValueError("it has no policy")
    if (kept.get("name"), kept.get("uid", "")) != (name, uid):  # edited: its rules would serve as those of another
        raise ValueError("its annotations and its data name different policies")
    return CompiledGeneration(name, uid, annotations.get(POLICY_GENERATION_ANNOTATION, ""), data)


LAST_GOOD: Final = Format(
    "the last good generation of a policy",
    _decode_revision,
    "delete it, and the policy is stored again when it next compiles",
    bytes_max=_BYTES_MAX,
)


def good_of(revision: Mapping[str, Any]) -> Document[CompiledGeneration]:
    """Return the generation that an object stores; it is left alone if it says two things of its policy."""
    metadata = revision["metadata"]
    where = f"ControllerRevision {metadata.get('name', '')}"
    annotations = metadata.get("annotations") or {}
    return LAST_GOOD.read_data(where, revision, annotations, metadata.get("resourceVersion") or "")


@dataclass(slots=True, eq=False)
class LastGoodStore:
    """Background writer of last good generations, one at a time."""

    api: RevisionApi
    source: str
    """Source of the policies: the value of the label."""
    fault: str = ""
    """Why nothing can be stored; "" if it can."""
    missing_permission: str = ""
    """The missing permission that prevents it; "" if none is missing."""
    _refusals: int = 0
    _waiting: dict[str, CompiledGeneration | None] = field(default_factory=dict)  # None: the policy was deleted
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    async def load(self) -> dict[tuple[str, str], CompiledGeneration] | None:
        """Return the newest stored generation of each policy, by name and UID; None: try again later."""
        try:
            revisions = await self.api.list(f"{LABEL}={self.source}")
        except OSError as error:
            self._failed(error)
            self._refusals += isinstance(error, PermissionError)
            retry = isinstance(error, ConnectionError) or 0 < self._refusals < REFUSALS
            return None if retry else {}
        self.fault = self.missing_permission = ""
        stored: dict[tuple[str, str], CompiledGeneration] = {}
        for revision in sorted(revisions, key=_number):
            found = good_of(revision)
            if (good := found.value) is not None:
                stored[good.name, good.uid] = good
            else:
                LOG.warning("last_good.left_alone", extra={"error": found.fault})
        return stored

    async def loaded(self) -> dict[tuple[str, str], CompiledGeneration]:
        """Return the result of `load` once the API server has answered."""
        while (stored := await self.load()) is None:
            await asyncio.sleep(_LOAD_AGAIN_S)
        return stored

    def keep(self, good: CompiledGeneration) -> None:
        """Store a generation soon."""
        self._waiting[good.name] = good
        self._wake.set()

    def forget(self, name: str) -> None:
        """Delete the stored generations of a policy soon."""
        self._waiting[name] = None
        self._wake.set()

    async def run(self) -> None:
        """Write what is pending; never returns."""
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
                LOG.info("last_good.stored")

    async def _settle(self, name: str, good: CompiledGeneration | None) -> None:
        superseded = await self._stored(name) if good is None else await self._write(good)
        for metadata in (one["metadata"] for one in superseded):
            await self.api.delete(metadata["name"], metadata["uid"])

    async def _stored(self, name: str) -> Sequence[Mapping[str, Any]]:
        listed = await self.api.list(f"{LABEL}={self.source}")
        return [one for one in listed if _is_of(one, name) and not good_of(one).fault]

    async def _write(self, good: CompiledGeneration) -> Sequence[Mapping[str, Any]]:
        """Store a generation, and return the objects that are superseded then."""
        if generation := good.obj["metadata"].get("generation"):
            number = int(generation)
        else:  # generations of files have no order: the last one written is the newest
            number = max(map(_number, await self._stored(good.name)), default=0) + 1
        revision = revision_of(good, number, self.source)
        try:
            LAST_GOOD.check_size(len(msgspec.json.encode(revision)))
        except DocumentTooLargeError as error:
            raise OSError(f"policy {good.name}: {error}") from error
        await self.api.create(revision)
        # Only now: of replicas that store two generations at once, the one that is last sees both.
        stored = await self._stored(good.name)
        is_late = any(_number(one) > number and _is_of(one, good.name, good.uid) for one in stored)
        own = revision["metadata"]["name"]
        return [
            one
            for one in stored
            if (is_late if one["metadata"]["name"] == own else _number(one) < number)
            or not _is_of(one, good.name, good.uid)
        ]

    def _failed(self, error: OSError) -> None:
        if not self.fault:
            LOG.warning("last_good.in_memory_only", extra={"error": str(error)})
        self.fault = str(error)
        self.missing_permission = str(error) if isinstance(error, PermissionError) else ""


def _number(revision: Mapping[str, Any]) -> int:
    return int(revision.get("revision", 0))


def _is_of(revision: Mapping[str, Any], name: str, uid: str | None = None) -> bool:
    annotations = revision["metadata"].get("annotations", {})
    return bool(annotations.get(POLICY_ANNOTATION) == name and uid in (None, annotations.get(POLICY_UID_ANNOTATION)))


REVISIONS: Final = Resource("apps", "v1", "controllerrevisions")


_PASSING: Final = frozenset({0, 401, 408, 429, 502, 503, 504})  # sent by a proxy before the API server; 0 is no answer


_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


_page: Final = msgspec.json.Decoder(Page[dict[str, Any]]).decode


@dataclass(frozen=True, slots=True)
class RevisionClient:
    """ControllerRevisions of a namespace."""

    client: Client
    namespace: str

    async def list(self, selector: str) -> Sequence[Mapping[str, Any]]:
        """Return the objects with this label."""
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
        """Create an object; return False if one of that name exists."""
        try:
            await self.client.create(ObjectRef(REVISIONS, self.namespace), obj, _decode)
        except ConflictError:
            return False
        except ClusterError as error:
            raise _as_os_error(error) from error
        return True

    async def delete(self, name: str, uid: str) -> None:
        """Delete an object if it still has this UID."""
        try:
            await self.client.delete(ObjectRef(REVISIONS, self.namespace, name), uid=uid)
        except (NotFoundError, ConflictError):
            pass
        except ClusterError as error:
            raise _as_os_error(error) from error


def _as_os_error(error: ClusterError) -> OSError:
    """Return a ConnectionError if a retry may succeed, a PermissionError without a permission, else an OSError."""
    if isinstance(error, ForbiddenError) and error.is_of_rbac:
        return PermissionError(str(error))
    retry = isinstance(error, AccessError) or (isinstance(error, RequestError) and error.status in _PASSING)
    return ConnectionError(str(error)) if retry else OSError(str(error))
