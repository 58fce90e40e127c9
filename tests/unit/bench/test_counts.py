"""Counts by callgrind are read, kept and compared as the check of calls promises. Nothing is counted here."""

from pathlib import Path

import pytest

from bench import callgrind, counts
from bench.callgrind import Counts
from bench.counts import PYTHON, REFERENCE, Kept

_FILE = """\
version: 1
desc: Trigger: Client Request: filter, a of 4 calls

events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw
summary: 4000 9 9 9 9 9 40 100 60
"""
_KEPT = Kept({REFERENCE: Counts(1000, 10, 10), "filter": Counts(2000, 100, 200)})


def test_a_file_of_callgrind_holds_what_a_call_took() -> None:
    assert callgrind.read(_FILE) == ("filter, a", Counts(instructions=1000, code_lines=10, data_lines=40))


def test_a_file_without_calls_is_an_error() -> None:
    with pytest.raises(ValueError, match="no counts of calls"):
        callgrind.read("desc: Trigger: Program termination\n")


_CALLS = {
    "as it was": (Counts(2000, 100, 200), 1000, []),
    "within the room": (Counts(2100, 110, 220), 1000, []),
    "fewer of all": (Counts(1, 1, 1), 1000, []),
    "more instructions": (
        Counts(2101, 100, 200),
        1000,
        ["filter: 2,101 instructions, +5.0 %; limit 2,100: exceeded"],
    ),
    "more lines of code and data": (
        Counts(2000, 111, 242),
        1000,
        [
            "filter: 111 code lines, +11.0 %; limit 110: exceeded",
            "filter: 242 data lines, +21.0 %; limit 220: exceeded",
        ],
    ),
    "more, by a build of Python that needs more for all": (Counts(2300, 100, 200), 1100, []),
    "as it was, by a build of Python that needs less for all": (
        Counts(2000, 100, 200),
        900,
        ["filter: 2,000 instructions, +11.1 %; limit 1,890: exceeded"],
    ),
}


@pytest.mark.parametrize(("counted", "reference", "wrong"), _CALLS.values(), ids=_CALLS)
def test_what_a_call_does_more_is_said_with_what_to_do(counted: Counts, reference: int, wrong: list[str]) -> None:
    found = counts.check({REFERENCE: Counts(reference, 99, 99), "filter": counted}, _KEPT)
    assert found == ([*wrong, counts.RAISE] if wrong else [])
    assert "bench.counts --write" in counts.RAISE


def test_calls_that_are_not_kept_are_said() -> None:
    counted = {REFERENCE: Counts(1000, 10, 10), "bind": Counts(1, 1, 1)}
    assert counts.check(counted, _KEPT) == ["kept are reference, filter; counted were reference, bind", counts.RAISE]
    assert counts.check(counted, None) == [f"no counts are kept for Python {PYTHON}", counts.RAISE]


def test_what_is_kept_is_read_again(tmp_path: Path) -> None:
    kept = {"3.9": _KEPT, "3.11": Kept(_KEPT.calls, room=13)}
    counts.write(kept, file := tmp_path / "counts.toml")
    assert counts.read(file) == kept
    assert file.read_text().index('"3.9"') < file.read_text().index('"3.11"')


def test_counts_of_every_python_that_is_supported_are_kept() -> None:
    assert {*counts.read()} == {"3.11", "3.12", "3.13", "3.14"}
    assert PYTHON in counts.read()


def test_only_a_program_under_valgrind_counts() -> None:
    with pytest.raises(RuntimeError, match="under valgrind only"):
        callgrind.Callgrind()


def test_a_machine_without_valgrind_and_without_packages_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAIRLEAD_CACHE", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert "neither valgrind here nor apt-get" in callgrind.obstacle()
    (tmp_path / "packages" / callgrind.PACKAGE).mkdir(parents=True)
    assert callgrind.obstacle() == ""
    (tmp_path / "packages" / callgrind.PACKAGE).rmdir()
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert callgrind.obstacle() == ""
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert "x86_64 on Linux" in callgrind.obstacle()
