"""An API server of a local cluster that starts again, with Kubernetes' own groups or without them."""

import dataclasses

from testbed import build, layout, process
from testbed import control_plane as parts
from testbed.api import Api
from testbed.fixtures import Cluster
from testbed.supervisor import Supervisor
from testbed.versions import program


def start_api(cluster: Cluster, *, with_groups: bool) -> None:
    """Start the API server of a cluster again, with or without groups."""
    known = layout.load(cluster.provider.cluster)
    assert known is not None
    at = dataclasses.replace(known, gates=with_groups)
    process.kill(one for one in [process.find(cluster.folder, "kube-apiserver")] if one)
    component = parts.apiserver(at, build.build([program("kube-apiserver", at.kubernetes)]), parts.make_keys(at))
    api = Api(at.kubeconfig)
    Supervisor(cluster.folder, list).ensure(component, lambda: api.text("/readyz") == "ok", within_s=60)
    api.close()
