"""Cache of results by equivalence class of pods, least recently used first out, limited in bytes.

Users choose the labels that rules read, and so the number of classes. A class takes a byte for each filter and node,
eight for each score and node, and what its rules hold of the pod.
"""

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from fairlead.policy.evaluate.columns import ScoreColumn
from fairlead.policy.evaluate.memory_sizes import size_of
from fairlead.policy.evaluate.verdict_cache import RuleCache, VerdictCache

BYTES: Final = 64 << 20
ENTRIES: Final = 768
NAMED: Final = 32
_SEVERAL: Final = 2


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
    _kept: OrderedDict[tuple[int, Hashable], PodClass] = field(default_factory=OrderedDict)
    _named: deque[PodClass] = field(default_factory=deque)

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[PodClass]:
        """Return the classes, the most recently used first."""
        return reversed([*self._kept.values()])

    def __contains__(self, one: PodClass) -> bool:
        return self._kept.get(one.key) is one

    def get(self, key: tuple[int, Hashable]) -> PodClass | None:
        """Return the class of a key, if there is one, without counting as use."""
        return self._kept.get(key)

    def use(self, key: tuple[int, Hashable]) -> PodClass | None:
        """Return the class of a key, if there is one, and count a hit or a miss."""
        found = self._kept.get(key)
        if found is None:
            self.counts.misses += 1
            return None
        self.counts.hits += 1
        self._kept.move_to_end(key)
        return found

    def put(self, one: PodClass) -> None:
        """Add a new class."""
        self._kept[one.key] = one
        for each in [*self._kept.values()] if len(self._kept) == _SEVERAL else [one]:
            self.count(each)

    def count(self, one: PodClass) -> None:
        """Count the memory of a class anew, and evict others until there is room for it."""
        if one not in self:
            return
        if one.uncounted and len(self._kept) > 1:
            one.bound, one.uncounted = size_of(*one.uncounted), ()
        size = one.bound + one.verdicts.count() + one.scores.count()
        self.size += size - one.size
        one.size = size
        while len(self._kept) > 1 and (self.size > self.limit or len(self._kept) > self.entries):
            oldest = next(each for each in self._kept.values() if each is not one)
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
        del self._kept[one.key]
        self.size -= one.size
        if one in self._named:
            self._named.remove(one)
