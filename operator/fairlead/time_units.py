"""Units of time."""

from typing import Final

SECOND_NS: Final = 1_000_000_000
"""Nanoseconds in a second: moments and ages are in nanoseconds unless their name says another unit."""
