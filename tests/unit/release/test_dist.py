"""What PyPI gets: metadata, the README with links that lead somewhere, and the same bytes from the same commit."""

import email.message
import email.parser
import hashlib
import re
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from release.dist import Packages
from release.project import REPOSITORY, ROOT

from release import dist

_RAW = "https://raw.githubusercontent.com/fairlead-dev/fairlead/main/"
_PAGE = f"{REPOSITORY}/blob/main/"


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    return dist.build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def metadata(packages: Packages) -> email.message.Message:
    with zipfile.ZipFile(packages.wheel) as wheel:
        [name] = [one for one in wheel.namelist() if one.endswith(".dist-info/METADATA")]
        return email.parser.Parser().parsestr(wheel.read(name).decode())


def test_the_metadata_say_what_a_stranger_looks_for(metadata: email.message.Message) -> None:
    classifiers = metadata.get_all("Classifier") or []
    pythons = [one.rpartition(" ")[2] for one in classifiers if re.fullmatch(r".*Python :: 3\.\d+", one)]
    assert pythons == ["3.11", "3.12", "3.13", "3.14"]
    assert any(one.startswith("Development Status :: ") for one in classifiers)
    urls = dict(one.split(", ") for one in metadata.get_all("Project-URL") or [])
    assert {"Homepage", "Documentation", "Source", "Issues", "Changelog", "Security"} == {*urls}
    assert metadata["Author"]
    assert metadata["Keywords"]
    assert metadata["License-Expression"] == "Apache-2.0"


def test_every_link_leads_somewhere_without_the_checkout(metadata: email.message.Message) -> None:
    readme = str(metadata.get_payload())
    links = re.findall(
        r"\]\(([^)\s]+)|\b(?:href|src|srcset)=\"([^\"]+)",
        re.sub(r"^```.*?^```", "", readme, flags=re.MULTILINE | re.DOTALL),
    )
    found = [one or other for one, other in links]
    assert len([one for one in found if one.startswith(_PAGE)]) > 10
    assert [one for one in found if not one.startswith(("https://", "#"))] == []
    for link in found:
        for start in (_RAW, _PAGE):
            path = link.removeprefix(start).partition("#")[0]
            assert not link.startswith(start) or (ROOT / path).exists(), (
                f"the README links to {path}, which is not there"
            )


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("[a](docs/a.md#b)", f"[a]({_PAGE}docs/a.md#b)"),
        ("[a](#b) [c](https://c.example)", "[a](#b) [c](https://c.example)"),
        ("![a picture](docs/a.svg)", f"![a picture]({_RAW}docs/a.svg)"),
        ("[![a](docs/a.svg)](docs/a.md)", f"[![a]({_RAW}docs/a.svg)]({_PAGE}docs/a.md)"),
        ('<img src="docs/a.svg"> <a href="docs/a.md">', f'<img src="{_RAW}docs/a.svg"> <a href="{_PAGE}docs/a.md">'),
        ('<source srcset="https://a.example/a.svg">', '<source srcset="https://a.example/a.svg">'),
    ],
)
def test_relative_links_become_absolute(written: str, shown: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for one in project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        written = re.sub(one["pattern"], one["replacement"], written)
    assert written == shown


def test_the_source_distribution_holds_what_the_wheel_is_made_of(packages: Packages, tmp_path: Path) -> None:
    """It is built again from there alone, to the same bytes, after its folder was touched."""
    with tarfile.open(packages.source) as source:
        source.extractall(tmp_path, filter="data")
    [checkout] = tmp_path.iterdir()
    for path in checkout.rglob("*.py"):
        path.touch()
    again = dist.build(tmp_path / "dist", checkout)
    digests = [hashlib.sha256(one.wheel.read_bytes()).hexdigest() for one in (packages, again)]
    assert digests[0] == digests[1]
    assert any(name.endswith("/_templates/scheduler/pod.yaml") for name in zipfile.ZipFile(again.wheel).namelist())


def test_every_supported_python_of_the_machine_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that says another version, as pyenv's stand-ins do, and one that does not start are none."""
    monkeypatch.setenv("PATH", "")
    for folder, version, code in (
        ("a", "3.12", "exit 127"),
        ("b", "3.12", "echo 3.12"),
        ("b", "3.13", "echo 3.11"),
        ("b", "3.9", "echo 3.9"),
    ):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / f"python{version}").write_text(f"#!/bin/sh\n{code}\n")
        (tmp_path / folder / f"python{version}").chmod(0o755)
    homes = [tmp_path / "a", tmp_path / "b"]
    assert dist.interpreters(homes=homes) == {"3.12": tmp_path / "b" / "python3.12"}


def test_the_supported_pythons_are_those_that_the_metadata_name(metadata: email.message.Message) -> None:
    classifiers = metadata.get_all("Classifier") or []
    assert [one.rpartition(" ")[2] for one in classifiers if re.fullmatch(r".*Python :: 3\.\d+", one)] == [
        *dist.SUPPORTED
    ]


def test_what_is_read_of_others_without_their_promise_has_a_ceiling_and_a_reason() -> None:
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    for package, ceiling in {"cel-expr-python": "0.2", "aiohttp": "3.15", "kopf": "2", "pydantic": "3"}.items():
        [line] = [one for one in lines if one.strip().startswith(f'"{package}>=')]
        assert re.search(rf",<{re.escape(ceiling)}\", # \w+", line), line
