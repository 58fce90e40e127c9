"""The image of two lines that the guide has its reader build, and the strategy in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.docs.pages import CHECKOUT, Page
from testbed import cache
from testbed.buildah import Buildah, opened
from testbed.operator_image import Image

_TAG = "localhost/with-spread"
_AT = "/policies"
"""Folder of the container that has the reader's files."""


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the reader's files are."""
    folder = tmp_path_factory.mktemp("work")
    folder.chmod(0o755)
    for block in Page(CHECKOUT / "docs/guide/write-a-strategy.md").blocks():
        if block.title:
            (folder / block.title).write_text(block.text)
    return folder


@pytest.fixture(scope="module")
def store(built_image: Image, work: Path) -> Iterator[Buildah]:
    """With the image, on top of the one of this checkout."""
    folder, log = cache.root() / "images", cache.root() / "logs" / "strategy-image.log"
    log.write_text("")
    with cache.locked("image", doing="building an image"), opened(folder / "store", log) as found:
        found.load(built_image.archive)
        _, copies = (work / "Dockerfile").read_text().splitlines()
        (work / "Dockerfile").write_text(f"FROM {built_image.tag}\n{copies}\n")
        found.build(work, _TAG)
        yield found


@pytest.fixture
def base(built_image: Image) -> str:
    """The image without the strategy."""
    return built_image.tag


def fairlead(store: Buildah, tag: str, work: Path, *arguments: str) -> tuple[int, str, str]:
    """Its exit code, and what it prints."""
    done = store.run(tag, "fairlead", *arguments, mounted=work, at=_AT)
    return done.returncode, done.stdout, done.stderr


def test_lint_and_test_know_the_strategy_there(store: Buildah, work: Path) -> None:
    assert fairlead(store, _TAG, work, "lint", f"{_AT}/spread.yaml") == (
        0,
        "1 policy, 0 errors, 0 warnings, 0 notes\n",
        "",
    )
    code, printed, wrong = fairlead(store, _TAG, work, "test", f"{_AT}/spread.test.yaml")
    assert (code, wrong) == (0, ""), printed
    assert "3 cases in 1 suite: 3 passed; 3 of 3 outcomes of rules covered" in printed


def test_the_image_below_does_not(store: Buildah, base: str, work: Path) -> None:
    code, printed, _ = fairlead(store, base, work, "lint", f"{_AT}/spread.yaml")
    assert code == 1
    assert 'spec.filters[0].custom.name: this image has no strategy "spread"; it has none' in printed


def test_the_crd_is_the_same_in_both(store: Buildah, base: str, work: Path) -> None:
    one, other = (fairlead(store, tag, work, "crd") for tag in (_TAG, base))
    assert one[1].startswith("# Made by")
    assert one == other


def test_a_strategy_that_is_wrong_ends_it_with_one_line(store: Buildah, work: Path) -> None:
    (work / "spread.py").rename(work / "right.py")
    (work / "spread.py").write_text("STRATEGY = None\n")
    try:
        store.build(work, f"{_TAG}-wrong")
    finally:
        (work / "right.py").replace(work / "spread.py")
    code, printed, wrong = fairlead(store, f"{_TAG}-wrong", work, "operate")
    assert (code, printed) == (2, "")
    said, *of_buildah = wrong.splitlines()
    assert said == "fairlead operate: /opt/fairlead/strategies/spread.py: STRATEGY must be a Strategy; it is None"
    assert all("exit" in line for line in of_buildah), wrong
