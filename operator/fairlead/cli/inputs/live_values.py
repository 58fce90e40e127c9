"""Measured values of a live cluster, read with the caller's own rights: the metrics API and ConfigMaps."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fairlead.cli.inputs.data_file import MeasuredInput
from fairlead.cli.inputs.operator_survey import operator_namespaces
from fairlead.control.reconcile.object_client import ObjectClient
from fairlead.cooperative import finish
from fairlead.kube.errors import ClusterError, NotFoundError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import decode_object
from fairlead.kube.watch.config_maps import CONFIG_MAPS
from fairlead.mirror import decode
from fairlead.mirror.mirror import Mirror
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.nodes.polls import ConfigMapPoll, NodeMetricsPoll, Poll, PollError, Reading, poll_of
from fairlead.simulation.snapshot import Snapshot, reading
from fairlead.webhook.data_sources.config_map_values import document_reading, read_document
from fairlead.webhook.data_sources.node_metrics import NodeMetricsSource

_WITHIN_S: Final = 10.0
_NO_OPERATOR: Final = "no operator is found, in whose namespace the ConfigMap would be: give the values as --data"


def nodes_of_snapshot(snapshot: Snapshot, now: int) -> Nodes:
    """Return the nodes of a snapshot, without pods: names and capacities for what is measured."""
    mirror = Mirror(lambda: now)
    for key, held in snapshot.nodes.items():
        with reading("node", key, held):
            mirror.node_sink.put(decode.node(held.raw))
    return mirror.nodes


async def add_live_values(
    data: MeasuredInput, client: Client, policies: Sequence[CompiledPolicy], nodes: Nodes
) -> None:
    """Add what a live cluster says to the values that were given, which come first."""
    polls = {poll: None for policy in policies for entry in policy.data if (poll := poll_of(entry)) is not None}
    wanted = [poll for poll in polls if poll not in data.readings]
    metrics = [poll for poll in wanted if isinstance(poll, NodeMetricsPoll)]
    documents = [poll for poll in wanted if isinstance(poll, ConfigMapPoll)]
    if metrics:
        try:
            source = NodeMetricsSource(client, nodes)
            for poll, one in finish(await source.read(metrics, within_s=_WITHIN_S)).items():
                data.readings[poll] = one
        except PollError as error:
            data.notes += [f"{poll.name}: {error}" for poll in metrics]
    if documents:
        _add(data, await _documents(client, documents, nodes))


async def _documents(
    client: Client, polls: Iterable[ConfigMapPoll], nodes: Nodes
) -> Mapping[ConfigMapPoll, Reading | str]:
    homes = await operator_namespaces(ObjectClient(client))
    answers = dict[ConfigMapPoll, Reading | str]()
    for poll in polls:
        try:
            answers[poll] = await _document(client, homes[0], poll, nodes) if homes else _NO_OPERATOR
        except (ClusterError, PollError) as error:
            answers[poll] = str(error)
    return answers


async def _document(client: Client, namespace: str, poll: ConfigMapPoll, nodes: Nodes) -> Reading | str:
    try:
        obj = await client.get(CONFIG_MAPS.named(namespace, poll.config_map), decode_object)
    except NotFoundError:
        return f"there is no ConfigMap {poll.config_map} in {namespace}"
    text = (obj.get("data") or {}).get(poll.key)
    if text is None:
        return f"the ConfigMap {namespace}/{poll.config_map} has no key {poll.key}"
    return finish(document_reading(read_document(text), poll, nodes))


def _add(data: MeasuredInput, answers: Mapping[ConfigMapPoll, Reading | str]) -> None:
    readings: dict[Poll, Reading] = {poll: one for poll, one in answers.items() if isinstance(one, Reading)}
    data.readings.update(readings)
    texts = {poll: one.note if isinstance(one, Reading) else one for poll, one in answers.items()}
    data.notes += [f"{poll.name}: {text}" for poll, text in texts.items() if text]
