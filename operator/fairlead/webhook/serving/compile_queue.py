"""Policies of the store, and the order in which they are compiled.

Edits of policies that have compiled come before policies that never did, and short ones before long ones. Of those that
have begun, the one that has taken the least time is next, so that none waits for a slow one. Few are begun at a time,
because one that is half compiled takes as much memory as a compiled one, and serves nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any, Final

from fairlead.api.mode import Mode, mode_of
from fairlead.cooperative import Steps
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.model import CompiledPolicy, in_mode
from fairlead.policy.compile.placeholder import generation_of, placeholder_policy
from fairlead.webhook.serving.generations import Age, Candidates, NotCompiled
from fairlead.webhook.serving.policy_status import CompiledGeneration, Obj

BEGUN_MAX: Final = 8
"""Policies that are begun at a time, beside those that take long and edits of policies that have compiled."""
_LONG_S: Final = 0.05


@dataclass(slots=True)
class PolicyEntry:
    """A policy of the store."""

    obj: Obj
    mode: Mode | None
    """Mode of the newest object, or of the newest one before it whose mode can be read; None if none can."""
    newest: CompiledPolicy | NotCompiled | None = None
    """Result of the newest object that was compiled; None before any was."""
    earlier: tuple[CompiledPolicy, ...] = ()
    """At most two generations that compiled before it, the newest first; the last one is the one that served."""
    waits: bool = True
    is_beyond: bool = False
    """Whether it is beyond the number of policies that serve, so that it is not compiled."""
    taken: float = 0.0
    """Seconds it has taken, with half of what its previous edit took: frequent edits do not start from zero."""

    good: CompiledGeneration | None = None
    """The newest generation, with the object it was compiled from, until it serves."""
    _placeholder: CompiledPolicy | None = None

    def replace(self, obj: Obj) -> bool:
        """Take a newer object; return whether its mode is another one."""
        self.obj, self.waits, self._placeholder = obj, True, None
        before, self.mode = self.mode, mode_of(obj) or self.mode
        return self.mode != before

    def set_compiled(self, compiled: CompiledPolicy, obj: Obj) -> None:
        """Take what the newest object compiled to."""
        self.newest, self.earlier = compiled, self.compiled[-1:]
        self.good = CompiledGeneration(compiled.name, compiled.uid, compiled.generation, obj)

    def set_failed(self, failure: NotCompiled) -> None:
        """Take the reason why the newest object does not compile."""
        self.newest, self.earlier, self.good = failure, self.compiled, None

    def forget_results(self, *, is_beyond: bool) -> None:
        """Drop all generations, to be compiled anew unless there are too many policies."""
        self.newest, self.earlier, self.good = None, (), None
        self.is_beyond, self.waits = is_beyond, not is_beyond

    def keep_until(self, serving: CompiledPolicy) -> None:
        """Drop the generations that are older than the one that serves."""
        last = next((at for at, one in enumerate(self.earlier) if one is serving), -1)
        self.earlier = self.earlier[: last + 1]

    def take_good(self, serving: CompiledPolicy | None) -> CompiledGeneration | None:
        """Return the newest generation if it is the one that serves and did not serve before."""
        if serving is None or serving is not self.newest:
            return None
        good, self.good = self.good, None
        return good

    def candidates(self, mode: Mode) -> Candidates:
        """Return the generations that may serve under this mode: the same objects each time.

        The serving state compares them.
        """
        if isinstance(self.newest, CompiledPolicy):
            self.newest = in_mode(self.newest, mode)
        self.earlier = tuple(in_mode(one, mode) for one in self.earlier)
        (created, name), uid = self.age, uid_of(self.obj)
        return Candidates(
            name=name,
            uid=uid,
            created=created,
            generation=generation_of(self.obj) if self.is_beyond else "",
            mode=mode,
            newest=self.newest,
            earlier=self.earlier,
        )

    def placeholder(self, mode: Mode, *, yet: bool) -> CompiledPolicy:
        """Return what serves if none of its generations does: the same object each time."""
        before = self._placeholder
        if before is None or (before.placeholder == "NotCompiled") != yet:
            before = placeholder_policy(self.obj, yet=yet)
        self._placeholder = in_mode(before, mode)
        return self._placeholder

    @property
    def compiled(self) -> tuple[CompiledPolicy, ...]:
        """Return the generations that compiled, the newest first."""
        return (self.newest, *self.earlier) if isinstance(self.newest, CompiledPolicy) else self.earlier

    @property
    def is_edit(self) -> bool:
        """Return whether an earlier generation of it has compiled."""
        return bool(self.compiled)

    @property
    def is_too_long(self) -> bool:
        """Return whether it takes too long to compile; it is not tried again until it changes."""
        return isinstance(self.newest, NotCompiled) and self.newest.is_too_long

    @property
    def age(self) -> Age:
        """Return the sort key by which older policies come first; it is empty for the oldest policies of files."""
        metadata = self.obj.get("metadata", {})
        return str(metadata.get("creationTimestamp") or ""), str(metadata.get("name", ""))

    @property
    def length(self) -> int:
        """Return the total length of its expressions."""
        return length_of(self.obj)


@dataclass(slots=True, eq=False)
class Compilation:
    """Compilation of one generation of a policy."""

    name: str
    entry: PolicyEntry
    steps: Steps[None]
    expressions: list[CompiledExpression]
    """Expressions compiled so far."""
    is_edit: bool = False
    taken: float = 0.0


@dataclass(slots=True, eq=False)
class CompileQueue:
    """Compilations that are pending."""

    _waiting: list[tuple[bool, int, int, Compilation]] = field(default_factory=list)
    """Heap of those that were not begun: edits first, then by length and arrival."""
    _begun: list[tuple[float, int, Compilation]] = field(default_factory=list)
    """Heap of the others: by the time taken, then by when they were begun."""
    _count: int = 0

    def __bool__(self) -> bool:
        return bool(self._waiting or self._begun)

    def add(self, compilation: Compilation) -> None:
        """Add a compilation."""
        self._count += 1
        heappush(self._waiting, (not compilation.is_edit, compilation.entry.length, self._count, compilation))

    def take(self) -> Compilation:
        """Return the next one, to be put back if it is not done after a step."""
        if self._waiting and (not self._waiting[0][0] or self._short_ones() < BEGUN_MAX):
            self.put_back(heappop(self._waiting)[-1])
        return heappop(self._begun)[-1]

    def put_back(self, compilation: Compilation) -> None:
        """Add a compilation again that was begun."""
        self._count += 1
        heappush(self._begun, (compilation.taken, self._count, compilation))

    def drop(self, is_obsolete: Callable[[Compilation], bool]) -> list[Any]:
        """Drop compilations, and return their expressions, to be freed one by one."""
        gone = [one for one in self.rest() if is_obsolete(one)]
        for one in gone:
            one.steps.close()
        if gone:
            left = {*map(id, gone)}
            self._waiting = [each for each in self._waiting if id(each[-1]) not in left]
            self._begun = [each for each in self._begun if id(each[-1]) not in left]
            heapify(self._waiting)
            heapify(self._begun)
        return [expression for one in gone for expression in one.expressions]

    def rest(self) -> list[Compilation]:
        """Return all that are pending."""
        return [one for *_, one in self._begun] + [one for *_, one in self._waiting]

    def _short_ones(self) -> int:
        return sum(taken < _LONG_S for taken, *_ in self._begun)


def uid_of(obj: Obj) -> str:
    """Return the UID of a policy; empty for one from a file."""
    return str(obj.get("metadata", {}).get("uid", ""))


def length_of(obj: Obj) -> int:
    """Return the total length of the expressions of a policy."""
    spec = obj.get("spec")
    parts = [spec, *(one for one in spec.values() if isinstance(one, Mapping))] if isinstance(spec, Mapping) else []
    lists = [one for part in parts for one in part.values() if isinstance(one, list)]
    rules = [rule for one in lists for rule in one if isinstance(rule, Mapping)]
    return sum(len(str(rule.get("expression", ""))) for rule in rules)


def written_in(obj: Obj) -> object:
    """Return what its author wrote, with its generation: changes of status and metadata do not count."""
    return obj.get("apiVersion"), obj.get("spec"), obj.get("metadata", {}).get("generation")
