"""Secrets: read and followed one by one, made by exactly one of several who try, replaced only as they were seen."""

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
    """Of a Secret; called as in the API."""

    name: str
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class Secret(msgspec.Struct, frozen=True):
    """A Secret. What is in `data` is base64 on the wire alone."""

    metadata: SecretMetadata
    type: str = "Opaque"
    data: dict[str, bytes] = {}

    def __repr__(self) -> str:
        return f"Secret({self.metadata.namespace}/{self.metadata.name}: {', '.join(self.data)})"


class Certificate(msgspec.Struct, frozen=True):
    """What of a Secret's data anybody may see; the rest is not even read."""

    certificate: bytes = msgspec.field(name="tls.crt", default=b"")
    before: bytes = b""
    """What is remembered of certificates that were there before."""


class Shown(msgspec.Struct, frozen=True):
    """A Secret, without its secrets."""

    metadata: SecretMetadata
    data: Certificate = Certificate()


_decode: Final = msgspec.json.Decoder(Secret).decode
_decode_shown: Final = msgspec.json.Decoder(Shown).decode
_NOT_OF_HELM: Final = {"fieldSelector": "type!=helm.sh/release.v1"}
"""Whole charts, a megabyte each."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """Those of a namespace."""

    client: Client
    namespace: str

    async def get(self, name: str) -> Secret | None:
        """As it is now; None: there is none."""
        try:
            return await self.client.get(self._where(name), _decode)
        except NotFoundError:
            return None

    async def ensure(
        self, name: str, make: Callable[[], Mapping[str, bytes]], *, kind: str = TLS, labels: Mapping[str, str] = _NONE
    ) -> Secret:
        """The one that is there; if there is none, what is made. Of several who try, all get the same."""
        while True:
            if (found := await self.get(name)) is not None:
                return found
            made = Secret(SecretMetadata(name, self.namespace, labels=dict(labels)), kind, dict(make()))
            try:
                return await self.client.create(self._where(""), body(made), _decode)
            except ConflictError as error:
                if not error.exists:
                    raise

    async def replace(self, seen: Secret, data: Mapping[str, bytes], *, drop: str = "") -> Secret:
        """Other data in place of what was seen, without the annotation `drop`.

        ConflictError: it has become another since; NotFoundError: it went. Then nothing was written.
        """
        meta = seen.metadata
        kept = {name: value for name, value in meta.annotations.items() if name != drop}
        wanted = msgspec.structs.replace(
            seen, metadata=msgspec.structs.replace(meta, annotations=kept), data=dict(data)
        )
        return await self.client.replace(self._where(meta.name), body(wanted), _decode)

    def follow(self, name: str, sink: Sink[Secret], *, clock: Clock | None = None) -> Reflector[Secret]:
        """Keep a sink told of one. A Role that names it allows that."""
        where = ObjectRef(SECRETS.resource, self.namespace)
        query = {"fieldSelector": f"metadata.name={name}"}
        return Reflector(self.client, where, decode=_decode, sink=sink, query=query, clock=clock)

    def follow_shown(self, sink: Sink[Shown], *, clock: Clock | None = None) -> Reflector[Shown]:
        """Keep a sink told of what all of them show."""
        where = ObjectRef(SECRETS.resource, self.namespace)
        return Reflector(self.client, where, decode=_decode_shown, sink=sink, query=_NOT_OF_HELM, clock=clock)

    def _where(self, name: str) -> ObjectRef:
        return SECRETS.named(self.namespace, name)


def body(secret: Secret) -> dict[str, object]:
    """As it is written. Owners, finalizers and the like are not ours to keep: our Secrets have none."""
    meta = secret.metadata
    given = {
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
        "metadata": {name: value for name, value in given.items() if value},
        "type": secret.type,
        "data": secret.data,
    }
