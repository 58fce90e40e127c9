"""Capability: something that a replica can do beside answering calls, such as measuring data or granting devices.

A capability is known to a replica by this class alone. To add one, derive from it in a folder of its own, and name it
where `ServingCore` puts its capabilities together.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from fairlead.kube.watch.reflector import Reflector
from fairlead.logs import printable
from fairlead.metrics import Metrics
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.render.operator_settings import OperatorSettings
from fairlead.replica_state import ReplicaState

LOG: Final = logging.getLogger(__name__)
FOLLOW_S: Final = 5.0
"""Time that policies which are about to serve wait for what they read."""
_LINE_MAX: Final = 2_000
FindPage: TypeAlias = Callable[[str], object | None]
"""Returns what is under the rest of a path, to be written as JSON; None if nothing is."""


@dataclass(frozen=True, slots=True)
class ReadinessCheck:
    """Check of /readyz, with a remark."""

    name: str
    ok: bool
    text: str = ""

    def __str__(self) -> str:
        shown = (f"{self.name}: {self.text}" if self.text else self.name)[:_LINE_MAX]
        return f"[{'+' if self.ok else '-'}] {printable(shown)}"


class Capability:
    """Capability of a replica. Each part may be left out."""

    @property
    def reflectors(self) -> Mapping[str, Reflector[Any]]:
        """Watches without which no call can be answered, by their names in /readyz and metrics."""
        return {}

    @property
    def on_demand(self) -> Mapping[str, Reflector[Any]]:
        """Watches that policies ask for: an author must not be able to keep a replica from being ready."""
        return {}

    def use_settings(self, settings: OperatorSettings) -> None:
        """Use these settings of the operator from now on."""

    async def begin(self) -> None:
        """Do what must be done before the first call is answered."""

    async def run(self) -> None:
        """Run while calls are answered; it is cancelled at the end."""

    async def stop(self) -> None:
        """Stop during the drain."""

    async def follow(self, policies: Sequence[CompiledPolicy]) -> None:
        """Provide what these policies read, and return once it is there: they serve then, and those before no more.

        After `FOLLOW_S` it is cancelled, and they serve without.
        """

    async def tend(self) -> None:
        """Do what one replica has to do for all: called now and then on the one that leads."""

    async def lead(self, is_leader: Callable[[], bool]) -> None:
        """Do what one replica does for all, all the time: it is cancelled when this one leads no more, or ends.

        `is_leader` tells which of both.
        """

    def checks(self) -> Iterator[ReadinessCheck]:
        """Yield the checks of /readyz that decide whether calls can be answered."""
        yield from ()

    def remarks(self) -> Iterator[ReadinessCheck]:
        """Yield remarks of /readyz, which never fail."""
        yield from ()

    def missing_permissions(self) -> Iterator[str]:
        """Yield missing permissions that concern every policy, each with the RBAC rule to add.

        Those of `reflectors` are known without it. What only one policy names, as in `on_demand`, is reported with that
        policy: its author must not be able to keep the others from being ready.
        """
        yield from ()

    def lacking(self) -> Iterator[str]:
        """Yield what this replica lacks although others may have it, so that it steps aside for them."""
        yield from ()

    def register(self, metrics: Metrics) -> None:
        """Register its metrics."""

    def report(self, state: ReplicaState) -> ReplicaState:
        """Return the report of the replica with its part in it."""
        return state

    @property
    def pages(self) -> Mapping[str, FindPage]:
        """Pages for the operator's own certificate, by the path below which they are."""
        return {}


async def follow_all(capabilities: Sequence[Capability], policies: Sequence[CompiledPolicy]) -> None:
    """Have each capability provide what these policies read; return once all is there, or after `FOLLOW_S`."""
    await asyncio.gather(*(_follow(one, policies) for one in capabilities))


async def _follow(capability: Capability, policies: Sequence[CompiledPolicy]) -> None:
    try:
        async with asyncio.timeout(FOLLOW_S):
            await capability.follow(policies)
    except TimeoutError:
        LOG.warning("policy_set.serves_without", extra={"capability": type(capability).__name__})
