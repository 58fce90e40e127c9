"""kwok: the controller that plays the kubelet of nodes that are only objects.

It runs on this machine for every provider, as it needs nothing but the API server. A new kwok is not the one that
holds the leases of the nodes, and would wait until they run out. So what it holds is taken from it when it ends.
"""

import contextlib
import datetime as dt
import hashlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from testbed import build, cache, process
from testbed.api import Api, Object
from testbed.process import Component
from testbed.supervisor import Supervisor
from testbed.versions import program

LABEL = ("fairlead.dev/testbed", "kwok")
SELECTOR = "=".join(LABEL)
NOT_READY, WAITING, RUNS_FOR, FAILS_AFTER = (
    f"fairlead.dev/testbed-{what}" for what in ("not-ready", "waiting", "runs-for", "fails-after")
)
STAGES = Path(__file__).parent / "manifests" / "kwok.yaml"
# Of the range that neither Services, nor pods of the real node, nor the nodes themselves have theirs from.
_PODS = "10.128.0.0/10"
_NAME = "kwok"
_RECORD = "kwok.started"
# A lease is renewed after a quarter of this: seldom enough for thousands of nodes on a small machine, and well before
# the 40 seconds after which the strictest node-lifecycle controller takes a node for lost.
_LEASE_S = 80
_STALE = dt.timedelta(seconds=_LEASE_S // 4 + 10)
_TAKEN_OVER_WITHIN_S = 60.0
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_PARALLEL = 16


def component(executable: Path, kubeconfig: Path) -> Component:
    """The command. It leaves every node alone that does not carry our label."""
    return Component(
        _NAME,
        [
            str(executable),
            f"--kubeconfig={kubeconfig}",
            f"--config={STAGES}",
            f"--manage-nodes-with-label-selector={SELECTOR}",
            f"--node-lease-duration-seconds={_LEASE_S}",
            f"--cidr={_PODS}",
            "-v=WARN",  # else a line for each lease renewed
        ],
    )


def start(folder: Path, kubeconfig: Path) -> None:
    """See that kwok tends every node of ours that there is. Hold `locked` meanwhile."""
    executable = build.build([program(_NAME)])[_NAME]
    told = hashlib.sha256(b"\0".join([bytes(executable), kubeconfig.read_bytes(), STAGES.read_bytes()])).hexdigest()
    record = folder / _RECORD
    with contextlib.closing(Api(kubeconfig)) as api:
        is_same = is_wanted(folder) and record.read_text() == told
        found = process.find(folder, _NAME)
        if not (is_same and found and process.state(found) == "running" and tends_all(api)):
            end(folder)
            forget_leases(api, _names(api))
            cache.write(record, told)
        Supervisor(folder, list).ensure(
            component(executable, kubeconfig), lambda: tends_all(api), within_s=_TAKEN_OVER_WITHIN_S
        )


def end(folder: Path) -> None:
    """End kwok; what it was wanted for is still wanted."""
    process.kill(found for found in [process.find(folder, _NAME)] if found)


def stop(folder: Path) -> None:
    """End kwok for good. Hold `locked` meanwhile."""
    (folder / _RECORD).unlink(missing_ok=True)
    end(folder)


def heal(folder: Path, kubeconfig: Path) -> None:
    """Bring kwok back where the cluster has kwok nodes."""
    with locked(folder):
        if is_wanted(folder):
            start(folder, kubeconfig)


def is_wanted(folder: Path) -> bool:
    """Tell whether kwok was started for this cluster and not stopped since."""
    return (folder / _RECORD).exists()


def locked(folder: Path) -> contextlib.AbstractContextManager[bool]:
    """Keep everybody else from working on the kwok nodes of this cluster."""
    return cache.locked(f"kwok-{folder.name}", doing=f"working on the kwok nodes of {folder.name}")


def forget_leases(api: Api, names: Iterable[str]) -> None:
    """Take away the leases of nodes."""
    with ThreadPoolExecutor(_PARALLEL) as pool:
        for _ in pool.map(lambda name: api.delete(f"{_LEASES}/{name}"), names):
            pass


def tends_all(api: Api) -> bool:
    """Tell whether no node of ours is without a fresh lease."""
    now = dt.datetime.now(dt.UTC)
    fresh = {str(lease["metadata"]["name"]) for lease in api.items(_LEASES) if _is_fresh(lease, now)}
    return fresh.issuperset(_names(api))


def _is_fresh(lease: Object, now: dt.datetime) -> bool:
    renewed = lease["spec"].get("renewTime")
    return bool(renewed) and now - dt.datetime.fromisoformat(renewed) < _STALE


def _names(api: Api) -> list[str]:
    return [str(node["metadata"]["name"]) for node in api.items("/api/v1/nodes", labelSelector=SELECTOR)]
