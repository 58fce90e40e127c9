"""Authorities in every phase, Secrets that are kept in memory, and handshakes without a wire."""

import ssl
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec

from fairlead.kube.errors import ConflictError
from fairlead.kube.watch.secrets import SECRETS, TLS, Secret, SecretMetadata
from fairlead.pki import authority as authorities
from fairlead.pki.authority import Authority, Phase
from fairlead.pki.issuing import Pair
from fairlead.pki.tls_context import load_pair

T = TypeVar("T")
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def authority(phase: Phase = Phase.STABLE, now: datetime = NOW) -> Authority:
    """One that has come so far."""
    found = Authority(authorities.new(now))
    for after in (Phase.INTRODUCED, Phase.SWITCHED, Phase.NARROWED):
        if found.phase is phase:
            break
        found = found.becomes(after, lambda: authorities.new(now))
    assert found.phase is phase
    return found


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that does not wait."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("it waits")


class KeptSecrets:
    """In place of the API server's."""

    def __init__(self) -> None:
        self.kept: dict[str, Secret] = {}
        self.writes = 0
        self.good_writes = -1
        """How many go well before one is refused; -1: all do."""

    async def get(self, name: str) -> Secret | None:
        return self.kept.get(name)

    async def ensure(
        self, name: str, make: Callable[[], Mapping[str, bytes]], *, kind: str = TLS, labels: Mapping[str, str] = {}
    ) -> Secret:
        if name not in self.kept:
            self._put(Secret(SecretMetadata(name, "here", labels=dict(labels)), kind, dict(make())))
        return self.kept[name]

    async def replace(self, seen: Secret, data: Mapping[str, bytes], *, drop: str = "") -> Secret:
        name = seen.metadata.name
        if self.kept[name].metadata.resourceVersion != seen.metadata.resourceVersion:
            raise ConflictError("update", SECRETS.named("here", name), "it has become another")
        kept = {key: value for key, value in seen.metadata.annotations.items() if key != drop}
        meta = msgspec.structs.replace(seen.metadata, annotations=kept)
        return self._put(msgspec.structs.replace(seen, metadata=meta, data=dict(data)))

    def annotate(self, name: str, annotation: str) -> None:
        seen = self.kept[name]
        meta = msgspec.structs.replace(seen.metadata, annotations={**seen.metadata.annotations, annotation: "x"})
        self._put(msgspec.structs.replace(seen, metadata=meta))

    def _put(self, secret: Secret) -> Secret:
        if self.good_writes == 0:
            self.good_writes = -1
            raise ConflictError("update", SECRETS.named("here", secret.metadata.name), "on purpose")
        self.good_writes -= self.good_writes > 0
        self.writes += 1
        meta = msgspec.structs.replace(secret.metadata, resourceVersion=str(self.writes))
        made = self.kept[meta.name] = msgspec.structs.replace(secret, metadata=meta)
        return made


def handshake(server: Pair, callers: bytes, client: Pair, known: bytes, host: str) -> None:
    """Raises ssl.SSLError where one side does not believe the other."""
    ours, theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ours.verify_mode = ssl.CERT_REQUIRED
    for context, pair, trusted in ((ours, server, callers), (theirs, client, known)):
        context.load_verify_locations(cadata=trusted.decode())
        load_pair(context, pair.certificate, pair.key)
    shake_hands(ours, theirs, host)


def shake_hands(ours: ssl.SSLContext, theirs: ssl.SSLContext, host: str) -> None:
    """Let a client reach a server of that name in memory. Raises as `handshake` does."""
    one, other = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [ours.wrap_bio(one, other, server_side=True), theirs.wrap_bio(other, one, server_hostname=host)]
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    for end in ends:
        end.do_handshake()
