"""Image and chart, signed with a key in a registry of this machine, and verified as a user does."""

import json
import os
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from release import chart, publish, registry


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("signatures")


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with registry.serve(folder / "registry") as served:
        yield served


@pytest.fixture(autouse=True)
def no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COSIGN_PASSWORD", "")


def _run(*words: str | Path, where: Path) -> str:
    done = subprocess.run([*map(str, words)], cwd=where, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _key(folder: Path, name: str) -> Path:
    environment = {**os.environ, "COSIGN_PASSWORD": ""}
    words = [str(publish.cosign()), "generate-key-pair", f"--output-key-prefix={name}"]
    subprocess.run(words, cwd=folder, env=environment, check=True, capture_output=True)
    return folder / f"{name}.key"


@pytest.fixture(scope="module")
def image(address: str, folder: Path) -> str:
    """An index of two platforms, by its digest."""
    name, crane = f"{address}/fairlead-dev/fairlead", registry.crane()
    manifests = []
    for platform in ("amd64", "arm64"):
        (folder / platform).write_text(platform)
        with tarfile.open(folder / f"{platform}.tar", "w") as layer:
            layer.add(folder / platform, platform)
        tag = f"{name}:{platform}"
        _run(
            crane,
            "append",
            "--insecure",
            "--oci-empty-base",
            f"--new_layer={platform}.tar",
            f"--new_tag={tag}",
            where=folder,
        )
        manifests.append(f"--manifest={name}@{_run(crane, 'digest', '--insecure', tag, where=folder)}")
    _run(
        crane, "index", "append", "--insecure", "--docker-empty-base=false", f"--tag={name}:1", *manifests, where=folder
    )
    return f"{name}@{_run(crane, 'digest', '--insecure', f'{name}:1', where=folder)}"


@pytest.fixture(scope="module")
def signed(image: str, address: str, folder: Path) -> Sequence[str]:
    """References of an image and a chart, which `make sign COSIGN_KEY=...` has signed."""
    digest = publish.push_chart(chart.package(folder / "chart"), f"{address}/fairlead-dev", plain_http=True)
    references = {"image": image, "chart": f"{address}/fairlead-dev/charts/fairlead@{digest}"}
    for name, reference in references.items():
        (folder / f"{name}-reference").write_text(f"{reference}\n")
    os.environ["COSIGN_PASSWORD"] = ""
    publish.sign(str(_key(folder, "own")), folder)
    return [*references.values()]


def _verified(reference: str, key: Path) -> "subprocess.CompletedProcess[str]":
    """What a user runs, who has the public key."""
    words = [str(publish.cosign()), "verify", f"--key={key}", "--insecure-ignore-tlog=true", reference]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_image_and_chart_are_verified_with_the_public_key(signed: Sequence[str], folder: Path) -> None:
    assert len(signed) == 2
    for reference in signed:
        done = _verified(reference, folder / "own.pub")
        assert done.returncode == 0, done.stderr
        [claim] = json.loads(done.stdout)
        assert claim["critical"]["image"]["docker-manifest-digest"] == reference.partition("@")[2]


def test_each_platform_of_the_image_is_signed(signed: Sequence[str], folder: Path) -> None:
    name = signed[0].partition("@")[0]
    for platform in ("amd64", "arm64"):
        digest = _run(registry.crane(), "digest", "--insecure", f"{name}:{platform}", where=folder)
        assert _verified(f"{name}@{digest}", folder / "own.pub").returncode == 0


def test_another_key_verifies_nothing(signed: Sequence[str], folder: Path) -> None:
    other = _key(folder, "other").with_suffix(".pub")
    assert [_verified(one, other).returncode != 0 for one in signed] == [True, True]


def test_what_was_not_signed_is_refused(signed: Sequence[str], address: str, folder: Path) -> None:
    name = f"{address}/fairlead-dev/other:1"
    words = ["--insecure", "--oci-empty-base", "--new_layer=amd64.tar", f"--new_tag={name}"]
    _run(registry.crane(), "append", *words, where=folder)
    done = _verified(name, folder / "own.pub")
    assert done.returncode != 0
    assert "no signatures found" in done.stderr
