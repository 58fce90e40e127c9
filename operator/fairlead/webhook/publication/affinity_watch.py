"""Affinity watch: what is published is compared with pods and nodes, and what they lack is reported to the leader."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter, perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, NoReturn

from msgspec.structs import replace

from fairlead.cooperative import Pauses, Share, Steps, run_within_share
from fairlead.kube.http.client import Client
from fairlead.kube.watch.reflector import Reflector
from fairlead.logs import FaultError, RateLimiter
from fairlead.metrics import Counter, Labels, Metrics
from fairlead.mirror.mirror import Mirror
from fairlead.mirror.pod_watcher import PodWatcher
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.render.operator_settings import OperatorSettings
from fairlead.replica_state import PublicationGaps, ReplicaState
from fairlead.webhook.capability import Capability
from fairlead.webhook.extender.call import CallClock
from fairlead.webhook.extender.callers import SYSTEM
from fairlead.webhook.extender.state import ServingState
from fairlead.webhook.publication.affinity_feed import AffinityFeed
from fairlead.webhook.publication.publication_survey import Surveyor
from fairlead.webhook.publication.visible_rejections import visible_rejections

if TYPE_CHECKING:
    from fairlead.webhook.extender.rejected_pods import RejectedPods

LOG: Final = logging.getLogger(__name__)
GATHER_S: Final = 1.0
"""Time to gather new pods, and for news of what is published to come."""
LOOK_S: Final = 10.0
"""Time between two looks at all pods that wait, and at the nodes."""
_NEW_MAX: Final = 4_096
_PART: Final = 1 / 20
"""Share of the event loop's time that it may take: calls come first."""
_BURST_S: Final = 0.02


class AffinityWatch(Capability, PodWatcher):
    """Affinity watch of a replica."""

    def __init__(
        self,
        client: Client,
        mirror: Mirror,
        namespace: str | None,
        state: Callable[[], ServingState | None],
        now: Callable[[], int],
    ) -> None:
        """`namespace` is the operator's: None where nothing is published. `now` is the time of day in nanoseconds."""
        self.rejected: RejectedPods | None = None
        """Pods that were left without a node, where they are known."""
        self.feed: Final = AffinityFeed(client, now)
        self._mirror, self._namespace, self._state, self._now = mirror, namespace, state, now
        left_out = frozenset({SYSTEM, namespace or SYSTEM})
        self._surveyor = Surveyor(mirror, self.feed.sink.current, left_out, now)
        self._pods = Counter(
            "fairlead_published_pods",
            "Pods that this replica saw with the node affinity that is published now, by each policy that publishes a"
            " part of it.",
            ("policy",),
        )
        self._is_enabled = self._is_wanted = False
        self._policies: Sequence[CompiledPolicy] = ()
        self._new: deque[Any] = deque(maxlen=_NEW_MAX)
        self._woken = asyncio.Event()
        self._gaps: Mapping[str, PublicationGaps] = {}
        self._visible: Mapping[str, int] = {}
        self._rate_limiter = RateLimiter()
        self.share = Share(perf_counter, _PART, _BURST_S)

    @property
    def on_demand(self) -> Mapping[str, Reflector[Any]]:
        """Watch of what is published, while a policy publishes."""
        return self.feed.reflectors

    def use_settings(self, settings: OperatorSettings) -> None:
        """Watch if node affinity is published."""
        self._is_enabled = settings.published_affinity.enabled
        self._want()

    async def follow(self, policies: Sequence[CompiledPolicy]) -> None:
        """Watch if one of these policies publishes."""
        self._policies = policies
        self._want()

    async def run(self) -> None:
        """Watch until cancelled."""
        if self._namespace is None:
            return
        async with asyncio.TaskGroup() as group:
            for work in (self.feed.run, self._count_new, self._look):
                group.create_task(work())

    def put_unplaced(self, pod: Any, before: Any | None) -> None:
        """Hear of an unplaced pod: a new one is looked at soon."""
        if before is None or before.metadata.uid != pod.metadata.uid:
            self._new.append(pod)
            self._woken.set()

    def report(self, state: ReplicaState) -> ReplicaState:
        """Return the report with what pods and nodes lack of what each policy publishes."""
        gaps = self._gaps
        if not gaps:
            return state
        policies = {
            name: replace(one, gaps=gaps[name]) if name in gaps and one.publication is not None else one
            for name, one in state.policies.items()
        }
        return replace(state, policies=policies)

    def register(self, metrics: Metrics) -> None:
        """Register its metrics."""
        metrics.add(self._pods)
        metrics.gauge(
            "fairlead_pods_rejected_only",
            "Pods that wait because one policy, and no other, keeps them from nodes with room. visible: whether their"
            " node affinity says so, so that autoscalers see it.",
            "policy",
            "visible",
            ask=self._rejected_only,
        )

    def _rejected_only(self) -> Mapping[Labels, float]:
        serving = {one.name for one in self._policies}
        invisible = {} if self.rejected is None else self.rejected.rejected_alone()
        counts = (("false", invisible), ("true", self._visible))
        return {
            (policy, visible): count
            for visible, found in counts
            for policy, count in found.items()
            if policy in serving
        }

    def _want(self) -> None:
        publishes = any(one.publishes and not one.placeholder for one in self._policies)
        is_wanted = self._namespace is not None and self._is_enabled and publishes
        if is_wanted is self._is_wanted:
            return
        self._is_wanted = is_wanted
        self.feed.want(wanted=is_wanted)
        if is_wanted:
            self._mirror.watchers.add(self)
            return
        self._mirror.watchers.discard(self)
        self._new.clear()
        self._surveyor.forget()
        self._gaps, self._visible = {}, {}

    async def _count_new(self) -> NoReturn:
        """Look at new pods, once what is published is known."""
        while True:
            await self._woken.wait()
            await asyncio.sleep(GATHER_S)
            if not self.feed.is_listed:
                continue
            self._woken.clear()
            await self._run(self._new_pods())

    def _new_pods(self) -> Steps[None]:
        while self._new:
            for policy in self._surveyor.look_at_new(self._new.popleft()).current:
                self._pods.add(policy)
            yield

    async def _look(self) -> NoReturn:
        """Look at all pods that wait, and at the nodes, again and again."""
        while True:
            await asyncio.sleep(LOOK_S)
            if self._is_wanted and self.feed.is_listed:
                await self._run(self._whole())

    def _whole(self) -> Steps[None]:
        rejected = () if self.rejected is None else self.rejected.uids
        survey = yield from self._surveyor.survey(rejected)
        state, visible = self._state(), dict[str, int]()
        if state is not None and survey.waiting.pods:
            visible = dict((yield from visible_rejections(state, survey.waiting, self._clock)))
        if self._is_wanted:
            self._gaps, self._visible = survey.gaps, visible

    def _clock(self) -> CallClock:
        return CallClock(self._now(), perf_counter_ns, 0)

    async def _run(self, steps: Steps[None]) -> None:
        """Do some work within a share of the time. A fault is logged, and what comes next is tried all the same."""
        try:
            for pause_s in Pauses(run_within_share(steps, self.share)):
                await asyncio.sleep(pause_s)
        except Exception as error:
            if (more := self._rate_limiter.allow("look")) is not None:
                LOG.exception("affinity_watch.fault", exc_info=FaultError(error), extra=more)
