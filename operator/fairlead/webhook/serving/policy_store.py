"""The policies that serve: what came, what compiled of it, and what serves in place of what did not. No I/O.

A policy that does not compile never replaces one that is serving (decision 5 of the design): its last generation that
did compile goes on, from memory or from where it was kept. If there is none, its pods are refused, or pass, by its
failure policy.
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
from fairlead.webhook.serving.policy_status import CompiledGeneration, Obj, PolicyStatus, Reason

LOG: Final = logging.getLogger(__name__)
_MESSAGE_MAX: Final = 1024
_OFTEN: Final = 200
"""After so many stretches what is compiled serves, whatever else waits..."""
_LONG: Final = 10_000
"""...and after so many what was good is not waited for, either."""
_ANY: Final[Obj] = {
    "apiVersion": API_VERSION,
    "kind": KIND,
    "metadata": {"name": "any"},
    "spec": {"filters": [{"name": "any", "expression": "pod.metadata.name == node.metadata.name"}]},
}


class _InternalError(Exception):
    """The compiler itself failed."""


_FAULTS: Final = (InvalidObjectError, PolicyError, _InternalError)


@dataclass(slots=True)
class _Entry:
    obj: Obj
    compiled: CompiledPolicy | None = None
    state: PolicyStatus | None = None
    waits: bool = True
    is_too_long: bool = False
    """It takes too much time, and is not looked at again until it is another."""
    taken: float = 0.0
    """Seconds, with half of what the edit before took: who edits again and again does not begin anew each time."""


@dataclass(slots=True, eq=False)
class _Work:
    """The compiling of one policy as it is."""

    name: str
    held: _Entry
    steps: Steps[None]
    made: list[CompiledExpression]
    """What there is of it by now."""


_Queue = list[tuple[float, int, _Work]]
"""By the time that each has taken, and then as they came."""


@dataclass(slots=True, eq=False)
class PolicyStore:
    """What came and what became of it."""

    model: type[SchedulerExtenderPolicy]
    options: CompileOptions
    last_good: Mapping[tuple[str, str], CompiledGeneration] = field(default_factory=dict)
    """The last good generations as they were found at the start, by names and UIDs of their policies."""
    on_compiled: Callable[[CompiledGeneration], None] = lambda _: None
    """Told of every generation that compiles..."""
    on_removed: Callable[[str], None] = lambda _: None
    """...and of every policy that went."""
    serving: PolicySet = field(default_factory=PolicySet)
    _held: dict[str, _Entry] = field(default_factory=dict)
    _changed: bool = False
    _came: bool = False
    """Something is another since it was last looked what waits."""
    _stretches: int = 0
    _begun: int = 0

    def warm(self) -> None:
        """Compile any policy: the first one takes several times as long as others, and nobody waits for it yet."""
        for _ in self._compiled(_ANY):
            pass

    def set_compile_options(self, rules: CompileOptions) -> None:
        """Other rules of what is allowed: all are compiled anew."""
        self.options = rules
        for held in self._held.values():
            held.waits = held.waits or not held.is_too_long
        self._came = True

    def put(self, obj: Obj) -> None:
        """A policy came, or became different; compiling it is for `steps`."""
        name = str(obj.get("metadata", {}).get("name", ""))
        held = self._held.get(name)
        if held is None or _uid(held.obj) != _uid(obj):
            self._held[name], self._came = _Entry(obj), True
        elif _written(held.obj) != _written(obj):
            held.obj, held.waits, self._came = obj, True, True

    def remove(self, name: str) -> None:
        """A policy went."""
        if self._held.pop(name, None) is not None:
            self._changed = self._came = True
            self.on_removed(name)

    @property
    def waits(self) -> bool:
        """Whether `steps` has anything to do."""
        return self._changed or any(held.waits for held in self._held.values())

    @property
    def states(self) -> Mapping[str, PolicyStatus]:
        """How it is with each policy."""
        return {name: held.state for name, held in sorted(self._held.items()) if held.state is not None}

    def compile_pending(self) -> Iterator[float]:
        """Compile what came, in small pieces, and let it serve: together at the end, or before if that is far.

        Tells after each piece how many seconds its policy has taken.

        What was good serves before anything else is looked at. What is not compiled when something serves is stood in
        for by its failure policy.
        """
        if remembered := self._remembered():
            yield from self._run(remembered, _LONG)
            self._serve()
        yield from self._run([], _OFTEN)
        if self._changed:
            self._serve()

    def _run(self, begun: list[_Work], limit: int) -> Iterator[float]:
        """Compile these, or else all that wait and that come meanwhile.

        Whoever has had least of our time is next: nothing waits for one that takes long.
        """
        only = bool(begun)
        queue = [(0.0, at, work) for at, work in enumerate(begun)]
        try:
            while True:
                if self._came and not only:
                    queue, gone = self._queued(queue)
                    for _ in released(gone):
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
                    work.held.taken = taken = taken + self.options.clock() - began
                    heappush(queue, (taken, at, work))
                if self._is_due(limit):
                    limit = _OFTEN
                yield taken
        finally:  # a fault of one leaves the others to be compiled the next time
            for _, _, work in queue:
                work.held.waits = self._came = True

    def _queued(self, queue: _Queue) -> tuple[_Queue, list[Any]]:
        """With those that have come, the short ones first; and what was made of those that are another by now."""
        self._came = False
        after, gone = list[tuple[float, int, _Work]](), list[Any]()
        for taken, at, work in queue:
            if work.held.waits or self._held.get(work.name) is not work.held:
                work.steps.close()
                gone += work.made
            else:
                after.append((taken, at, work))
        waiting = sorted((one for one in self._held.items() if one[1].waits), key=lambda one: _length(one[1].obj))
        for name, held in waiting:
            held.waits = False
            self._begun += 1
            after.append((held.taken / 2, self._begun, self._work(name, held)))
        heapify(after)
        return after, gone

    def _work(self, name: str, held: _Entry) -> _Work:
        made = list[CompiledExpression]()
        return _Work(name, held, self._compile(held, held.obj, made), made)

    def _is_due(self, limit: int) -> bool:
        """Let what is compiled serve after so many stretches."""
        self._stretches += 1
        if not self._changed or self._stretches < limit:
            return False
        self._serve()
        return True

    def _serve(self) -> None:
        self._changed, self._stretches = False, 0
        held = self._held.values()
        self.serving = policy_set(one.compiled or placeholder_policy(one.obj, yet=False) for one in held)

    def _remembered(self) -> list[_Work]:
        """Those that begin with what an earlier process found good, the short ones first."""
        found = [
            (held, kept)
            for name, held in self._held.items()
            if held.compiled is None and held.waits and (kept := self.last_good.get((name, _uid(held.obj)))) is not None
        ]
        return [self._begun_with(*each) for each in sorted(found, key=lambda one: _length(one[1].obj))]

    def _begun_with(self, held: _Entry, kept: CompiledGeneration) -> _Work:
        if _written(kept.obj) == _written(held.obj):
            held.waits = False
            return self._work(kept.name, held)
        return _Work(kept.name, held, self._resume(kept.name, held), [])

    def _resume(self, name: str, held: _Entry) -> Steps[None]:
        held.compiled = yield from self._kept(name, held.obj)

    def _compile(self, held: _Entry, obj: Obj, made: list[CompiledExpression]) -> Steps[None]:
        held.is_too_long = False
        name, failed = str(obj["metadata"].get("name", "")), False
        try:
            compiled = yield from self._compiled(obj, made)
        except _FAULTS as error:
            message = "; ".join(str(error).splitlines())[:_MESSAGE_MAX]
            failed = isinstance(error, _InternalError)
            held.is_too_long = isinstance(error, PolicyError) and error.is_too_long
        else:
            held.compiled = compiled
            held.state = PolicyStatus(name, compiled.generation, compiled.generation, "Compiled", uid=compiled.uid)
            if self._held.get(name) is held:
                self.on_compiled(CompiledGeneration(name, compiled.uid, compiled.generation, obj))
            return
        if held.compiled is None or held.compiled.placeholder:
            held.compiled = (yield from self._kept(name, obj)) or placeholder_policy(obj)
        generation = generation_of(obj)
        serves = None if held.compiled.placeholder else held.compiled.generation
        reason: Reason = "InternalError" if failed else "LastGoodServes" if serves else "NothingServes"
        held.state = PolicyStatus(name, generation, serves, reason, message, _uid(obj))

    def _compiled(self, obj: Obj, made: list[CompiledExpression] | None = None) -> Steps[CompiledPolicy]:
        """Raises what `_FAULTS` names, whatever goes wrong: one policy must not stop the others."""
        try:
            policy = parse_policy(obj, self.model)
            yield
            return (yield from compile_steps(policy, self.options, made=made))
        except _FAULTS:
            raise
        except Exception as error:
            LOG.exception("policy.compile_fault", extra={"policy": obj["metadata"].get("name", "")})
            raise _InternalError(f"internal error, the log has more: {type(error).__name__}: {error}") from error

    def _kept(self, name: str, obj: Obj) -> Steps[CompiledPolicy | None]:
        """What was kept of the same policy; one of the same name that was made anew is another."""
        kept = self.last_good.get((name, _uid(obj)))
        if kept is None or _written(kept.obj) == _written(obj):
            return None  # nothing, or what does not compile any more
        try:
            return (yield from self._compiled(kept.obj))
        except _FAULTS:  # compiled by a version that knew more
            return None


def _uid(obj: Obj) -> str:
    return str(obj.get("metadata", {}).get("uid", ""))


def _length(obj: Obj) -> int:
    """How much text there is in its expressions."""
    spec = obj.get("spec")
    parts = [spec, *(one for one in spec.values() if isinstance(one, Mapping))] if isinstance(spec, Mapping) else []
    lists = [one for part in parts for one in part.values() if isinstance(one, list)]
    rules = [rule for one in lists for rule in one if isinstance(rule, Mapping)]
    return sum(len(str(rule.get("expression", ""))) for rule in rules)


def _written(obj: Obj) -> object:
    """What somebody wrote, and how often: status and bookkeeping change nothing."""
    return obj.get("apiVersion"), obj.get("spec"), obj.get("metadata", {}).get("generation")
