"""The commit that an upgrade is tested from."""

import subprocess
from pathlib import Path

import pytest

from support.chart.earlier import begin_of_upgrade


class _Repository:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "--quiet")

    def git(self, *arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgSign=false")
        subprocess.run(["git", *who, *arguments], cwd=self.folder, check=True, capture_output=True)

    def commit(self, *tags: str) -> None:
        self.git("commit", "--quiet", "--allow-empty", "--message=a")
        for tag in tags:
            self.git("tag", tag)


@pytest.fixture
def repository(tmp_path: Path) -> _Repository:
    return _Repository(tmp_path)


_NO_TAG = ("HEAD~1", "the commit before, because there is no tag yet")


def test_before_the_first_tag_it_is_the_commit_before_and_says_so(repository: _Repository) -> None:
    repository.commit()
    repository.commit()
    assert begin_of_upgrade(repository.folder) == _NO_TAG


def test_the_first_release_itself_has_no_tag_before_it(repository: _Repository) -> None:
    repository.commit()
    repository.commit("v0.1.0")
    assert begin_of_upgrade(repository.folder) == _NO_TAG


def test_from_the_first_tag_on_it_is_the_last_one(repository: _Repository) -> None:
    repository.commit("v0.1.0")
    repository.commit("v0.2.0-rc.1", "some-other-tag")
    repository.commit()
    assert begin_of_upgrade(repository.folder) == ("v0.2.0-rc.1", "v0.2.0-rc.1")


def test_a_release_is_upgraded_to_from_the_one_before(repository: _Repository) -> None:
    repository.commit("v0.1.0")
    repository.commit("v0.2.0")
    assert begin_of_upgrade(repository.folder) == ("v0.1.0", "v0.1.0")


def test_where_there_is_no_history_there_is_nothing_to_begin_with(repository: _Repository, tmp_path: Path) -> None:
    repository.commit("v0.1.0")
    assert begin_of_upgrade(repository.folder) == ("", "")
    outside = tmp_path / "unpacked"
    outside.mkdir()
    assert begin_of_upgrade(outside) == ("", "")
