"""Shares in order: the same as a sorted list, however they came about."""

import random

import pytest

from fairlead.strategies.ordered_shares import OrderedShares, SharesBelow


def below(shares: list[int], limit: int) -> SharesBelow:
    some = [one for one in shares if one < limit]
    return SharesBelow(len(some), sum(some), sum(one * one for one in some))


@pytest.mark.parametrize("different", [1, 3, 1000])
def test_they_are_those_of_a_sorted_list(different: int) -> None:
    rng = random.Random(different)  # noqa: S311 - no secret
    shares, ordered = list[int](), OrderedShares()
    for grows in (True, False) * 2:
        while len(shares) < 500 if grows else shares:
            if rng.random() < (0.7 if grows else 0.3) or not shares:
                shares.append(rng.randrange(different) << 50)
                ordered.add(shares[-1])
            else:
                ordered.remove(shares.pop(rng.randrange(len(shares))))
            if rng.random() < 0.1 or len(shares) < 2:
                assert [*ordered] == sorted(shares)
                for limit in (0, (rng.randrange(different) << 50) + rng.randrange(2), 1 << 62):
                    assert ordered.below(limit) == below(shares, limit)


def test_a_change_touches_few_of_them() -> None:
    ordered = OrderedShares()
    for share in range(1000):
        ordered.add(share)
    assert max(map(len, ordered._blocks)) <= 128
