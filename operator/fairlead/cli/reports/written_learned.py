"""Learned state of rules in the form in which suites and `--learned FILE` give it. Pure.

It is complete: read back, it gives the same scores.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from fairlead.api.values import Quantity
from fairlead.learned.demands import Demands
from fairlead.learned.pair import OutcomeSums, value
from fairlead.learned.pairs import Key
from fairlead.strategies.reads import OutcomesRead
from fairlead.time_units import duration_text

_WHOLE_END: Final = 10**9
"""A quantity of a policy has at most nine digits before and after its point."""
_DIGITS: Final = 9
_BINARY: Final = tuple((f"{letter}i", 1024**power) for power, letter in reversed([*enumerate("MGTPE", start=2)]))
_DECIMAL: Final = (("", 1.0), *((letter, 1000.0**power) for power, letter in enumerate("kMGTPE", start=1)))
_COUNT_MIN: Final = 0.01
_AGE_MAX_S: Final = 87_600 * 3600


def written_pairs(
    pairs: Sequence[tuple[Key, OutcomeSums]], names: Mapping[str, str], outcomes: OutcomesRead, now_s: int
) -> list[dict[str, Any]]:
    """Return outcomes as of the last one of each pair. `names` are those of nodes, by their keys."""
    return [
        {
            "type": kind,
            "node": names.get(node, ""),
            "value": value(pair, outcomes.prior, outcomes.half_life_s, pair.at),
            "count": pair.weight,
            "age": duration_text(min(max(0, now_s - pair.at), _AGE_MAX_S)),
            "prior": outcomes.prior,
        }
        for (kind, node), pair in sorted(pairs, key=lambda one: (one[0][0], names.get(one[0][1], ""), one[0][1]))
        if pair.weight >= _COUNT_MIN
    ]


def written_demands(demands: Demands, resources: Sequence[str]) -> dict[str, Any]:
    """Return requests in the order of the creation of their pods: those that are equal and follow each other once."""
    return {"demands": [*_rows(demands, resources)]}


def _rows(demands: Demands, resources: Sequence[str]) -> Iterator[dict[str, Any]]:
    for amounts, same in groupby(amounts for _, amounts in sorted(demands.items())):
        yield {name: amount_text(one) for name, one in zip(resources, amounts, strict=True)} | {
            "copies": sum(1 for _ in same)
        }


def amount_text(amount: float) -> str:
    """Return an amount as a quantity of a policy: 500m, 2, 16Gi."""
    for unit, size in _BINARY:
        if amount >= size and amount % size == 0 and amount / size < _WHOLE_END:
            return f"{amount / size:.0f}{unit}"
    milli = round(amount * 1000)
    if amount != round(amount) and abs(amount * 1000 - milli) < 1e-9 * milli < 1e-9 * _WHOLE_END:
        return f"{milli}m"
    texts = [_in_unit(amount / size, unit) for unit, size in _DECIMAL if amount / size < _WHOLE_END]
    exact = [text for text in texts if Quantity(text).amount == amount]
    return min(exact or texts[:1], key=len, default=f"{_WHOLE_END - 1}{_DECIMAL[-1][0]}")


def _in_unit(number: float, unit: str) -> str:
    return f"{number:.{_DIGITS}f}".rstrip("0").rstrip(".") + unit
