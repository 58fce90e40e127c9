"""Cache of results by equivalence class of pods, least recently used first out, limited in bytes.

Users choose the labels that rules read, and so the number of classes. A class takes a byte for each filter and node,
eight for each score and node, and what its rules hold of the pod.
"""

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from sys import getsizeof
from types import CellType, FunctionType
from typing import Any, Final

from msgspec import Struct

from fairlead.cel.values.value_types import Some
from fairlead.policy.evaluate.columns import ScoreColumn
from fairlead.policy.evaluate.verdict_cache import RuleCache, VerdictCache
from fairlead.policy.views.pod_view import PodView

BYTES: Final = 64 << 20
ENTRIES: Final = 768
NAMED: Final = 32
_SEVERAL: Final = 2
_GROUPS: Final = (list, tuple, set, frozenset)
SAMPLE: Final = 32
"""Elements of a larger collection that are counted, and stand for the others."""
LOOKED_AT: Final = 5_000
"""Objects that are counted in all: pods are waiting meanwhile."""


@dataclass(slots=True, eq=False)
class CacheCounts:
    """Counters for metrics, which outlive the caches of one policy set."""

    hits: int = 0
    misses: int = 0
    evictions: int = 0


@dataclass(slots=True, eq=False)
class PodClass:
    """Cached results of one class of pods."""

    key: tuple[int, Hashable]
    """The id of the evaluator, and the equivalence key."""
    verdicts: VerdictCache
    scores: RuleCache[ScoreColumn]
    uncounted: Sequence[object] = ()
    """The key and what the rules hold of the pod, until that is counted: only once there is a second class."""
    bound: int = 0
    """Bytes of the key and of what the rules hold."""
    size: int = 0
    """Bytes of everything, when they were last counted."""

    @property
    def has_grown(self) -> bool:
        """Report whether something was computed since the last count."""
        return self.verdicts.has_grown or self.scores.has_grown


@dataclass(slots=True, eq=False)
class Classes:
    """Classes of all evaluators that share this cache. The least recently used goes first, but never the last one."""

    limit: int = BYTES
    entries: int = ENTRIES
    size: int = 0
    """Bytes of all classes."""
    counts: CacheCounts = field(default_factory=CacheCounts)
    _classes: OrderedDict[tuple[int, Hashable], PodClass] = field(default_factory=OrderedDict)
    _named: deque[PodClass] = field(default_factory=deque)

    def __len__(self) -> int:
        return len(self._classes)

    def __iter__(self) -> Iterator[PodClass]:
        """Return the classes, the most recently used first."""
        return reversed([*self._classes.values()])

    def __contains__(self, one: PodClass) -> bool:
        return self._classes.get(one.key) is one

    def get(self, key: tuple[int, Hashable]) -> PodClass | None:
        """Return the class of a key, if there is one, without counting as use."""
        return self._classes.get(key)

    def use(self, key: tuple[int, Hashable]) -> PodClass | None:
        """Return the class of a key, if there is one, and count a hit or a miss."""
        found = self._classes.get(key)
        if found is None:
            self.counts.misses += 1
            return None
        self.counts.hits += 1
        self._classes.move_to_end(key)
        return found

    def put(self, one: PodClass) -> None:
        """Add a new class."""
        self._classes[one.key] = one
        for each in [*self._classes.values()] if len(self._classes) == _SEVERAL else [one]:
            self.count(each)

    def count(self, one: PodClass) -> None:
        """Count the memory of a class anew, and evict others until there is room for it."""
        if one not in self:
            return
        if one.uncounted and len(self._classes) > 1:
            one.bound, one.uncounted = size_of(*one.uncounted), ()
        size = one.bound + one.verdicts.count() + one.scores.count()
        self.size += size - one.size
        one.size = size
        while len(self._classes) > 1 and (self.size > self.limit or len(self._classes) > self.entries):
            oldest = next(each for each in self._classes.values() if each is not one)
            self._forget(oldest)
            self.counts.evictions += 1

    def names_of(self, one: PodClass) -> dict[str, None]:
        """Return the names of the nodes that pass; only recently used classes keep them, because they take memory."""
        if one.verdicts.has_names or one not in self:
            return one.verdicts.names()
        named = self._named
        if one in named:
            named.remove(one)
        elif len(named) == NAMED:
            named.popleft().verdicts.forget_names()
        named.append(one)
        return one.verdicts.names()

    def _forget(self, one: PodClass) -> None:
        del self._classes[one.key]
        self.size -= one.size
        if one in self._named:
            self._named.remove(one)


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
