"""Client for ledgers and the pods of their entries. Each call is one attempt, and its outcome is a value."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from fairlead.grants.entry_state import GONE, Gone, PodState
from fairlead.grants.ledger import OF_NODES, Ledger, LedgerKind, decode_ledger
from fairlead.kube.resources import PODS, ObjectRef
from fairlead.kube.watch.config_maps import CONFIG_MAPS
from fairlead.mirror.resource_requests import ENDED
from fairlead.webhook.binding.api_calls import Failed, Missing, WriteFailure
from fairlead.webhook.binding.binding_client import BindingClient, read, write

_CONSEQUENCES: Final = {True: "no devices are granted", False: "no members of groups are bound to a domain"}
"""Consequence of a missing permission, by whether ledgers are of nodes."""
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode
_listed: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items: Final = msgspec.json.Decoder(list[msgspec.Raw] | None).decode


class _Metadata(msgspec.Struct, gc=False, rename="camel"):
    uid: str
    namespace: str
    name: str
    resource_version: str


class _Status(msgspec.Struct, gc=False):
    phase: str = ""


class _Unplaced(msgspec.Struct, gc=False):
    """Pod that is on no node: of thousands that may wait, no more is read than what ends an entry."""

    metadata: _Metadata
    status: _Status = msgspec.field(default_factory=_Status)


class _UnplacedPods(msgspec.Struct):
    items: list[_Unplaced] | None = None


_unplaced_pods: Final = msgspec.json.Decoder(_UnplacedPods).decode

T = TypeVar("T")
ReadPod = Callable[[bytes | msgspec.Raw], PodState]
"""Decodes a pod. Raises ValueError."""


class LedgerClient:
    """Calls for ledgers of one kind, and for the pods of their entries."""

    def __init__(self, bindings: BindingClient, namespace: str, read_pod: ReadPod, kind: LedgerKind = OF_NODES) -> None:
        """`bindings`: client that records missing permissions, of ledgers too. `namespace` has the ledgers."""
        self._kind, self._consequence = kind, _CONSEQUENCES[kind.is_of_node]
        self._bindings, self._client = bindings, bindings.client
        self._ledgers: Final = ObjectRef(CONFIG_MAPS.resource, namespace)
        self._read_pod = read_pod
        self.on_write: Callable[[Ledger | WriteFailure], None] = lambda _: None

    async def read_pod(self, pod: str, timeout_s: float) -> PodState | Gone | Failed:
        """Read what is under this name, with all writes before the call in it."""
        namespace, _, name = pod.partition("/")
        body = await self._bindings.read_body(namespace, name, timeout_s)
        if isinstance(body, Missing):
            return GONE
        return body if isinstance(body, Failed) else _decoded(body, self._read_pod)

    async def read_ledger(self, subject: str, timeout_s: float) -> Ledger | Missing | Failed:
        """Read a ledger, with all writes before the call in it."""
        body = await read(self._recorded("get", self._client.read(self._named(subject), within_s=timeout_s)))
        if isinstance(body, Missing | Failed):
            return body
        # A long name does not tell the node, a hash no group, and the annotation may be lost.
        return _decoded(body, lambda one: replace(self._read_ledger(one), subject=subject))

    async def list_pods(self, subject: str, timeout_s: float) -> Sequence[PodState] | Failed:
        """List the pods on a node, or in the namespace of a group, with all writes before the call in it."""
        if self._kind.is_of_node:
            return await self._list(PODS, {"fieldSelector": f"spec.nodeName={subject}"}, timeout_s, self._read_pods)
        namespace, _, _ = subject.partition("/")
        return await self._list(ObjectRef(PODS.resource, namespace), {}, timeout_s, self._read_pods)

    async def list_unplaced(self, timeout_s: float) -> Sequence[PodState] | Failed:
        """List the pods that are on no node, with all writes before the call in it."""
        return await self._list(PODS, {"fieldSelector": "spec.nodeName="}, timeout_s, _read_unplaced)

    async def _list(
        self,
        where: ObjectRef,
        query: Mapping[str, str],
        timeout_s: float,
        decode: Callable[[bytes], Sequence[PodState]],
    ) -> Sequence[PodState] | Failed:
        request = self._client.read_list(where, within_s=timeout_s, query=query)
        body = await read(self._bindings.permissions.record("list pods", self._consequence, request))
        if isinstance(body, Missing):
            return Failed("there is no list of pods")
        return body if isinstance(body, Failed) else _decoded(body, decode)

    def _read_pods(self, body: bytes) -> Sequence[PodState]:
        return [self._read_pod(one) for one in _items(_listed(body).get("items", msgspec.Raw(b"null"))) or ()]

    async def create_ledger(self, body: Mapping[str, Any], timeout_s: float) -> Ledger | WriteFailure:
        """Create a ledger."""
        request = self._client.post(self._ledgers, body, within_s=timeout_s)
        return await self._write("create", request)

    async def patch_ledger(self, subject: str, patch: Mapping[str, Any], timeout_s: float) -> Ledger | WriteFailure:
        """Apply a merge patch to a ledger."""
        return await self._write("patch", self._client.merge_once(self._named(subject), patch, within_s=timeout_s))

    async def delete_ledger(self, ledger: Ledger) -> None:
        """Delete this version of a ledger. Raises ClusterError."""
        await self._recorded(
            "delete", self._client.delete(self._named(ledger.subject), uid=ledger.uid, version=ledger.rv)
        )

    def _recorded(self, verb: str, request: Awaitable[T]) -> Awaitable[T]:
        consequence = "ledgers that are not needed stay" if verb == "delete" else self._consequence
        return self._bindings.permissions.record(f"{verb} ledgers", consequence, request)

    async def _write(self, verb: str, request: Awaitable[bytes]) -> Ledger | WriteFailure:
        outcome = await write(self._recorded(verb, request), self._read_ledger)
        self.on_write(outcome)
        return outcome

    def _named(self, subject: str) -> ObjectRef:
        return self._ledgers.named(self._ledgers.namespace, self._kind.name(subject))

    def _read_ledger(self, body: bytes) -> Ledger:
        return decode_ledger(_decode(body), self._kind)


def _unplaced(unplaced: _Unplaced) -> PodState:
    meta = unplaced.metadata
    return PodState(
        meta.uid, f"{meta.namespace}/{meta.name}", meta.resource_version, ended=unplaced.status.phase in ENDED
    )


def _read_unplaced(body: bytes) -> Sequence[PodState]:
    return [_unplaced(one) for one in _unplaced_pods(body).items or ()]


def _decoded(body: bytes, decode: Callable[[bytes], T]) -> T | Failed:
    try:
        return decode(body)
    except ValueError as error:
        return Failed(str(error))
