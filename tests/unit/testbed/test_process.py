import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from testbed import process
from testbed.api import wait_for
from testbed.errors import ClusterError
from testbed.process import Component

_SLEEPER = Component("sleeper", ["sleep", "600"])
# what it starts inherits its mark, and outlives it
_PARENT = Component("parent", ["bash", "-c", "sleep 600; true"])


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    yield folder
    process.kill_all(folder)


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """The same program, without our mark."""
    with subprocess.Popen(["sleep", "600"], cwd=tmp_path) as one:
        yield one
        one.kill()


def _running(cluster: Path, name: str) -> psutil.Process:
    return wait_for(name, lambda: process.find(cluster, name), every_s=0.01)


def test_what_is_started_outlives_its_starter_and_is_found_by_its_name(cluster: Path) -> None:
    process.start(cluster, _SLEEPER)
    found = _running(cluster, "sleeper")
    assert found.cmdline() == ["sleep", "600"]
    assert found.ppid() != os.getpid()
    assert [*process.running(cluster)] == ["sleeper"]


def test_another_clusters_process_is_not_found(cluster: Path, tmp_path: Path) -> None:
    other = tmp_path / "cluster-2"
    other.mkdir()
    process.start(other, _SLEEPER)
    try:
        _running(other, "sleeper")
        assert process.all_of(cluster) == []
        process.kill_all(cluster)
        assert process.find(other, "sleeper")
    finally:
        process.kill_all(other)


def test_a_program_is_told_apart_from_what_it_started(cluster: Path) -> None:
    process.start(cluster, _PARENT)
    found = _running(cluster, "parent")
    wait_for("the child", lambda: "sleep" in [one.name() for one in process.all_of(cluster)], every_s=0.01)
    assert process.find(cluster, "parent") == found
    process.kill([found])
    assert process.find(cluster, "parent") is None
    assert not process.is_gone(cluster, "parent")


def test_killing_all_of_a_cluster_leaves_strangers_alone(cluster: Path, stranger: "subprocess.Popen[bytes]") -> None:
    process.start(cluster, _SLEEPER)
    process.start(cluster, _PARENT)
    wait_for("all three", lambda: len(process.all_of(cluster)) == 3, every_s=0.01)
    process.kill_all(cluster)
    assert process.all_of(cluster) == []
    assert process.is_gone(cluster, "parent")
    assert stranger.poll() is None


def test_killing_what_has_ended_is_no_error(cluster: Path) -> None:
    process.start(cluster, _SLEEPER)
    found = _running(cluster, "sleeper")
    process.kill([found])
    process.kill([found])


def test_what_nobody_reaps_is_not_waited_for(cluster: Path, stranger: "subprocess.Popen[bytes]") -> None:
    process.kill([psutil.Process(stranger.pid)])
    assert psutil.Process(stranger.pid).status() == psutil.STATUS_ZOMBIE  # until we, its parent, ask for it


def test_the_environment_of_the_shell_does_not_reach_it(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/mine")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    process.start(cluster, Component("sleeper", ["sleep", "600"], {"ADDED": "yes"}))
    environment = _running(cluster, "sleeper").environ()
    assert environment["ADDED"] == "yes"
    assert environment["HOME"] == str(cluster)
    assert not {"KUBECONFIG", "HTTPS_PROXY"} & environment.keys()


def test_what_it_writes_is_added_to_its_log(cluster: Path) -> None:
    talker = Component("talker", ["sh", "-c", "echo out; echo err >&2"])
    log = process.log_of(cluster, "talker")
    for lines in (2, 4):
        process.start(cluster, talker)
        wait_for("what it says", lambda lines=lines: len(log.read_text().splitlines()) == lines, every_s=0.01)  # type: ignore[misc]
    assert log.read_text().splitlines() == ["out", "err"] * 2


def test_a_command_that_cannot_enter_is_an_error_with_its_log(cluster: Path) -> None:
    with pytest.raises(ClusterError, match="sleeper could not be started"):
        process.start(cluster, _SLEEPER, enter=["false"])
