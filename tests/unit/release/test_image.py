"""Which engine builds the image, what it is called with, and what the chart is told."""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from release.image import Made, choose, commands, flags
from release.project import ReleaseError, commit, semver

from release import image, project
from testbed import operator_image

_REFERENCE = "registry.example/team/fairlead:1"
_OWN = operator_image.own_architecture()
_DIGEST = f"sha256:{'0' * 64}"


def _works(*programs: str, without: Sequence[str] = ()) -> str:
    """The engine that is chosen where these programs work."""
    return choose(succeeds=lambda words: words[0] in programs and not any(one in words for one in without))


def test_the_first_engine_that_works_here_builds() -> None:
    assert _works("docker", "podman", "buildah") == "docker"
    assert _works("docker", "podman", without=["buildx"]) == "docker-classic"
    assert _works("docker", "podman", without=["info"]) == "testbed"
    assert _works("podman", "buildah") == "podman"
    assert _works("buildah") == "buildah"
    assert _works() == "testbed"


def test_one_that_cannot_pull_the_base_builds_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert _works("docker", "podman", "buildah", without=["pull", "inspect"]) == "testbed"
    assert "no container engine here has the base or can pull it" in capsys.readouterr().err


@pytest.mark.parametrize("engine", ["docker", "podman", "buildah"])
def test_a_base_that_is_there_is_not_pulled(engine: str) -> None:
    assert _works(engine, without=["pull"]) == engine
    assert _works(engine, without=["inspect"]) == engine


def test_one_that_is_wanted_is_not_tried() -> None:
    assert choose("podman", succeeds=lambda _: False) == "podman"
    with pytest.raises(ReleaseError, match="ENGINE=dokcer is none of docker, docker-classic, podman, buildah, testbed"):
        choose("dokcer")


def test_the_base_is_pulled_by_its_digest() -> None:
    assert image.base().startswith("docker.io/library/python:")
    assert "@sha256:" in image.base()


@pytest.mark.parametrize("push", [False, True])
@pytest.mark.parametrize("engine", ["docker", "docker-classic", "podman", "buildah"])
def test_every_engine_is_told_where_the_image_comes_from(engine: str, push: bool, tmp_path: Path) -> None:
    build, *pushed = commands(engine, _REFERENCE, [_OWN], push=push, told=tmp_path / "told")
    assert f"--build-arg=VERSION={semver()}" in build
    assert f"--build-arg=REVISION={commit()}" in build
    assert any(word.startswith("--build-arg=CREATED=2") and word.endswith("Z") for word in build)
    assert (build[-1], f"--tag={_REFERENCE}" in build) == (".", True)
    pushes = any("push=true" in word for word in build) or bool(pushed)
    assert pushes == push
    if engine != "docker":  # which knows by itself what it builds on
        assert f"--build-arg=BUILDPLATFORM=linux/{_OWN}" in build


@pytest.mark.parametrize("engine", ["podman", "buildah"])
def test_several_platforms_are_one_manifest(engine: str, tmp_path: Path) -> None:
    build, push = commands(engine, _REFERENCE, ["amd64", "arm64"], push=True, told=tmp_path / "told")
    assert "--platform=linux/amd64,linux/arm64" in build
    assert f"--manifest={_REFERENCE}" in build
    assert push[:4] == [engine, "manifest", "push", "--all"]


def test_docker_builds_several_platforms_at_once(tmp_path: Path) -> None:
    [build] = commands("docker", _REFERENCE, ["amd64", "arm64"], push=True, told=tmp_path / "told")
    assert "--platform=linux/amd64,linux/arm64" in build


def test_docker_without_buildx_builds_for_its_own_platform_only(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="install buildx, or set ENGINE=testbed"):
        commands("docker-classic", _REFERENCE, ["amd64", "arm64"], push=True, told=tmp_path / "told")


def test_what_no_engine_can_do_is_said_before_anything_is_built() -> None:
    with pytest.raises(ReleaseError, match="PUSH=REGISTRY/PATH"):
        image.make(engine="docker", platforms=["amd64", "arm64"])
    with pytest.raises(ReleaseError, match="no image can be built for s390x: PLATFORMS may hold amd64, arm64"):
        image.make(engine="docker", platforms=["s390x"])


@pytest.mark.parametrize(
    ("reference", "digest", "settings"),
    [
        ("fairlead:1", "", "registry= repository=fairlead tag=1"),
        ("team/fairlead:1", "", "registry= repository=team/fairlead tag=1"),
        (
            "127.0.0.1:5000/team/fairlead:1",
            _DIGEST,
            f"registry=127.0.0.1:5000 repository=team/fairlead tag=1 digest={_DIGEST}",
        ),
        ("ghcr.io/team/fairlead:1", _DIGEST, f"registry=ghcr.io repository=team/fairlead tag=1 digest={_DIGEST}"),
        ("localhost/fairlead:1", "", "registry=localhost repository=fairlead tag=1"),
    ],
)
def test_the_chart_is_told_where_the_image_is(reference: str, digest: str, settings: str) -> None:
    assert flags(Made(reference, digest)) == [f"--set image.{one}" for one in settings.split()]


_ENGINE = """#!{python}
import json, sys
with open({calls!r}, "a") as calls:
    calls.write(" ".join(sys.argv[1:]) + chr(10))
if sys.argv[1:3] == ["buildx", "version"]:
    sys.exit({classic})
for word in sys.argv:
    name, _, value = word.partition("=")
    if name == "--metadata-file":
        open(value, "w").write(json.dumps({{"containerimage.digest": {digest!r}}}))
    if name == "--digestfile":
        open(value, "w").write({digest!r})
if sys.argv[1] == "inspect":
    print("elsewhere/fairlead@sha256:1" + chr(10) + "registry.example/team/fairlead@" + {digest!r})
"""


@pytest.mark.parametrize("engine", ["docker", "docker-classic", "podman", "buildah"])
def test_what_is_printed_can_be_pasted(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a program in the engine's place, which says what such a one says."""
    name, _, classic = engine.partition("-")
    calls = tmp_path / "calls"
    program = tmp_path / "bin" / name
    program.parent.mkdir()
    program.write_text(
        _ENGINE.format(python=sys.executable, calls=str(calls), classic=int(bool(classic)), digest=_DIGEST)
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(image, "DIST", tmp_path / "dist")
    monkeypatch.setattr(shutil, "which", lambda one: program if one == name else None)
    image.main(push="registry.example/team/fairlead")
    rest = f"--set image.tag={semver()} --set image.digest={_DIGEST}"
    assert capsys.readouterr().out.splitlines() == [
        f"reference: registry.example/team/fairlead:{semver()}",
        f"digest:    {_DIGEST}",
        f"chart:     --set image.registry=registry.example --set image.repository=team/fairlead {rest}",
    ]
    assert (tmp_path / "dist" / "image-reference").read_text() == f"registry.example/team/fairlead@{_DIGEST}\n"
    assert any("build" in call.split()[:2] for call in calls.read_text().splitlines())


def test_docker_without_buildx_is_told_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "docker"
    program.write_text('#!/bin/sh\n[ "$1" != buildx ]\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(ReleaseError, match="has no buildx: install it, or set ENGINE=docker-classic"):
        image.make(engine="docker")


def test_a_failure_of_the_engine_names_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "podman"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(ReleaseError, match=r"`podman build .*` failed"):
        image.make(engine="podman")


def test_labels_are_the_arguments_of_the_dockerfile() -> None:
    written = (project.ROOT / "Dockerfile").read_text()
    assert {name for name in ("VERSION", "REVISION", "CREATED") if f"ARG {name}=" in written} == {*image.labels()}
