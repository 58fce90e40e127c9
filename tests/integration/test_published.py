"""Image and chart as a release publishes them, for two platforms, in a registry of this machine."""

import hashlib
import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from release.project import semver
from release.publish import Published

from release import chart, image, publish, registry, sbom
from testbed import operator_image, packages
from testbed.operator_image import CHECKOUT, LABEL, Image

_EMULATOR = packages.Need("programs of arm64", {"qemu-aarch64-static": "qemu-user-static"})


@pytest.fixture(scope="module")
def labels() -> Mapping[str, str]:
    return image.labels()


@pytest.fixture(scope="module")
def archives(built_image: Image, labels: Mapping[str, str]) -> Mapping[str, Path]:
    """What was built for each platform, by architecture."""
    labelled = operator_image.build(architecture="arm64", labels=labels)
    return {"amd64": built_image.archive, "arm64": labelled.archive}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with registry.serve(tmp_path_factory.mktemp("registry")) as served:
        yield served


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return chart.package(tmp_path_factory.mktemp("chart"))


@pytest.fixture(scope="module")
def published(archives: Mapping[str, Path], package: Path, address: str) -> Published:
    return publish.publish(archives, package, f"{address}/fairlead-dev", plain_http=True)


def _crane(*words: str) -> str:
    return subprocess.run(
        [registry.crane(), words[0], "--insecure", *words[1:]], capture_output=True, text=True, check=True
    ).stdout


def _helm(*words: str) -> str:
    return subprocess.run([chart.helm(), *words], capture_output=True, text=True, check=True).stdout


def test_one_reference_has_both_platforms(published: Published) -> None:
    name = f"{published.image.rpartition(':')[0]}@{published.image_digest}"
    index: dict[str, Any] = json.loads(_crane("manifest", name))
    assert [one["platform"]["architecture"] for one in index["manifests"]] == ["amd64", "arm64"]
    for one in index["manifests"]:
        config = json.loads(_crane("config", f"{name.partition('@')[0]}@{one['digest']}"))
        assert (config["os"], config["architecture"]) == ("linux", one["platform"]["architecture"])
        assert config["config"]["Entrypoint"] == ["fairlead"]


def test_the_chart_is_taken_by_its_digest_and_names_the_image_by_its_own(published: Published) -> None:
    reference = f"{published.chart}@{published.chart_digest}"
    shown = yaml.safe_load(_helm("show", "chart", reference, "--plain-http"))
    assert (shown["name"], shown["version"]) == ("fairlead", semver())
    command = published.install_command().split()
    assert command[:4] == ["helm", "install", "fairlead", reference]
    flags = command[command.index("--set") :]
    rendered = yaml.safe_load_all(_helm("template", "fairlead", reference, "--plain-http", *flags))
    [operator] = [one for one in rendered if one and one["kind"] == "Deployment"]
    repository = published.image.rpartition(":")[0]
    named = {container["image"] for container in operator["spec"]["template"]["spec"]["containers"]}
    assert named == {f"{repository}:{semver()}@{published.image_digest}"} or named == {
        f"{repository}@{published.image_digest}"
    }


def test_an_archive_of_several_platforms_holds_what_the_registry_has(published: Published, tmp_path: Path) -> None:
    target = tmp_path / "fairlead.oci.tar"
    assert image.save(published.image, target, plain_http=True) == published.image_digest
    with tarfile.open(target) as archive:
        names = {*archive.getnames()}
        index = archive.extractfile("index.json")
        assert index is not None
        [entry] = json.load(index)["manifests"]
    assert entry["digest"] == published.image_digest
    assert {"oci-layout", f"blobs/sha256/{published.image_digest.partition(':')[2]}"} <= names


def test_two_builds_have_equal_bytes(built_image: Image, tmp_path: Path) -> None:
    """The second in a store that knows no step of the first."""
    again = operator_image.build(again=tmp_path)
    digests = []
    for one in (built_image, again):
        with one.archive.open("rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    assert digests[0] == digests[1]


def test_labels_say_what_it_was_built_from(published: Published, labels: Mapping[str, str]) -> None:
    found = json.loads(_crane("config", "--platform=linux/arm64", published.image))["config"]["Labels"]
    assert {name: found[f"{LABEL}{name.lower()}"] for name in labels} == {**labels}
    assert labels["VERSION"] == semver()
    assert re.fullmatch(r"[0-9a-f]{40}", labels["REVISION"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", labels["CREATED"])


def test_what_it_holds_is_listed(built_image: Image, tmp_path: Path) -> None:
    target = tmp_path / "fairlead.cdx.json"
    sbom.write(built_image.archive, target)
    listed: dict[str, Any] = json.loads(target.read_text())
    assert (listed["bomFormat"], listed["metadata"]["component"]["version"]) == ("CycloneDX", semver())
    found = {one["purl"].partition("?")[0].partition("@")[0] for one in listed["components"]}
    locked = re.findall(r"^([a-z0-9-]+)==", (CHECKOUT / "requirements.lock").read_text(), re.MULTILINE)
    assert {f"pkg:pypi/{name}" for name in locked} <= found
    assert {"pkg:pypi/fairlead", "pkg:deb/debian/libstdc%2B%2B6"} <= found


@pytest.fixture(scope="module")
def foreign(archives: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The files of the arm64 image, with an emulator and the examples among them."""
    packages.ensure(_EMULATOR)
    root = tmp_path_factory.mktemp("arm64")
    with tarfile.open(archives["arm64"]) as archive:
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


def test_every_library_is_for_arm64(foreign: Path) -> None:
    libraries = [path for path in (foreign / "opt/fairlead").rglob("*.so*") if path.is_file()]
    assert len(libraries) > 20
    assert {_machine_of(path) for path in libraries} == {183}, "EM_AARCH64"


def _machine_of(library: Path) -> int:
    with library.open("rb") as file:
        return int.from_bytes(file.read(20)[18:], "little")
