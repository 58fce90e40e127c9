"""When a request is made again, and how long to wait before; pure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fairlead.kube.errors import RequestError, UnreachableError

FIRST_S: Final = 0.5
LONGEST_S: Final = 30.0
HEALTHY_S: Final = 60.0
_PASSING: Final = frozenset({500, 502, 503, 504})


def jittered(attempt: int, random: Callable[[], float]) -> float:
    """Anything up to twice as long as before: those who failed together do not come back together."""
    return random() * min(LONGEST_S, FIRST_S * 2.0 ** min(attempt, 10))


def wait_s(error: RequestError, attempt: int, random: Callable[[], float], *, idempotent: bool) -> float | None:
    """How long to wait before the request is made again; None: it is not.

    What is not idempotent is made again only if it surely was not carried out.
    """
    if isinstance(error, UnreachableError):
        again = idempotent or error.not_sent
    else:
        again = error.status == 429 or (idempotent and error.status in _PASSING and not error.is_invalid)
    return max(error.retry_after_s or 0.0, jittered(attempt, random)) if again else None


@dataclass(slots=True)
class Backoff:
    """How long to wait after each of several failures; a minute of health in between forgives all."""

    random: Callable[[], float]
    failures: int = 0
    _well_since: float | None = None

    def well(self, now: float) -> None:
        """Something good was heard."""
        if self._well_since is None:
            self._well_since = now

    def failed(self, now: float) -> float:
        """Something went wrong: how long to wait."""
        if self._well_since is not None and now - self._well_since >= HEALTHY_S:
            self.failures = 0
        self._well_since = None
        self.failures += 1
        return jittered(self.failures - 1, self.random)
