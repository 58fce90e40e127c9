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
from fairlead.policy.compile.placeholder import placeholder_policy
from fairlead.webhook.serving.policy_status import Obj, PolicyStatus

BEGUN_MAX: Final = 8
"""Policies that are begun at a time, beside those that take long and edits of policies that have compiled."""
_LONG_S: Final = 0.05


@dataclass(slots=True)
class PolicyEntry:
    """A policy of the store."""

    obj: Obj
    mode: Mode | None
    """Mode of the newest object, or of the newest one before it whose mode can be read; None if none can."""
    compiled: CompiledPolicy | None = None
    state: PolicyStatus | None = None
    """Result of compiling the newest object that was compiled."""
    waits: bool = True
    is_beyond: bool = False
    """Whether it is beyond the number of policies that serve, so that it is not compiled."""
    is_too_long: bool = False
    """Whether it takes too long to compile; it is not tried again until it changes."""
    taken: float = 0.0
    """Seconds it has taken, with half of what its previous edit took: frequent edits do not start from zero."""

    def replace(self, obj: Obj) -> bool:
        """Take a newer object; return whether its mode is another one."""
        self.obj, self.waits = obj, True
        before, self.mode = self.mode, mode_of(obj) or self.mode
        return self.mode != before

    def leave_out(self, why: str) -> None:
        """Let nothing of it be compiled, but its failure policy decide."""
        self.compiled, self.waits, self.is_beyond = placeholder_policy(self.obj), False, True
        name, generation = self.compiled.name, self.compiled.generation
        self.state = PolicyStatus(name, generation, None, "NothingServes", why, self.compiled.uid)

    def serving(self, mode: Mode) -> CompiledPolicy:
        """Return what serves under this mode: the same object each time, as the serving state compares them."""
        if self.compiled is None:
            return in_mode(placeholder_policy(self.obj, yet=False), mode)
        self.compiled = in_mode(self.compiled, mode)
        return self.compiled

    @property
    def is_edit(self) -> bool:
        """Return whether an earlier generation of it has compiled."""
        return self.compiled is not None and not self.compiled.placeholder

    @property
    def age(self) -> tuple[str, str]:
        """Return the sort key by which older policies come first; policies of files do not say when they were made."""
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

    def add(self, one: Compilation) -> None:
        """Add a compilation."""
        self._count += 1
        heappush(self._waiting, (not one.is_edit, one.entry.length, self._count, one))

    def take(self) -> Compilation:
        """Return the next one, to be put back if it is not done after a step."""
        if self._waiting and (not self._waiting[0][0] or self._short_ones() < BEGUN_MAX):
            self.put_back(heappop(self._waiting)[-1])
        return heappop(self._begun)[-1]

    def put_back(self, one: Compilation) -> None:
        """Add a compilation again that was begun."""
        self._count += 1
        heappush(self._begun, (one.taken, self._count, one))

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
