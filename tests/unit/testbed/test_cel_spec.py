import json
from pathlib import Path

import pytest

from testbed import cel_spec, toolchain
from testbed.errors import ClusterError

CASES = "tests/simple/testdata/basic.textproto"


@pytest.fixture
def module(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module, which a command in the place of Go's says it has downloaded."""
    found = tmp_path / "module"
    for name in (CASES, "value.pb.go", "go.mod"):
        (found / name).parent.mkdir(parents=True, exist_ok=True)
        (found / name).write_text(name)
    _answer(tmp_path, monkeypatch, f"echo '{json.dumps({'Dir': str(found)})}'")
    return found


def _answer(folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    go = folder / "go"
    go.write_text(f"#!/bin/sh\n{answer}\n")
    go.chmod(0o755)
    monkeypatch.setattr(toolchain, "go", lambda: go)


def test_the_cases_and_the_descriptors_are_kept_and_fetched_once(
    module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = cel_spec.folder()
    assert sorted(str(file.relative_to(first)) for file in first.rglob("*.*") if file.is_file()) == [
        CASES,
        "value.pb.go",
    ]
    _answer(tmp_path, monkeypatch, "exit 1")
    assert cel_spec.folder() == first
    assert cel_spec.data() == [first / CASES]


def test_what_cannot_be_fetched_is_told_and_leaves_nothing(
    module: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _answer(tmp_path, monkeypatch, "echo 'SECURITY ERROR: checksum mismatch' >&2; exit 1")
    with pytest.raises(ClusterError, match="checksum mismatch"):
        cel_spec.folder()
    _answer(tmp_path, monkeypatch, f"echo '{json.dumps({'Dir': str(module)})}'")
    assert cel_spec.data()
