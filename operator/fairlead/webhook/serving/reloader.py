"""What calls are answered from at this moment: the policies that serve, over what is known of the cluster."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Final

from fairlead.cooperative import Share
from fairlead.mirror.mirror import Mirror
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.evaluate.class_cache import CacheCounts
from fairlead.policy.evaluate.matching import PolicySet
from fairlead.policy.evaluate.rule_errors import RuleErrorTally
from fairlead.webhook.extender.caches import NodeNameCache
from fairlead.webhook.extender.circuit_breaker import CircuitBreaker
from fairlead.webhook.extender.state import ServingState, build_serving_state
from fairlead.webhook.serving.policy_status import PolicyStatus
from fairlead.webhook.serving.policy_store import PolicyStore

LOG: Final = logging.getLogger(__name__)
_GONE_S: Final = 1.0
_LONG_S: Final = 0.25
_LONG_PART: Final = 1 / 12
"""Of the time of the loop, for policies that have taken longer than that: calls need it more."""
Wanted = Callable[[Iterable[str], Iterable[str]], Awaitable[None]]
"""Told which annotations of placed pods are read, and which schedulers are served; over once these are held."""


@dataclass(slots=True, eq=False)
class PolicyReloader:
    """Owned by the loop that serves; swapped as a whole."""

    policies: PolicyStore
    mirror: Mirror
    subscribe: Wanted
    state: ServingState | None = None
    schedulers: frozenset[str] = frozenset()
    stays: Callable[[str], bool] = lambda _: True
    """Whether a scheduler that no policy names any more is served all the same."""
    circuit_breaker: CircuitBreaker = field(default_factory=CircuitBreaker)
    tally: RuleErrorTally = field(default_factory=RuleErrorTally)
    cache_counts: CacheCounts = field(default_factory=CacheCounts)
    share: Share = field(default_factory=lambda: Share(perf_counter))
    long_share: Share = field(default_factory=lambda: Share(perf_counter, _LONG_PART))
    _gone: list[CompiledExpression] = field(default_factory=list)
    """Of policies that serve no more."""
    _names: NodeNameCache = field(default_factory=NodeNameCache)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _told: Mapping[str, PolicyStatus] = field(default_factory=dict)

    def put(self, obj: Mapping[str, Any]) -> None:
        """A policy came or became different."""
        self.policies.put(obj)
        self._wake.set()

    def remove(self, name: str) -> None:
        """A policy went."""
        self.policies.remove(name)
        self._wake.set()

    def wake(self) -> None:
        """Look whether anything waits."""
        self._wake.set()

    def rebuild(self) -> None:
        """Keep nothing of what was computed: it was for another time."""
        if (before := self.state) is not None:
            self.state = replace(self._over(before.policies), conflicts=before.conflicts)

    async def run(self) -> None:
        """Compile what comes, in pieces, and let it serve; for ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self._compile()
            await self._swap()

    async def _compile(self) -> None:
        """Each stretch is paid for with time for calls, once there are any."""
        serving, steps = self.policies.serving, self.policies.compile_pending()
        while True:
            began = self.share.clock()
            try:
                taken = next(steps)
            except StopIteration:
                return
            except Exception:  # whatever it is, the next policy that comes is looked at
                LOG.exception("policies.compile_fault")
                return
            share = self.long_share if taken > _LONG_S else self.share
            await asyncio.sleep(0 if self.state is None else share.pause(began))
            if self.policies.serving is not serving:
                serving = self.policies.serving
                await self._swap()

    async def _swap(self) -> None:
        policies, states = self.policies.serving, self.policies.states
        for state in states.values():
            if self._told.get(state.name) != state:
                level = logging.INFO if state.reason == "Compiled" else logging.WARNING
                LOG.log(level, "policy.state", extra={"policy": state.name, "state": str(state)})
        self._told = states
        if self.state is not None and self.state.policies.generation == policies.generation:
            return
        enforced = [one for one in policies.policies if one.enforced]
        # Also of policies that are off or gone: nobody has a say any more, but their pods are still to be bound.
        schedulers = {one.scheduler_name for one in policies.policies} | {*filter(self.stays, self.schedulers)}
        await self.subscribe({key for one in enforced for key in one.pod_annotations}, schedulers)
        self.schedulers = frozenset(schedulers)
        if self.state is not None:
            stay = {id(one) for one in policies.policies}
            gone = [one for one in self.state.policies.policies if id(one) not in stay]
            self._gone += [made for one in gone for made in one.expressions]
            asyncio.get_running_loop().call_later(_GONE_S, self._let_go)
            del gone
        self.state = self._over(policies)
        LOG.info("policy_set.serving", extra={"hash": policies.generation, "policies": len(enforced)})

    def _let_go(self) -> None:
        """Free what serves no more, an expression at a time, once no call holds it."""
        if self._gone:
            self._gone.pop()
            asyncio.get_running_loop().call_soon(self._let_go)

    def _over(self, policies: PolicySet) -> ServingState:
        return build_serving_state(
            policies, self.mirror.nodes, self.mirror, self.circuit_breaker, self._names, self.tally, self.cache_counts
        )
