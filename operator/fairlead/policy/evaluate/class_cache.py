"""Cache of results by equivalence class of pods, least recently used first out, limited in bytes.

Users choose the labels that rules read, and so the number of classes. A class takes a byte for each filter and node,
eight for each score and node, and what its rules hold of the pod.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from sys import getsizeof
from types import CellType, FunctionType
from typing import Any, Final

from msgspec import Struct

from fairlead.cel.values.value_types import Some
from fairlead.policy.columns.column import ScoreColumn
from fairlead.policy.evaluate.compared_score import ComparedScore
from fairlead.policy.evaluate.matching import Key
from fairlead.policy.evaluate.verdict_cache import RuleCache, VerdictCache
from fairlead.policy.views.pod_view import PodView

BYTES: Final = 64 << 20
ENTRIES: Final = 768
NAMED: Final = 32
ALIKE: Final = 32
"""Classes among which a new one looks for results of rules to which its pods are the same."""
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

    key: tuple[int, Key]
    """The id of the evaluator, and the equivalence key."""
    verdicts: VerdictCache
    scores: RuleCache[ScoreColumn]
    compared: Sequence[ComparedScore] = ()
    """Scores that are computed anew for each call."""
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
    _classes: OrderedDict[tuple[int, Key], PodClass] = field(default_factory=OrderedDict)
    _named: deque[PodClass] = field(default_factory=deque)

    def __len__(self) -> int:
        return len(self._classes)

    def __iter__(self) -> Iterator[PodClass]:
        """Return the classes, the most recently used first."""
        return reversed([*self._classes.values()])

    def __contains__(self, pod_class: PodClass) -> bool:
        return self._classes.get(pod_class.key) is pod_class

    def get(self, key: tuple[int, Key]) -> PodClass | None:
        """Return the class of a key, if there is one, without counting as use."""
        return self._classes.get(key)

    def alike(self, key: tuple[int, Key]) -> Iterator[PodClass]:
        """Return recently used classes of the same evaluator and the same policies, the most recently used first."""
        recent = islice(reversed(self._classes.values()), ALIKE)
        return (each for each in recent if each.key[0] == key[0] and each.key[1][0] == key[1][0])

    def use(self, key: tuple[int, Key]) -> PodClass | None:
        """Return the class of a key, if there is one, and count a hit or a miss."""
        found = self._classes.get(key)
        if found is None:
            self.counts.misses += 1
            return None
        self.counts.hits += 1
        self._classes.move_to_end(key)
        return found

    def put(self, pod_class: PodClass) -> PodClass:
        """Add a new class, and return it."""
        self._classes[pod_class.key] = pod_class
        for each in [*self._classes.values()] if len(self._classes) == _SEVERAL else [pod_class]:
            self.count(each)
        return pod_class

    def count(self, pod_class: PodClass) -> None:
        """Count the memory of a class anew, and evict others until there is room for it."""
        if pod_class not in self:
            return
        if pod_class.uncounted and len(self._classes) > 1:
            pod_class.bound, pod_class.uncounted = size_of(*pod_class.uncounted), ()
        size = pod_class.bound + pod_class.verdicts.count() + pod_class.scores.count()
        self.size += size - pod_class.size
        pod_class.size = size
        while len(self._classes) > 1 and (self.size > self.limit or len(self._classes) > self.entries):
            oldest = next(each for each in self._classes.values() if each is not pod_class)
            self._forget(oldest)
            self.counts.evictions += 1

    def names_of(self, pod_class: PodClass) -> dict[str, None]:
        """Return the names of the nodes that pass; only recently used classes keep them, because they take memory."""
        if pod_class.verdicts.has_names or pod_class not in self:
            return pod_class.verdicts.names()
        named = self._named
        if pod_class in named:
            named.remove(pod_class)
        elif len(named) == NAMED:
            named.popleft().verdicts.forget_names()
        named.append(pod_class)
        return pod_class.verdicts.names()

    def _forget(self, pod_class: PodClass) -> None:
        del self._classes[pod_class.key]
        self.size -= pod_class.size
        if pod_class in self._named:
            self._named.remove(pod_class)


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


def _held(value: Any) -> Iterable[Any]:
    if isinstance(value, str | bytes | int | float):
        return ()
    if isinstance(value, _GROUPS):
        return value
    if isinstance(value, Mapping):
        return (*value.keys(), *value.values())
    if isinstance(value, Struct):
        return [getattr(value, name) for name in value.__struct_fields__]
    if isinstance(value, PodView):
        return value.pod, value.namespaceObject, value.request
    if isinstance(value, Some):
        return (value.value,)
    if isinstance(value, FunctionType):
        return value.__closure__ or ()
    if isinstance(value, CellType):
        with suppress(ValueError):  # an empty cell
            return (value.cell_contents,)
    if isinstance(value, partial):
        return value.func, *value.args
    return (value.__wrapped__,) if hasattr(value, "__wrapped__") else ()  # functools.lru_cache
