"""`make demo` without a terminal: it keeps its promises, again on the cluster that it left, and people can go on."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo import measured
from demo.ending import commands, environment, more
from demo.recording import outline
from testbed import providers, sandbox
from testbed.api import wait_for
from testbed.errors import ClusterError
from testbed.providers import Local

_ROOT = Path(__file__).parents[2]


def demo(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "demo", *arguments, "--name", name],
        cwd=_ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=400,
    )


@pytest.fixture(scope="module")
def name(this_run: str) -> Iterator[str]:
    """Of its cluster, which is gone afterwards."""
    made = f"test-demo-{this_run}"
    provider = providers.choose(made, os.environ.get("FAIRLEAD_PROVIDER"))
    if isinstance(provider, Local) and (why := sandbox.obstacle()):
        pytest.skip(f"no real node here: {why}")
    provider.down()
    yield made
    provider.down()


@pytest.mark.cluster
@pytest.mark.parametrize("time", ["first", "again"])
def test_it_keeps_its_promises(name: str, time: str) -> None:
    done = demo(name)
    assert done.returncode == 0, done.stdout
    assert len(re.findall(r"^  ✓ ", done.stdout, re.MULTILINE)) >= 15, done.stdout
    why = measured.obstacle(providers.choose(name))
    told = f"Left out: {why}." if why else "  ✓ the next pod avoids red-1 too, which is still hot"
    assert told in done.stdout.splitlines(), done.stdout
    assert "\x1b" not in done.stdout
    assert environment(name) in done.stdout
    if time == "first" and isinstance(providers.choose(name), Local) and not why:
        kept = (_ROOT / "docs" / "pictures" / "demo.txt").read_text()
        assert outline(done.stdout) == outline(kept), "run `python -m demo --record docs/pictures`"


@pytest.mark.cluster
def test_what_it_leaves_is_well_and_stays_so_however_old_its_nodes_grow(name: str) -> None:
    assert typed(name, "fairlead status").returncode == 0
    if measured.obstacle(providers.choose(name)):
        return

    def are_measured() -> bool:
        (load,) = json.loads(typed(name, "kubectl get sep cool -o json").stdout)["status"]["data"]
        if {(one["withValue"] == one["nodes"], one["onDefault"]) for one in load["replicas"]} == {(True, 0)}:
            return True
        raise ClusterError(f"a default is for nodes that are new: {load}")

    wait_for("every node to have a value of its own", are_measured, timeout_s=90)


@pytest.mark.cluster
@pytest.mark.parametrize("command", commands())
def test_one_can_go_on_by_hand(name: str, command: str) -> None:
    done = typed(name, command)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) > 1, done.stdout + done.stderr


@pytest.mark.cluster
def test_one_more_pod_goes_where_the_rule_lets_it(name: str) -> None:
    _, create = more()
    wait = 'kubectl wait "$pod" --namespace demo --for=condition=PodScheduled --timeout=60s'
    done = typed(name, f"pod=$({create} --output name)\n{wait}")
    assert done.returncode == 0, done.stdout + done.stderr


def typed(name: str, commands: str) -> subprocess.CompletedProcess[str]:
    bash = ["bash", "-euo", "pipefail", "-c", f"{environment(name)}\n{commands}"]
    return subprocess.run(bash, cwd=_ROOT, capture_output=True, text=True, check=False)
