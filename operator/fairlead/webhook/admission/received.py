"""Newest generations of policies that the API server had this replica review."""

from dataclasses import dataclass, field
from typing import Any, Final

KEPT: Final = 10_000
"""Policies whose last review is remembered: twice as many as may serve."""


@dataclass(slots=True, eq=False)
class ReceivedReviews:
    """Reviews since the start of the process."""

    _generations: dict[str, int] = field(default_factory=dict)

    def record(self, uid: Any, generation: Any) -> None:
        """Record a review of a generation that is stored, or is about to be."""
        if not isinstance(uid, str) or not isinstance(generation, int):
            return
        newest = max(generation, self._generations.pop(uid, 0))
        self._generations[uid] = newest  # the newest last
        if len(self._generations) > KEPT:
            del self._generations[next(iter(self._generations))]

    def generation(self, uid: str) -> int:
        """Return the newest reviewed generation of a policy; 0 if there is none."""
        return self._generations.get(uid, 0)
