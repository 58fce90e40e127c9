"""How much memory is held by something: counted, or reckoned from a part of it where there is much."""

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
"""Of what holds more, so many are looked at and stand for the others."""
LOOKED_AT: Final = 5_000
"""Nor is more looked at in all: whoever asks has pods waiting."""


def size_of(*things: Any) -> int:
    """Bytes of values of the language, of pods, and of functions with what they have bound; each is counted once.

    What else there is, such as a rule or the nodes, is shared by everybody and counts for itself alone.
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
        with suppress(ValueError):  # it is empty
            return (one.cell_contents,)
    if isinstance(one, partial):
        return one.func, *one.args
    return (one.__wrapped__,) if hasattr(one, "__wrapped__") else ()  # what keeps the results of a function
