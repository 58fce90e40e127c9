"""Store of the policies that serve: what compiled, and what serves in place of what did not. No I/O.

A policy that does not compile never replaces one that serves (decision 5): its last good generation continues to serve,
from memory or from `LastGoodStore`. If there is none, its pods are rejected, or pass, by its failure policy. The mode
of the newest object decides whether any of this is applied, before that object compiles and if it never does.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import is_
from typing import Any, Final

from fairlead.api.errors import InvalidObjectError
from fairlead.api.mode import Mode, mode_of, weaker
from fairlead.api.names import API_VERSION, KIND
from fairlead.api.parse import parse_policy
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.cooperative import Steps, released
from fairlead.policy.compile.compiler import CompileOptions, compile_steps
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.model import CompiledPolicy, in_mode
from fairlead.policy.compile.placeholder import generation_of, placeholder_policy
from fairlead.policy.compile.policy_errors import PolicyError
from fairlead.policy.evaluate.matching import PolicySet, policy_set
from fairlead.webhook.serving.compile_queue import Compilation, CompileQueue, PolicyEntry, uid_of, written_in
from fairlead.webhook.serving.limited_policies import LimitedPolicies
from fairlead.webhook.serving.policy_status import CompiledGeneration, Obj, PolicyStatus, Reason

LOG: Final = logging.getLogger(__name__)
_MESSAGE_MAX: Final = 1024
_OFTEN: Final = 200
"""Stretches after which compiled policies serve, whatever else is pending. It doubles each time for policies that never
served: a set takes the longer to build, the more policies it has."""
_LONG: Final = 10_000
"""The most stretches, also while last good generations are still compiling."""
_BEYOND: Final = (
    "there are more than {} policies, of which the oldest serve; delete policies, or raise maxPolicies in the settings"
)
_ANY: Final[Obj] = {
    "apiVersion": API_VERSION,
    "kind": KIND,
    "metadata": {"name": "any"},
    "spec": {"filters": [{"name": "any", "expression": "pod.metadata.name == node.metadata.name"}]},
}


class _InternalError(Exception):
    """The compiler itself failed; the policy is not at fault."""


_FAULTS: Final = (InvalidObjectError, PolicyError, _InternalError)


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
    max_policies: int = 1_000_000
    """Policies that are compiled and serve, the oldest first."""
    changes: int = 0
    """Policies that were compiled or removed so far."""
    serving: PolicySet = field(default_factory=PolicySet)
    _entries: dict[str, PolicyEntry] = field(default_factory=dict)
    _within_limits: LimitedPolicies = field(default_factory=LimitedPolicies)
    _changed: bool = False
    _edited: bool = False
    """Whether an edit of a policy that had compiled is about to serve."""
    _requeue: bool = False
    """Whether something changed since the queue was last filled."""
    _stretches: int = 0

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

    def set_max_policies(self, count: int) -> None:
        """Set how many policies serve."""
        self._requeue |= count != self.max_policies
        self.max_policies = count

    def put(self, obj: Obj) -> None:
        """Add or replace a policy, to be compiled by `compile_pending`."""
        name = str(obj.get("metadata", {}).get("name", ""))
        entry = self._entries.get(name)
        if entry is None or uid_of(entry.obj) != uid_of(obj):
            self._entries[name], self._requeue = PolicyEntry(obj, mode_of(obj)), True
        elif written_in(entry.obj) != written_in(obj):
            self._requeue = True
            is_in_another_mode = entry.replace(obj)
            self._changed |= is_in_another_mode
            self._edited |= is_in_another_mode

    def remove(self, name: str) -> None:
        """Remove a policy."""
        if self._entries.pop(name, None) is not None:
            self._changed = self._requeue = True
            self.changes += 1
            self.on_removed(name)

    @property
    def waits(self) -> bool:
        """Return whether `compile_pending` has anything to do."""
        return self._changed or any(entry.waits for entry in self._entries.values())

    @property
    def states(self) -> Mapping[str, PolicyStatus]:
        """Return the status of each policy."""
        found = {
            name: entry.state.in_mode(self._mode(name, entry))
            for name, entry in sorted(self._entries.items())
            if entry.state is not None
        }
        return found | {name: state for name, state in self._within_limits.refused.items() if name in found}

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
        stored = self.last_good.get((name, uid_of(entry.obj)))
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
                    for _ in released(self._fill(queue)):
                        yield 0.0
                if not queue:
                    return
                work = queue.take()
                began = self.options.clock()
                try:
                    next(work.steps)
                except StopIteration:
                    self._changed = True
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
        oldest = sorted(self._entries.values(), key=lambda one: one.age)
        for at, entry in enumerate(oldest):
            if at >= self.max_policies and (entry.waits or not entry.is_beyond):
                entry.leave_out(_BEYOND.format(self.max_policies))
                self._changed = True
            elif at < self.max_policies and entry.is_beyond:
                entry.compiled, entry.waits, entry.is_beyond = None, True, False

    def _compilation(self, name: str, entry: PolicyEntry) -> Compilation:
        expressions = list[CompiledExpression]()
        steps = self._update_entry(entry, entry.obj, expressions)
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
        made = [(one.serving(self._mode(name, one)), one.obj) for name, one in self._entries.items()]
        self.serving = policy_set(self._within_limits.select(made, self.options.servers))

    def _last_good_work(self) -> CompileQueue:
        """Return the compilations of last good generations."""
        self._limit_policies()
        queue = CompileQueue()
        for name, entry in self._entries.items():
            stored = self.last_good.get((name, uid_of(entry.obj)))
            if entry.compiled is None and entry.waits and stored is not None:
                queue.add(self._last_good_compilation(entry, stored))
        return queue

    def _last_good_compilation(self, entry: PolicyEntry, stored: CompiledGeneration) -> Compilation:
        if written_in(stored.obj) == written_in(entry.obj):
            entry.waits = False
            return self._compilation(stored.name, entry)
        return Compilation(stored.name, entry, self._restore_entry(stored.name, entry), [])

    def _restore_entry(self, name: str, entry: PolicyEntry) -> Steps[None]:
        entry.compiled = yield from self._compile_stored(name, entry.obj)

    def _update_entry(self, entry: PolicyEntry, obj: Obj, expressions: list[CompiledExpression]) -> Steps[None]:
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
        entry.state = PolicyStatus(name, generation, serves, reason, message, uid_of(obj))

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
        stored = self.last_good.get((name, uid_of(obj)))
        if stored is None or written_in(stored.obj) == written_in(obj):
            return None  # nothing stored, or the same, which does not compile
        try:
            return (yield from self._compiled(stored.obj))
        except _FAULTS:  # a newer version of Fairlead had compiled it
            return None
