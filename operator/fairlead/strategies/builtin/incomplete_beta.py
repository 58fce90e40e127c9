"""Regularized incomplete beta function: the probability that a beta distribution gives to values up to a limit."""

from math import exp, lgamma, log, log1p
from typing import Final

_PRECISION: Final = 1e-10
_TERMS_MAX: Final = 350
"""Terms needed grow with the root of alpha + beta: up to a million, which strategies never exceed, 334 are enough."""
_TINY: Final = 1e-300
"""In place of a denominator that is 0."""


def incomplete_beta(x: float, alpha: float, beta: float) -> float:
    """Return the probability of values up to `x`, from 0 to 1. `alpha` and `beta` are above 0.

    Computed by the continued fraction of Didonato and Morris, evaluated with Lentz's method. Each of its terms does the
    work of two of the better-known fraction. It converges fast below the mean; above, the values over `x` are counted.
    """
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    y = 1.0 - x
    scale = exp(lgamma(alpha + beta) - lgamma(alpha) - lgamma(beta) + alpha * log(x) + beta * log1p(-x))
    is_above = x * (alpha + beta + 2.0) > alpha + 1.0
    if is_above:
        x, y, alpha, beta = y, x, beta, alpha
    total = alpha + beta
    least = alpha * y - beta * x + 1.0
    step = 2.0 - x
    odd = alpha + 1.0  # alpha + 2 n - 1
    fraction = ratio = alpha * least / odd or _TINY
    inverse = 0.0
    n = 0.0
    while n < _TERMS_MAX:
        n += 1.0
        part = n * (beta - n) * x / odd
        numerator = (alpha + n - 1.0) * (total + n - 1.0) * x * part / odd
        odd += 2.0
        denominator = n + part + (alpha + n) * (least + n * step) / odd
        ratio = denominator + numerator / ratio or _TINY
        inverse = 1.0 / (denominator + numerator * inverse or _TINY)
        change = ratio * inverse
        fraction *= change
        if -_PRECISION < change - 1.0 < _PRECISION:
            break
    found = scale / fraction
    if is_above:
        found = 1.0 - found
    return min(max(found, 0.0), 1.0)
