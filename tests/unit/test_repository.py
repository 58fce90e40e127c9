"""Promises of the repository that no other tool holds."""

import operator
import re
import tomllib
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_LOCKS = sorted(
    path.relative_to(_ROOT).as_posix() for path in [*_ROOT.glob("*.lock"), *_ROOT.glob("testbed/go/*.lock")]
)


def test_operator_is_a_source_root_and_never_a_package() -> None:
    assert not (_ROOT / "operator" / "__init__.py").exists(), (
        "an operator/__init__.py hides the standard library's operator"
    )
    assert operator.eq(1, 1)


def test_the_lock_files_are_there() -> None:
    assert {"requirements.lock", "requirements-build.lock", "requirements-dev.lock"} <= {*_LOCKS}


@pytest.mark.parametrize("lock", _LOCKS)
def test_a_lock_file_has_hashes_and_no_addresses(lock: str) -> None:
    text = (_ROOT / lock).read_text()
    requirements = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert requirements
    assert [one.splitlines()[0] for one in requirements if "--hash=sha256:" not in one] == []
    assert re.findall(r"https?://|--index-url|--extra-index-url|--find-links| @ ", text) == []


def test_everything_that_pyproject_names_is_locked() -> None:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())
    runs, groups = project["project"]["dependencies"], project["dependency-groups"]
    assert groups["dev"][0] == {"include-group": "build"}
    for lock, wanted in {
        "requirements.lock": runs,
        "requirements-build.lock": groups["build"],
        "requirements-audit.lock": groups["audit"],
        "requirements-bundle.lock": groups["bundle"],
        "requirements-dev.lock": [*runs, *groups["build"], *groups["dev"][1:]],
    }.items():
        locked = set(re.findall(r"^([a-z0-9._-]+)==", (_ROOT / lock).read_text(), flags=re.MULTILINE))
        assert {re.split(r"[^a-z0-9._-]", one)[0] for one in wanted} - locked == set(), "run `make lock`"


def test_the_makefile_explains_itself() -> None:
    text = (_ROOT / "Makefile").read_text()
    targets = re.findall(r"^([a-z-]+):(?!=)(.*)$", text, flags=re.MULTILINE)
    assert len(targets) <= 42, "what belongs together is one target with an argument"
    assert [name for name, rest in targets if "## " not in rest] == []
    assert set(re.findall(r"\.PHONY: (.*)", text)[0].split()) == {name for name, _ in targets}


def test_ci_runs_the_test_command_and_nothing_else() -> None:
    lines = [line for line in (_ROOT / ".ci" / "run").read_text().splitlines() if line and not line.startswith("#")]
    assert lines == ["set -euo pipefail", 'cd "$(dirname "$0")/.."', "exec make test"]
