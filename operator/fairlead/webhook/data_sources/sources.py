"""All sources of measured values: each poll is asked of its own, and a failure of one is not one of the others."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final

from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.nodes.polls import ConfigMapPoll, NodeMetricsPoll, Poll, PollError, PrometheusPoll, Reading
from fairlead.webhook.data_sources.config_map_source import ConfigMapSource
from fairlead.webhook.data_sources.config_map_values import document_reading
from fairlead.webhook.data_sources.loop_turns import LoopTurns
from fairlead.webhook.data_sources.node_metrics import NodeMetricsSource
from fairlead.webhook.data_sources.node_names import NodeNames
from fairlead.webhook.data_sources.poller import PollOutcome, Question, Sources
from fairlead.webhook.data_sources.prometheus_client import PrometheusClient
from fairlead.webhook.data_sources.prometheus_reply import series_max

_METRICS_API_S: Final = 5.0


class DataSources(Sources):
    """All sources of measured values."""

    def __init__(
        self,
        nodes: Nodes,
        prometheus: PrometheusClient,
        node_metrics: NodeMetricsSource,
        documents: ConfigMapSource,
        turns: LoopTurns,
    ) -> None:
        self._sources: tuple[Sources, ...] = (
            PrometheusQuestions(nodes, prometheus),
            MetricsQuestions(node_metrics, turns),
            DocumentQuestions(nodes, documents, turns),
        )

    def questions(self, ages: Mapping[Poll, int], /) -> list[Question]:
        """Return the questions for polls, each with the greatest age of its values in seconds."""
        return [question for source in self._sources for question in source.questions(ages)]


class PrometheusQuestions(Sources):
    """One question a query."""

    def __init__(self, nodes: Nodes, client: PrometheusClient) -> None:
        self._nodes, self._client = nodes, client

    def questions(self, ages: Mapping[Poll, int], /) -> Iterator[Question]:
        """Yield the questions of its polls."""
        node_of = NodeNames(self._nodes)
        for poll, greatest_age_s in ages.items():
            if isinstance(poll, PrometheusPoll):
                yield Question((poll,), self._ask(poll, greatest_age_s, node_of))

    async def _ask(
        self, poll: PrometheusPoll, greatest_age_s: int, node_of: Callable[[str], str | None]
    ) -> Mapping[Poll, PollOutcome]:
        try:
            most = series_max(len(self._nodes.slots))
            return {poll: await self._client.read(poll, greatest_age_s, node_of, most)}
        except PollError as error:
            return {poll: PollError(str(error))}  # not the frames that it was raised in, which hold the reply


class MetricsQuestions(Sources):
    """One question an interval: a reply of the metrics API has all resources of all nodes."""

    def __init__(self, source: NodeMetricsSource, turns: LoopTurns) -> None:
        self._source, self._turns = source, turns

    def questions(self, ages: Mapping[Poll, int], /) -> Iterator[Question]:
        """Yield the questions of its polls."""
        by_interval = defaultdict[int, list[NodeMetricsPoll]](list)
        for poll in ages:
            if isinstance(poll, NodeMetricsPoll):
                by_interval[poll.interval_s].append(poll)
        for polls in by_interval.values():
            yield Question(polls, self._ask(polls))

    async def _ask(self, polls: Collection[NodeMetricsPoll]) -> Mapping[Poll, PollOutcome]:
        try:
            found: dict[NodeMetricsPoll, Reading] = await self._turns.run(
                await self._source.read(polls, within_s=_METRICS_API_S)
            )
        except PollError as error:
            return dict.fromkeys(polls, error)
        return {poll: reading for poll, reading in found.items()}  # noqa: C416 - its keys are of another type


class DocumentQuestions(Sources):
    """One question a document, which is in memory."""

    def __init__(self, nodes: Nodes, documents: ConfigMapSource, turns: LoopTurns) -> None:
        self._nodes, self._documents, self._turns = nodes, documents, turns

    def questions(self, ages: Mapping[Poll, int], /) -> Iterator[Question]:
        """Yield the questions of its polls."""
        for poll in ages:
            if isinstance(poll, ConfigMapPoll):
                yield Question((poll,), self._read(poll))

    async def _read(self, poll: ConfigMapPoll) -> Mapping[Poll, PollOutcome]:
        document, error, _ = self._documents.state(poll)
        if document is None:
            # The watch has just begun, and tells when there is an answer.
            return {poll: PollError(error)} if error else {}
        reading = await self._turns.run(document_reading(document, poll, self._nodes))
        return {poll: reading._replace(note=error or reading.note)}
