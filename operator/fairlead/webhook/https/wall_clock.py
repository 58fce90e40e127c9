"""The time of day that rules see: it follows the system's clock, and never goes back far."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from time import time_ns
from typing import Final

LOG: Final = logging.getLogger(__name__)
_SECOND_NS: Final = 1_000_000_000
BACK_NS: Final = _SECOND_NS


@dataclass(slots=True, eq=False)
class TimeOfDay:
    """Nanoseconds since 1970. They never go back by a little; a clock that was far ahead and is put right is believed.

    Whoever keeps what was computed for a time that has yet to come is told then, before anybody hears of the new time.
    """

    clock: Callable[[], int] = time_ns
    went_back: Callable[[], None] = lambda: None
    _last: int = 0

    def __call__(self) -> int:
        """Now."""
        now, last = self.clock(), self._last
        if now < last:
            if last - now <= BACK_NS:
                return last
            LOG.warning("clock.went_back", extra={"duration_s": (last - now) // _SECOND_NS})
            self.went_back()
        self._last = now
        return now
