"""Secrets: read and watched, created by exactly one of several replicas, replaced only in the version that was read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from fairlead.kube.errors import ConflictError, NotFoundError
from fairlead.kube.http.client import Client, Clock
from fairlead.kube.resources import ObjectRef, Resource
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.store import Sink

SECRETS: Final = ObjectRef(Resource("", "v1", "secrets"))
TLS: Final = "kubernetes.io/tls"
_NONE: Final[Mapping[str, str]] = {}


class SecretMetadata(msgspec.Struct, frozen=True):
    """Metadata of a Secret, named as in the API."""

    name: str
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class Secret(msgspec.Struct, frozen=True):
    """A Secret; `data` is base64 in JSON only."""

    metadata: SecretMetadata
    type: str = "Opaque"
    data: dict[str, bytes] = {}

    def __repr__(self) -> str:
        return f"Secret({self.metadata.namespace}/{self.metadata.name}: {', '.join(self.data)})"


class Certificate(msgspec.Struct, frozen=True):
    """Public part of a Secret's data; the rest is not even decoded."""

    certificate: bytes = msgspec.field(name="tls.crt", default=b"")
    before: bytes = b""
    """Previous certificates."""


class PublicSecret(msgspec.Struct, frozen=True):
    """A Secret without its private data."""

    metadata: SecretMetadata
    data: Certificate = Certificate()


_decode: Final = msgspec.json.Decoder(Secret).decode
_decode_shown: Final = msgspec.json.Decoder(PublicSecret).decode
_NOT_OF_HELM: Final = {"fieldSelector": "type!=helm.sh/release.v1"}
"""Excludes Helm releases: whole charts of a megabyte each."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """Secrets of a namespace."""

    client: Client
    namespace: str

    async def get(self, name: str) -> Secret | None:
        """Return a Secret; None if it does not exist."""
        try:
            return await self.client.get(self._where(name), _decode)
        except NotFoundError:
            return None

    async def ensure(
        self, name: str, make: Callable[[], Mapping[str, bytes]], *, kind: str = TLS, labels: Mapping[str, str] = _NONE
    ) -> Secret:
        """Return a Secret, created from `make` if it does not exist; concurrent callers all get the same one."""
        while True:
            if (found := await self.get(name)) is not None:
                return found
            created = Secret(SecretMetadata(name, self.namespace, labels=dict(labels)), kind, dict(make()))
            try:
                return await self.client.create(self._where(""), body(created), _decode)
            except ConflictError as error:
                if not error.exists:
                    raise

    async def replace(self, seen: Secret, data: Mapping[str, bytes], *, drop: str = "") -> Secret:
        """Replace the data of a Secret, and drop the annotation `drop`.

        Raises ConflictError if the Secret changed since it was read, and NotFoundError if it was deleted; nothing is
        written then.
        """
        meta = seen.metadata
        kept = {name: value for name, value in meta.annotations.items() if name != drop}
        wanted = msgspec.structs.replace(
            seen, metadata=msgspec.structs.replace(meta, annotations=kept), data=dict(data)
        )
        return await self.client.replace(self._where(meta.name), body(wanted), _decode)

    def follow(self, name: str, sink: Sink[Secret], *, clock: Clock | None = None) -> Reflector[Secret]:
        """Return a reflector of one Secret. A Role with its resourceName suffices."""
        where = ObjectRef(SECRETS.resource, self.namespace)
        query = {"fieldSelector": f"metadata.name={name}"}
        return Reflector(self.client, where, decode=_decode, sink=sink, query=query, clock=clock)

    def follow_shown(self, sink: Sink[PublicSecret], *, clock: Clock | None = None) -> Reflector[PublicSecret]:
        """Return a reflector of the public parts of all Secrets."""
        where = ObjectRef(SECRETS.resource, self.namespace)
        return Reflector(self.client, where, decode=_decode_shown, sink=sink, query=_NOT_OF_HELM, clock=clock)

    def _where(self, name: str) -> ObjectRef:
        return SECRETS.named(self.namespace, name)


def body(secret: Secret) -> dict[str, object]:
    """Return the Secret as JSON; owners and finalizers are dropped, because our Secrets have none."""
    meta = secret.metadata
    fields = {
        "name": meta.name,
        "namespace": meta.namespace,
        "labels": meta.labels,
        "annotations": meta.annotations,
        "uid": meta.uid,
        "resourceVersion": meta.resourceVersion,
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {name: value for name, value in fields.items() if value},
        "type": secret.type,
        "data": secret.data,
    }
