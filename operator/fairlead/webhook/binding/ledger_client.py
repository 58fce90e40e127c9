"""The API server as binds with grants call it. Each call is one attempt, and its outcome is a value.

What the API server has refused is certain: it will never be carried out. Without a reply, and after a status that says
that the server itself failed, the outcome is open.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from fairlead.grants.entry_state import GONE, Gone, PodState
from fairlead.grants.ledger import Ledger, decode_ledger, ledger_name
from fairlead.kube.errors import ClusterError, ConflictError, NotFoundError, RequestError, UnreachableError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import PODS, ObjectRef
from fairlead.kube.watch.config_maps import CONFIG_MAPS
from fairlead.mirror.resource_requests import ENDED
from fairlead.webhook.binding.api_calls import Conflicting, Failed, Missing, Posted, Uncertain, WriteFailure

_SERVER_ERROR: Final = 500
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode
_list: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
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
    """Calls for ledgers, pods and Bindings."""

    def __init__(self, client: Client, namespace: str, read_pod: ReadPod) -> None:
        """`namespace` has the ledgers."""
        self._client = client
        self._ledgers: Final = ObjectRef(CONFIG_MAPS.resource, namespace)
        self._read_pod = read_pod
        self.on_write: Callable[[Ledger | WriteFailure], None] = lambda _: None

    async def read_pod(self, pod: str, timeout_s: float) -> PodState | Gone | Failed:
        """Read what is under this name, with all writes before the call in it."""
        namespace, _, name = pod.partition("/")
        try:
            return self._read_pod(await self._client.read(PODS.named(namespace, name), within_s=timeout_s))
        except NotFoundError:
            return GONE
        except (ClusterError, ValueError) as error:
            return Failed(str(error))

    async def read_ledger(self, node: str, timeout_s: float) -> Ledger | Missing | Failed:
        """Read a ledger, with all writes before the call in it."""
        try:
            found = decode_ledger(_decode(await self._client.read(self._named(node), within_s=timeout_s)))
            return replace(found, node=node)  # a long name does not tell it, and the annotation may be lost
        except NotFoundError:
            return Missing()
        except (ClusterError, ValueError) as error:
            return Failed(str(error))

    async def list_pods(self, node: str, timeout_s: float) -> Sequence[PodState] | Failed:
        """List the pods on a node, with all writes before the call in it."""
        query = {"fieldSelector": f"spec.nodeName={node}"}
        try:
            body = await self._client.read_list(PODS, within_s=timeout_s, query=query)
            return [self._read_pod(one) for one in _items(_list(body).get("items", msgspec.Raw(b"null"))) or ()]
        except (ClusterError, ValueError) as error:
            return Failed(str(error))

    async def list_unplaced(self, timeout_s: float) -> Sequence[PodState] | Failed:
        """List the pods that are on no node, with all writes before the call in it."""
        try:
            body = await self._client.read_list(PODS, within_s=timeout_s, query={"fieldSelector": "spec.nodeName="})
            return [_unplaced(one) for one in _unplaced_pods(body).items or ()]
        except (ClusterError, ValueError) as error:
            return Failed(str(error))

    async def create_ledger(self, body: Mapping[str, Any], timeout_s: float) -> Ledger | WriteFailure:
        """Create a ledger."""
        return await self._write(self._client.post(self._ledgers, msgspec.json.encode(body), within_s=timeout_s))

    async def patch_ledger(self, node: str, patch: Mapping[str, Any], timeout_s: float) -> Ledger | WriteFailure:
        """Apply a merge patch to a ledger."""
        return await self._write(self._client.merge_once(self._named(node), patch, within_s=timeout_s))

    async def delete_ledger(self, ledger: Ledger) -> None:
        """Delete this version of a ledger. Raises ClusterError."""
        await self._client.delete(self._named(ledger.node), uid=ledger.uid, version=ledger.rv)

    async def post_binding(self, binding: Mapping[str, Any], timeout_s: float) -> Posted | WriteFailure:
        """Post a Binding."""
        metadata = binding["metadata"]
        where = PODS.named(metadata["namespace"], metadata["name"], "binding")
        return await _written(
            self._client.post(where, msgspec.json.encode(binding), within_s=timeout_s), lambda _: Posted()
        )

    async def _write(self, request: Awaitable[bytes]) -> Ledger | WriteFailure:
        outcome = await _written(request, _read_ledger)
        self.on_write(outcome)
        return outcome

    def _named(self, node: str) -> ObjectRef:
        return self._ledgers.named(self._ledgers.namespace, ledger_name(node))


def _unplaced(one: _Unplaced) -> PodState:
    meta = one.metadata
    return PodState(meta.uid, f"{meta.namespace}/{meta.name}", meta.resource_version, ended=one.status.phase in ENDED)


def _read_ledger(body: bytes) -> Ledger:
    return decode_ledger(_decode(body))


async def _written(request: Awaitable[bytes], decode: Callable[[bytes], T]) -> T | WriteFailure:
    try:
        body = await request
    except NotFoundError:
        return Missing()
    except ConflictError as error:
        return Conflicting(str(error))
    except ClusterError as error:
        return Uncertain(str(error)) if _is_open(error) else Failed(str(error))
    try:
        return decode(body)
    except ValueError as error:
        return Uncertain(f"the reply cannot be read: {error}")


def _is_open(error: ClusterError) -> bool:
    if isinstance(error, UnreachableError):
        return not error.not_sent
    return isinstance(error, RequestError) and error.status >= _SERVER_ERROR
