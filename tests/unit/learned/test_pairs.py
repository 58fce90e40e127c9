"""Pairs of a rule: what is left out if there are too many."""

from collections.abc import Sequence

from fairlead.cooperative import finish
from fairlead.learned.pair import OutcomeSums, key_of
from fairlead.learned.pairs import SHARDS, Key, Meaning, Pairs, bound, shard_of

HOUR = 3600
NOW = 1_764_000_000


def shards(pairs: dict[Key, OutcomeSums]) -> list[Pairs]:
    found: list[dict[Key, OutcomeSums]] = [{} for _ in range(SHARDS)]
    for key, pair in pairs.items():
        found[shard_of(key)][key] = pair
    return [*found]


def bounded(before: Sequence[Pairs], meaning: Meaning, now: int) -> list[Pairs]:
    return finish(bound(before, meaning, now))


def keys(found: Sequence[Pairs]) -> set[Key]:
    return {key for one in found for key in one}


def test_what_is_as_it_was_is_the_same_object() -> None:
    before = shards({(f"type-{at}", "node"): OutcomeSums(0.0, 1.0, NOW, "ns") for at in range(40)})
    after = bounded(before, Meaning(HOUR), NOW)
    assert all(one is other for one, other in zip(before, after, strict=True))


def test_pairs_that_weigh_nothing_go() -> None:
    old, new = ("a", "old"), ("a", "new")
    found = bounded(
        shards({old: OutcomeSums(0.0, 1.0, NOW - 8 * HOUR), new: OutcomeSums(0.0, 1.0, NOW - 7 * HOUR)}),
        Meaning(HOUR),
        NOW,
    )
    assert keys(found) == {new}


def test_pairs_next_to_the_prior_go_first() -> None:
    near, light = ("a", "near"), ("a", "light")
    pairs = {
        near: OutcomeSums(1.9, 2.0, NOW),
        light: OutcomeSums(1.0, 1.0, NOW),
        ("a", "heavy"): OutcomeSums(5.0, 5.0, NOW),
        ("a", "failed"): OutcomeSums(0.0, 1.0, NOW),
    }
    assert keys(bounded(shards(pairs), Meaning(HOUR, pairs=3), NOW)) == pairs.keys() - {light}
    assert keys(bounded(shards(pairs), Meaning(HOUR, pairs=1), NOW)) == {("a", "failed")}


def test_types_of_the_namespace_with_most_go_first() -> None:
    many = {(f"many-{at}", "node"): OutcomeSums(0.0, 1.0, NOW + at, "loud") for at in range(9)}
    few = {(f"few-{at}", "node"): OutcomeSums(0.0, 1.0, NOW - HOUR + at, "quiet") for at in range(3)}
    found = keys(bounded(shards({**many, **few}), Meaning(HOUR, types=6), NOW))
    assert found == {*few, *[*many][6:]}
    assert keys(bounded(shards({**many, **few}), Meaning(HOUR, types=1), NOW)) == {("few-2", "node")}


def test_a_type_is_of_the_namespace_of_its_newest_outcome() -> None:
    pairs = {
        ("shared", "a"): OutcomeSums(0.0, 1.0, NOW, "first"),
        ("shared", "b"): OutcomeSums(0.0, 1.0, NOW + 1, "second"),
        ("other", "a"): OutcomeSums(0.0, 1.0, NOW - 5, "second"),
        ("third", "a"): OutcomeSums(0.0, 1.0, NOW - 9, "first"),
    }
    assert {key[0] for key in keys(bounded(shards(pairs), Meaning(HOUR, types=2), NOW))} == {"shared", "third"}


def test_many_types_of_as_many_namespaces() -> None:
    pairs = {(f"type-{at}", "node"): OutcomeSums(0.0, 1.0, NOW, f"ns-{at}") for at in range(20_000)}
    assert len(keys(bounded(shards(pairs), Meaning(HOUR, types=100), NOW))) == 100


def test_pairs_are_spread_over_the_shards() -> None:
    found = shards({("ml/trainer", key_of(at)): OutcomeSums(0.0, 1.0, NOW) for at in range(16_000)})
    assert max(map(len, found)) < 1200
