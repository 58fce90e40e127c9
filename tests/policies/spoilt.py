"""Policies spoilt at random: what one reader rejects, the other must reject too."""

import copy
import random
from collections.abc import Iterator

from policies.good import EVERYTHING, GOOD, READINESS, Object, policy

_VALUES: tuple[object, ...] = (
    *(None, "", "a", "A b", "a-b", "aB", "x" * 64, "60s", "1h1h", "Disabled", "Fail", "In", "Exists"),
    *(0, 1, -1, 2.0, 2.5, 1e6, 1e19, True, False, [], {}, ["a"], ["a", "a"], [None], [{}], {"a": "b"}, {"a": None}),
)
_READY = policy(filters=[{"name": "ready", "nodeReadiness": READINESS}])
_KEYS = ("name", "expression", "key", "maxAge", "nodeLabel", "on_error", "x", "matchLabels", "nodeReadiness")


def spoilt(seed: int) -> Object:
    """Return a good policy with one to three things changed in its spec."""
    chance = random.Random(seed)  # noqa: S311 - nothing secret
    chosen = copy.deepcopy(chance.choice([EVERYTHING, EVERYTHING, _READY, *GOOD.values()]))
    for _ in range(chance.randint(1, 3)):
        holder, key = chance.choice([*_places(chosen["spec"])] or [(chosen["spec"], "mode")])
        _spoil(holder, key, chance)
    return chosen


def _spoil(holder: object, key: object, chance: random.Random) -> None:
    if isinstance(holder, dict):
        how = chance.choice(("replace", "replace", "remove", "add"))
        if how == "replace":
            holder[key] = copy.deepcopy(chance.choice(_VALUES))
        elif how == "remove":
            holder.pop(key, None)
        else:
            holder[chance.choice(_KEYS)] = copy.deepcopy(chance.choice(_VALUES))
    elif isinstance(holder, list) and isinstance(key, int):
        if chance.random() < 0.5:
            holder[key] = copy.deepcopy(chance.choice(_VALUES))
        else:
            holder.append(copy.deepcopy(holder[key]))


def _places(value: object) -> Iterator[tuple[object, object]]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield value, key
            yield from _places(one)
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield value, index
            yield from _places(one)
