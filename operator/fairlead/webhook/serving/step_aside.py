"""Stepping aside: a replica that alone cannot reach a server is not ready, so that schedulers call the others.

The leader asks for it, and asks again while it sees the reason. Without it, this ends by itself.
"""

import logging
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Final

LOG: Final = logging.getLogger(__name__)
ASKED_S: Final = 30.0
"""How long a request lasts."""
LONGEST_S: Final = 300.0
"""How long a replica stays aside at most, so that a mistake of the leader ends."""
REST_S: Final = 60.0
"""How long it does not step aside again after that."""


class StepAside:
    """State of a replica that steps aside, or does not."""

    def __init__(
        self,
        lacking: Callable[[], Iterable[str]],
        on_change: Callable[[str], None],
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`lacking` returns what it lacks; `on_change` is told why the replica is aside, or "" if it is not."""
        self._find_lacking, self._on_change, self._clock = lacking, on_change, clock
        self._since: float | None = None
        self._until = self._not_before = 0.0

    def ask(self) -> None:
        """Step aside, or stay aside, if values are lacking."""
        now = self._clock()
        if now < self._not_before or not (lacking := self._lacking()):
            return
        self._until = now + ASKED_S
        if self._since is None:
            self._since = now
            why = f"stepped aside, because other replicas have the values of {lacking}, and this one has none"
            LOG.warning("replica.stepped_aside", extra={"reason": why})
            self._on_change(why)

    def end(self) -> None:
        """Come back: the leader has polled, and does not ask any more."""
        self._until = self._clock()
        self.check()

    def check(self) -> None:
        """Come back if the values are there again, if no policy asks any more, or after the longest time."""
        if self._since is None:
            return
        now = self._clock()
        is_too_long = now >= self._since + LONGEST_S
        if is_too_long or now >= self._until or not self._lacking():
            self._since = None
            self._not_before = now + REST_S if is_too_long else 0.0
            why = "it was aside for the longest time" if is_too_long else "it has values, or is no longer asked"
            LOG.info("replica.came_back", extra={"reason": why})
            self._on_change("")

    def _lacking(self) -> str:
        return ", ".join(sorted({*self._find_lacking()}))
