"""The command as a user has it. What it prints is compared with what `fairlead lint` wrote into tests/data/lint."""

import json
import os
import pty
import subprocess
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from fairlead.cli.inputs.files import BYTES_MAX
from fairlead.cli.main import main
from support.policy.lint import GOOD, spec

_ROOT = Path(__file__).parents[4]
_DATA = _ROOT / "tests" / "data" / "lint"
_COMMAND = [sys.executable, "-m", "fairlead"]
_ENVIRONMENT = {**os.environ, "PYTHONPATH": str(_ROOT / "operator")}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _lint(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["lint", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_everything_that_can_be_said_is_said_like_this(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(_DATA)
    assert _lint(capsys, "-v", "mixed.yaml") == (1, (_DATA / "mixed.txt").read_text(), "")
    assert _lint(capsys, "-o", "json", "mixed.yaml") == (1, (_DATA / "mixed.json").read_text(), "")


def test_a_good_file_says_little_and_succeeds(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    Path("a.yaml").write_text(GOOD)
    want = "1 policy, 0 errors, 0 warnings, 0 notes\n"
    assert _lint(capsys, "a.yaml") == (0, want, "")


def test_settings_say_what_policies_may_name(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    entry = "data: [{name: load, prometheus: {server: %s, query: load, nodeLabel: node}}]\n"
    for server in ("default", "other"):
        Path(f"{server}.yaml").write_text(spec(entry % server + "scores: [{name: s, expression: data.load}]\n"))
    Path("values.yaml").write_text("replicas: 3\nprometheus: [{name: default, url: 'https://prometheus:9090'}]\n")
    assert _lint(capsys, "other.yaml")[0] == 0
    assert _lint(capsys, "--settings", "values.yaml", "default.yaml")[0] == 0
    code, out, _ = _lint(capsys, "--settings", "values.yaml", "other.yaml")
    assert (code, 'there is no server "other"; there are default' in out) == (1, True)
    Path("values.yaml").write_text("prometheus: 1\n")
    code, _, err = _lint(capsys, "--settings", "values.yaml", "other.yaml")
    assert (code, err.startswith("fairlead lint: values.yaml: prometheus: must be a list, not 1")) == (2, True)
    assert _lint(capsys, "--settings", "none.yaml", "other.yaml")[0] == 2


def test_settings_say_how_many_queries_there_may_be(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    data = ", ".join(f"{{name: {name}, prometheus: {{query: {name}}}, default: 0}}" for name in "ab")
    Path("a.yaml").write_text(spec(f"data: [{data}]\nscores: [{{name: s, expression: data.a + data.b}}]\n"))
    for most, code, said in ((2, 0, False), (1, 1, True)):
        Path("values.yaml").write_text(f"prometheus: [{{name: default, url: 'https://x', maxEntries: {most}}}]\n")
        found, out, _ = _lint(capsys, "--settings", "values.yaml", "a.yaml")
        assert (found, "spec.data[1].prometheus" in out and "at most 1 different entries" in out) == (code, said)


def test_warnings_do_not_fail(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    Path("a.yaml").write_text(spec("filters: [{name: a, expression: 'true'}]\n"))
    code, out, _ = _lint(capsys, "a.yaml")
    assert code == 0
    assert out.endswith("1 policy, 0 errors, 1 warning, 0 notes\n")


def test_directories_are_walked_in_order(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    for name in ("d/b.YAML", "d/a.yml", "d/c/x.Json", "d/no.txt", "d/.git/hidden.yaml", "z.yaml"):
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(GOOD.replace("some", path.name.lower().replace(".", "-")).replace("spec: {", "spec: {x: 1, "))
    _, out, _ = _lint(capsys, "z.yaml", "d")
    assert [line.split(":")[0] for line in out.splitlines() if "error:" in line] == [
        "z.yaml",
        "d/a.yml",
        "d/b.YAML",
        "d/c/x.Json",
    ]


def test_a_file_that_is_named_twice_is_read_once(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    Path("a.yaml").write_text(GOOD)
    Path("b.yaml").symlink_to("a.yaml")
    code, out, _ = _lint(capsys, "a.yaml", ".", "./a.yaml")
    assert code == 0
    assert out.endswith("1 policy, 0 errors, 0 warnings, 0 notes\n")


def test_links_that_go_round_in_circles_end(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    Path("d/e").mkdir(parents=True)
    Path("d/e/up").symlink_to("../..", target_is_directory=True)
    Path("d/a.yaml").write_text(GOOD)
    assert _lint(capsys, "d")[0] == 0
    assert _lint(capsys, "d/e/up/d/e/up")[0] == 0
    Path("d/e/two").symlink_to("..", target_is_directory=True)  # with two there are more ways than can be walked
    assert _lint(capsys, "d")[0] == 0


UNREADABLE = {
    "a file that is not there": ("nothing.yaml", "nothing.yaml", "no such file or directory"),
    "no name": ("", "", "the file name is empty"),
    "a link to nothing": ("broken.yaml", "broken.yaml", "no such file or directory"),
    "a link to itself": ("loop.yaml", "loop.yaml", "too many levels of symbolic links"),
    "a directory with a link to nothing": ("d", "d/broken.yaml", "no such file or directory"),
}


@pytest.mark.parametrize(("name", "file", "why"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_no_success(
    capsys: pytest.CaptureFixture[str], here: Path, name: str, file: str, why: str
) -> None:
    Path("d").mkdir()
    Path("broken.yaml").symlink_to("nowhere")
    Path("d/broken.yaml").symlink_to("nowhere")
    Path("loop.yaml").symlink_to("loop.yaml")
    Path("good.yaml").write_text(GOOD)
    code, out, err = _lint(capsys, name, "good.yaml")
    assert (code, err) == (2, "")
    assert out.startswith(f"{file}:1:1: error: cannot be read: {why}\n")
    assert out.endswith("1 policy, 1 error, 0 warnings, 0 notes\n")
    code, out, _ = _lint(capsys, "-o", "json", name, "good.yaml")
    assert code == 2
    [finding] = json.loads(out)["findings"]
    assert (finding["file"], finding["severity"], finding["message"]) == (file, "error", f"cannot be read: {why}")


NOTHING: dict[str, tuple[list[str], str]] = {
    "a directory without files": (["empty"], "no SchedulerExtenderPolicy found in empty"),
    "a directory without policies": (["others"], "no SchedulerExtenderPolicy found in others"),
    "an empty file and others": (["empty.yaml", "others"], "no SchedulerExtenderPolicy found in empty.yaml, others"),
    "standard input without anything": (["-"], "no SchedulerExtenderPolicy found in -"),
    "a directory without files beside a policy": (
        ["empty", "good.yaml"],
        "empty: this directory has no file that ends in .yaml, .yml or .json",
    ),
}


@pytest.mark.parametrize(("names", "want"), NOTHING.values(), ids=NOTHING)
def test_nothing_to_check_is_said_and_no_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, here: Path, names: list[str], want: str
) -> None:
    Path("empty").mkdir()
    Path("others").mkdir()
    Path("others/a.yaml").write_text("kind: Deployment\napiVersion: apps/v1\n")
    Path("empty.yaml").write_text("")
    Path("good.yaml").write_text(GOOD)
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"")))
    code, _, err = _lint(capsys, *names)
    assert (code, err) == (0, f"fairlead lint: {want}\n")


def test_what_is_found_and_broken_is_not_called_nothing(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    Path("a.yaml").write_text("a: [")
    assert _lint(capsys, "a.yaml")[2] == ""
    Path("b.yaml").write_text(GOOD)
    assert _lint(capsys, "b.yaml")[2] == ""


def test_files_without_end_are_refused(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    with Path("large.yaml").open("wb") as file:
        file.truncate(100 << 20)
    code, out, _ = _lint(capsys, "large.yaml", "/dev/zero")
    assert code == 1
    assert out.splitlines()[:2] == [
        "large.yaml:1:1: error: the file is larger than 4 MiB; split it",
        "/dev/zero:1:1: error: the file is larger than 4 MiB; split it",
    ]
    Path("as-large-as-it-may-be.yaml").write_text("# " + "x" * (BYTES_MAX - 2))
    assert _lint(capsys, "as-large-as-it-may-be.yaml")[0] == 0


def test_standard_input_is_called_so(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"a: [")))
    code, out, _ = _lint(capsys, "-")
    assert code == 1
    assert out.startswith("<stdin>:1:5: error: this is not YAML: ")


@pytest.mark.parametrize("arguments", [["lint"], ["lint", "-o", "xml", "a.yaml"], ["lynt"]])
def test_wrong_usage_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    assert capsys.readouterr().out.startswith("0.")


def test_what_a_terminal_would_obey_is_not_printed(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    Path("a.yaml").write_text(spec('mode: "\\e[31m\\u202e"\nfilters: [{name: a, expression: "x\\e[31m"}]\n'))
    _, out, _ = _lint(capsys, "a.yaml")
    assert "\x1b" not in out
    assert "\u202e" not in out
    Path("\x1b[31m.yaml").write_text("a: [")
    assert "\x1b" not in _lint(capsys, "\x1b[31m.yaml")[1]


def _on_a_terminal(path: Path, **more: str) -> bytes:
    master, slave = pty.openpty()
    environment = {name: value for name, value in _ENVIRONMENT.items() if name != "NO_COLOR"} | {"TERM": "xterm"} | more
    subprocess.run([*_COMMAND, "lint", str(path)], stdout=slave, env=environment, timeout=120, check=False)
    os.close(slave)
    printed = b""
    try:
        while part := os.read(master, 4096):
            printed += part
    except OSError:  # all of it was read
        pass
    os.close(master)
    return printed


def test_there_is_colour_on_a_terminal_only(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("a: [")
    assert b"\x1b[1;31merror\x1b[0m" in _on_a_terminal(path)
    assert b"\x1b" not in _on_a_terminal(path, NO_COLOR="1")
    assert b"\x1b" not in _on_a_terminal(path, TERM="dumb")
    piped = subprocess.run(
        [*_COMMAND, "lint", str(path)], capture_output=True, env=_ENVIRONMENT, timeout=120, check=False
    )
    assert (piped.returncode, b"\x1b" in piped.stdout) == (1, False)


def test_nobody_has_to_read_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("---\n".join([GOOD] * 300))
    command = f"{' '.join(_COMMAND)} lint {path} | head -n 1"
    piped = subprocess.run(["bash", "-c", command], capture_output=True, env=_ENVIRONMENT, timeout=60, check=False)
    assert piped.stdout.count(b"\n") == 1
    assert piped.stderr == b""


def test_characters_that_the_output_does_not_have_are_no_failure(tmp_path: Path) -> None:
    path = tmp_path / "字.yaml"
    path.write_text("字: [")
    environment = {**_ENVIRONMENT, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*_COMMAND, "lint", str(path)], capture_output=True, env=environment, timeout=90, check=False)
    assert (done.returncode, done.stderr) == (1, b"")
    assert b"\\u5b57" in done.stdout


ACCEPTING = """\
apiVersion: fairlead.dev/v1alpha1
kind: SchedulerExtenderPolicy
metadata:
  name: NAME
  annotations:
    fairlead.dev/accept: |
      CountsPods/few: it is soft
      Conflict: the other one is going away
spec:
  filters:
  - {name: few, expression: pods.size() < 3}
"""


def test_an_accepted_warning_is_shown_and_counted_apart(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    Path("a.yaml").write_text(ACCEPTING.replace("NAME", "some").replace("      Conflict", "      #"))
    _, out, _ = _lint(capsys, "a.yaml")
    assert "a.yaml:11:29: accepted: spec.filters[0].expression: CountsPods: it is soft\n" in out
    Path("a.yaml").write_text(ACCEPTING.replace("NAME", "some"))
    _, out, _ = _lint(capsys, "-o", "json", "a.yaml")
    said = json.loads(out)
    assert (said["summary"]["warnings"], said["summary"]["accepted"]) == (1, 1)
    by_severity = {one["severity"]: one for one in said["findings"]}
    assert by_severity["accepted"]["accepted"] == "it is soft"
    assert by_severity["warning"]["message"] == "Conflict is accepted, and there is no such warning"


def test_a_conflict_that_one_of_two_policies_accepts_is_accepted(
    capsys: pytest.CaptureFixture[str], here: Path
) -> None:
    writes = "  binding: {annotations: [{key: fairlead.dev/a, expression: \"'x'\"}]}\n"
    for name in ("a", "b"):
        Path(f"{name}.yaml").write_text(ACCEPTING.replace("NAME", name) + writes)
    _, out, _ = _lint(capsys, "a.yaml", "b.yaml", "-o", "json")
    found = [(one["file"], one["severity"]) for one in json.loads(out)["findings"] if one["reason"] == "Conflict"]
    assert found == [("b.yaml", "accepted")]


def test_json_has_the_fields_that_are_promised(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    Path("a.yaml").write_text(
        spec("filters: [{name: a, expression: 'true'}, {name: b, expression: pods.size() < 3}]\n")
    )
    code, out, _ = _lint(capsys, "-o", "json", "a.yaml")
    said = json.loads(out)
    assert code == 0
    assert set(said) == {"findings", "rules", "summary"}
    assert said["findings"][0] == {
        "file": "a.yaml",
        "line": 5,
        "column": 35,
        "severity": "warning",
        "field": "spec.filters[0].expression",
        "message": "this can never be false, so the filter rejects no node that it can evaluate",
        "hint": "",
        "reason": "AlwaysPasses",
        "policy": "some",
        "rule": "a",
        "accepted": "",
    }
    assert said["rules"][1]["uses"] == ["pods"]
    assert said["summary"] == {
        "policies": 1, "ignored": 0, "errors": 0, "warnings": 2, "accepted": 0, "notes": 0,
        "expressions": 2, "onEngine": 0,
    }  # fmt: skip
