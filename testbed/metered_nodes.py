"""kwok nodes with a usage, which metrics-server reads as it reads that of a kubelet.

A kwok of their own tends them: its label keeps the testbed's other kwok off, so that nobody else has nodes with a page
of metrics.
"""

import ipaddress
from pathlib import Path

from testbed import build, certs, kwok, node_template, process
from testbed.api import Api, Object
from testbed.layout import Layout, free_ports
from testbed.node_template import Template
from testbed.process import Component
from testbed.supervisor import Supervisor, answers
from testbed.versions import program

_NAME = "kwok-usage"
_LABEL = (kwok.LABEL[0], "metered")
_USAGE = Path(__file__).parent / "manifests" / "kwok-usage.yaml"
_PODS = "10.192.0.0/16"
_NODES = "/api/v1/nodes"


class MeteredNodes:
    """The metered nodes of a cluster, and the kwok that tends them."""

    def __init__(self, layout: Layout, api: Api) -> None:
        self._layout, self._api = layout, api
        self._host = str(ipaddress.ip_network(layout.network)[1])
        (self._port,) = free_ports(1)

    def up(self, count: int, template: Template) -> list[str]:
        """Make nodes; their names."""
        pair = certs.Authority(self._layout.folder / "pki" / _NAME).issue(_NAME, _NAME, hosts=[self._host])
        executable = build.build([program("kwok")])["kwok"]
        command = [
            str(executable),
            f"--kubeconfig={self._layout.kubeconfig}",
            f"--config={kwok.STAGES}",
            f"--config={_USAGE}",
            f"--manage-nodes-with-label-selector={'='.join(_LABEL)}",
            f"--cidr={_PODS}",
            f"--server-address={self._host}:{self._port}",
            f"--tls-cert-file={pair.certificate}",
            f"--tls-private-key-file={pair.key}",
            "-v=WARN",
        ]
        Supervisor(self._layout.folder, list).ensure(
            Component(_NAME, command), lambda: answers(self._host, self._port, "/healthz")
        )
        made = [self._metered(one) for one in node_template.make(count, template)]
        for one in made:
            self._api.create(_NODES, one)
        return [str(one["metadata"]["name"]) for one in made]

    def down(self) -> None:
        """Leave nothing of them."""
        process.kill(found for found in [process.find(self._layout.folder, _NAME)] if found)
        self._api.delete(_NODES, labelSelector="=".join(_LABEL))

    def _metered(self, node: Object) -> Object:
        name = node["metadata"]["name"]
        page = {"metrics.k8s.io/resource-metrics-path": f"/metrics/nodes/{name}/metrics/resource"}
        status = node["status"] | {
            "addresses": [*node["status"]["addresses"], {"type": "ExternalIP", "address": self._host}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._port}},
        }
        labels = node["metadata"]["labels"] | dict([_LABEL])
        return node | {"metadata": node["metadata"] | {"labels": labels, "annotations": page}, "status": status}
