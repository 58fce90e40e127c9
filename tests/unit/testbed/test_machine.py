"""Reasons why Docker cannot start a node of kind, by a command in Docker's place."""

import dataclasses
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed import build, machine
from testbed.versions import Program

_ELF = b"\x7fELF" + b"\x00" * 14
_PROCESSORS = {"linux/amd64": b"\x3e\x00", "linux/arm64": b"\xb7\x00"}


@dataclass(slots=True)
class Engine:
    """A Docker engine that answers as the files of its folder say."""

    folder: Path

    def answers(self, **answers: str) -> None:
        for command, answer in answers.items():
            (self.folder / command).write_text(answer)

    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    for function in (machine.docker_obstacle, machine.engine_platform):
        function.cache_clear()
    fake = tmp_path / "docker"
    fake.write_text(
        f'#!/bin/sh\ncd {tmp_path}\necho "$*" >> calls\n'
        'if [ -e "$1-fails" ]; then cat "$1-fails" >&2; exit 1; fi\ncat "$1" 2>/dev/null || true\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(build, "build", lambda programs: {"pod": _built(tmp_path, *programs)})
    engine = Engine(tmp_path)
    engine.answers(version="linux/arm64\n", info="2\n")
    yield engine
    for function in (machine.docker_obstacle, machine.engine_platform):
        function.cache_clear()


def _built(folder: Path, program: Program) -> Path:
    """What the go command would build: on a Mac, without a platform, a program of the Mac."""
    built = folder / "pod"
    built.write_bytes(_ELF + _PROCESSORS[program.platform] if program.platform else b"\xcf\xfa\xed\xfe")
    return built


def test_the_probe_is_built_for_the_engine_not_for_the_machine(engine: Engine) -> None:
    assert machine.docker_obstacle() == ""
    probe = f"fairlead.dev/testbed/probe:{os.getpid()}"
    assert engine.calls()[-2:] == [
        f"run --rm --privileged --network=none --platform=linux/arm64 {probe} exit 0",
        f"image rm {probe}",
    ]
    assert machine.engine_platform() == "linux/arm64"


_OBSTACLES = {
    "no engine": (
        {"version-fails": "Cannot connect to the Docker daemon\n"},
        "no Docker engine answers: Cannot connect to the Docker daemon",
    ),
    "cgroup v1": (
        {"info": "1\n"},
        "Docker has cgroup v1 here, and the kubelet of Kubernetes 1.35 and newer needs cgroup v2",
    ),
    "no privileged containers": (
        {"run-fails": "docker: Error response from daemon:\nunable to apply caps\n"},
        "Docker cannot start a privileged container: unable to apply caps",
    ),
}


@pytest.mark.parametrize(("answers", "obstacle"), _OBSTACLES.values(), ids=_OBSTACLES)
def test_an_obstacle_is_named(answers: dict[str, str], obstacle: str, engine: Engine) -> None:
    engine.answers(**answers)
    assert machine.docker_obstacle() == obstacle


def test_no_docker_is_an_obstacle(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(engine.folder / "nowhere"))
    assert machine.docker_obstacle() == "there is no docker command"


def test_a_program_that_the_engine_cannot_run_is_an_obstacle(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        build, "build", lambda programs: {"pod": _built(engine.folder, dataclasses.replace(*programs, platform=""))}
    )
    assert machine.docker_obstacle() == f"{engine.folder}/pod is no program for Linux on amd64 or arm64"
