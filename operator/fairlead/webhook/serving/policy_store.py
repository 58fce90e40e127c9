"""Store of the policies that serve: it compiles them, and lets serve what `generations.choose` chooses. No I/O.

The candidates are the generations that compiled here, and the last good ones of `LastGoodStore` from before the start.
The mode of the newest object decides whether any of them is applied, before that object compiles and if it never does.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import is_
from typing import Any, Final

from fairlead.api.mode import Mode, mode_of, weaker
from fairlead.api.names import API_VERSION, KIND
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.cooperative import drop_references
from fairlead.policy.compile.compiler import CompileOptions
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import in_mode
from fairlead.policy.evaluate.matching import PolicySet, policy_set
from fairlead.webhook.serving.compile_queue import Compilation, CompileQueue, PolicyCompiler
from fairlead.webhook.serving.generations import Choice, PolicyLimits, beyond, choose
from fairlead.webhook.serving.policy_entry import PolicyEntry, uid_of, written_in
from fairlead.webhook.serving.policy_status import CompiledGeneration, Obj, PolicyStatus

_OFTEN: Final = 200
"""Stretches after which compiled policies serve, whatever else is pending. It doubles each time for policies that never
served: a set takes the longer to build, the more policies it has."""
_LONG: Final = 10_000
"""The most stretches, also while last good generations are still compiling."""
_ANY: Final[Obj] = {
    "apiVersion": API_VERSION,
    "kind": KIND,
    "metadata": {"name": "any"},
    "spec": {"filters": [{"name": "any", "expression": "pod.metadata.name == node.metadata.name"}]},
}


@dataclass(slots=True, eq=False)
class PolicyStore:
    """Policies with their compiled generations and their status."""

    model: type[SchedulerExtenderPolicy]
    options: CompileOptions
    last_good: dict[tuple[str, str], CompiledGeneration] = field(default_factory=dict)
    """Last good generations found at the start, by name and UID of their policy; without those of removed policies."""
    on_good: Callable[[CompiledGeneration], None] = lambda _: None
    """Called with every generation that compiles and is within the limits, once it serves."""
    on_removed: Callable[[str], None] = lambda _: None
    """Called with the name of every policy that was deleted."""
    on_change: Callable[[], None] = lambda: None
    """Called whenever there may be something to compile, to turn off or to serve."""
    max_policies: int = 1_000_000
    """Policies that are compiled and serve, the oldest first."""
    changes: int = 0
    """Policies that were compiled or removed so far."""
    serving: PolicySet = field(default_factory=PolicySet)
    _entries: dict[str, PolicyEntry] = field(default_factory=dict)
    _chosen: Mapping[str, Choice] | None = None
    """Generations that are to serve; None if they have to be chosen again."""
    _changed: bool = False
    _edited: bool = False
    """Whether an edit of a policy that had compiled is about to serve."""
    _requeue: bool = False
    """Whether something changed since the queue was last filled."""
    _stretches: int = 0

    def warm(self) -> None:
        """Compile a sample policy: the first one takes several times as long, and no call waits for it yet."""
        for _ in self._compiler.compile(_ANY):
            pass

    def set_compile_options(self, rules: CompileOptions) -> None:
        """Set the compile options and compile every policy again."""
        self.options = rules
        for entry in self._entries.values():
            entry.waits = entry.waits or not entry.is_too_long
        self._requeue, self._chosen = True, None
        self.on_change()

    def set_max_policies(self, count: int) -> None:
        """Set how many policies serve."""
        self._requeue |= count != self.max_policies
        self.max_policies, self._chosen = count, None
        self.on_change()

    def put(self, obj: Obj) -> None:
        """Add or replace a policy, to be compiled by `compile_pending`."""
        name = str(obj.get("metadata", {}).get("name", ""))
        entry = self._entries.get(name)
        if entry is None or uid_of(entry.obj) != uid_of(obj):
            self._entries[name], self._requeue, self._chosen = PolicyEntry(obj, mode_of(obj)), True, None
        elif written_in(entry.obj) != written_in(obj):
            self._requeue = True
            is_in_another_mode = entry.replace(obj)
            self._changed |= is_in_another_mode
            self._edited |= is_in_another_mode
            self._chosen = None
        else:
            entry.obj = obj
        self.on_change()

    def remove(self, name: str) -> None:
        """Remove a policy."""
        stored = [key for key in self.last_good if key[0] == name]
        for key in stored:
            del self.last_good[key]
        if self._entries.pop(name, None) is not None:
            self._changed = self._requeue = True
            self._chosen = None
            self.changes += 1
        elif not stored:
            return
        self.on_removed(name)
        self.on_change()

    def restore_missing(self) -> list[str]:
        """Let the last good generations of policies without an object serve: of some, it cannot be read."""
        restored = {name: good.obj for (name, _), good in self.last_good.items() if name not in self._entries}
        for obj in restored.values():
            self.put(obj)
        return sorted(restored)

    def forget_missing(self) -> list[str]:
        """Remove the policies without an object, as all can be read: they were deleted."""
        gone = {name for (name, _), good in self.last_good.items() if self._is_missing(name, good)}
        for name in gone:
            self.remove(name)
        return sorted(gone)

    def _is_missing(self, name: str, good: CompiledGeneration) -> bool:
        entry = self._entries.get(name)
        return entry is None or entry.obj is good.obj

    @property
    def waits(self) -> bool:
        """Return whether `compile_pending` has anything to do."""
        return self._changed or any(entry.waits for entry in self._entries.values())

    @property
    def states(self) -> Mapping[str, PolicyStatus]:
        """Return the status of each policy."""
        chosen = sorted(self._choices().items())
        return {name: choice.status for name, choice in chosen if choice.status is not None}

    def without_weakened(self, policies: PolicySet) -> PolicySet:
        """Return a set without what the newest objects have weakened or deleted since it was built.

        It needs nothing compiled, so it applies at once. What they turn on serves with the next set.
        """
        kept = [after for one in policies.policies if (after := self._kept(one)) is not None]
        same = len(kept) == len(policies.policies) and all(map(is_, kept, policies.policies))
        return policies if same else policy_set(kept)

    def _kept(self, policy: CompiledPolicy) -> CompiledPolicy | None:
        entry = self._entries.get(policy.name)
        if entry is None:
            return None
        return in_mode(policy, weaker(policy.mode, self._mode(policy.name, entry)))

    def _mode(self, name: str, entry: PolicyEntry) -> Mode:
        if entry.mode is not None:
            return entry.mode
        stored = self._stored(name, entry)
        return (None if stored is None else mode_of(stored.obj)) or "Enforce"

    def compile_pending(self) -> Iterator[float]:
        """Compile what is pending, in small pieces, and let it serve: at the end, or earlier if that is far off.

        Yields after each piece how many seconds its policy has taken.

        Last good generations serve before anything else is compiled. A policy that is not compiled when others begin to
        serve is represented by a placeholder with its failure policy.
        """
        if last_good := self._last_good_work():
            yield from self._run(last_good, _LONG, only=True)
            self._serve()
        yield from self._run(CompileQueue(), _OFTEN)
        if self._changed:
            self._serve()

    def _run(self, queue: CompileQueue, limit: int, *, only: bool = False) -> Iterator[float]:
        """Compile what is in the queue, and everything that is pending or comes meanwhile unless `only` that."""
        try:
            while True:
                if self._requeue and not only:
                    for _ in drop_references(self._fill(queue)):
                        yield 0.0
                if not queue:
                    return
                work = queue.take()
                began = self.options.clock()
                try:
                    next(work.steps)
                except StopIteration:
                    self._changed, self._chosen = True, None
                    self._edited |= work.is_edit
                    self.changes += 1
                else:
                    work.taken += self.options.clock() - began
                    work.entry.taken = work.taken
                    queue.put_back(work)
                if self._is_due(limit):
                    limit = min(2 * limit, _LONG)
                yield work.taken
        finally:  # after a fault the others are compiled at the next call
            for work in queue.rest():
                work.entry.waits = self._requeue = True

    def _fill(self, queue: CompileQueue) -> list[Any]:
        """Add what waits to the queue, and return the expressions of policies that changed meanwhile."""
        self._requeue = False
        self._limit_policies()
        dropped = queue.drop(
            lambda one: one.entry.waits or one.entry.is_beyond or self._entries.get(one.name) is not one.entry
        )
        for name, entry in self._entries.items():
            if entry.waits and not entry.is_beyond:
                entry.waits = False
                queue.add(self._compilation(name, entry))
        return dropped

    def _limit_policies(self) -> None:
        """Let the oldest policies serve where there are more than may be, and compile no others."""
        left_out = beyond([entry.age for entry in self._entries.values()], self.max_policies)
        for name, entry in self._entries.items():
            if name in left_out and (entry.waits or not entry.is_beyond):
                entry.forget_results(is_beyond=True)
                self._changed, self._chosen = True, None
            elif name not in left_out and entry.is_beyond:
                entry.forget_results(is_beyond=False)
                self._chosen = None

    def _compilation(self, name: str, entry: PolicyEntry) -> Compilation:
        expressions = list[CompiledExpression]()
        steps = self._compiler.update(entry, self._stored(name, entry), expressions)
        return Compilation(name, entry, steps, expressions, entry.is_edit, entry.taken / 2)

    def _is_due(self, limit: int) -> bool:
        """Let compiled policies serve after `limit` stretches, and edits after a few; return whether they do now."""
        self._stretches += 1
        if not self._changed or self._stretches < (_OFTEN if self._edited else limit):
            return False
        self._serve()
        return True

    def _serve(self) -> None:
        self._changed, self._edited, self._stretches = False, False, 0
        serving, choices = list[CompiledPolicy](), self._choices()
        for name, choice in choices.items():
            entry = self._entries[name]
            mode = self._mode(name, entry)
            if choice.serving is None:
                serving.append(entry.placeholder(mode, yet=choice.status is not None))
                continue
            serving.append(choice.serving)
            if mode != "Disabled":  # what is disabled is within any limit
                entry.keep_until(choice.serving)
        self.serving = policy_set(serving)
        for name, choice in choices.items():
            if (good := self._entries[name].take_good(choice.serving)) is not None:
                self.on_good(good)

    def _choices(self) -> Mapping[str, Choice]:
        if self._chosen is None:
            candidates = [entry.candidates(self._mode(name, entry)) for name, entry in self._entries.items()]
            self._chosen = choose(candidates, PolicyLimits(self.max_policies, self.options.servers))
        return self._chosen

    def _last_good_work(self) -> CompileQueue:
        """Return the compilations of last good generations."""
        self._limit_policies()
        queue = CompileQueue()
        for name, entry in self._entries.items():
            stored = self._stored(name, entry)
            if entry.newest is None and not entry.earlier and entry.waits and stored is not None:
                queue.add(self._last_good_compilation(entry, stored))
        return queue

    def _last_good_compilation(self, entry: PolicyEntry, stored: CompiledGeneration) -> Compilation:
        if written_in(stored.obj) == written_in(entry.obj):
            entry.waits = False
            return self._compilation(stored.name, entry)
        return Compilation(stored.name, entry, self._compiler.restore(entry, stored), [])

    def _stored(self, name: str, entry: PolicyEntry) -> CompiledGeneration | None:
        return self.last_good.get((name, uid_of(entry.obj)))

    @property
    def _compiler(self) -> PolicyCompiler:
        return PolicyCompiler(self.model, self.options)
