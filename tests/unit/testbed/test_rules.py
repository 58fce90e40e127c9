"""What a test run keeps, seen on runs of its own."""

import itertools
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from testbed import rules

_CHECKOUT = str(Path(__file__).parents[3])
_SKIPS = {
    "a skipped test": ("@pytest.mark.skip(reason='too hard')\n", 1),
    "a skipped test of kind's": ("@pytest.mark.kind\n@pytest.mark.skip(reason='no Docker')\n", 0),
    "a test that is expected to fail": ("@pytest.mark.xfail(strict=True, raises=AssertionError)\n", 0),
}


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with our rules, for a run of its own."""
    monkeypatch.setenv("PYTHONPATH", _CHECKOUT)
    pytester.makeini("[pytest]")  # and none of what stands above it
    pytester.makeconftest('pytest_plugins = ["testbed.fixtures", "testbed.rules"]')
    return pytester


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
@pytest.mark.parametrize("case", _SKIPS)
def test_where_everything_can_be_had_a_skip_fails_the_run(
    run: pytest.Pytester, case: str, workers: tuple[str, ...]
) -> None:
    mark, want = _SKIPS[case]
    body = "assert False" if "xfail" in mark else "pass"
    run.makepyfile(f"import pytest\n\n{mark}def test_one() -> None:\n    {body}\n")
    result = run.runpytest_subprocess(*workers)
    can_have_all = sys.platform == "linux" and os.geteuid() == 0
    assert result.ret == (want if can_have_all else 0)
    assert ("skipped where nothing may be" in result.stdout.str()) == bool(want and can_have_all)


_ASKS: Mapping[str, tuple[str, str]] = {
    "a test that asks for the cluster": ("cluster", "cluster"),
    "a test that asks for the control plane": ("control_plane", "control_plane"),
    "a test that asks for what lies on one": ("namespace", "control_plane"),
}


@pytest.mark.parametrize("case", _ASKS)
def test_a_test_is_marked_by_what_it_asks_for(run: pytest.Pytester, case: str) -> None:
    fixture, mark = _ASKS[case]
    run.makepyfile(f"def test_one({fixture}): pass\n\n\ndef test_another(): pass\n")
    result = run.runpytest_subprocess("--collect-only", "-q", "-m", mark)
    assert "test_one" in result.stdout.str()
    assert "test_another" not in result.stdout.str()


@pytest.mark.parametrize(
    ("environment", "version", "passed"),
    [({}, "1.37.1", 1), ({"LONG": "1"}, "1.37.1", 3), ({"LONG": "1"}, "1.35.4", 2)],
)
def test_what_is_not_for_a_run_is_left_out_and_not_skipped(
    run: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, environment: Mapping[str, str], version: str, passed: int
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    since, asked_for = "@pytest.mark.since('1.36')\n", "@pytest.mark.asked_for('LONG')\n"
    marks = {"both": f"{since}{asked_for}", "one": asked_for, "none": ""}
    tests = "\n\n".join(f"{mark}def test_{name}() -> None:\n    pass\n" for name, mark in marks.items())
    run.makepyfile(f"import pytest\n\n{tests}")
    result = run.runpytest_subprocess("--kubernetes", version)
    assert result.ret == 0
    result.assert_outcomes(passed=passed, deselected=3 - passed)


_WAITING = ("unit/a.py", "e2e/a.py", "integration/a.py")
_NEXT: Mapping[str, tuple[Sequence[str], Sequence[str], Sequence[Sequence[str]], str | None]] = {
    "what takes longest, first": (_WAITING, [], [], "e2e/a.py"),
    "another folder, if another process has that one": (_WAITING, [], [["e2e/b.py"]], "integration/a.py"),
    "more of the same folder": (_WAITING, ["e2e/b.py"], [["integration/b.py"]], "e2e/a.py"),
    "more of it, after other files": (_WAITING, ["integration/b.py", "unit/b.py"], [["e2e/c.py"]], "integration/a.py"),
    "what needs no cluster, if others have those": (_WAITING, [], [["e2e/b.py"], ["integration/b.py"]], "unit/a.py"),
    "a folder of another process, if nothing else is left": (["e2e/a.py"], ["unit/b.py"], [["e2e/b.py"]], "e2e/a.py"),
    "none, if two have it": (["e2e/a.py"], ["unit/b.py"], [["e2e/b.py"], ["e2e/c.py"]], None),
    "none, while others have folders of their own": (
        ["e2e/a.py", "integration/a.py"],
        ["unit/b.py"],
        [["e2e/b.py"], ["integration/b.py"]],
        None,
    ),
}


@pytest.mark.parametrize("case", _NEXT)
def test_one_process_has_the_files_that_share_clusters_until_nothing_else_is_left(case: str) -> None:
    waiting, mine, others, want = _NEXT[case]
    assert rules.next_file(waiting, mine, others) == want


def test_the_tests_of_a_file_stay_together(run: pytest.Pytester) -> None:
    body = "import os\n\n" + "".join(
        f"def test_{name}(): open('asked', 'a').write(f'{{__name__}}={{os.getpid()}}\\n')\n\n" for name in "abc"
    )
    for folder, number in itertools.product(("e2e", "integration", "unit"), "ab"):
        path = run.path / folder / f"test_{folder}_{number}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(body)
    run.runpytest_subprocess("-n", "4").assert_outcomes(passed=3 * 3 * 2)
    asked = [line.split("=") for line in Path(run.path, "asked").read_text().splitlines()]
    by_file = {file: {process for other, process in asked if other == file} for file, _ in asked}
    assert [len(one) for one in by_file.values()] == [1] * 6


def test_those_that_share_a_cluster_begin_first(run: pytest.Pytester) -> None:
    files = {"unit/test_many.py": 3, "integration/test_some.py": 2, "e2e/test_one.py": 1}
    for file, number in files.items():
        path = run.path / file
        path.parent.mkdir(exist_ok=True)
        tests = (f"def test_{at}(): open('asked', 'a').write(f'{{__name__}}\\n')\n" for at in range(number))
        path.write_text("\n".join(tests))
    run.runpytest_subprocess("-n", "1").assert_outcomes(passed=6)
    asked = [line.rpartition("_")[2] for line in Path(run.path, "asked").read_text().split()]
    assert [*dict.fromkeys(asked)] == ["one", "some", "many"]


def test_every_mark_is_explained() -> None:
    assert all(meaning.startswith("needs") for meaning in rules._MARKS.values())
