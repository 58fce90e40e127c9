"""Feed of measured values: polls what the data of the serving policies names, and publishes it to the nodes."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import Any, Final

from fairlead.kube.http.client import Client
from fairlead.kube.watch.reflector import Reflector
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import data_in_force
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.nodes.polls import ConfigMapPoll, Poll, PrometheusPoll, poll_of
from fairlead.render.prometheus_settings import PrometheusServer
from fairlead.webhook.capability import FOLLOW_S
from fairlead.webhook.data_sources.config_map_source import ConfigMapSource
from fairlead.webhook.data_sources.loop_turns import LoopTurns
from fairlead.webhook.data_sources.node_metrics import NodeMetricsSource
from fairlead.webhook.data_sources.poller import Poller, PollStatus
from fairlead.webhook.data_sources.prometheus_client import PrometheusClient
from fairlead.webhook.data_sources.sources import DataSources

FIRST_S: Final = FOLLOW_S - 0.5
"""Time that a policy set waits for the first values of its new entries: less than for all that it reads, so that the
log says how many polls were not answered."""
READY_S: Final = 10.0
"""How long a process that has just started waits for first values before it is ready without them."""
_LOOKBACK_S: Final = 300
_NAME_MAX: Final = 120


class NodeDataFeed:
    """Polls that keep the measured values of nodes up to date."""

    def __init__(
        self,
        client: Client,
        nodes: Nodes,
        namespace: str,
        settings_folder: Path,
        *,
        now: Callable[[], int],
        is_synced: Callable[[], bool],
    ) -> None:
        """`settings_folder` has the credentials of Prometheus servers; polling begins once `is_synced`."""
        self._nodes = nodes
        turns = LoopTurns()
        self.prometheus: Final = PrometheusClient(settings_folder, now, turns)
        self._documents = ConfigMapSource(client, namespace, self._document_changed)
        self._sources = DataSources(nodes, self.prometheus, NodeMetricsSource(client, nodes), self._documents, turns)
        self._poller = Poller(nodes, self._sources, now=now, clock=monotonic, is_synced=is_synced, turns=turns)
        self._followed: Collection[CompiledPolicy] = ()
        self._in_force: Collection[Poll] = ()
        """Polls whose values decide."""
        self._publication: asyncio.Future[None] | None = None

    @property
    def poll_states(self) -> Mapping[Poll, PollStatus]:
        """Return the state of each poll."""
        return self._poller.states

    @property
    def reflectors(self) -> Mapping[str, Reflector[Any]]:
        """Return the watch of documents, if one is wanted, by its name."""
        return self._documents.reflectors

    def readiness(self) -> tuple[bool, str] | None:
        """Return whether the first values that decide are there, or were waited for long; None if there are none."""
        if not self._in_force:
            return None
        missing = [_short_name(poll) for poll in self._poller.without_value() if poll in self._in_force]
        text = f"{len(self._in_force)} polls" + (f", without values yet: {', '.join(missing)}" if missing else "")
        return not missing or self._poller.polled_for_s > READY_S, text

    @property
    def awaits_values(self) -> bool:
        """Return whether first values may still come that rules in shadow read, for which nothing else waits."""
        return self._poller.awaits_values(FIRST_S)

    def remarks(self) -> Iterator[str]:
        """Yield which polls fail or have a note; why may name values of series, which are not for everyone."""
        for poll, status in self._poller.states.items():
            if status.error:
                times = f"{status.failures} {'failure' if status.failures == 1 else 'failures'} so far"
                yield f"{_short_name(poll)}: the last poll failed, {times}; the log says why (data.poll_failed)"
            elif status.note:
                yield f"{_short_name(poll)}: there is advice in the log (data.poll_note)"

    def set_servers(self, servers: Iterable[PrometheusServer]) -> None:
        """Set the Prometheus servers that policies may name."""
        self.prometheus.set_servers([*servers])

    async def follow(self, policies: Collection[CompiledPolicy]) -> None:
        """Poll for these policies from now on; return when each new poll succeeded once, or after a while.

        What only rules in shadow read is polled and not waited for.
        """
        # The set that serves until now reads what was followed last, and nothing else.
        parts = (part for policy in self._followed for part in (policy, policy.shadow) if part is not None)
        self._nodes.measurements.keep((part.data, part.reads) for part in parts)
        self._followed = policies
        ages = dict[Poll, int]()
        for policy in policies:
            self._nodes.measure(policy.data)
            for entry in policy.data:
                if (poll := poll_of(entry)) is not None:
                    # The least of all: a server must not answer with samples that are too old for one of them.
                    age_s = entry.greatest_age_s or _LOOKBACK_S
                    ages[poll] = min(age_s, ages.get(poll, age_s))
        in_force = (poll_of(entry) for policy in policies for entry in data_in_force(policy))
        self._in_force = frozenset(poll for poll in in_force if poll is not None)
        self.prometheus.set_owners(query_owners(policies))
        self._documents.want([poll for poll in ages if isinstance(poll, ConfigMapPoll)])
        self._poller.want(ages)
        if ages:
            self._publication = asyncio.ensure_future(self._poller.publish_last())
            await asyncio.shield(self._publication)  # it takes the nodes that have joined, and must not end before
            await self._poller.first_values(FIRST_S, self._in_force)

    async def run(self) -> None:
        """Poll until cancelled."""
        async with self.prometheus, asyncio.TaskGroup() as group:
            group.create_task(self._documents.run())
            group.create_task(self._poller.run())

    def _document_changed(self, name: str) -> None:
        polls = [one for one in self._poller.states if isinstance(one, ConfigMapPoll) and one.config_map == name]
        self._poller.ask_now(polls)


def query_owners(policies: Iterable[CompiledPolicy]) -> dict[PrometheusPoll, str]:
    """Return the policy that asks each query: of several that with the fewest, so that none makes another one wait."""
    asked = {policy.name: {*map(poll_of, policy.data)} for policy in policies}
    fewest_last = sorted(asked, key=lambda name: (len(asked[name]), name), reverse=True)
    return {poll: name for name in fewest_last for poll in asked[name] if isinstance(poll, PrometheusPoll)}


def _short_name(poll: Poll) -> str:
    name = poll.name
    return name if len(name) <= _NAME_MAX else f"{name[:_NAME_MAX]}..."
