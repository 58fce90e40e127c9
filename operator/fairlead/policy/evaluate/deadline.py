"""Deadlines of calls, and the policy that is named if one passes."""

from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

Clock = Callable[[], int]
"""Monotonic nanoseconds. Deadlines are of this clock, `now` is not."""
Spent = Mapping[str, int]
"""Nanoseconds that each policy took, by name."""
NOTHING_SPENT: Final[Spent] = MappingProxyType({})


class TooSlowError(Exception):
    """The deadline passed before all verdicts were computed; those computed are cached. Names the slowest policy."""

    def __init__(self, spent: Spent, *, after_publication: bool = False) -> None:
        """`after_publication`: verdicts were out of date because of a measurement, so the policy is not at fault."""
        self.spent: Final = spent
        self.after_publication: Final = after_publication
        self.policy: Final = max(spent, key=spent.__getitem__)
        super().__init__(too_slow(self.policy))

    def beside(self, spent: Spent) -> "TooSlowError":
        """Return this error with the time that policies took earlier in the same call."""
        together = Counter(self.spent)
        together.update(spent)
        return TooSlowError(together, after_publication=self.after_publication)


def too_slow(policy: str) -> str:
    """Return the message for users."""
    return f"policy {policy} is too slow"
