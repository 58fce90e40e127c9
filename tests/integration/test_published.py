"""Image and chart as a release publishes them, for two platforms, in a registry of this machine."""

import json
import re
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
from testbed import operator_image
from testbed.operator_image import CHECKOUT, LABEL, Image

_LIBRARY = re.compile(r"^opt/fairlead/.*\.so")


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


def test_every_library_is_for_arm64(archives: Mapping[str, Path]) -> None:
    machines = [*_machines_of_libraries(archives["arm64"])]
    assert len(machines) > 20
    assert {*machines} == {183}, "EM_AARCH64"


def _machines_of_libraries(image: Path) -> Iterator[int]:
    with tarfile.open(image) as archive:
        manifest = archive.extractfile("manifest.json")
        assert manifest is not None
        [described] = json.load(manifest)
        for layer in described["Layers"]:
            with tarfile.open(fileobj=archive.extractfile(layer)) as files:
                for member in files:
                    library = files.extractfile(member) if _LIBRARY.search(member.name) and member.isfile() else None
                    if library is not None:
                        yield int.from_bytes(library.read(20)[18:], "little")
