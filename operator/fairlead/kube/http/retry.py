"""Retries: which requests may be sent again, and after how long. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fairlead.kube.errors import RequestError, UnreachableError

FIRST_S: Final = 0.5
LONGEST_S: Final = 30.0
HEALTHY_S: Final = 60.0
_PASSING: Final = frozenset({500, 502, 503, 504})


def jitter(attempt: int, random: Callable[[], float]) -> float:
    """Return a random delay whose limit doubles at each attempt, so that clients do not return together."""
    return random() * min(LONGEST_S, FIRST_S * 2.0 ** min(attempt, 10))


def wait_s(error: RequestError, attempt: int, random: Callable[[], float], *, idempotent: bool) -> float | None:
    """Return how long to wait before the next attempt; None for no retry.

    A request that is not idempotent is sent again only if it certainly was not carried out.
    """
    if isinstance(error, UnreachableError):
        again = idempotent or error.not_sent
    else:
        again = error.status == 429 or (idempotent and error.status in _PASSING and not error.is_invalid)
    return max(error.retry_after_s or 0.0, jitter(attempt, random)) if again else None


@dataclass(slots=True)
class Backoff:
    """Delays after repeated failures; a minute of health resets them."""

    random: Callable[[], float]
    failures: int = 0
    _well_since: float | None = None

    def well(self, now: float) -> None:
        """Record a success."""
        if self._well_since is None:
            self._well_since = now

    def record_failure(self, now: float) -> float:
        """Record a failure, and return how long to wait."""
        if self._well_since is not None and now - self._well_since >= HEALTHY_S:
            self.failures = 0
        self._well_since = None
        self.failures += 1
        return jitter(self.failures - 1, self.random)
