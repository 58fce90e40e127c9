"""Policy reloader: compiles policies as they come, and swaps the serving state."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter, perf_counter_ns
from typing import Final

from fairlead.cooperative import Share
from fairlead.mirror.mirror import Mirror
from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import compared
from fairlead.policy.evaluate.class_cache import CacheCounts
from fairlead.policy.evaluate.matching import PolicySet
from fairlead.webhook.capability import Capability, follow_all
from fairlead.webhook.extender.caches import NodeNameCache
from fairlead.webhook.extender.circuit_breaker import CircuitBreaker, OpenCircuit, generation_of
from fairlead.webhook.extender.group_view import NO_GROUPS, GroupView
from fairlead.webhook.extender.state import ServingState, build_serving_state
from fairlead.webhook.serving.policy_status import PolicyStatus
from fairlead.webhook.serving.policy_store import PolicyStore

LOG: Final = logging.getLogger(__name__)
_FREE_AFTER_S: Final = 1.0
_BRAKE_S: Final = 0.05
"""How long to gather policies that are turned off or deleted before none of their rules is applied any more."""
_LINES: Final = 20
"""Lines that are logged at a time."""
_LONG_S: Final = 0.25
_LONG_PART: Final = 1 / 12
"""Share of the event loop's time for policies that have taken longer than that: calls come first."""
Subscribe = Callable[[Iterable[str], Iterable[str], Iterable[str]], Awaitable[None]]
"""Called with the annotations that enforced rules read, the schedulers that policies name, and the annotations that
rules in shadow read; returns once the mirror holds the first two.
"""


@dataclass(slots=True, eq=False)
class PolicyReloader:
    """The serving state and the policies it is built from. Used by the serving event loop only."""

    policies: PolicyStore
    mirror: Mirror
    subscribe: Subscribe
    capabilities: Sequence[Capability]
    """Those that provide what policies read, before the policies serve."""
    groups: GroupView = NO_GROUPS
    state: ServingState | None = None
    schedulers: frozenset[str] = frozenset()
    stays: Callable[[str], bool] = lambda _: True
    """Returns whether a scheduler that no policy names any more is still served."""
    circuit_breaker: CircuitBreaker = field(default_factory=CircuitBreaker)
    tally: RuleErrorTally = field(default_factory=RuleErrorTally)
    cache_counts: CacheCounts = field(default_factory=CacheCounts)
    share: Share = field(default_factory=lambda: Share(perf_counter))
    long_share: Share = field(default_factory=lambda: Share(perf_counter, _LONG_PART))
    _unused: list[CompiledExpression] = field(default_factory=list)
    """Expressions of policies that no longer serve, to be freed."""
    _names: NodeNameCache = field(default_factory=NodeNameCache)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _braking: asyncio.TimerHandle | None = None
    _followed: str | None = None
    """Hash of the policy set whose objects and values are followed."""
    _logged: Mapping[str, PolicyStatus] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.policies.on_change = self._policies_changed

    def wake(self) -> None:
        """Wake `run` to compile what is pending."""
        self._wake.set()

    def _policies_changed(self) -> None:
        self.wake()
        if self.state is not None and self._braking is None:
            self._braking = asyncio.get_running_loop().call_later(_BRAKE_S, self._brake)

    def rebuild(self) -> None:
        """Build the serving state again with empty caches, because the clock went back."""
        if (before := self.state) is not None:
            self._rebuild(before, before.policies)

    def _rebuild(self, before: ServingState, policies: PolicySet) -> None:
        self.state = replace(self._state_of(policies), conflicts=before.conflicts)

    def _brake(self) -> None:
        """Stop applying policies that were turned off or deleted, whatever is being compiled or waited for."""
        self._braking = None
        if (before := self.state) is None:
            return
        policies = self.policies.without_weakened(before.policies)
        if policies is not before.policies:
            self._rebuild(before, policies)
            LOG.info("policy_set.disabled", extra={"hash": policies.generation})

    def open_circuits(self) -> list[OpenCircuit]:
        """Return the open circuits of serving generations: a new generation starts with a closed one."""
        serving = {generation_of(one) for one in self.state.policies.policies} if self.state is not None else set()
        return [one for one in self.circuit_breaker.open_circuits(perf_counter_ns()) if one.policy in serving]

    async def run(self) -> None:
        """Compile policies in pieces as they come, and let them serve; never returns."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self._compile()
            await self._swap()

    async def _compile(self) -> None:
        """Compile what is pending, sleeping after each stretch once there are calls to answer."""
        serving, steps = self.policies.serving, self.policies.compile_pending()
        while True:
            began = self.share.clock()
            try:
                taken = next(steps)
            except StopIteration:
                return
            except Exception:  # a fault must not stop the policies that come next
                LOG.exception("policy.compile_fault")
                return
            share = self.long_share if taken > _LONG_S else self.share
            await asyncio.sleep(0 if self.state is None else share.pause(began))
            if self.policies.serving is not serving:
                serving = self.policies.serving
                await self._swap()

    async def _swap(self) -> None:
        policies, states = self.policies.serving, self.policies.states
        changed = [state for state in states.values() if self._logged.get(state.name) != state]
        self._logged = states
        for at, state in enumerate(changed, 1):
            level = logging.INFO if state.reason == "Compiled" else logging.WARNING
            LOG.log(level, "policy.state", extra={"policy": state.name, "state": str(state)})
            if not at % _LINES:
                await asyncio.sleep(0)  # many policies may change at once, and calls come first
        serving = None if self.state is None else self.state.policies.generation
        if self._followed == serving == policies.generation:  # else what was turned off meanwhile may be on again
            return
        enforced = [one for one in policies.policies if one.enforced]
        # Include policies that are off or deleted: their pods still have to be bound.
        schedulers = {one.scheduler_name for one in policies.policies} | {*filter(self.stays, self.schedulers)}
        in_shadow = [one for policy in policies.policies if (one := compared(policy)) is not None]
        await self.subscribe(_annotations(enforced), schedulers, _annotations(in_shadow))
        await follow_all(self.capabilities, [one for one in policies.policies if one.evaluated])
        self.schedulers = frozenset(schedulers)
        if self.state is not None:
            kept = {id(one) for one in policies.policies}
            removed = [one for one in self.state.policies.policies if id(one) not in kept]
            self._unused += [expression for one in removed for expression in one.expressions]
            asyncio.get_running_loop().call_later(_FREE_AFTER_S, self._free)
            del removed
        self._followed = policies.generation
        # What was turned off while this waited stays off.
        self.state = self._state_of(self.policies.without_weakened(policies))
        LOG.info("policy_set.serving", extra={"hash": policies.generation, "policies": len(enforced)})

    def _free(self) -> None:
        """Free unused expressions one at a time, once no call uses them."""
        if self._unused:
            self._unused.pop()
            asyncio.get_running_loop().call_soon(self._free)

    def _state_of(self, policies: PolicySet) -> ServingState:
        return build_serving_state(
            policies,
            self.mirror.nodes,
            self.mirror,
            self.circuit_breaker,
            self._names,
            self.tally,
            self.cache_counts,
            self.groups,
        )


def _annotations(policies: Iterable[CompiledPolicy]) -> set[str]:
    """Return the annotations of pods on nodes that policies read."""
    return {key for one in policies for key in one.pod_annotations}
