"""Karpenter on this machine, beside a local cluster, with its provider of machines that are only objects.

The nodes that it makes carry the testbed's label, so that kwok tends them: the NodePools of a test give it to them.
"""

from collections.abc import Iterator
from typing import Final

import yaml

from testbed import build, go_modules, kwok, process
from testbed.api import Api, ApiError, Object, wait_for
from testbed.layout import Layout, free_ports
from testbed.process import Component
from testbed.supervisor import Supervisor
from testbed.versions import MODULES, program

NAME: Final = "karpenter"
CLAIMS: Final = "/apis/karpenter.sh/v1/nodeclaims"
POOLS: Final = "/apis/karpenter.sh/v1/nodepools"
POOL_OF: Final = "karpenter.sh/nodepool"
"""Label of a claim and of its node."""
_CLASSES: Final = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses"
_CLASS: Final = "machines"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_NODES: Final = "/api/v1/nodes"
_WITHIN_S: Final = 60.0


class Karpenter:
    """The Karpenter of a cluster."""

    def __init__(self, layout: Layout, api: Api) -> None:
        self._layout, self._api = layout, api

    def up(self) -> None:
        """Start it; it makes nodes as soon as there is a NodePool."""
        executable = build.build([program(NAME)])[NAME]
        for definition in _definitions():
            self._api.apply(f"{_DEFINITIONS}/{definition['metadata']['name']}", definition)
        for path in (CLAIMS, POOLS, _CLASSES):
            wait_for(f"{path} to be served", lambda path=path: self._api.exists(path))  # type: ignore[misc]
        kind = {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass"}
        self._api.apply(f"{_CLASSES}/{_CLASS}", {**kind, "metadata": {"name": _CLASS}})
        metrics, health = free_ports(2)
        options = [
            f"--metrics-port={metrics}",
            f"--health-probe-port={health}",
            "--disable-leader-election=true",
            "--batch-idle-duration=500ms",
        ]
        # its own set of flags has no --kubeconfig
        environment = {"KUBECONFIG": str(self._layout.kubeconfig), "SYSTEM_NAMESPACE": "kube-system"}
        log = process.log_of(self._layout.folder, NAME)
        Supervisor(self._layout.folder, list).ensure(
            Component(NAME, [str(executable), *options], environment), log.exists, within_s=_WITHIN_S
        )

    def put_pool(self, name: str, weight: int, labels: dict[str, str], *requirements: Object) -> None:
        """Apply a NodePool whose nodes get these labels; of several that would do, the one of the greatest weight."""
        machines = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
        spec = {
            "weight": weight,
            "disruption": {"consolidateAfter": "Never"},
            "template": {
                "metadata": {"labels": {**labels, **dict([kwok.LABEL])}},
                "spec": {
                    "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": _CLASS},
                    "requirements": [machines, *requirements],
                },
            },
        }
        kind = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool"}
        self._api.apply(f"{POOLS}/{name}", {**kind, "metadata": {"name": name}, "spec": spec})
        wait_for(f"the NodePool {name} to be ready", lambda: _is_ready(self._api.get(f"{POOLS}/{name}")))

    def claims(self) -> list[str]:
        """The NodePool of each node that it has decided to make."""
        return sorted(str(one["metadata"]["labels"][POOL_OF]) for one in self._api.items(CLAIMS))

    def nodes(self) -> list[str]:
        """The nodes that it has made and calls initialized; pods may be placed on one before that."""
        found = self._api.items(_NODES, labelSelector=f"{POOL_OF},karpenter.sh/initialized=true")
        return [str(one["metadata"]["name"]) for one in found]

    def pool_of(self, node: str) -> str:
        """The NodePool that a node was made for; empty if it was not made by Karpenter."""
        return str(self._api.get(f"{_NODES}/{node}")["metadata"]["labels"].get(POOL_OF, ""))

    def remove_nodes(self) -> None:
        """Have it take away all nodes that it has made, also those that it makes meanwhile in place of others."""
        wait_for("its nodes to be gone", self._has_none, timeout_s=_WITHIN_S)

    def down(self) -> None:
        """Leave nothing of it."""
        try:
            self.remove_nodes()
        finally:
            process.kill(found for found in [process.find(self._layout.folder, NAME)] if found)
            for path in (CLAIMS, POOLS, _CLASSES):
                self._let_go(path)
            self._let_go(_NODES, labelSelector=POOL_OF)
            for definition in _definitions():
                self._api.delete(f"{_DEFINITIONS}/{definition['metadata']['name']}")

    def _has_none(self) -> bool:
        for claim in self._api.items(CLAIMS):
            if "deletionTimestamp" not in claim["metadata"]:
                self._api.delete(f"{CLAIMS}/{claim['metadata']['name']}")
        return not self._api.items(CLAIMS) and not self._api.items(_NODES, labelSelector=POOL_OF)

    def _let_go(self, collection: str, **query: str) -> None:
        """Delete objects that wait for a process that is gone."""
        try:
            found = self._api.items(collection, **query)
        except ApiError as error:
            if error.status == 404:
                return
            raise
        for one in found:
            path = f"{collection}/{one['metadata']['name']}"
            if one["metadata"].get("finalizers"):
                self._api.patch(path, {"metadata": {"finalizers": None}})
            self._api.delete(path)


def _is_ready(obj: Object) -> bool:
    conditions = obj.get("status", {}).get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _definitions() -> Iterator[Object]:
    """Its definitions of resources, and that of its provider."""
    module = go_modules.download("sigs.k8s.io/karpenter", of=MODULES / NAME)
    for folder in (module / "pkg" / "apis" / "crds", module / "kwok" / "apis" / "crds"):
        for file in sorted(folder.glob("*.yaml")):
            yield yaml.safe_load(file.read_text())
