"""metrics-server on this machine, beside a local cluster with a real node: it asks the kubelet as in any cluster.

The API server reaches it at this machine's end of the link, through a Service without a selector.
"""

import ipaddress
from pathlib import Path

from testbed import build, process
from testbed.api import Api, ApiError, Object
from testbed.layout import Layout, free_ports
from testbed.process import Component
from testbed.supervisor import Supervisor, answers
from testbed.versions import program

NAME = "metrics-server"
NODES = "/apis/metrics.k8s.io/v1beta1/nodes"
API_SERVICE = "v1beta1.metrics.k8s.io"
RESOLUTION_S = 15
"""Between two measurements, of which it wants two before it serves a node; less than 10 s it refuses."""
_READY_WITHIN_S = 90.0
_API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
_SERVICES = "/api/v1/namespaces/kube-system/services"
_SLICES = "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices"


class MetricsServer:
    """The metrics-server of a cluster."""

    def __init__(self, layout: Layout, api: Api) -> None:
        self._layout, self._api = layout, api
        self._host = str(ipaddress.ip_network(layout.network)[1])
        (self._port,) = free_ports(1)

    def up(self) -> None:
        """Start it, and register it with the API server; wait until it has measured."""
        executable = build.build([program(NAME)])[NAME]
        for path, body in objects(self._host, self._port).items():
            self._api.apply(path, body)
        Supervisor(self._layout.folder, list).ensure(
            component(executable, self._layout, self._host, self._port),
            lambda: answers(self._host, self._port, "/readyz") and self._is_available(),
            within_s=_READY_WITHIN_S,
        )

    def stop(self) -> None:
        """End the process; the API server still expects it."""
        process.kill(found for found in [process.find(self._layout.folder, NAME)] if found)

    def down(self) -> None:
        """Leave nothing of it."""
        self.stop()
        for path in objects(self._host, self._port):
            self._api.delete(path)

    def _is_available(self) -> bool:
        """Tell whether the API server passes requests on to it, and it knows a node."""
        try:
            return bool(self._api.items(NODES))
        except ApiError:
            return False


def component(executable: Path, layout: Layout, host: str, port: int) -> Component:
    """The command, with the administrator's rights."""
    return Component(
        NAME,
        [
            str(executable),
            f"--kubeconfig={layout.kubeconfig}",
            f"--authentication-kubeconfig={layout.kubeconfig}",
            f"--authorization-kubeconfig={layout.kubeconfig}",
            f"--bind-address={host}",
            f"--secure-port={port}",
            f"--cert-dir={layout.folder}/pki/{NAME}",
            f"--metric-resolution={RESOLUTION_S}s",
            # kwok nodes may have a port and an address of their own, at which metrics are made up
            "--kubelet-use-node-status-port",
            "--kubelet-preferred-address-types=ExternalIP,InternalIP",
            "--kubelet-insecure-tls",
        ],
    )


def objects(host: str, port: int) -> dict[str, Object]:
    """Objects by which the API server knows it, by path."""
    labels = {"kubernetes.io/service-name": NAME}
    return {
        f"{_SERVICES}/{NAME}": {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": NAME, "namespace": "kube-system"},
            "spec": {"ports": [{"name": "https", "port": 443, "targetPort": port}]},
        },
        f"{_SLICES}/{NAME}": {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": NAME, "namespace": "kube-system", "labels": labels},
            "addressType": "IPv4",
            "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
            "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
        },
        f"{_API_SERVICES}/{API_SERVICE}": {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": API_SERVICE},
            "spec": {
                "group": "metrics.k8s.io",
                "version": "v1beta1",
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "insecureSkipTLSVerify": True,
                "service": {"name": NAME, "namespace": "kube-system"},
            },
        },
    }
