"""Client for pods and their Bindings. Each call is one attempt, and its outcome is a value.

What the API server has refused is certain: it will never be carried out. Without a reply, and after a status that says
that the server itself failed, the outcome is open.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from fairlead.kube.errors import (
    ClusterError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    RequestError,
    UnreachableError,
)
from fairlead.kube.http.client import Client
from fairlead.kube.resources import PODS
from fairlead.webhook.binding.api_calls import Conflicting, Failed, Missing, Posted, Uncertain, WriteFailure

LOG: Final = logging.getLogger(__name__)
T = TypeVar("T")
_SERVER_ERROR: Final = 500


class PermissionRecord:
    """Permissions that binds need and that are missing, by the request that was refused."""

    def __init__(self) -> None:
        self._missing: dict[str, str] = {}

    @property
    def missing(self) -> str:
        """The missing permission that was found first; "" if none is missing."""
        return next(iter(self._missing.values()), "")

    async def record(self, name: str, consequence: str, request: Awaitable[T]) -> T:
        """Await a request, and record a missing permission; quotas and admission reject one object, not all.

        Raises what the request raises.
        """
        try:
            answer = await request
        except ForbiddenError as error:
            if error.is_of_rbac and name not in self._missing:
                self._missing[name] = str(error)
                LOG.warning("permission.missing", extra={"consequence": consequence, "error": str(error)})
            raise
        self._missing.pop(name, None)
        return answer


class BindingClient:
    """Client for pods and their Bindings."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.permissions: Final = PermissionRecord()

    @property
    def missing(self) -> str:
        """The missing permission that makes bind calls fail, also those of ledgers; "" if none is missing."""
        return self.permissions.missing

    async def read_body(self, namespace: str, name: str, timeout_s: float) -> bytes | Missing | Failed:
        """Read a pod, with all writes before the call in it."""
        return await read(self._recorded("get", self.client.read(PODS.named(namespace, name), within_s=timeout_s)))

    async def post_binding(self, binding: Mapping[str, Any], timeout_s: float) -> Posted | WriteFailure:
        """Post a Binding."""
        metadata = binding["metadata"]
        where = PODS.named(metadata["namespace"], metadata["name"], "binding")
        return await write(
            self._recorded("create", self.client.post(where, binding, within_s=timeout_s)), lambda _: Posted()
        )

    def _recorded(self, verb: str, request: Awaitable[bytes]) -> Awaitable[bytes]:
        return self.permissions.record(f"{verb} pods", "pods are not bound", request)


async def read(request: Awaitable[bytes]) -> bytes | Missing | Failed:
    """Return the outcome of a read."""
    try:
        return await request
    except NotFoundError:
        return Missing()
    except ClusterError as error:
        return Failed(str(error))


async def write(request: Awaitable[bytes], decode: Callable[[bytes], T]) -> T | WriteFailure:
    """Return the outcome of a write, with its reply decoded. `decode` raises ValueError."""
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
    """Return whether a write may have been carried out despite the error."""
    if isinstance(error, UnreachableError):
        return not error.not_sent
    return isinstance(error, RequestError) and error.status >= _SERVER_ERROR
