"""Deadlines: the clock that they are of, and who is named where one has passed."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

Clock = Callable[[], int]
"""Nanoseconds that never go back; deadlines are of this clock, `now` is not."""
Spent = Mapping[str, int]
"""Nanoseconds that policies took, by their names."""


class TooSlowError(Exception):
    """The deadline passed before every verdict was there; what was computed is kept. Who took longest is named."""

    def __init__(self, spent: Spent) -> None:
        self.spent: Final = spent
        self.policy: Final = max(spent, key=spent.__getitem__)
        super().__init__(too_slow(self.policy))

    def beside(self, spent: Spent) -> "TooSlowError":
        """The same, where policies had taken so much before."""
        together = Counter(self.spent)
        together.update(spent)
        return TooSlowError(together)


def too_slow(policy: str) -> str:
    """What is said of it."""
    return f"policy {policy} is too slow"
