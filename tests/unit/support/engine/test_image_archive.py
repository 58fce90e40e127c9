import io
import json
import tarfile
from pathlib import Path

import pytest

from support.engine import image_archive
from support.engine.image_archive import Image


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "server"
    path.write_bytes(b"\x7fELF" + bytes(14) + (0x3E).to_bytes(2, "little") + b"the rest")
    return path


@pytest.fixture
def below(tmp_path: Path) -> Path:
    path = tmp_path / "below.tar"
    with tarfile.open(path, "w") as tar:
        tar.addfile(tarfile.TarInfo("lib"))
    return path


def _files(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        return {member.name: (tar.extractfile(member) or io.BytesIO()).read() for member in tar}


def test_the_names_of_all_images_come_first_where_kind_looks(program: Path, below: Path, tmp_path: Path) -> None:
    one = Image("registry.k8s.io/one:v1", program, "usr/bin/server", ["/go-runner"])
    other = Image("docker.io/other:v2", program, "server", below=below)
    image_archive.write(tmp_path / "images.tar", [one, other])
    files = _files(tmp_path / "images.tar")
    assert next(iter(files)) == "repositories"
    assert [*json.loads(files["repositories"])] == ["registry.k8s.io/one", "docker.io/other"]
    manifest = json.loads(files["manifest.json"])
    assert [entry["RepoTags"] for entry in manifest] == [["registry.k8s.io/one:v1"], ["docker.io/other:v2"]]
    configs = [json.loads(files[entry["Config"]]) for entry in manifest]
    assert [config["config"]["Entrypoint"] for config in configs] == [["/go-runner"], ["/server"]]
    for entry, config in zip(manifest, configs, strict=True):
        assert config["rootfs"]["diff_ids"] == [f"sha256:{layer.removesuffix('.tar')}" for layer in entry["Layers"]]


def test_a_layer_that_images_share_is_there_once(program: Path, below: Path, tmp_path: Path) -> None:
    images = [Image(f"one:{number}", program, "server", below=below) for number in (1, 2)]
    image_archive.write(tmp_path / "images.tar", images)
    with tarfile.open(tmp_path / "images.tar") as tar:
        names = tar.getnames()
    assert len([name for name in names if name.endswith(".tar")]) == 2
    assert sorted(names) == sorted({*names})


def test_a_layer_has_scripts_that_run_and_links(program: Path, tmp_path: Path) -> None:
    image = Image("one:1", program, "server", scripts={"bin/waits": "#!/bin/dash\n"}, links={"sbin/iptables": "multi"})
    image_archive.write(tmp_path / "images.tar", [image])
    files = _files(tmp_path / "images.tar")
    (layer,) = (content for name, content in files.items() if name.endswith(".tar"))
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        assert [(one.name, one.linkname, one.mode & 0o100) for one in tar if not one.issym()] == [
            ("server", "", 0o100),
            ("bin/waits", "", 0o100),
        ]
        assert tar.getmember("sbin/iptables").linkname == "multi"
