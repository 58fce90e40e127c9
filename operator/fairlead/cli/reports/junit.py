"""What JUnit and all who read its files call a report."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence

from fairlead.cli.inputs.findings import Finding
from fairlead.cli.reports.suite_report import CaseRun, SuiteReport, SuiteRun


def as_junit(report: SuiteReport) -> bytes:
    """The report as XML. What could not be run at all is there, too: readers look at nothing else."""
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
                said = "\n".join(case.said)
                ET.SubElement(one, kind, message=_clean(case.said[0] if case.said else "")).text = _clean(said)
    for element in root.iter():
        element.attrib = {key: _clean(value) for key, value in element.attrib.items()}
    ET.indent(root)
    found: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return found + b"\n"


def _unread(report: SuiteReport) -> list[SuiteRun]:
    """A case for each file of which nothing could be run."""
    by_file: dict[str, list[Finding]] = {}
    for one in report.findings:
        if one.file not in {suite.file for suite in report.suites}:
            by_file.setdefault(one.file, []).append(one)
    return [
        SuiteRun(file, file, [CaseRun("can be read", found[0].line, "error", 0.0, said=[*map(_said, found)])])
        for file, found in by_file.items()
    ]


def _said(one: Finding) -> str:
    what = f"{one.field}: {one.message}" if one.field else one.message
    return f"{one.line}:{one.column}: {what}"


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
    """XML has no place for most control characters."""
    return "".join(one if one in "\t\n" or one.isprintable() else "\ufffd" for one in text)
