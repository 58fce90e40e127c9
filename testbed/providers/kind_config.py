"""kind's configuration: a cluster of one node that copes with thousands of nodes that are only objects. Pure."""

import re
from typing import Any

import yaml

from testbed.errors import ClusterError
from testbed.versions import KIND, KIND_NODES, KUBERNETES

REAL = ("fairlead.dev/testbed", "real")
# Of each component: what lets one client ask for thousands of things at once. The store need not survive the machine.
_ARGUMENTS = {
    "apiServer": {"max-requests-inflight": "3000", "max-mutating-requests-inflight": "1000"},
    "controllerManager": {
        "kube-api-qps": "2000",
        "kube-api-burst": "4000",
        # kind's network has 256 shares to give, and would make a route to each node that has one: see `kind_nodes`
        "allocate-node-cidrs": "false",
        # kind's own, which a patch of a list would take away
        "enable-hostpath-provisioner": "true",
    },
    "scheduler": {"kube-api-qps": "2000", "kube-api-burst": "4000"},
    "etcd": {"unsafe-no-fsync": "true", "quota-backend-bytes": "8589934592"},
}


def cluster(version: str = KUBERNETES[0]) -> dict[str, Any]:
    """The kind configuration of a cluster of the minor version of that Kubernetes version."""
    name, value = REAL
    node = {"role": "control-plane", "image": image(version), "labels": {name: value}}
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "nodes": [node],
        # kind applies the patch whose version is that of the kubeadm configuration it writes, which goes by its own
        # version and by that of Kubernetes
        "kubeadmConfigPatches": [_patch("v1beta3", as_list=False), _patch("v1beta4", as_list=True)],
    }


def image(version: str = KUBERNETES[0]) -> str:
    """The node image of the minor version of a Kubernetes version, by its digest: a tag can be written again."""
    if (found := KIND_NODES.get(minor(version))) is None:
        raise ClusterError(
            f"kind {KIND} has no node image of Kubernetes {minor(version)}",
            cure=f"take one of {', '.join(KIND_NODES)}, or `--provider local`, as root on Debian or Ubuntu",
        )
    return found


def minor(version: str) -> str:
    """The minor version of a Kubernetes version, such as 1.37."""
    return ".".join(version.split(".")[:2])


def version_of(image_name: str) -> str | None:
    """The Kubernetes version that a node image is named after."""
    found = re.search(r":v(\d+\.\d+\.\d+)", image_name)
    return found[1] if found else None


def _patch(version: str, *, as_list: bool) -> str:
    def arguments(of: str) -> dict[str, Any]:
        mapping = _ARGUMENTS[of]
        return {
            "extraArgs": [{"name": name, "value": value} for name, value in mapping.items()]
            if as_list
            else dict(mapping)
        }

    document = {"apiVersion": f"kubeadm.k8s.io/{version}", "kind": "ClusterConfiguration"}
    parts = {part: arguments(part) for part in ("apiServer", "controllerManager", "scheduler")}
    return yaml.safe_dump({**document, **parts, "etcd": {"local": arguments("etcd")}}, sort_keys=False)
