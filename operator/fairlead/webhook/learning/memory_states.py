"""Learned state of a process that publishes nothing: it is kept in memory, and read like what is published."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, Final

from fairlead.cooperative import Steps
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.store import Meta
from fairlead.learned.learner import StateWrite
from fairlead.learned.published import decode
from fairlead.time_units import SECOND_NS
from fairlead.webhook.learning.followed_rules import AnyRule
from fairlead.webhook.learning.publisher import Learner
from fairlead.webhook.learning.state_feed import ListedState, StateSink

LOG: Final = logging.getLogger(__name__)


class MemoryStates:
    """Learned state in memory: the feed, and the publisher, of a process beside which no other one learns."""

    is_listed: Final = True
    missing: Final = ""
    reflectors: Final[Mapping[str, Reflector[Any]]] = {}

    def __init__(
        self, sink: StateSink, now: Callable[[], int], pause: Callable[[Steps[list[StateWrite]]], Any]
    ) -> None:
        """`pause` runs steps with pauses in which calls are answered."""
        self.sink: Final = sink
        self._now, self._pause = now, pause
        self._versions = count(1)
        self._is_told = False

    async def follow(self, rules: Sequence[AnyRule], *, wait: bool) -> None:  # noqa: ARG002 - nothing has to be listed
        """Answer from what these rules have learned, and forget what others have: nothing else ends it."""
        self.sink.set_rules(rules)
        kept = {(one.policy.name, one.table.rule) for one in self.sink.kept}
        for name, state in [*self.sink.states.items()]:
            if state is not None and (state.rule.policy, state.rule.name) not in kept:
                self.sink.remove(("", name))
        if rules and not self._is_told:
            self._is_told = True
            LOG.info("learned.in_memory", extra={"policies": sorted({one.policy.name for one in rules})})

    async def run(self) -> None:
        """Wait until cancelled: nothing is watched."""
        await asyncio.Event().wait()

    async def publish(self, learner: Learner) -> None:
        """Take what a rule has learned since this was called last."""
        for write in await self._pause(learner.write_steps(self._now() // SECOND_NS)):
            metadata = {**write.config_map["metadata"], "resourceVersion": str(next(self._versions))}
            state = decode({**write.config_map, "metadata": metadata})
            if state is not None:  # it always says which rule it is of
                learner.accepted(write, state)
                self.sink.put(ListedState(Meta(name=state.name, resourceVersion=state.rv), state))
