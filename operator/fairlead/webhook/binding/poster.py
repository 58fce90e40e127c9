"""The last step of a bind: post the Binding, once, unless the caller takes the call for failed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from fairlead.webhook.binding.api_calls import BindingCalls, Failed, Posted, TimeLeft, WriteFailure

LEAST_S: Final = 0.02
"""With less time left, no request is sent."""
NO_TIME: Final = Failed("no time is left to bind the pod before the scheduler gives up")
ABANDONED: Final = Failed("the caller has hung up")
IsAbandoned: TypeAlias = Callable[[], bool]
"""Returns whether the caller has closed the connection, and so takes the pod for unplaced."""


@dataclass(frozen=True, slots=True)
class Poster:
    """Poster of the Bindings of one caller, with devices granted or without."""

    api: BindingCalls
    is_abandoned: IsAbandoned

    async def post(self, binding: Mapping[str, Any], left_s: TimeLeft) -> Posted | WriteFailure:
        """Post a Binding that is decided; Failed if it was never sent, or was refused for good."""
        if self.is_abandoned():
            return ABANDONED
        within_s = left_s()
        return NO_TIME if within_s < LEAST_S else await self.api.post_binding(binding, within_s)
