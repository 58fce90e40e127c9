"""Store of the policies that serve: what compiled, and what serves in place of what did not. No I/O.

A policy that does not compile never replaces one that serves (decision 5): its last good generation continues to serve,
from memory or from `LastGoodStore`. If there is none, its pods are rejected, or pass, by its failure policy.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any, Final

from fairlead.api.errors import InvalidObjectError
from fairlead.api.names import API_VERSION, KIND
from fairlead.api.parse import parse_policy
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.cooperative import Steps, released
from fairlead.policy.compile.compiler import CompileOptions, compile_steps
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.placeholder import generation_of, placeholder_policy
from fairlead.policy.compile.policy_errors import PolicyError
from fairlead.policy.evaluate.matching import PolicySet, policy_set
from fairlead.webhook.serving.limited_policies import LimitedPolicies
from fairlead.webhook.serving.policy_status import CompiledGeneration, Obj, PolicyStatus, Reason

LOG: Final = logging.getLogger(__name__)
_MESSAGE_MAX: Final = 1024
_OFTEN: Final = 200
"""Stretches after which compiled policies serve, whatever else is pending."""
_LONG: Final = 10_000
"""The same while last good generations are still compiling."""
_ANY: Final[Obj] = {
    "apiVersion": API_VERSION,
    "kind": KIND,
    "metadata": {"name": "any"},
    "spec": {"filters": [{"name": "any", "expression": "pod.metadata.name == node.metadata.name"}]},
}


class _InternalError(Exception):
    """The compiler itself failed; the policy is not at fault."""


_FAULTS: Final = (InvalidObjectError, PolicyError, _InternalError)


@dataclass(slots=True)
class _Entry:
    obj: Obj
    compiled: CompiledPolicy | None = None
    state: PolicyStatus | None = None
    waits: bool = True
    is_too_long: bool = False
    """Whether it takes too long to compile; it is not tried again until it changes."""
    taken: float = 0.0
    """Seconds it has taken, with half of what its previous edit took: frequent edits do not start from zero."""


@dataclass(slots=True, eq=False)
class _Work:
    """Compilation of one generation of a policy."""

    name: str
    entry: _Entry
    steps: Steps[None]
    expressions: list[CompiledExpression]
    """Expressions compiled so far."""


_Queue = list[tuple[float, int, _Work]]
"""Heap ordered by the time taken, then by arrival."""


@dataclass(slots=True, eq=False)
class PolicyStore:
    """Policies with their compiled generations and their status."""

    model: type[SchedulerExtenderPolicy]
    options: CompileOptions
    last_good: Mapping[tuple[str, str], CompiledGeneration] = field(default_factory=dict)
    """Last good generations found at the start, by name and UID of their policy."""
    on_compiled: Callable[[CompiledGeneration], None] = lambda _: None
    """Called with every generation that compiles."""
    on_removed: Callable[[str], None] = lambda _: None
    """Called with the name of every policy that was deleted."""
    serving: PolicySet = field(default_factory=PolicySet)
    _entries: dict[str, _Entry] = field(default_factory=dict)
    _within_limits: LimitedPolicies = field(default_factory=LimitedPolicies)
    _changed: bool = False
    _requeue: bool = False
    """Whether something changed since the queue was last built."""
    _stretches: int = 0
    _works_started: int = 0

    def warm(self) -> None:
        """Compile a sample policy: the first one takes several times as long, and no call waits for it yet."""
        for _ in self._compiled(_ANY):
            pass

    def set_compile_options(self, rules: CompileOptions) -> None:
        """Set the compile options and compile every policy again."""
        self.options = rules
        for entry in self._entries.values():
            entry.waits = entry.waits or not entry.is_too_long
        self._requeue = True

    def put(self, obj: Obj) -> None:
        """Add or replace a policy, to be compiled by `compile_pending`."""
        name = str(obj.get("metadata", {}).get("name", ""))
        entry = self._entries.get(name)
        if entry is None or _uid(entry.obj) != _uid(obj):
            self._entries[name], self._requeue = _Entry(obj), True
        elif _written(entry.obj) != _written(obj):
            entry.obj, entry.waits, self._requeue = obj, True, True

    def remove(self, name: str) -> None:
        """Remove a policy."""
        if self._entries.pop(name, None) is not None:
            self._changed = self._requeue = True
            self.on_removed(name)

    @property
    def waits(self) -> bool:
        """Return whether `compile_pending` has anything to do."""
        return self._changed or any(entry.waits for entry in self._entries.values())

    @property
    def states(self) -> Mapping[str, PolicyStatus]:
        """Return the status of each policy."""
        found = {name: entry.state for name, entry in sorted(self._entries.items()) if entry.state is not None}
        return found | {name: state for name, state in self._within_limits.refused.items() if name in found}

    def compile_pending(self) -> Iterator[float]:
        """Compile what is pending, in small pieces, and let it serve: at the end, or earlier if that is far off.

        Yields after each piece how many seconds its policy has taken.

        Last good generations serve before anything else is compiled. A policy that is not compiled when others begin to
        serve is represented by a placeholder with its failure policy.
        """
        if last_good := self._last_good_work():
            yield from self._run(last_good, _LONG)
            self._serve()
        yield from self._run([], _OFTEN)
        if self._changed:
            self._serve()

    def _run(self, works: list[_Work], limit: int) -> Iterator[float]:
        """Compile these, or everything that is pending or comes meanwhile.

        The policy that has taken the least time is next, so that none waits for a slow one.
        """
        only = bool(works)
        queue = [(0.0, at, work) for at, work in enumerate(works)]
        try:
            while True:
                if self._requeue and not only:
                    queue, dropped = self._queued(queue)
                    for _ in released(dropped):
                        yield 0.0
                if not queue:
                    return
                taken, at, work = heappop(queue)
                began = self.options.clock()
                try:
                    next(work.steps)
                except StopIteration:
                    self._changed = True
                else:
                    work.entry.taken = taken = taken + self.options.clock() - began
                    heappush(queue, (taken, at, work))
                if self._is_due(limit):
                    limit = _OFTEN
                yield taken
        finally:  # after a fault the others are compiled at the next call
            for _, _, work in queue:
                work.entry.waits = self._requeue = True

    def _queued(self, queue: _Queue) -> tuple[_Queue, list[Any]]:
        """Return the queue with new policies, short ones first, and the expressions of those that changed meanwhile."""
        self._requeue = False
        after, dropped = list[tuple[float, int, _Work]](), list[Any]()
        for taken, at, work in queue:
            if work.entry.waits or self._entries.get(work.name) is not work.entry:
                work.steps.close()
                dropped += work.expressions
            else:
                after.append((taken, at, work))
        waiting = sorted((one for one in self._entries.items() if one[1].waits), key=lambda one: _length(one[1].obj))
        for name, entry in waiting:
            entry.waits = False
            self._works_started += 1
            after.append((entry.taken / 2, self._works_started, self._work(name, entry)))
        heapify(after)
        return after, dropped

    def _work(self, name: str, entry: _Entry) -> _Work:
        expressions = list[CompiledExpression]()
        return _Work(name, entry, self._update_entry(entry, entry.obj, expressions), expressions)

    def _is_due(self, limit: int) -> bool:
        """Let compiled policies serve after `limit` stretches; return whether they do now."""
        self._stretches += 1
        if not self._changed or self._stretches < limit:
            return False
        self._serve()
        return True

    def _serve(self) -> None:
        self._changed, self._stretches = False, 0
        made = [(one.compiled or placeholder_policy(one.obj, yet=False), one.obj) for one in self._entries.values()]
        self.serving = policy_set(self._within_limits.select(made, self.options.servers))

    def _last_good_work(self) -> list[_Work]:
        """Return the compilations of last good generations, the short ones first."""
        found = [
            (entry, stored)
            for name, entry in self._entries.items()
            if entry.compiled is None
            and entry.waits
            and (stored := self.last_good.get((name, _uid(entry.obj)))) is not None
        ]
        return [self._last_good_work_of(*each) for each in sorted(found, key=lambda one: _length(one[1].obj))]

    def _last_good_work_of(self, entry: _Entry, stored: CompiledGeneration) -> _Work:
        if _written(stored.obj) == _written(entry.obj):
            entry.waits = False
            return self._work(stored.name, entry)
        return _Work(stored.name, entry, self._restore_entry(stored.name, entry), [])

    def _restore_entry(self, name: str, entry: _Entry) -> Steps[None]:
        entry.compiled = yield from self._compile_stored(name, entry.obj)

    def _update_entry(self, entry: _Entry, obj: Obj, expressions: list[CompiledExpression]) -> Steps[None]:
        entry.is_too_long = False
        name, failed = str(obj["metadata"].get("name", "")), False
        try:
            compiled = yield from self._compiled(obj, expressions)
        except _FAULTS as error:
            message = "; ".join(str(error).splitlines())[:_MESSAGE_MAX]
            failed = isinstance(error, _InternalError)
            entry.is_too_long = isinstance(error, PolicyError) and error.is_too_long
        else:
            entry.compiled = compiled
            entry.state = PolicyStatus(name, compiled.generation, compiled.generation, "Compiled", uid=compiled.uid)
            if self._entries.get(name) is entry:
                self.on_compiled(CompiledGeneration(name, compiled.uid, compiled.generation, obj))
            return
        if entry.compiled is None or entry.compiled.placeholder:
            entry.compiled = (yield from self._compile_stored(name, obj)) or placeholder_policy(obj)
        generation = generation_of(obj)
        serves = None if entry.compiled.placeholder else entry.compiled.generation
        reason: Reason = "InternalError" if failed else "LastGoodServes" if serves else "NothingServes"
        entry.state = PolicyStatus(name, generation, serves, reason, message, _uid(obj))

    def _compiled(self, obj: Obj, expressions: list[CompiledExpression] | None = None) -> Steps[CompiledPolicy]:
        """Compile a policy; raises one of `_FAULTS` whatever goes wrong, so that one policy never stops the others."""
        try:
            policy = parse_policy(obj, self.model)
            yield
            return (yield from compile_steps(policy, self.options, made=expressions))
        except _FAULTS:
            raise
        except Exception as error:
            LOG.exception("policy.compile_fault", extra={"policy": obj["metadata"].get("name", "")})
            raise _InternalError(f"internal error, see the log: {type(error).__name__}: {error}") from error

    def _compile_stored(self, name: str, obj: Obj) -> Steps[CompiledPolicy | None]:
        """Compile the last good generation of a policy with the same UID; None if there is none, or it fails."""
        stored = self.last_good.get((name, _uid(obj)))
        if stored is None or _written(stored.obj) == _written(obj):
            return None  # nothing stored, or the same, which does not compile
        try:
            return (yield from self._compiled(stored.obj))
        except _FAULTS:  # a newer version of Fairlead had compiled it
            return None


def _uid(obj: Obj) -> str:
    return str(obj.get("metadata", {}).get("uid", ""))


def _length(obj: Obj) -> int:
    """Return the total length of its expressions."""
    spec = obj.get("spec")
    parts = [spec, *(one for one in spec.values() if isinstance(one, Mapping))] if isinstance(spec, Mapping) else []
    lists = [one for part in parts for one in part.values() if isinstance(one, list)]
    rules = [rule for one in lists for rule in one if isinstance(rule, Mapping)]
    return sum(len(str(rule.get("expression", ""))) for rule in rules)


def _written(obj: Obj) -> object:
    """Return what its author wrote, with its generation: changes of status and metadata do not count."""
    return obj.get("apiVersion"), obj.get("spec"), obj.get("metadata", {}).get("generation")
