import io
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed import operator_image, rootfs
from testbed.errors import ClusterError

_LISTED = """Debian deb http://mirror/debian bookworm main
Somebody deb http://elsewhere/packages stable main
Ubuntu deb http://mirror/ubuntu noble universe
Debian deb http://mirror/debian bookworm main
 deb http://nowhere unknown main
"""


def test_a_base_is_made_of_packages_of_the_distribution_only() -> None:
    assert (
        rootfs.sources_of(_LISTED)
        == "deb http://mirror/debian bookworm main\ndeb http://mirror/ubuntu noble universe\n"
    )
    assert rootfs.sources_of("") == ""


def _archive(path: Path, *names: str) -> Path:
    with tarfile.open(path, "w") as tar:
        for name in names:
            tar.addfile(tarfile.TarInfo(name), io.BytesIO())
    return path


def test_wheels_are_for_the_python_of_the_base(tmp_path: Path) -> None:
    names = ("./usr/bin/python3", "./usr/lib/python3.9", "./usr/bin/python3.12", "./usr/bin/python3.12-config")
    assert rootfs.python_of(_archive(tmp_path / "base.tar", *names)) == "3.12"
    with pytest.raises(ClusterError, match="holds no Python"):
        rootfs.python_of(_archive(tmp_path / "none.tar", "./usr/bin/perl"))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "operator" / "__pycache__").mkdir(parents=True)
    for name in ("Dockerfile", "requirements.lock", "operator/main.py", "operator/__pycache__/main.pyc", "notes.txt"):
        (tmp_path / name).write_text("one")
    (tmp_path / ".dockerignore").write_text("*\n!requirements.lock\n!operator\n**/__pycache__\n")
    return tmp_path


_CHANGES: dict[str, tuple[Callable[[Path], object], bool]] = {
    "nothing": (lambda _: None, False),
    "a source": (lambda folder: (folder / "operator/main.py").write_text("two"), True),
    "a new source": (lambda folder: (folder / "operator/new.py").write_text(""), True),
    "a source's name": (lambda folder: (folder / "operator/main.py").rename(folder / "operator/other.py"), True),
    "the lock": (lambda folder: (folder / "requirements.lock").write_text("two"), True),
    "the Dockerfile": (lambda folder: (folder / "Dockerfile").write_text("two"), True),
    "what the Dockerfile cannot see": (lambda folder: (folder / "notes.txt").write_text("two"), False),
    "byte code": (lambda folder: (folder / "operator/__pycache__/main.pyc").write_text("two"), False),
}


@pytest.mark.parametrize(("change", "wanted"), _CHANGES.values(), ids=_CHANGES)
def test_what_an_image_is_made_of_is_its_name(checkout: Path, change: Callable[[Path], object], wanted: bool) -> None:
    before = operator_image.digest_of(checkout, ["base"])
    change(checkout)
    assert (operator_image.digest_of(checkout, ["base"]) != before) is wanted


def test_another_base_is_another_image(checkout: Path) -> None:
    assert operator_image.digest_of(checkout, ["base"]) != operator_image.digest_of(checkout, ["other"])


def test_all_that_the_dockerfile_copies_is_in_its_context() -> None:
    lines = (operator_image.CHECKOUT / "Dockerfile").read_text().splitlines()
    copied = {
        name for line in lines if line.startswith("COPY ") and "--from" not in line for name in line.split()[1:-1]
    }
    assert copied == {*operator_image.context_of((operator_image.CHECKOUT / ".dockerignore").read_text())}


def test_nothing_is_run_on_the_platform_that_the_image_is_for() -> None:
    """So that a base without a shell will do, and another architecture needs no emulation."""
    stages = re.split(r"^(?=FROM )", (operator_image.CHECKOUT / "Dockerfile").read_text(), flags=re.MULTILINE)[1:]
    running = [stage.splitlines()[0] for stage in stages if re.search(r"^RUN ", stage, re.MULTILINE)]
    ours = {*re.findall(r"^FROM --platform=\$\{BUILDPLATFORM\} \S+ AS (\w+)$", "".join(stages), re.MULTILINE)}
    for stage in stages:
        ours |= {name for on, name in re.findall(r"^FROM (\w+) AS (\w+)$", stage, re.MULTILINE) if on in ours}
    assert [one for one in running if one.rpartition(" AS ")[2] not in ours] == []
    assert stages[-1].startswith("FROM scratch\n")


def test_both_bases_are_pinned() -> None:
    text = (operator_image.CHECKOUT / "Dockerfile").read_text()
    assert [*re.findall(r"^ARG (BUILDER|RUNTIME)=\S+@sha256:[0-9a-f]{64}$", text, re.MULTILINE)] == [
        "BUILDER",
        "RUNTIME",
    ]


def test_wheels_of_another_platform_are_those_that_the_dockerfile_names() -> None:
    text = (operator_image.CHECKOUT / "Dockerfile").read_text()
    [abis] = re.findall(r"for abi in (.*?); do", text.replace("\\\n", " "), re.DOTALL)
    assert abis.split() == [*operator_image._ABIS]
    assert dict(re.findall(r"^ +(\w+)\|\w+\) machine=(\w+) ;;", text, re.MULTILINE)) == operator_image.MACHINES
