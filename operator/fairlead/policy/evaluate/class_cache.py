"""What is kept for classes of pods: those that were asked last, within so many bytes in all.

Labels that rules read are the choice of whoever makes pods, and so is the number of classes; a class takes a byte for
each filter and node, eight for each score and node, and what its rules have bound of the pod.
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
    """Numbers for metrics that outlive the caches of one policy set."""

    hits: int = 0
    misses: int = 0
    evictions: int = 0


@dataclass(slots=True, eq=False)
class PodClass:
    """What is kept for one class of pods."""

    key: tuple[int, Hashable]
    """Whose it is, and what its pods have in common."""
    verdicts: VerdictCache
    scores: RuleCache[ScoreColumn]
    uncounted: Sequence[object] = ()
    """Its key and what its rules have bound of the pod, until that is counted: only where there is another one."""
    bound: int = 0
    """Bytes of these."""
    size: int = 0
    """Bytes of all of it, when they were last counted."""

    @property
    def has_grown(self) -> bool:
        """Whether something was computed since."""
        return self.verdicts.has_grown or self.scores.has_grown


@dataclass(slots=True, eq=False)
class Classes:
    """Those of all evaluators that share it; whoever was asked longest ago goes first, and never the last one."""

    limit: int = BYTES
    entries: int = ENTRIES
    size: int = 0
    """Bytes of all of them."""
    counts: CacheCounts = field(default_factory=CacheCounts)
    _kept: OrderedDict[tuple[int, Hashable], PodClass] = field(default_factory=OrderedDict)
    _named: deque[PodClass] = field(default_factory=deque)

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[PodClass]:
        """Those that were asked last first."""
        return reversed([*self._kept.values()])

    def __contains__(self, one: PodClass) -> bool:
        return self._kept.get(one.key) is one

    def get(self, key: tuple[int, Hashable]) -> PodClass | None:
        """The class of this key, without asking it."""
        return self._kept.get(key)

    def asked(self, key: tuple[int, Hashable]) -> PodClass | None:
        """The class of this key, which is asked now."""
        found = self._kept.get(key)
        if found is None:
            self.counts.misses += 1
            return None
        self.counts.hits += 1
        self._kept.move_to_end(key)
        return found

    def put(self, one: PodClass) -> None:
        """A new one."""
        self._kept[one.key] = one
        for each in [*self._kept.values()] if len(self._kept) == _SEVERAL else [one]:
            self.count(each)

    def count(self, one: PodClass) -> None:
        """One of them takes another amount of memory now: others go until there is room for it."""
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
        """The names of the nodes that pass; they take memory, and only the classes that were asked last have them."""
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
