"""Findings for CI systems: what GitHub Actions and code scanning read."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fairlead.cli.inputs.findings import Finding, LintReport
from fairlead.cli.main import main
from fairlead.cli.reports.lint_ci import INVALID, annotations, sarif
from fairlead.policy.lint.codes import LintCode

_DATA = Path(__file__).parents[3] / "data" / "lint"


def _finding(**fields: Any) -> Finding:
    place: dict[str, Any] = {
        "file": "a.yaml",
        "line": 2,
        "column": 3,
        "severity": "error",
        "field": "",
        "message": "no",
    }
    return Finding(**place | fields)


def _annotated(**fields: Any) -> str:
    (line,) = annotations(LintReport([_finding(**fields)]))
    return line


def _result(**fields: Any) -> Any:
    return sarif(LintReport([_finding(**fields)]))["runs"][0]["results"][0]


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({}, "::error file=a.yaml,line=2,col=3,title=fairlead::no"),
        (
            {"field": "spec.match", "hint": "say yes"},
            "::error file=a.yaml,line=2,col=3,title=fairlead::spec.match: no; say yes",
        ),
        (
            {"severity": "warning", "reason": "WrongUnit", "policy": "gpu"},
            "::warning file=a.yaml,line=2,col=3,title=fairlead gpu WrongUnit::no",
        ),
        ({"severity": "note"}, "::notice file=a.yaml,line=2,col=3,title=fairlead::no"),
        (
            {"severity": "accepted", "hint": "say yes", "accepted": "it is meant"},
            "::notice file=a.yaml,line=2,col=3,title=fairlead::no; accepted: it is meant",
        ),
        (  # a name cannot begin another field or command, nor a text another line
            {"file": "a,b:c.yaml", "message": "100%\r\n::warning::no"},
            "::error file=a%2Cb%3Ac.yaml,line=2,col=3,title=fairlead::100%25%0D%0A::warning::no",
        ),
    ],
)
def test_github_shows_a_finding_beside_its_line(fields: dict[str, Any], line: str) -> None:
    assert _annotated(**fields) == line


@pytest.mark.parametrize(
    ("severity", "reason", "level"),
    [
        ("error", "", "error"),
        ("warning", "WrongUnit", "warning"),
        ("accepted", "WrongUnit", "warning"),
        ("note", "Disabled", "note"),
    ],
)
def test_a_result_names_its_rule_level_and_place(severity: str, reason: str, level: str) -> None:
    found = _result(severity=severity, reason=reason, policy="gpu", field="spec.mode")
    assert (found["ruleId"], found["level"]) == (reason or INVALID, level)
    rule = sarif(LintReport())["runs"][0]["tool"]["driver"]["rules"][found["ruleIndex"]]
    assert (rule["id"], rule["defaultConfiguration"]["level"]) == (found["ruleId"], level)
    assert found["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": "a.yaml"},
                "region": {"startLine": 2, "startColumn": 3},
            },
            "logicalLocations": [{"fullyQualifiedName": "gpu: spec.mode"}],
        }
    ]


def test_a_warning_that_is_accepted_is_suppressed_with_its_reason() -> None:
    found = _result(severity="accepted", reason="WrongUnit", accepted="it is meant")
    assert found["suppressions"] == [{"kind": "inSource", "justification": "it is meant"}]
    assert _result()["suppressions"] == []


@pytest.mark.parametrize(
    ("file", "uri"),
    [("policies/a b.yaml", "policies/a%20b.yaml"), ("/a/ü.yaml", "file:///a/%C3%BC.yaml"), ("-", "-")],
)
def test_a_file_is_a_uri(file: str, uri: str) -> None:
    assert _result(file=file)["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_every_reason_is_a_rule_once() -> None:
    rules = [one["id"] for one in sarif(LintReport())["runs"][0]["tool"]["driver"]["rules"]]
    assert sorted(rules) == sorted([INVALID, *LintCode])


def test_both_have_what_the_text_has(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(_DATA)
    expected = json.loads((_DATA / "mixed.json").read_text())["findings"]
    places = [(one["file"], one["line"], one["column"]) for one in expected]
    assert main(["lint", "-o", "github", "mixed.yaml"]) == 1
    lines = capsys.readouterr().out.splitlines()
    matches = [re.match(r"::\w+ file=([^,]+),line=(\d+),col=(\d+),", line) for line in lines]
    assert [(one[1], int(one[2]), int(one[3])) for one in matches if one] == places
    assert main(["lint", "-o", "sarif", "mixed.yaml"]) == 1
    results = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    found = [one["locations"][0]["physicalLocation"] for one in results]
    assert [
        (one["artifactLocation"]["uri"], one["region"]["startLine"], one["region"]["startColumn"]) for one in found
    ] == places
