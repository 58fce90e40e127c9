"""The image of a release: built twice, and tried on arm64, by an emulator."""

import hashlib
import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed import operator_image, packages
from testbed.operator_image import CHECKOUT, Image

_EMULATOR = packages.Need("programs of arm64", {"qemu-aarch64-static": "qemu-user-static"})


def test_two_builds_have_equal_bytes(built_image: Image, tmp_path: Path) -> None:
    """The second in a store that knows no step of the first."""
    again = operator_image.build(again=tmp_path)
    digests = []
    for one in (built_image, again):
        with one.archive.open("rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    assert digests[0] == digests[1]


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The files of the arm64 image, with an emulator and the examples among them."""
    packages.ensure(_EMULATOR)
    root = tmp_path_factory.mktemp("arm64")
    with tarfile.open(operator_image.build(architecture="arm64").archive) as archive:
        manifest = archive.extractfile("manifest.json")
        assert manifest is not None
        [described] = json.load(manifest)
        for layer in described["Layers"]:
            with tarfile.open(fileobj=archive.extractfile(layer)) as files:
                files.extractall(root, filter="tar")
    emulator = shutil.which("qemu-aarch64-static")
    assert emulator is not None
    shutil.copy(emulator, root / "emulator")
    shutil.copytree(CHECKOUT / "examples", root / "examples")
    yield root
    shutil.rmtree(root)


def _there(root: Path, *words: str) -> str:
    """Output of the image's Python, run by the emulator."""
    chroot = shutil.which("chroot", path="/usr/sbin:/usr/bin:/sbin:/bin")
    assert chroot is not None
    command = [chroot, str(root), "/emulator", "/opt/fairlead/bin/python", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, env={"HOME": "/", "PATH": "/opt/fairlead/bin"}, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


_IMPORT_ALL = """
import importlib, pkgutil, platform, fairlead
names = [one.name for one in pkgutil.walk_packages(fairlead.__path__, "fairlead.")]
for name in names:
    if not name.endswith("__main__"):
        importlib.import_module(name)
print(platform.machine(), len(names))
"""


def test_every_module_loads_on_arm64(foreign: Path) -> None:
    machine, count = _there(foreign, "-c", _IMPORT_ALL).split()
    assert machine == "aarch64"
    assert int(count) > 200


def test_the_examples_pass_on_arm64(foreign: Path) -> None:
    printed = _there(foreign, "-m", "fairlead", "test", "/examples")
    assert re.search(r"(\d+) cases in \d+ suites: \1 passed", printed), printed
