"""Compilation of policies: the order in which they are compiled, and what becomes of one that compiles or does not.

Edits of policies that have compiled come before policies that never did, and short ones before long ones. Of those that
have begun, the one that has taken the least time is next, so that none waits for a slow one. Few are begun at a time,
because one that is half compiled takes as much memory as a compiled one, and serves nothing.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any, Final

from fairlead.api.errors import InvalidObjectError
from fairlead.api.parse import parse_policy
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.cooperative import Steps
from fairlead.policy.compile.compiler import CompileOptions, compile_steps
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.placeholder import generation_of
from fairlead.policy.compile.policy_errors import PolicyError
from fairlead.webhook.serving.generations import NotCompiled
from fairlead.webhook.serving.policy_entry import PolicyEntry, written_in
from fairlead.webhook.serving.policy_status import CompiledGeneration, Obj

LOG: Final = logging.getLogger(__name__)
BEGUN_MAX: Final = 8
"""Policies that are begun at a time, beside those that take long and edits of policies that have compiled."""
_LONG_S: Final = 0.05
_MESSAGE_MAX: Final = 1024


class _InternalError(Exception):
    """The compiler itself failed; the policy is not at fault."""


_FAULTS: Final = (InvalidObjectError, PolicyError, _InternalError)


@dataclass(frozen=True, slots=True)
class PolicyCompiler:
    """Compiler of the generations of policies, in small pieces."""

    model: type[SchedulerExtenderPolicy]
    options: CompileOptions

    def update(
        self, entry: PolicyEntry, stored: CompiledGeneration | None, expressions: list[CompiledExpression]
    ) -> Steps[None]:
        """Compile the newest object of a policy, and if it does not compile its last good generation."""
        obj = entry.obj
        try:
            compiled = yield from self.compile(obj, expressions)
        except _FAULTS as error:
            message = "; ".join(str(error).splitlines())[:_MESSAGE_MAX]
            is_internal = isinstance(error, _InternalError)
            is_too_long = isinstance(error, PolicyError) and error.is_too_long
        else:
            entry.set_compiled(compiled, obj)
            return
        if not entry.compiled:
            entry.earlier = yield from self._earlier(obj, stored)
        entry.set_failed(NotCompiled(generation_of(obj), message, is_internal, is_too_long))

    def restore(self, entry: PolicyEntry, stored: CompiledGeneration) -> Steps[None]:
        """Compile the last good generation of a policy, to serve before its newest object is compiled."""
        entry.earlier = yield from self._earlier(entry.obj, stored)

    def compile(self, obj: Obj, expressions: list[CompiledExpression] | None = None) -> Steps[CompiledPolicy]:
        """Compile a policy; raises one of `_FAULTS` whatever goes wrong, so that one policy never stops the others."""
        try:
            policy = parse_policy(obj, self.model)
            yield
            return (yield from compile_steps(policy, self.options, expressions=expressions))
        except _FAULTS:
            raise
        except Exception as error:
            LOG.exception("policy.compile_fault", extra={"policy": obj["metadata"].get("name", "")})
            raise _InternalError(f"internal error, see the log: {type(error).__name__}: {error}") from error

    def _earlier(self, obj: Obj, stored: CompiledGeneration | None) -> Steps[tuple[CompiledPolicy, ...]]:
        """Compile the last good generation of a policy; empty if there is none, or it fails."""
        if stored is None or written_in(stored.obj) == written_in(obj):
            return ()  # nothing stored, or the same, which does not compile
        try:
            return ((yield from self.compile(stored.obj)),)
        except _FAULTS:  # a newer version of Fairlead had compiled it
            return ()


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
