"""Comparison of values with parameters, without the errors of floating-point arithmetic.

A value of 71 with the factor 0.1 is 7.1000000000000005, and shares of a node add up to just more than its limit. What
differs by less than a billionth therefore counts as equal: of the larger number, or of 1 if both are smaller.
"""

_TOLERANCE = 1e-9


def equal(first: float, second: float) -> bool:
    """Return whether two numbers are equal."""
    return abs(first - second) < _TOLERANCE * max(1.0, abs(first), abs(second))


def at_most(value: float, limit: float) -> bool:
    """Return whether a value is within an upper limit."""
    return value <= limit or equal(value, limit)


def at_least(value: float, limit: float) -> bool:
    """Return whether a value is within a lower limit."""
    return value >= limit or equal(value, limit)


def position(value: float, low: float, high: float) -> float:
    """Return where a value lies in a range, from 0 at its lower end to 100; what is outside counts as an end."""
    return min(max(100.0 * (value - low) / (high - low), 0.0), 100.0)
