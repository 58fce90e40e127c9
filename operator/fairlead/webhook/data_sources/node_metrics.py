"""The metrics API: the usage of all nodes in one list, for all polls of one interval."""

from collections.abc import Collection
from typing import Final

from fairlead.cooperative import Steps
from fairlead.kube.errors import ClusterError, ForbiddenError, RequestError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import NODE_METRICS
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.nodes.polls import NodeMetricsPoll, PollError, Reading
from fairlead.webhook.data_sources.node_metrics_reply import node_metrics_readings
from fairlead.webhook.data_sources.samples import TEXT_MAX, one_line

API_SERVICE: Final = "v1beta1.metrics.k8s.io"
BODY_BYTES_MAX: Final = 16 << 20
"""Five times what 5000 nodes take. Larger replies are not from a metrics API, and would take memory from all calls."""
_LOOK: Final = f"kubectl get apiservice {API_SERVICE}"


class NodeMetricsSource:
    """Usage of nodes as metrics-server or another program serves it."""

    def __init__(self, client: Client, nodes: Nodes) -> None:
        """`nodes` have the capacities for ratios."""
        self._client, self._nodes = client, nodes

    async def read(
        self, polls: Collection[NodeMetricsPoll], *, within_s: float
    ) -> Steps[dict[NodeMetricsPoll, Reading]]:
        """List the usage once, and return the computation of what each poll gave. Both raise PollError."""
        try:
            body = await self._client.read_list(NODE_METRICS, within_s=within_s, bytes_max=BODY_BYTES_MAX)
        except ClusterError as error:
            raise PollError(_explained(error)) from error
        return node_metrics_readings(body, polls, self._nodes)


def _explained(error: ClusterError) -> str:
    """Return what failed, and what to do."""
    if isinstance(error, ForbiddenError):
        return f"the permission to list nodes.metrics.k8s.io is missing: {one_line(str(error), 2 * TEXT_MAX)}"
    if isinstance(error, RequestError) and error.status == 404:
        return (
            f"there is no metrics API: the APIService {API_SERVICE} is missing or serves no nodes;"
            " install metrics-server, or another program that serves it"
        )
    if isinstance(error, RequestError) and error.status == 503:
        return (
            f"the metrics API does not answer: the APIService {API_SERVICE} is not available,"
            f' most often because metrics-server is not ready; "{_LOOK}" says why ({one_line(error.message, TEXT_MAX)})'
        )
    return one_line(str(error), TEXT_MAX)
