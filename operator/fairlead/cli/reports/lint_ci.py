"""Findings of lint as CI systems read them: annotations of GitHub Actions, and SARIF 2.1.0."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import fairlead
from fairlead.cli.inputs.findings import Finding, LintReport, Severity
from fairlead.policy.lint.codes import NOTES, LintCode

_ANNOTATIONS: Final[Mapping[Severity, str]] = {
    "error": "error",
    "warning": "warning",
    "accepted": "notice",
    "note": "notice",
}
_LEVELS: Final[Mapping[Severity, str]] = {"error": "error", "warning": "warning", "accepted": "warning", "note": "note"}
_PROJECT: Final = "https://github.com/fairlead-dev/fairlead"
_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
INVALID: Final = "Invalid"
"""Rule of errors, which have no reason of their own."""


def annotations(report: LintReport) -> Iterator[str]:
    """Yield a workflow command for each finding; GitHub shows it beside the line of the pull request."""
    for finding in report.findings:
        place = {"file": finding.file, "line": finding.line, "col": finding.column, "title": _title(finding)}
        fields = ",".join(f"{name}={_property(str(value))}" for name, value in place.items())
        yield f"::{_ANNOTATIONS[finding.severity]} {fields}::{_value(_text(finding))}"


def sarif(report: LintReport) -> dict[str, Any]:
    """Return the log that code scanning reads."""
    rules = [INVALID, *LintCode]
    driver = {
        "name": "fairlead lint",
        "version": fairlead.__version__,
        "informationUri": _PROJECT,
        "rules": [
            {
                "id": str(rule),
                "defaultConfiguration": {"level": _level(rule)},
                "helpUri": f"{_PROJECT}/blob/main/docs/reference/lint.md",
            }
            for rule in rules
        ],
    }
    results = [_result(finding, rules.index(finding.reason or INVALID)) for finding in report.findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(finding: Finding, rule: int) -> dict[str, Any]:
    place: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(finding.file)},
            "region": {"startLine": finding.line, "startColumn": finding.column},
        }
    }
    if named := ": ".join(part for part in (finding.policy, finding.field) if part):
        place["logicalLocations"] = [{"fullyQualifiedName": named}]
    accepted = [{"kind": "inSource", "justification": finding.accepted}] if finding.accepted else []
    return {
        "ruleId": finding.reason or INVALID,
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": {"text": _text(finding)},
        "locations": [place],
        # a log in which any result has suppressions names them for all
        "suppressions": accepted,
    }


def _level(rule: str) -> str:
    if rule == INVALID:
        return "error"
    return "note" if rule in NOTES else "warning"


def _title(finding: Finding) -> str:
    return " ".join(part for part in ("fairlead", finding.policy, finding.reason) if part)


def _text(finding: Finding) -> str:
    message = f"{finding.field}: {finding.message}" if finding.field else finding.message
    if finding.accepted:
        return f"{message}; accepted: {finding.accepted}"
    return f"{message}; {finding.hint}" if finding.hint else message


def _uri(file: str) -> str:
    path = Path(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def _value(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _value(text).replace(":", "%3A").replace(",", "%2C")
