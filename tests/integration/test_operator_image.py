"""What the image holds, read from the archive that a registry would be given."""

import io
import json
import re
import tarfile
from dataclasses import dataclass
from typing import Any

import pytest

from testbed.operator_image import CHECKOUT, LABEL, Image

_OVER_ITS_BASE_MAX = 200 << 20
_OF_THE_PRODUCT_MAX = 12 << 20
_UNCHECKED = b"\x01\0\0\0"
_PACKAGES = "opt/fairlead/lib/python3.*/site-packages/"


@dataclass(frozen=True, slots=True)
class Content:
    """Its configuration, and the files of each layer over its base with their sizes."""

    config: Any
    licences: str
    """Those of others, as the image says them."""
    layers: list[dict[str, int]]
    left: set[str]
    """What is there in the end, base and all."""
    timed: list[str]
    """Byte code that is compared with its source's time, which an image does not keep."""

    def found(self, pattern: str) -> set[str]:
        """What the pattern's group matches in the names of packages' files."""
        whole = re.compile(_PACKAGES + pattern)
        matches = (whole.fullmatch(name) for layer in self.layers for name in layer)
        return {match[1] for match in matches if match}


@pytest.fixture(scope="module")
def content(built_image: Image) -> Content:
    with tarfile.open(built_image.archive) as archive:

        def read(name: str) -> bytes:
            file = archive.extractfile(name)
            assert file is not None
            return file.read()

        timed, left, licences = [], set[str](), list[str]()

        def put(layer: tarfile.TarFile) -> None:
            """As a runtime does: a whiteout takes away what is below it."""
            names = [name.removeprefix("./") for name in layer.getnames()]
            gone = {name.replace(".wh.", "", 1) for name in names if "/.wh." in f"/{name}"}
            left.difference_update([one for one in left if any(one == it or one.startswith(f"{it}/") for it in gone)])
            left.update(name for name in names if "/.wh." not in f"/{name}")

        def files(name: str) -> dict[str, int]:
            with tarfile.open(fileobj=io.BytesIO(read(name))) as layer:
                put(layer)
                found = [member for member in layer if member.isfile()]
                for member in found:
                    file = layer.extractfile(member)
                    if member.name.endswith(".pyc") and file and file.read(8)[4:] != _UNCHECKED:
                        timed.append(member.name)
                    if member.name.endswith("THIRD_PARTY_LICENCES") and file:
                        licences.append(file.read().decode())
                return {member.name: member.size for member in found}

        [manifest] = json.loads(read("manifest.json"))
        with tarfile.open(fileobj=io.BytesIO(read(manifest["Layers"][0]))) as base:
            put(base)
        layers = [*map(files, manifest["Layers"][1:])]
        return Content(json.loads(read(manifest["Config"]))["config"], "".join(licences), layers, left, timed)


def test_it_is_small_and_what_changes_often_is_the_least_of_it(content: Content) -> None:
    sizes = [sum(layer.values()) for layer in content.layers]
    print(f"bytes over its base: {sizes}")  # pytest -rP shows it
    assert sum(sizes) < _OVER_ITS_BASE_MAX
    assert 0 < sizes[-1] < _OF_THE_PRODUCT_MAX


def test_what_is_rendered_is_in_it(content: Content) -> None:
    folder = CHECKOUT / "templates"
    wanted = {file.relative_to(folder).as_posix() for file in folder.rglob("*.yaml")}
    assert content.found(r"fairlead/_templates/(.+)") == wanted


def test_it_holds_what_the_lock_names_and_nothing_else(content: Content) -> None:
    lock = (CHECKOUT / "requirements.lock").read_text()
    wanted = {name.replace("-", "_") for name in re.findall(r"^([a-z0-9-]+)==", lock, re.MULTILINE)}
    assert {name.lower() for name in content.found(r"([^/]+)-[^-/]+\.dist-info/METADATA")} == {*wanted, "fairlead"}


def test_it_holds_the_licences_of_all_that_it_is_made_of(content: Content) -> None:
    lock = (CHECKOUT / "requirements.lock").read_text()
    wanted = {name.replace("_", "-").lower() for name in re.findall(r"^([a-z0-9-]+)==", lock, re.MULTILINE)}
    headings = re.findall(r"^=+\n(\S+) \S+ \((.+)\)\n=+$", content.licences, re.MULTILINE)
    assert {name.replace("_", "-").replace(".", "-").lower() for name, _ in headings} == wanted
    assert [name for name, licence in headings if licence == "see below"] == []
    assert "opt/fairlead/LICENSE" in content.left


def test_it_says_what_it_is_and_where_it_comes_from(content: Content) -> None:
    prefix = LABEL
    labels = {name.removeprefix(prefix) for name in content.config["Labels"] if name.startswith(prefix)}
    assert {"title", "source", "revision", "version", "created", "documentation", "licenses"} <= labels


def test_it_has_an_empty_folder_for_strategies(content: Content) -> None:
    assert {name for name in content.left if name.startswith("opt/fairlead/strategies")} == {"opt/fairlead/strategies"}


def test_it_holds_no_shell_and_no_installer(content: Content) -> None:
    shells = re.compile(r"(usr/)?(local/)?s?bin/((r?ba|da)?sh|pip[0-9.]*)")
    assert [name for name in sorted(content.left) if shells.fullmatch(name)] == []
    assert [name for name in sorted(content.left) if re.search(r"/(pip|ensurepip)/__init__\.py$", name)] == []
    assert [name for name in content.left if name.endswith("bin/python3")], "what is looked at is the file system"


def test_nothing_is_compiled_at_a_start(content: Content) -> None:
    sources = content.found(r"((?:.*/)?[^/]+)\.py")
    compiled = {name.replace("__pycache__/", "") for name in content.found(r"(.*)\.cpython-3\d+\.pyc")}
    # Of these only what a start loads is compiled, which test_in_cluster.py looks at.
    unused = re.compile(r"/kubernetes/(aio/)?client/(api|models)/")
    assert {name for name in sources - compiled if not unused.search(f"/{name}")} == set()
    assert "fairlead/process/standalone" in compiled
    assert content.timed == []


def test_it_runs_as_a_user_of_whom_the_kubelet_knows_that_he_is_not_root(content: Content) -> None:
    assert content.config["User"] == "65532:65532"
    assert content.config["Entrypoint"] == ["fairlead"]
