"""Benchmarks run, and say what they found as the report promises. No time is asserted."""

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from bench import __main__ as bench
from bench import page
from bench.measure import TINY, Measured, run
from bench.report import Line, Target, judged, machine, table, targets

_ALL = {name: (subject, one) for subject in bench.SUBJECTS for name, one in bench.benchmarks(subject).items()}


_HERE = [name for name, (subject, _) in _ALL.items() if subject not in bench.PROGRAMS]


@pytest.mark.parametrize("name", _HERE)
def test_a_benchmark_runs(name: str) -> None:
    _, one = _ALL[name]
    measured = list(run({name: one}, name, TINY))
    assert [(found.name, found.unit) for found in measured] == [(name, one.unit)]
    assert measured[0].value > 0


def test_every_target_is_of_a_benchmark_and_in_its_unit() -> None:
    assert {name: target.unit for name, target in targets().items()} == {
        name: _ALL[name][1].unit for name in targets() if name in _ALL
    }


def test_every_subject_is_collected() -> None:
    folder = Path(bench.__file__).parent
    assert {file.stem for file in folder.glob("*.py") if "BENCHMARKS: Final" in file.read_text()} == {*bench.SUBJECTS}
    assert len(_ALL) == sum(len(bench.benchmarks(subject)) for subject in bench.SUBJECTS)


_REPORTS = {
    "below a target": (4.0, Target("ms", below=6), "call 4 ms <6 ok"),
    "at a target that is to be undercut": (6.0, Target("ms", below=6), "call 6 ms <6 short"),
    "at a target that is to be reached": (20.0, Target("ms", above=20), "call 20 ms >=20 ok"),
    "not at a target that is to be reached": (19.99, Target("ms", above=20), "call 19.99 ms >=20 short"),
    "without a target": (1234.5678, None, "call 1235 ms - -"),
}


@pytest.mark.parametrize("case", _REPORTS)
def test_a_line_says_name_value_unit_target_and_verdict(case: str) -> None:
    value, target, want = _REPORTS[case]
    assert str(judged(Measured("call", "ms", value, 1.0), target)) == want


def test_the_table_is_in_columns() -> None:
    lines = [Line("a-long-name", 1.5, "ms", "<2", "ok", 1.25), Line("b", 1234.0, "us/node", "-", "-", 1000.0)]
    assert table(lines).splitlines() == [
        "name         value  unit     target      best",
        "a-long-name    1.5  ms       <2      ok  1.25",
        "b             1234  us/node  -       -   1000",
    ]


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The collector with two subjects, of which the programs are given here."""
    programs = [f"print({json.dumps(asdict(Line('fast', 9.0, 'ms', '<6', 'short', 8.0)))!r})", "raise SystemExit(3)"]

    def popen(command: list[str], **kwargs: object) -> object:
        at = bench.SUBJECTS.index(command[2].removeprefix("bench."))
        return real(["python", "-c", programs[at]], executable=sys.executable, **kwargs)  # type: ignore[call-overload]

    real = subprocess.Popen
    monkeypatch.setattr(bench, "SUBJECTS", ("calls", "slices"))
    monkeypatch.setattr(subprocess, "Popen", popen)
    return programs


def test_a_missed_target_fails_nothing_and_a_crash_does(
    collector: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "page.md"
    monkeypatch.setattr(page, "PAGE", written)
    monkeypatch.setattr(sys, "argv", ["bench"])
    assert bench.main() == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "{cpu}, {cores} cores, {python}".format_map(machine())
    assert out.splitlines()[2].split() == ["fast", "9", "ms", "<6", "short", "8"]
    assert err.splitlines() == ["fast 9 ms <6 short", "crashed: slices"]
    assert not written.exists()
    collector[1] = "pass"
    assert bench.main() == 0
    assert "| fast | 9 | ms | <6 | short | 8 |" in written.read_text()


def test_json_holds_the_machine_and_the_lines(
    collector: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    collector[1] = "pass"
    monkeypatch.setattr(sys, "argv", ["bench", "--json"])
    assert bench.main() == 0
    found = json.loads(capsys.readouterr().out)
    want = {"name": "fast", "value": 9.0, "unit": "ms", "target": "<6", "verdict": "short", "best": 8.0}
    assert found == {**machine(), "lines": [want]}


def test_a_name_that_no_benchmark_has_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "nonsense"])
    with pytest.raises(SystemExit, match="2"):
        bench.main()
    assert "no benchmark has 'nonsense' in its name" in capsys.readouterr().err
