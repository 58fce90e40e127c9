"""All sources of measured values: each poll is asked of its own, and a failure of one is not one of the others."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.nodes.polls import ConfigMapPoll, NodeMetricsPoll, Poll, PrometheusPoll, Reading
from fairlead.webhook.data_sources.config_map_source import ConfigMapSource
from fairlead.webhook.data_sources.config_map_values import document_reading
from fairlead.webhook.data_sources.loop_turns import LoopTurns
from fairlead.webhook.data_sources.node_metrics import NodeMetricsSource
from fairlead.webhook.data_sources.node_names import NodeNames
from fairlead.webhook.data_sources.poll_error import PollError
from fairlead.webhook.data_sources.poller import Outcome, Question
from fairlead.webhook.data_sources.prometheus_client import PrometheusClient
from fairlead.webhook.data_sources.prometheus_reply import series_max

_METRICS_API_S: Final = 5.0


class DataSources:
    """Sources of measured values."""

    def __init__(
        self,
        nodes: Nodes,
        prometheus: PrometheusClient,
        node_metrics: NodeMetricsSource,
        documents: ConfigMapSource,
        turns: LoopTurns,
    ) -> None:
        self._nodes, self._prometheus, self._node_metrics = nodes, prometheus, node_metrics
        self._documents, self._turns = documents, turns

    def ask(self, ages: Mapping[Poll, int]) -> Iterable[Question]:
        """Return the questions for polls, each with the greatest age of its values in seconds."""
        node_of = NodeNames(self._nodes)
        by_interval = defaultdict[int, list[NodeMetricsPoll]](list)
        questions = list[Question]()
        for poll, greatest_age_s in ages.items():
            if isinstance(poll, PrometheusPoll):
                questions.append(Question((poll,), self._ask_prometheus(poll, greatest_age_s, node_of)))
            elif isinstance(poll, NodeMetricsPoll):
                by_interval[poll.interval_s].append(poll)
            else:
                questions.append(Question((poll,), self._read_document(poll)))
        return [*questions, *(Question(polls, self._ask_metrics_api(polls)) for polls in by_interval.values())]

    async def _ask_prometheus(
        self, poll: PrometheusPoll, greatest_age_s: int, node_of: Callable[[str], str | None]
    ) -> Mapping[Poll, Outcome]:
        try:
            most = series_max(len(self._nodes.slots))
            return {poll: await self._prometheus.read(poll, greatest_age_s, node_of, most)}
        except PollError as error:
            return {poll: PollError(str(error))}  # not the frames that it was raised in, which hold the reply

    async def _ask_metrics_api(self, polls: Collection[NodeMetricsPoll]) -> Mapping[Poll, Outcome]:
        try:
            found: dict[NodeMetricsPoll, Reading] = await self._turns.run(
                await self._node_metrics.read(polls, within_s=_METRICS_API_S)
            )
        except PollError as error:
            return dict.fromkeys(polls, error)
        return {poll: reading for poll, reading in found.items()}  # noqa: C416 - its keys are of another type

    async def _read_document(self, poll: ConfigMapPoll) -> Mapping[Poll, Outcome]:
        document, error, _ = self._documents.state(poll)
        if document is None:
            # The watch has just begun, and tells when there is an answer.
            return {poll: PollError(error)} if error else {}
        reading = await self._turns.run(document_reading(document, poll, self._nodes))
        return {poll: reading._replace(note=error or reading.note)}
