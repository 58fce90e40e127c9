"""`fairlead test` as people use it: what it prints, how it ends, and what it says of suites that are wrong."""

import json
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

from support.suites import running
from support.suites.running import POLICY, SUITE, run, written

FAILING = SUITE.replace("passed: [a]", "passed: [a, b]").replace("    rejected: {b: slow disk}\n", "")


def test_when_all_is_as_expected_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(written(tmp_path)) == 0
    assert capsys.readouterr().out == (
        "SUITE   CASE                    RESULT\n"
        "ssd     pods go to fast disks   ok\n"
        "\n"
        "1 case in 1 suite: 1 passed; 2 of 2 outcomes of rules covered\n"
    )


def test_a_failure_shows_what_was_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, FAILING)
    assert run(path) == 1
    printed = capsys.readouterr()
    want = f"""
{path}:6: pods go to fast disks
  passed: b: expected passed; got rejected: slow disk, by ssd/fast
      ssd/fast: rejected
          node.metadata.labels[?'disk'].orValue('') == 'ssd'   ''
"""
    assert want in printed.out
    assert printed.out.endswith("1 case in 1 suite: 0 passed, 1 failed; 2 of 2 outcomes of rules covered\n")
    assert printed.err == ""


MATCHING = """\
    policies: [ssd.yaml]
    nodes: [{metadata: {name: a}}]
    pods: [{metadata: {name: q, labels: {keep: "no"}}, spec: {nodeName: a}}]
    cases:
    - {name: kept, pod: {metadata: {labels: {app: web}}}, expect: {protected: {q: keep}}}
    - {name: not for it, pod: {}, expect: {policies: [ssd]}}
"""
PROTECTING = """\
spec:
  match: {podSelector: {matchLabels: {app: web}}}
  preemption: {protect: [{name: keep, expression: "victim.metadata.labels[?'keep'].orValue('') == 'yes'"}]}
"""
NOT_PROTECTED = """
  protected: q: expected protected by keep; got may be evicted
      ssd/keep: does not protect
          victim.metadata.labels[?'keep'].orValue('') == 'yes'   false
          victim.metadata.labels[?'keep'].orValue('')            'no'
"""
NOT_MATCHED = """
  policies: expected ssd; got none
      No policy matches this pod.
      No match: ssd: its podSelector does not match the pod's labels: it has none
"""


def test_a_protection_and_a_match_show_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(written(tmp_path, MATCHING, POLICY.partition("spec:")[0] + PROTECTING)) == 1
    printed = capsys.readouterr().out
    assert NOT_PROTECTED in printed
    assert NOT_MATCHED in printed


def test_programs_get_the_same_as_json_and_as_yaml(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, FAILING)
    code, found = running.report(capsys, path)
    assert code == 1
    assert found["summary"] == {
        "suites": 1,
        "passed": 0,
        "failed": 1,
        "errors": 0,
        "outcomes": 2,
        "outcomesSeen": 2,
    }
    [suite] = found["suites"]
    [case] = suite["cases"]
    [difference] = case["differences"]
    assert (suite["name"], suite["file"], case["name"], case["line"], case["result"]) == (
        "ssd",
        str(path),
        "pods go to fast disks",
        6,
        "failed",
    )
    assert difference["field"] == "expect.passed"
    assert (difference["about"], difference["expected"]) == ("b", "passed")
    assert found["coverage"] == [
        {"policy": "ssd", "kind": "Filter", "rule": "fast", "outcomes": {"passed": 1, "rejected": 1}}
    ]
    assert run(path, "-o", "yaml") == 1
    assert yaml.safe_load(capsys.readouterr().out) == found


def test_of_a_folder_what_is_called_like_a_suite_is_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path)
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "more.test.yml").write_text(SUITE.replace("ssd.yaml", "../ssd.yaml"))
    (tmp_path / "other.yaml").write_text("a: b\n")
    code, found = running.report(capsys, tmp_path)
    assert code == 0
    assert [one["name"] for one in found["suites"]] == ["ssd", "more"]


def test_a_file_that_is_named_may_be_called_anything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path).rename(tmp_path / "checks.yaml")
    code, found = running.report(capsys, path)
    assert (code, found["suites"][0]["name"]) == (0, "checks")


def test_a_file_may_have_several_suites(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, f"name: one\n{SUITE}---\nname: two\n{FAILING}")
    code, found = running.report(capsys, path)
    assert code == 1
    assert [(one["name"], one["cases"][0]["line"]) for one in found["suites"]] == [("one", 7), ("two", 19)]


def test_an_outcome_that_nobody_sees_can_be_made_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, SUITE.replace("- metadata: {name: b}\n", "").replace("    rejected: {b: slow disk}\n", ""))
    assert run(path) == 0
    assert run(path, "--require-coverage") == 1
    printed = capsys.readouterr().out
    assert "POLICY   KIND     RULE   NOT COVERED\nssd      Filter   fast   rejected\n" in printed
    assert printed.endswith("1 of 2 outcomes of rules covered\n")


CONTROL = "pods go to \\e[31mfast disks"


def test_junit_gets_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, f"{SUITE}---\n{FAILING.replace('pods go to fast disks', chr(34) + CONTROL + chr(34))}")
    junit = tmp_path / "report.xml"
    assert run(path, "--junit", junit) == 1
    root = ET.fromstring(junit.read_text())  # noqa: S314 - ours
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("2", "1", "0")
    good, bad = root.iter("testcase")
    assert (good.get("classname"), good.get("name"), good.get("line")) == ("ssd", "pods go to fast disks", "6")
    assert list(good) == []
    assert bad.get("name") == "pods go to \ufffd[31mfast disks"
    [failure] = bad
    assert failure.tag == "failure"
    assert failure.get("message") == "passed: b: expected passed; got rejected: slow disk, by ssd/fast"
    assert "ssd/fast: rejected" in (failure.text or "")
    assert oct(junit.stat().st_mode & 0o777) == oct(0o666 & ~_umask())
    assert "\x1b" not in capsys.readouterr().out


def _umask() -> int:
    found = os.umask(0)
    os.umask(found)
    return found


def test_junit_is_told_of_what_could_not_be_run(tmp_path: Path) -> None:
    written(tmp_path)
    (tmp_path / "bad.test.yaml").write_text("a: b\n")
    assert run(tmp_path, "--junit", tmp_path / "report.xml") == 2
    root = ET.fromstring((tmp_path / "report.xml").read_text())  # noqa: S314 - ours
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("2", "0", "1")
    [error] = root.iter("error")
    assert error.get("message", "").startswith("1:1: policies: is missing")


def test_a_report_that_cannot_be_written_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path)
    (tmp_path / "taken").mkdir()
    before = sorted(tmp_path.iterdir())
    assert run(path, "--junit", tmp_path / "taken") == 2
    assert f"fairlead test: --junit {tmp_path}/taken: cannot be written: " in capsys.readouterr().err
    assert run(path, "--junit", tmp_path / "none" / "report.xml") == 2
    assert sorted(tmp_path.iterdir()) == before


# What is wrong with a suite: the suite, the field's place and what is said.
BAD: dict[str, tuple[str, str]] = {
    "no YAML": ("policies: [ssd.yaml\n", "ssd.test.yaml:2:1: error: this is not YAML: "),
    "nothing": ("", "ssd.test.yaml:1:1: error: the file is empty"),
    "a list": ("- a\n", "ssd.test.yaml:1:1: error: must be a map of fields, not a list; remove the '-'"),
    "no policies": (SUITE.replace("policies: [ssd.yaml]\n", ""), "ssd.test.yaml:1:1: error: policies: is missing; "),
    "a misspelt field": (
        SUITE.replace("passed:", "pased:"),
        "ssd.test.yaml:9:5: error: cases[0].expect.pased: there is no such field; did you mean passed?",
    ),
    "a misspelt field that is required": (
        SUITE.replace("expect:", "expects:"),
        "ssd.test.yaml:8:3: error: cases[0].expects: there is no such field; did you mean expect?",
    ),
    "a misspelt field of a refusal": (
        SUITE.replace("{b: slow disk}", "{b: {reson: slow disk}}"),
        "ssd.test.yaml:10:20: error: cases[0].expect.rejected.b.reson: there is no such field; did you mean reason?",
    ),
    "a misspelt field of an object": (
        SUITE.replace("labels", "lables"),
        "ssd.test.yaml:3:23: error: nodes[0].metadata.lables: there is no such field; did you mean labels?",
    ),
    "a number where a text should be": (
        SUITE.replace("disk: ssd", "disk: 1"),
        "ssd.test.yaml:3:38: error: nodes[0].metadata.labels.disk: must be a string, not 1; write it in quotes",
    ),
    "a word that YAML takes for a truth": (
        SUITE.replace("disk: ssd", "disk: n"),
        "nodes[0].metadata.labels.disk: must be a string, not false; YAML reads n as false: write it in quotes",
    ),
    "a misspelt node": (
        SUITE.replace("passed: [a]", "passed: [c]"),
        "ssd.test.yaml:9:14: error: cases[0].expect.passed[0]: there is no node 'c' in this case; there are a, b",
    ),
    "two cases of one name": (
        SUITE + SUITE[SUITE.index("- name") :],
        "ssd.test.yaml:11:3: error: cases[1]: name 'pods go to fast disks' is a duplicate",
    ),
    "a policy that there is not": (
        SUITE.replace("[ssd.yaml]", "[sdd.yaml]"),
        "sdd.yaml: cannot be read: no such file or directory; paths are relative to the directory of the suite",
    ),
    "a policy in place of a suite": (
        POLICY,
        "ssd.test.yaml:2:7: error: kind: this is a policy, not a suite; list it under `policies` of a suite; ",
    ),
    "a file without policies": (
        SUITE.replace("[ssd.yaml]", "[ssd.test.yaml]"),
        "ssd.test.yaml:1:12: error: policies[0]: it contains no SchedulerExtenderPolicy; ",
    ),
}


@pytest.mark.parametrize(("suite", "want"), BAD.values(), ids=BAD)
def test_what_is_wrong_with_a_suite_is_said_where_it_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suite: str, want: str
) -> None:
    assert run(written(tmp_path, suite)) == 2
    assert want in capsys.readouterr().err


def test_a_misspelt_field_is_not_missing_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(written(tmp_path, SUITE.replace("expect:", "expects:"))) == 2
    assert "is missing" not in capsys.readouterr().err


def test_a_policy_that_is_wrong_is_said_as_lint_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, policy_=POLICY.replace("node.metadata", "node.metdata"))
    assert run(path) == 2
    said = capsys.readouterr().err
    assert f"{tmp_path}/ssd.yaml:6:" in said
    assert "did you mean `metadata`?" in said


def test_two_policies_of_one_name_cannot_be_tested_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, SUITE.replace("[ssd.yaml]", "[ssd.yaml, other.yaml]"))
    (tmp_path / "other.yaml").write_text(POLICY)
    assert run(path) == 2
    assert (
        "ssd.test.yaml:1:22: error: policies[1]: another policy has the name ssd; test one" in capsys.readouterr().err
    )


def test_one_file_may_be_named_twice_and_in_several_suites(tmp_path: Path) -> None:
    written(tmp_path, SUITE.replace("[ssd.yaml]", f"[ssd.yaml, ../{tmp_path.name}/ssd.yaml]"))
    (tmp_path / "again.test.yaml").write_text(SUITE)
    (tmp_path / "overlay").mkdir()
    (tmp_path / "overlay" / "ssd.yaml").write_text(POLICY)
    (tmp_path / "overlay" / "ssd.test.yaml").write_text(SUITE)
    assert run(tmp_path) == 0


def test_where_one_suite_is_wrong_the_others_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path)
    (tmp_path / "bad.test.yaml").write_text("a: b\n")
    code, found = running.report(capsys, tmp_path)
    assert code == 2
    assert (found["summary"]["passed"], found["summary"]["errors"]) == (1, 1)
    assert {one["file"] for one in found["findings"]} == {str(tmp_path / "bad.test.yaml")}


def test_errors_are_cases_and_files_in_every_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where another suite of the same file runs, and however many errors a file has."""
    path = written(tmp_path, f"{SUITE}---\na: b\nc: d\n")
    code, found = running.report(capsys, path)
    assert (code, found["summary"]["passed"], found["summary"]["errors"]) == (2, 1, 1)
    assert len(found["findings"]) > 1
    assert run(path, "--junit", tmp_path / "report.xml") == 2
    assert "1 case in 1 suite: 1 passed, 1 error; " in capsys.readouterr().out
    root = ET.fromstring((tmp_path / "report.xml").read_text())  # noqa: S314 - ours
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("2", "0", "1")


def test_where_there_is_no_suite_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.yaml").write_text(POLICY)
    assert run(tmp_path) == 2
    assert f"{tmp_path} has no suite: the names of suites end in .test.yaml" in capsys.readouterr().err
    assert run(tmp_path / "none.test.yaml") == 2
    assert "none.test.yaml:1:1: error: cannot be read: no such file or directory" in capsys.readouterr().err


def test_it_runs_again_when_a_policy_changes(tmp_path: Path) -> None:
    path = written(tmp_path)
    command = [sys.executable, "-m", "fairlead", "test", str(path), "-o", "json", "--watch"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as it:
        try:
            assert _report(it)["summary"]["passed"] == 1
            assert it.stderr
            assert "waiting for changes in 2 files" in it.stderr.readline()
            (tmp_path / "ssd.yaml").write_text(POLICY.replace("== 'ssd'", "!= 'ssd'"))
            assert _report(it)["summary"]["failed"] == 1
        finally:
            it.terminate()


def test_what_can_be_read_once_cannot_be_watched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    for once in ("-", str(pipe)):
        assert run(once, "--watch") == 2
        assert f"--watch reads {once} again after each change, and it can be read once" in capsys.readouterr().err


def _report(it: "subprocess.Popen[str]") -> dict[str, dict[str, int]]:
    """The next report that it prints."""
    assert it.stdout
    lines = [it.stdout.readline()]
    end = time.monotonic() + 60
    while lines[-1] != "}\n" and time.monotonic() < end:
        lines.append(it.stdout.readline())
    found: dict[str, dict[str, int]] = json.loads("".join(lines))
    return found


def test_a_pod_that_no_policy_matches_is_said_to_be_so_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = SUITE.replace("pod: {}", "pod: {spec: {schedulerName: default-scheduler}}")
    assert run(written(tmp_path, other.replace("passed: [a]", "scores: {a: 7}"))) == 1
    printed = capsys.readouterr().out
    want = """
  rejected: b: expected rejected: slow disk; got passed
      No policy matches this pod.
      No match: ssd: it applies to pods of the scheduler fairlead, and this pod names default-scheduler
  scores: a:"""
    assert want in printed
    assert printed.count("No policy matches this pod.") == 1


IN_SHADOW = POLICY.replace("reason: slow disk", "reason: slow disk, mode: Shadow")
SHADOWS = {
    "a policy": POLICY.replace("spec:", "spec:\n  mode: Shadow"),
    "a rule": IN_SHADOW,
    "both": IN_SHADOW.replace("spec:", "spec:\n  mode: Shadow"),
    "a rule enforced in a policy in shadow": POLICY.replace("spec:", "spec:\n  mode: Shadow").replace(
        "reason: slow disk", "reason: slow disk, mode: Enforce"
    ),
}


@pytest.mark.parametrize("policy", SHADOWS.values(), ids=SHADOWS)
@pytest.mark.parametrize("suite", [SUITE, FAILING], ids=["passing", "failing"])
def test_no_mode_but_disabled_breaks_a_suite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], policy: str, suite: str
) -> None:
    code = run(written(tmp_path, suite), "--require-coverage")
    enforced = capsys.readouterr()
    assert (run(written(tmp_path, suite, policy), "--require-coverage"), capsys.readouterr()) == (code, enforced)
    assert "2 of 2 outcomes of rules covered" in enforced.out


def test_a_policy_that_is_disabled_stays_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    off = IN_SHADOW.replace("spec:", "spec:\n  mode: Disabled")
    assert run(written(tmp_path, SUITE, off)) == 1
    assert "its mode is Disabled" in capsys.readouterr().out
