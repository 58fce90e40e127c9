"""Publisher of what the replica that leads has learned: ConfigMaps, each in place of the version it was decided on."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import msgspec

from fairlead.cooperative import Steps
from fairlead.documents import Document
from fairlead.kube.errors import ClusterError, ConflictError, ForbiddenError, NotFoundError
from fairlead.kube.http.client import Client
from fairlead.kube.http.document_writer import write_document
from fairlead.kube.resources import ObjectRef
from fairlead.kube.watch.config_maps import CONFIG_MAPS
from fairlead.learned.content import STATE, Content
from fairlead.learned.learner import StateWrite, Versions
from fairlead.learned.published import LearnedState, decode, names_of
from fairlead.logs import RateLimiter
from fairlead.time_units import SECOND_NS

LOG: Final = logging.getLogger(__name__)
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode
Result = str
"""Result of a write: written, conflict or failed."""


class Learner(Protocol):
    """Learner of one rule."""

    @property
    def versions(self) -> Versions: ...  # noqa: D102
    def write_steps(self, now: int, /) -> Steps[list[StateWrite]]:
        """Compute the writes by which everything is published that is pending."""

    def accepted(self, write: StateWrite, published: LearnedState, /) -> None:
        """Take note that a write was accepted."""

    def take_late(self) -> int:
        """Return how many outcomes came late since this was asked last."""


class Publisher:
    """Writer of learned state."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        now: Callable[[], int],
        pause: Callable[[Steps[list[StateWrite]]], Any],
        on_write: Callable[[Result], None],
    ) -> None:
        """`pause` runs steps with pauses in which calls are answered."""
        self._client, self._namespace, self._now = client, namespace, now
        self._pause, self._on_write = pause, on_write
        self._rate_limiter = RateLimiter()
        self.missing = ""
        """Missing permission that the last write was refused for want of."""

    async def publish(self, learner: Learner) -> None:
        """Write what a rule has learned since it was published last; what is refused is written the next time."""
        for number in learner.versions.to_read:
            await self._read(learner, number)
        for write in await self._pause(learner.write_steps(self._now() // SECOND_NS)):
            await self._write(learner, write)

    async def _write(self, learner: Learner, write: StateWrite) -> None:
        before: Document[Content] = Document() if write.before is None else write.before.document
        at = self._named(write.config_map["metadata"]["name"])
        try:
            after = await write_document(self._client, STATE, before, write.config_map, at)
        except ClusterError as error:
            learner.versions.refuse(write.number)
            self._failed(error, "conflict" if isinstance(error, ConflictError) else "failed")
            return
        state = decode(after)
        if state is None:  # its annotations were taken away while it was written
            learner.versions.refuse(write.number)
            return
        self.missing = ""
        self._on_write("written")
        learner.accepted(write, state)

    async def _read(self, learner: Learner, number: int) -> None:
        """Read what there is in place of what could not be written."""
        versions = learner.versions
        found = None
        for name in names_of(versions.rule, number):
            try:
                config_map: Mapping[str, Any] = await self._client.get(self._named(name), _decode)
            except NotFoundError:
                continue
            except ClusterError as error:  # it is read the next time
                self._failed(error, "failed")
                return
            state = decode(config_map)
            if state is None or (state.rule.policy, state.rule.name) != (versions.rule.policy, versions.rule.name):
                versions.show_taken(name)
            elif found is None:
                found = state
        versions.was_read(number, found)

    def _failed(self, error: ClusterError, result: Result) -> None:
        self._on_write(result)
        if isinstance(error, ForbiddenError):
            self.missing = str(error)
        if result == "failed" and (more := self._rate_limiter.allow("write")) is not None:
            LOG.warning("learned.write_failed", extra={"error": str(error), **more})

    def _named(self, name: str) -> ObjectRef:
        return ObjectRef(CONFIG_MAPS.resource, self._namespace, name)
