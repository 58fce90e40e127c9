"""Policies as text, and what lint reports about them."""

import textwrap
from collections.abc import Mapping

from fairlead.cli.inputs.checker import Checker
from fairlead.cli.inputs.findings import Finding, LintReport
from fairlead.strategies.contract import Strategy

HEAD = "apiVersion: fairlead.dev/v1alpha1\nkind: SchedulerExtenderPolicy\nmetadata: {name: some}\n"
GOOD = HEAD + "spec: {filters: [{name: a, expression: node.spec.unschedulable == false}]}\n"


def report_of(*texts: str | bytes, custom: Mapping[str, Strategy] | None = None) -> LintReport:
    """Return the report of lint on files named a.yaml, b.yaml and so on."""
    checker = Checker(custom=custom or {})
    for at, text in enumerate(texts):
        checker.check(f"{chr(97 + at)}.yaml", text if isinstance(text, bytes) else text.encode())
    return checker.finish()


def errors_of(*texts: str | bytes) -> list[Finding]:
    """Return the errors only."""
    return [finding for finding in report_of(*texts).findings if finding.severity == "error"]


def finding_line(finding: Finding) -> str:
    """Return a finding as one line."""
    place = f"{finding.file}:{finding.line}:{finding.column}: "
    field = f"{finding.field}: " if finding.field else ""
    return place + field + finding.message + (f"; {finding.hint}" if finding.hint else "")


def spec(text: str) -> str:
    """Return a policy with this spec, which begins in the fifth line."""
    return f"{HEAD}spec:\n{textwrap.indent(textwrap.dedent(text), '  ')}"
