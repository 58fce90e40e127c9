import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from testbed import images
from testbed.errors import ClusterError

_TAG = "fairlead.dev/spec:1"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "server"
    path.write_bytes(b"\x7fELF" + bytes(14) + (0xB7).to_bytes(2, "little") + b"the rest")
    return path


def _files(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return {member.name: (tar.extractfile(member) or io.BytesIO()).read() for member in tar}


def _config(archive: bytes) -> Any:
    files = _files(archive)
    return json.loads(files[json.loads(files["manifest.json"])[0]["Config"]])


def test_the_same_program_gives_the_same_bytes_whenever_it_was_built(program: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "server"
    other.parent.mkdir()
    other.write_bytes(program.read_bytes())
    assert images.archive(_TAG, program) == images.archive(_TAG, other)
    other.write_bytes(program.read_bytes() + b"!")
    assert images.archive(_TAG, program) != images.archive(_TAG, other)


def test_the_archive_is_what_docker_load_reads(program: Path) -> None:
    files = _files(images.archive(_TAG, program))
    [manifest] = json.loads(files["manifest.json"])
    assert manifest["RepoTags"] == [_TAG]
    assert [*files] == ["manifest.json", manifest["Config"], *manifest["Layers"]]
    assert manifest["Config"] == f"{hashlib.sha256(files[manifest['Config']]).hexdigest()}.json"
    layers = [f"sha256:{hashlib.sha256(files[name]).hexdigest()}" for name in manifest["Layers"]]
    assert json.loads(files[manifest["Config"]])["rootfs"] == {"type": "layers", "diff_ids": layers}


def test_the_layer_holds_the_program_and_may_run_it(program: Path) -> None:
    files = _files(images.archive(_TAG, program))
    with tarfile.open(fileobj=io.BytesIO(files["layer.tar"])) as tar:
        [member] = tar.getmembers()
        assert (member.name, member.mode) == ("server", 0o755)
    assert _files(files["layer.tar"])["server"] == program.read_bytes()


def test_a_program_may_lie_where_it_is_found_by_its_name(program: Path) -> None:
    archive = images.archive(_TAG, program, folder="usr/local/bin")
    assert [*_files(_files(archive)["layer.tar"])] == ["usr/local/bin/server"]
    assert _config(archive)["config"]["Entrypoint"] == ["/usr/local/bin/server"]


def test_the_image_runs_the_program_with_what_it_is_given(program: Path) -> None:
    plain = _config(images.archive(_TAG, program))
    assert plain["config"] == {"Entrypoint": ["/server"], "Cmd": None, "WorkingDir": "/"}
    given = _config(images.archive(_TAG, program, entrypoint=["/server", "-v"], command=["pause"]))
    assert (given["config"]["Entrypoint"], given["config"]["Cmd"]) == (["/server", "-v"], ["pause"])


def test_a_program_of_kubernetes_is_run_by_a_command_only(program: Path) -> None:
    whole = images.of_kubernetes(_TAG, program)
    assert [*_files(_files(whole)["layer.tar"])] == ["usr/local/bin/server"]
    assert _config(whole)["config"]["Entrypoint"] == ["/go-runner"]


def test_the_architecture_is_the_programs(program: Path) -> None:
    assert _config(images.archive(_TAG, program))["architecture"] == "arm64"


_NOT_FOR_LINUX = {
    "Mach-O, of a Mac": b"\xcf\xfa\xed\xfe\x0c\x00\x00\x01" + b"\x00" * 10 + b"\x3e\x00",
    "another processor": b"\x7fELF" + b"\x00" * 14 + b"\xf3\x00",
    "empty": b"",
}


@pytest.mark.parametrize("content", _NOT_FOR_LINUX.values(), ids=_NOT_FOR_LINUX)
def test_what_linux_cannot_run_gets_no_image(content: bytes, tmp_path: Path) -> None:
    program = tmp_path / "server"
    program.write_bytes(content)
    with pytest.raises(ClusterError, match="is no program for Linux on amd64 or arm64"):
        images.archive(_TAG, program)
