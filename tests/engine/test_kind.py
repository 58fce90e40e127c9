"""The life of a cluster of kind, called as a person calls it, on an engine that can pull nothing.

Each test begins with `up`, which goes on from what the one before has left.
"""

import re
import sys
from collections.abc import Iterator

import pytest

from support.engine.docker_engine import DockerEngine
from testbed import cache, process
from testbed.fixtures import LOGS
from testbed.layout import folder_of
from testbed.providers import kind_config

_NAME = "test-engine"
_NODE = f"{_NAME}-control-plane"
_TESTBED = (sys.executable, "-m", "testbed", "--name", _NAME)
_IN_A_SHELL = f'eval "$({" ".join(_TESTBED)} env)" && exec "$@"'
_MEASURED = "  ✓ the next pod avoids red-1 too, which is still hot"


@pytest.fixture(scope="module", autouse=True)
def _gone(engine: DockerEngine, request: pytest.FixtureRequest) -> Iterator[None]:
    engine.must(*_TESTBED, "down")
    yield
    if request.session.testsfailed:
        cache.write(request.config.rootpath / LOGS / f"{_NAME}.log", engine.call(*_TESTBED, "logs").stdout)
    engine.must(*_TESTBED, "down")


def _demo(engine: DockerEngine) -> None:
    told = engine.must(sys.executable, "-m", "demo", "--name", _NAME)
    assert len(re.findall(r"^  ✓ ", told, re.MULTILINE)) >= 15, told
    assert _MEASURED in told.splitlines(), told


def _wait_for_pods(engine: DockerEngine) -> None:
    for workload in ("daemonset/kindnet", "daemonset/kube-proxy", "deployment/coredns"):
        wait = ["kubectl", "rollout", "status", workload, "--namespace=kube-system", "--timeout=180s"]
        engine.must("sh", "-c", _IN_A_SHELL, "sh", *wait)


def test_kind_is_chosen_by_itself_with_the_published_node(engine: DockerEngine) -> None:
    assert "provider: kind\n" in engine.must(*_TESTBED, "up")
    status = engine.must(*_TESTBED, "status")
    assert re.search(rf"^{_NODE} +running ", status, re.MULTILINE), status
    assert engine.must("docker", "inspect", "--format={{.Config.Image}}", _NODE) == f"{kind_config.image()}\n"
    _wait_for_pods(engine)
    logs = engine.must(*_TESTBED, "logs")
    assert f"{_NODE}/kubelet | " in logs
    assert "kind-export-logs | " not in logs


@pytest.mark.parametrize("_time", ["first", "again"])
def test_the_demo_keeps_its_promises_with_measured_load(_time: str, engine: DockerEngine) -> None:
    _demo(engine)


def test_a_node_that_was_stopped_is_well_after_up(engine: DockerEngine) -> None:
    engine.must(*_TESTBED, "up")
    engine.must("docker", "stop", _NODE)
    status = engine.call(*_TESTBED, "status")
    assert (status.returncode, f"{_NODE}  exited" in status.stdout) == (1, True), status.stdout
    assert f"starting {_NODE}\n" in engine.must(*_TESTBED, "up")
    engine.must(*_TESTBED, "status")
    _wait_for_pods(engine)


def test_the_demo_goes_on_after_a_restart_of_the_engine(engine: DockerEngine) -> None:
    engine.must(*_TESTBED, "up")
    engine.stop()
    engine.start()
    up = engine.must(*_TESTBED, "up")
    assert "is made anew" not in up
    _demo(engine)


def test_down_leaves_nothing_but_images(engine: DockerEngine) -> None:
    engine.must(*_TESTBED, "up")
    engine.must(*_TESTBED, "down")
    assert engine.must("docker", "ps", "--all", "--quiet") == ""
    assert engine.must("docker", "volume", "ls", "--quiet") == ""
    assert process.all_of(folder_of(_NAME)) == []
    assert not folder_of(_NAME).exists()
