"""A containerd that runs without the plugin that the kubelet needs: the error says why, and `up` starts it again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed import process
from testbed.errors import ClusterError
from testbed.process import Component
from testbed.real_node import serves_cri
from testbed.supervisor import Supervisor

_LISTED = (
    "TYPE                     ID     PLATFORMS      STATUS    \nio.containerd.grpc.v1    cri    linux/amd64    {}    \n"
)
_FAILED = 'level=warning msg="failed to load plugin io.containerd.grpc.v1.cri" error="{}"\n'
_INOTIFY = _FAILED.format("failed to create CRI service: failed to create fsnotify watcher: too many open files")
_STARTING = 'level=info msg="starting containerd" version=1.6.20\n'


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    process.kill_all(tmp_path)


def test_containerd_serves_the_kubelet_when_its_plugin_is_well(tmp_path: Path) -> None:
    assert serves_cri(_LISTED.format("ok"), tmp_path / "none.log")
    assert not serves_cri(_LISTED.splitlines()[0], tmp_path / "none.log")


def test_a_machine_without_inotify_instances_is_named_with_what_to_do(tmp_path: Path) -> None:
    log = tmp_path / "containerd.log"
    log.write_text(_STARTING + _INOTIFY)
    said = "all inotify instances of this machine are used; `sysctl fs.inotify.max_user_instances=1024`"
    with pytest.raises(ClusterError, match=said):
        serves_cri(_LISTED.format("error"), log)


def test_the_cause_of_an_earlier_start_is_not_that_of_this_one(tmp_path: Path) -> None:
    log = tmp_path / "containerd.log"
    log.write_text(_STARTING + _INOTIFY + _STARTING + _FAILED.format("no such file"))
    with pytest.raises(ClusterError, match=r"its CRI plugin did not start$"):
        serves_cri(_LISTED.format("error"), log)


def test_one_that_runs_but_never_will_be_ready_is_started_again(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.supervisor._GRACE_S", 0.2)
    supervisor, component = Supervisor(cluster, list), Component("containerd", ["sleep", "600"])
    supervisor.ensure(component, lambda: True)
    first = process.find(cluster, "containerd")
    assert first is not None

    def is_ready() -> bool:
        if first.is_running():
            raise ClusterError("its CRI plugin did not start")
        return True

    supervisor.ensure(component, is_ready)
    assert process.find(cluster, "containerd") != first
