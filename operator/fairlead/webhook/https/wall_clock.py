"""Time of day for rules: follows the system clock, and never goes back by a little."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from time import time_ns
from typing import Final

from fairlead.time_units import SECOND_NS

LOG: Final = logging.getLogger(__name__)
BACK_NS: Final = SECOND_NS


@dataclass(slots=True, eq=False)
class TimeOfDay:
    """Nanoseconds since 1970. Small steps back are hidden; a large step back is followed.

    A large step means that the clock was ahead and was corrected. `went_back` then drops what was computed for a time
    in the future, before anything sees the new time.
    """

    clock: Callable[[], int] = time_ns
    went_back: Callable[[], None] = lambda: None
    _last: int = 0

    def __call__(self) -> int:
        """Return the current time."""
        now, last = self.clock(), self._last
        if now < last:
            if last - now <= BACK_NS:
                return last
            LOG.warning("clock.went_back", extra={"duration_s": (last - now) // SECOND_NS})
            self.went_back()
        self._last = now
        return now
