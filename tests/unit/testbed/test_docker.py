import os
from pathlib import Path

import pytest

from testbed import docker
from testbed.errors import ClusterError


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The script in Docker's place."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")
    script = tmp_path / "docker"
    script.write_text('#!/bin/sh\necho "asked: $*"\n')
    script.chmod(0o755)
    return script


def test_what_is_asked_reaches_docker_and_its_answer_comes_back(fake: Path) -> None:
    assert docker.ask("ps", "--all").stdout == docker.must("ps", "--all") == "asked: ps --all\n"


def test_a_call_that_must_succeed_says_what_docker_said(fake: Path) -> None:
    fake.write_text("#!/bin/sh\necho no space left >&2\nexit 1\n")
    assert docker.ask("load").returncode == 1
    with pytest.raises(ClusterError, match="docker load: no space left"):
        docker.must("load", "--input", "image.tar")


def test_without_docker_there_is_a_way_around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterError, match=r"(?s)there is no docker command.*--provider local"):
        docker.must("ps")


_SAID = {
    "the last line": ("docker: Error response from daemon:\nunable to apply caps\n\n", "unable to apply caps"),
    "the error that is named": ("ERROR: no node\nStack Trace:\nmain.go:1\n", "ERROR: no node"),
    "nothing": ("", "exit status 1"),
}


@pytest.mark.parametrize(("said", "wanted"), _SAID.values(), ids=_SAID)
def test_the_line_to_show_is_the_one_that_names_the_error(said: str, wanted: str, fake: Path) -> None:
    (fake.parent / "said").write_text(said)
    fake.write_text('#!/bin/sh\ncat "${0%docker}said" >&2\nexit 1\n')
    assert docker.last(docker.ask("run")) == wanted
