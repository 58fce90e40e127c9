"""Meter of the cost of an evaluation: text, lists and maps that it produces or walks.

A unit stands for about ten nanoseconds and at most 32 bytes. Few expressions are metered: those for which `estimate`
cannot show beforehand that no object of the API makes them exceed the budget.
"""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from fairlead.cel.values.errors import Abort, CelError, Kind

BUDGET: Final = 300_000
COSTS_TOO_MUCH: Final = "the expression costs too much"
STEP: Final = 3
"""Units of an operator or a lookup that neither produces nor walks anything."""
ITEM: Final = 100
"""Units of an element, a field or an entry that is compared with another of any type."""
RAISED: Final = 100
"""Units of an absorbed error: it has a text, and Python searches for its handler."""
PAID: Final = 30
"""Units of a call of a function that pays for its work, beside that work."""
ANNOTATION_MAX: Final = 16_384
"""Longest annotation a rule reads, in characters: a pod may have 256 KiB, and its owner is not the rule's author."""
TOO_LONG: Final = f"the annotation is longer than a rule may read, {ANNOTATION_MAX:,} characters"
STEPS_MAX: Final = 10_000
"""The largest number of loop steps."""
SHORT_TEXT: Final = 1_024
"""Texts up to this length are compared without being metered."""


class Meter:
    """Rest of the budget of an evaluation."""

    __slots__ = ("_patterns", "left", "of_patterns")

    def __init__(self) -> None:
        self.left = BUDGET
        self.of_patterns = 0
        self._patterns = set[str]()

    def begin(self) -> None:
        """Begin another evaluation."""
        self.left = BUDGET
        if self._patterns:
            self._patterns.clear()
            self.of_patterns = 0

    def pay(self, units: int) -> None:
        """Pay from the budget before anything is produced. Raises Abort if it is exhausted."""
        self.left -= units
        if self.left < 0:
            raise Abort(Kind.COST, COSTS_TOO_MUCH)

    @property
    def mark(self) -> int:
        """Return the rest of the budget, without the cost of patterns: they are compiled once."""
        return self.left + self.of_patterns

    def again(self, units: int, value: Any) -> Any:
        """Return a value that was computed before, for the cost that it had then."""
        self.pay(units)
        return value

    def loop(self, value: Any, units: int) -> None:
        """Pay for a loop over a whole value, at a number of units per step."""
        self.pay(min(len(value), STEPS_MAX) * units)

    def once(self, pattern: str, units: int) -> None:
        """Pay for compiling a pattern, unless this evaluation has paid for it."""
        if pattern not in self._patterns:
            self.pay(units)
            self._patterns.add(pattern)
            self.of_patterns += units

    def walk(self, value: object) -> None:
        """Pay for walking a value with everything in it."""
        left: list[Any] = [value]
        while left:
            each = left.pop()
            self.pay(ITEM)
            if isinstance(each, str | bytes):
                self.pay(len(each) // 32)
            elif isinstance(each, list | tuple):
                self.pay(len(each))
                left.extend(each)
            elif isinstance(each, dict):
                self.pay(10 * len(each))
                self.pay(sum(len(key) for key in each if isinstance(key, str)) // 16)
                left.extend(each.values())
            elif isinstance(each, Struct):
                left.extend([getattr(each, name) for name in each.__struct_fields__])
            elif hasattr(each, "value"):
                left.append(each.value)

    def compare(self, first: object, second: object) -> None:
        """Pay for a test of two values for equality."""
        if isinstance(first, str | bytes | Sequence | dict) and isinstance(second, str | bytes | Sequence | dict):
            if len(first) != len(second):
                self.pay(PAID)
                return
            if isinstance(first, str | bytes):
                self.pay(PAID + len(first) // 32)
                return
        self.walk(first)


class OptimisticMeter(Meter):
    """Budget of code that hopes that nothing raises: half, so that plain code can still evaluate from the beginning.

    Only plain code decides whether the evaluation costs too much.
    """

    __slots__ = ("_computed",)

    def __init__(self) -> None:
        Meter.__init__(self)
        self._computed = 0

    def begin(self) -> None:
        """Begin another evaluation; values computed before it have the other half to themselves."""
        Meter.begin(self)
        self.left = self._computed = BUDGET // 2

    def pay(self, units: int) -> None:
        """Pay from the budget, or give up hope."""
        self.left -= units
        if self.left < 0:
            raise CelError(Kind.COST, COSTS_TOO_MUCH)

    def again(self, units: int, value: Any) -> Any:
        """Return a value that was computed before: it takes no time now, but counts."""
        self._computed -= units
        if self._computed < 0:
            over, self._computed = -self._computed, 0
            self.pay(over)
        return value
