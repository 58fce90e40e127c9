"""Memory that values take: counted, or estimated from a sample where there is much."""

from collections.abc import Iterable, Mapping, Sized
from contextlib import suppress
from functools import partial
from itertools import islice
from sys import getsizeof
from types import CellType, FunctionType
from typing import Any, Final

from msgspec import Struct

from fairlead.cel.values.value_types import Some
from fairlead.policy.views.pod_and_node import PodView

_GROUPS: Final = (list, tuple, set, frozenset)
SAMPLE: Final = 32
"""Elements of a larger collection that are counted, and stand for the others."""
LOOKED_AT: Final = 5_000
"""Objects that are counted in all: pods are waiting meanwhile."""


def size_of(*things: Any) -> int:
    """Return the bytes of CEL values, of pods, and of functions with what their closures hold; each object once.

    Other objects, such as rules and nodes, are shared: their own size counts, but not what they hold.
    """
    seen = set[int]()
    size, left = 0.0, [(one, 1.0) for one in things]
    while left and len(seen) < LOOKED_AT:
        one, times = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        size += times * getsizeof(one)
        held = _held(one)
        if isinstance(held, Sized) and (count := len(held)) > SAMPLE:
            held = [*islice(held, 0, None, count // SAMPLE)]
            times *= count / len(held)
        left += [(each, times) for each in held]
    return int(size * (1 + len(left) / len(seen))) if seen else 0


def _held(one: Any) -> Iterable[Any]:
    if isinstance(one, str | bytes | int | float):
        return ()
    if isinstance(one, _GROUPS):
        return one
    if isinstance(one, Mapping):
        return (*one.keys(), *one.values())
    if isinstance(one, Struct):
        return [getattr(one, name) for name in one.__struct_fields__]
    if isinstance(one, PodView):
        return one.pod, one.namespaceObject, one.request
    if isinstance(one, Some):
        return (one.value,)
    if isinstance(one, FunctionType):
        return one.__closure__ or ()
    if isinstance(one, CellType):
        with suppress(ValueError):  # an empty cell
            return (one.cell_contents,)
    if isinstance(one, partial):
        return one.func, *one.args
    return (one.__wrapped__,) if hasattr(one, "__wrapped__") else ()  # functools.lru_cache
