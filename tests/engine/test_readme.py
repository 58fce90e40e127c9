"""The README's lines for kind, typed as they stand there, on an engine that can pull nothing."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from support.docs.pages import CHECKOUT, Page
from support.engine.docker_engine import DockerEngine
from testbed import build
from testbed.versions import program

_LINES: Final = next(block.text for block in Page(CHECKOUT / "README.md").blocks() if "kind create" in block.text)
_CLONE: Final = re.compile(r"git clone \S+ && cd fairlead && ")


class Shell:
    """A shell of a person with kind, kubectl and Helm, in the checkout."""

    def __init__(self, engine: DockerEngine, home: Path) -> None:
        built = build.build(map(program, ("kind", "kubectl", "helm"))).values()
        self._engine = engine
        self._exports = f"export HOME={home} PATH={':'.join(str(one.parent) for one in built)}:$PATH"

    def type(self, line: str) -> str:
        """Type a line that is to succeed; what it prints."""
        return self._engine.must("bash", "-euo", "pipefail", "-c", f"{self._exports}\n{line}")


@pytest.fixture
def shell(engine: DockerEngine, tmp_path: Path) -> Iterator[Shell]:
    made = Shell(engine, tmp_path)
    made.type("kind delete cluster")
    yield made
    made.type("kind delete cluster && (docker image rm fairlead:dev || true)")


def test_its_lines_for_kind_place_a_pod_by_a_policy(shell: Shell) -> None:
    create, image, install, policy, pod, label = _LINES.splitlines()
    shell.type(_CLONE.sub("", create))
    assert "reference: fairlead:dev\n" in shell.type(image)
    assert "STATUS: deployed\n" in shell.type(install)
    shell.type(policy)
    assert "0/1 nodes are available: 1 not the memory pool." in shell.type(pod)
    assert re.search(r"^report .* kind-control-plane ", shell.type(label), re.MULTILINE)
