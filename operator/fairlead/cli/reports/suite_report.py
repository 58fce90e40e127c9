"""Report of `fairlead test`, as text, as data and as JUnit XML."""

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from fairlead.api.errors import render_path
from fairlead.cli.console.output import clean, columns, paint, pluralize
from fairlead.cli.inputs.findings import Finding, PolicyLocation
from fairlead.cli.reports.rule_text import indent_rows, of_items, of_rejection, of_step, of_unmatched
from fairlead.suites.compare import Difference, number
from fairlead.suites.coverage import RuleCoverage

Word = Literal["passed", "failed", "error"]
_BOLD = "\x1b[1m"
_RED = "\x1b[31m"
_ROWS_MAX = 12
_RESULTS = {"passed": "ok", "failed": "FAILED", "error": "ERROR"}


@dataclass(frozen=True, slots=True)
class CaseRun:
    """Result of a case."""

    name: str
    line: int
    result: Word
    seconds: float
    differences: Sequence[Difference] = ()
    details: Sequence[str] = ()
    """The differences, or the errors in the case, as lines of text."""


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """Results of a suite."""

    name: str
    file: str
    cases: list[CaseRun]


@dataclass(slots=True)
class SuiteReport:
    """Results of all suites."""

    suites: list[SuiteRun] = field(default_factory=list)
    coverage: list[RuleCoverage] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    """Errors in suites and policies that keep cases from running."""

    def count(self, result: Word) -> int:
        """Return the number of cases with a result."""
        return sum(case.result == result for suite in self.suites for case in suite.cases)

    @property
    def faulty_files(self) -> dict[str, list[Finding]]:
        """Errors that are not those of a case, by file."""
        of_cases = {suite.file for suite in self.suites for case in suite.cases if case.result == "error"}
        found: dict[str, list[Finding]] = {}
        for one in self.findings:
            if one.file not in of_cases:
                found.setdefault(one.file, []).append(one)
        return found

    @property
    def errors(self) -> int:
        """Number of cases and files with errors."""
        return self.count("error") + len(self.faulty_files)

    @property
    def outcomes(self) -> tuple[int, int]:
        """Number of covered outcomes of rules, and of all outcomes."""
        counts = [count for rule in self.coverage for count in rule.outcomes.values()]
        return sum(count > 0 for count in counts), len(counts)


def lines_of(difference: Difference) -> list[str]:
    """Return a difference as lines of text."""
    subject = f"{difference.subject}: " if difference.subject else ""
    head = f"{difference.path[0]}: {subject}expected {difference.expected}; got {difference.got}"
    return [head, *(f"    {line}" for line in _details(difference))]


def _details(difference: Difference) -> Iterator[str]:
    """Yield what rules compared, and notes."""
    yield from difference.notes
    yield from (f"No match: {of_unmatched(one)}" for one in difference.others)
    for one in difference.protections:
        yield f"{one.policy}/{one.rule}: {'protects' if one.protects else 'does not protect'}"
        yield from indent_rows([*map(of_step, one.steps)][:_ROWS_MAX])
    for rule in difference.rules:
        points = "" if rule.value is None else f" {number(rule.value)}"
        yield f"{rule.policy}/{rule.rule}: {rule.outcome.lower()}{points}"
        rows = of_rejection(rule) if rule.outcome == "Rejected" else [of_step(step) for step in rule.steps]
        if rule.noted is not None and rule.outcome != "Rejected":
            rows += of_items(rule.noted)
        yield from indent_rows(rows[:_ROWS_MAX])


def suite_text(report: SuiteReport, *, colour: bool = False) -> Iterator[str]:
    """Yield the lines of the text: results, differences, outcomes that are not covered, and the summary."""
    rows = [(suite.name, case.name, _RESULTS[case.result]) for suite in report.suites for case in suite.cases]
    if rows:
        head, *lines = columns([("SUITE", "CASE", "RESULT"), *rows])
        yield head
        yield from (paint(line, _RED, colour and row[-1] != "ok") for line, row in zip(lines, rows, strict=True))
    for suite in report.suites:
        for case in suite.cases:
            if case.result != "passed":
                yield ""
                yield paint(clean(f"{suite.file}:{case.line}: {case.name}"), _BOLD, colour)
                yield from (f"  {clean(line)}" for line in case.details)
    if unseen := [(one.policy, one.kind, one.rule, ", ".join(one.missing)) for one in report.coverage if one.missing]:
        yield ""
        yield from columns([("POLICY", "KIND", "RULE", "NOT COVERED"), *unseen])
    if rows:
        yield ""
    yield _summary(report)


def suite_data(report: SuiteReport) -> dict[str, Any]:
    """Return the report as plain data; fields may be added but are never removed."""
    seen, all_ = report.outcomes
    return {
        "suites": [
            {
                "name": suite.name,
                "file": suite.file,
                "cases": [
                    {
                        "name": case.name,
                        "line": case.line,
                        "result": case.result,
                        "differences": [_difference(one) for one in case.differences],
                    }
                    for case in suite.cases
                ],
            }
            for suite in report.suites
        ],
        "coverage": [asdict(one) for one in report.coverage],
        "findings": [{key: value for key, value in asdict(one).items() if key != "shown"} for one in report.findings],
        "summary": {
            "suites": len(report.suites),
            "passed": report.count("passed"),
            "failed": report.count("failed"),
            "errors": report.errors,
            "outcomes": all_,
            "outcomesSeen": seen,
        },
    }


def place_of(place: PolicyLocation, at: int) -> int:
    """Return the line of a case."""
    return place.of(("cases", at, "name"))[0]


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        "field": render_path(("expect", *difference.path)),
        "about": difference.subject,
        "expected": difference.expected,
        "got": difference.got,
        "details": [*_details(difference)],
    }


def _summary(report: SuiteReport) -> str:
    cases = sum(len(suite.cases) for suite in report.suites)
    parts = [f"{report.count('passed')} passed"]
    if failed := report.count("failed"):
        parts.append(f"{failed} failed")
    if report.errors:
        parts.append(pluralize(report.errors, "error"))
    seen, all_ = report.outcomes
    said = f"{pluralize(cases, 'case')} in {pluralize(len(report.suites), 'suite')}: {', '.join(parts)}"
    return f"{said}; {seen} of {pluralize(all_, 'outcome')} of rules covered" if all_ else said


def as_junit(report: SuiteReport) -> bytes:
    """Return the report as XML. Includes suites that could not run, because CI shows nothing else."""
    suites = [*report.suites, *_unread(report)]
    root = ET.Element(
        "testsuites", {"name": "fairlead test", **_counts([case for suite in suites for case in suite.cases])}
    )
    for suite in suites:
        held = ET.SubElement(root, "testsuite", {"name": suite.name, "file": suite.file, **_counts(suite.cases)})
        for case in suite.cases:
            named = {"classname": suite.name, "name": case.name, "file": suite.file, "line": str(case.line)}
            one = ET.SubElement(held, "testcase", {**named, "time": _seconds(case.seconds)})
            if case.result != "passed":
                kind = "failure" if case.result == "failed" else "error"
                said = "\n".join(case.details)
                ET.SubElement(one, kind, message=_clean(case.details[0] if case.details else "")).text = _clean(said)
    for element in root.iter():
        element.attrib = {key: _clean(value) for key, value in element.attrib.items()}
    ET.indent(root)
    found: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return found + b"\n"


def _unread(report: SuiteReport) -> list[SuiteRun]:
    """Return a failed case for each file with errors that are not those of a case."""
    return [
        SuiteRun(file, file, [CaseRun("can be read", found[0].line, "error", 0.0, details=[*map(_said, found)])])
        for file, found in report.faulty_files.items()
    ]


def _said(finding: Finding) -> str:
    what = f"{finding.field}: {finding.message}" if finding.field else finding.message
    return f"{finding.line}:{finding.column}: {what}"


def _counts(cases: Sequence[CaseRun]) -> dict[str, str]:
    return {
        "tests": str(len(cases)),
        "failures": str(sum(case.result == "failed" for case in cases)),
        "errors": str(sum(case.result == "error" for case in cases)),
        "time": _seconds(sum(case.seconds for case in cases)),
    }


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f}"


def _clean(text: str) -> str:
    """Replace the control characters that XML does not allow."""
    return "".join(one if one in "\t\n" or one.isprintable() else "\ufffd" for one in text)
