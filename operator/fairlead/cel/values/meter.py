"""What an evaluation costs, counted while it runs: text, lists and maps that it produces or walks.

A unit stands for some ten nanoseconds and for at most 32 bytes. Few expressions are counted: those for which `estimate`
cannot show beforehand that no object of the API makes them cost more than the budget.
"""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from fairlead.cel.values.errors import Abort, CelError, Kind

BUDGET: Final = 300_000
COSTS_TOO_MUCH: Final = "the expression costs too much"
STEP: Final = 3
"""Of an operator or a lookup that neither produces nor walks anything."""
ITEM: Final = 100
"""Of an element, a field or an entry that is compared with another of any type."""
RAISED: Final = 100
"""Of an error that is absorbed: it has a text, and Python looks for who catches it."""
PAID: Final = 30
"""Of a function that pays for its work, beside that work."""
ANNOTATION_MAX: Final = 16_384
"""Characters of an annotation that a rule reads: a pod may have 256 KiB, and its owner is not the rule's author."""
TOO_LONG: Final = f"the annotation is longer than a rule may read, {ANNOTATION_MAX:,} characters"
STEPS_MAX: Final = 10_000
"""No loop goes further."""
SHORT_TEXT: Final = 1_024
"""Texts up to here are compared without being counted."""


class Meter:
    """What an evaluation may still cost."""

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
        """Take some of what is left, or end the evaluation; before anything is produced."""
        self.left -= units
        if self.left < 0:
            raise Abort(Kind.COST, COSTS_TOO_MUCH)

    @property
    def mark(self) -> int:
        """What is left, but for patterns: they are compiled once."""
        return self.left + self.of_patterns

    def again(self, units: int, value: Any) -> Any:
        """Give a value that was computed before, for what it cost then."""
        self.pay(units)
        return value

    def loop(self, value: Any, units: int) -> None:
        """Pay for a loop over all of a value, of which each step takes so many units."""
        self.pay(min(len(value), STEPS_MAX) * units)

    def once(self, pattern: str, units: int) -> None:
        """Pay for compiling a pattern, unless this evaluation has paid for it."""
        if pattern not in self._patterns:
            self.pay(units)
            self._patterns.add(pattern)
            self.of_patterns += units

    def walk(self, value: object) -> None:
        """Pay for going through all that a value holds."""
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

    def compare(self, one: object, other: object) -> None:
        """Pay for finding out whether two values are equal."""
        if isinstance(one, str | bytes | Sequence | dict) and isinstance(other, str | bytes | Sequence | dict):
            if len(one) != len(other):
                self.pay(PAID)
                return
            if isinstance(one, str | bytes):
                self.pay(PAID + len(one) // 32)
                return
        self.walk(one)


class Hope(Meter):
    """What code may cost that hopes that nothing raises: half, and plain code can still evaluate from the beginning.

    It is plain code that says whether the evaluation costs too much.
    """

    __slots__ = ("_computed",)

    def __init__(self) -> None:
        Meter.__init__(self)
        self._computed = 0

    def begin(self) -> None:
        """Begin another evaluation; what was computed before it has the other half to itself."""
        Meter.begin(self)
        self.left = self._computed = BUDGET // 2

    def pay(self, units: int) -> None:
        """Take some of what is left, or give up hope."""
        self.left -= units
        if self.left < 0:
            raise CelError(Kind.COST, COSTS_TOO_MUCH)

    def again(self, units: int, value: Any) -> Any:
        """Give a value that was computed before: it takes no time now, but counts."""
        self._computed -= units
        if self._computed < 0:
            over, self._computed = -self._computed, 0
            self.pay(over)
        return value
