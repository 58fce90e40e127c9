"""A cluster heals whatever was killed of it, and goes without a trace."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e import machine_state
from testbed import cache, process, sandbox
from testbed.api import Api, wait_for
from testbed.fixtures import raised
from testbed.layout import folder_of
from testbed.node_config import NODE
from testbed.providers import Local

_KEPT = "/api/v1/namespaces/default/configmaps/kept"
_NEW = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def folder(this_run: str) -> Path:
    """Of a cluster of our own, which nobody shares; what a run that was killed may have left of it is gone."""
    name = f"test-kills-{this_run}"
    Local(name).down()
    return folder_of(name)


@pytest.fixture(scope="module")
def before(folder: Path) -> dict[str, list[str]]:
    """The machine before there was anything of the cluster."""
    return machine_state.look(folder)


@pytest.fixture(scope="module")
def local(
    folder: Path, before: dict[str, list[str]], kubernetes_version: str, pytestconfig: pytest.Config
) -> Iterator[Local]:
    """The cluster, with something in it that has to be there after every kill."""
    local = Local(folder.name, kubernetes=kubernetes_version)
    with raised(local, kubernetes_version, pytestconfig) as cluster:
        cluster.api.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "kept"}, "data": {"a": "b"}})
        yield local


def _check_it_is_well(local: Local) -> None:
    assert [part for part in local.status() if not part.is_well] == []
    api = Api(local.kubeconfig())
    assert api.get(_KEPT)["data"] == {"a": "b"}
    if sandbox.is_possible():
        _check_it_runs_pods(api)
    api.close()


def _check_it_runs_pods(api: Api) -> None:
    name = f"new-{os.urandom(3).hex()}"
    api.create(
        _NEW,
        {
            "metadata": {"name": name},
            "spec": {
                "restartPolicy": "Never",
                "nodeSelector": {"kubernetes.io/hostname": NODE},
                "containers": [
                    {"name": "pod", "image": "fairlead.dev/testbed/pod:1", "args": ["resolve", "kubernetes.default"]}
                ],
            },
        },
    )
    ended = wait_for(
        "a new pod to end", lambda: _phase(api, name) if _phase(api, name) in ("Succeeded", "Failed") else None
    )
    assert ended == "Succeeded", api.text(f"{_NEW}/{name}/log")
    api.delete(f"{_NEW}/{name}")


def _phase(api: Api, name: str) -> str:
    return str(api.get(f"{_NEW}/{name}")["status"].get("phase", ""))


def _kill_component(name: str) -> Callable[[Path], None]:
    def kill(folder: Path) -> None:
        found = process.find(folder, name)
        assert found is not None
        process.kill([found])

    return kill


def _freeze(name: str) -> Callable[[Path], None]:
    def freeze(folder: Path) -> None:
        found = process.find(folder, name)
        assert found is not None
        found.suspend()

    return freeze


def _kill_first_process_of_the_node(folder: Path) -> None:
    holder = sandbox.Sandbox(folder).holder()
    assert holder is not None
    process.kill([holder])


def _kill_everything(folder: Path) -> None:
    process.kill_all(folder)


def _kill_everything_and_lose_the_layout(folder: Path) -> None:
    process.kill_all(folder)
    (folder / "pki" / "kubelet.crt").unlink(missing_ok=True)
    (folder / "pki" / "kube-apiserver.key").unlink()


def _lose_the_authority(folder: Path) -> None:
    (folder / "pki" / "ca.crt").unlink()


_CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
_OF_THE_NODE = ("containerd", "kubelet", "kube-proxy") if sandbox.is_possible() else ()
_KILLS: dict[str, Callable[[Path], None]] = {
    **{f"{name} is killed": _kill_component(name) for name in (*_CONTROL_PLANE, *_OF_THE_NODE)},
    **{f"{name} is stopped": _freeze(name) for name in ("kube-apiserver", "kube-scheduler", *_OF_THE_NODE)},
    "the authority is lost while everything runs": _lose_the_authority,
    **(
        {
            "the holder of the namespaces is killed": _kill_component("sandbox"),
            "the first process of the node is killed": _kill_first_process_of_the_node,
        }
        if sandbox.is_possible()
        else {}
    ),
    "everything is killed at once": _kill_everything,
    "everything is killed and keys are lost": _kill_everything_and_lose_the_layout,
}


@pytest.mark.parametrize("kill", _KILLS.values(), ids=_KILLS.keys())
def test_up_heals_after(kill: Callable[[Path], None], local: Local, folder: Path) -> None:
    kill(folder)
    local.up()
    _check_it_is_well(local)


def test_up_changes_nothing_about_a_cluster_that_is_well(local: Local, folder: Path) -> None:
    processes = {name: one.pid for name, one in process.running(folder).items()}
    local.up()
    assert {name: one.pid for name, one in process.running(folder).items()} == processes


def test_a_lock_file_that_somebody_left_holds_nobody_up(local: Local, folder: Path) -> None:
    (cache.root() / "locks" / f"cluster-{folder.name}").write_text("12345")
    local.up()
    _check_it_is_well(local)


_MOMENTS = {
    "as soon as it begins": lambda _: True,
    "when the API server has been started": lambda folder: process.find(folder, "kube-apiserver"),
    **(
        {
            "when its namespaces are being made": lambda folder: process.all_of(folder),
            "when the kubelet has been started": lambda folder: process.find(folder, "kubelet"),
        }
        if sandbox.is_possible()
        else {}
    ),
}


@pytest.mark.parametrize("moment", _MOMENTS.values(), ids=_MOMENTS.keys())
def test_up_can_be_killed_and_called_again(
    moment: Callable[[Path], object],
    this_run: str,
    kubernetes_version: str,
) -> None:
    local = Local(f"test-cut-{this_run}", kubernetes=kubernetes_version)
    folder = folder_of(local.cluster)
    local.down()
    before = machine_state.look(folder)
    command = [
        sys.executable,
        "-m",
        "testbed",
        "--name",
        local.cluster,
        "--provider",
        "local",
        "up",
        "--kubernetes",
        kubernetes_version,
    ]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    with subprocess.Popen(command, env=environment, start_new_session=True, stderr=subprocess.DEVNULL) as up:
        wait_for("the moment", lambda: moment(folder) or up.poll() is not None, every_s=0.005)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(up.pid, signal.SIGKILL)
    try:
        local.up()
        assert [part for part in local.status() if not part.is_well] == []
    finally:
        local.down()
    assert machine_state.look(folder) == before


def test_down_leaves_nothing(local: Local, folder: Path, before: dict[str, list[str]]) -> None:
    if sandbox.is_possible():  # what somebody put there by hand goes as well
        left = folder / "left-over"
        left.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(left)], check=True)
    local.down()
    assert machine_state.look(folder) == before
    assert local.status() == []
