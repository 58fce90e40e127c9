"""Rounding of measured values to a multiple of a step."""

from decimal import Decimal
from math import floor
from typing import Final

_EXACT: Final = 1 << 52
"""Number of steps from which on every float is a multiple of the step."""
_HALF: Final = Decimal("0.5")
_NEAR: Final = 1e-12
"""Part of a quotient by which it may be off in binary."""


def rounded(value: float, step: float) -> float:
    """Return the nearest multiple of a step, half up; of the decimal that one would write for the value."""
    if abs(value) >= step * _EXACT:
        return float(f"{value:.15g}")
    quotient = value / step
    whole = floor(quotient)
    part = quotient - whole
    if abs(part - 0.5) <= _NEAR * max(1.0, abs(quotient)):
        # 35.15 is a little less in binary, and to tenths it is 35.2 nevertheless.
        is_up = Decimal(f"{value:.15g}") / Decimal(repr(step)) - whole >= _HALF
    else:
        is_up = part > 0.5
    return float(f"{(whole + is_up) * step:.15g}")
