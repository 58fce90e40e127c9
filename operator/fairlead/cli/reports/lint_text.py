"""Output of lint, as text or as plain data."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from fairlead.cel.syntax.diagnostics import Diagnostic
from fairlead.cli.console.output import clean, paint, pluralize
from fairlead.cli.inputs.findings import Finding, LintedRule, LintReport

_COLOURS: Final = {
    "error": "\x1b[1;31m",
    "warning": "\x1b[1;33m",
    "accepted": "\x1b[1;36m",
    "note": "\x1b[1;36m",
    "caret": "\x1b[1;32m",
}
_BOLD: Final = "\x1b[1m"
_ON_ENGINE_SHOWN: Final = 5


def report_text(report: LintReport, *, colour: bool, verbose: bool) -> Iterator[str]:
    """Yield the lines of the text."""
    for finding in report.findings:
        yield from finding_lines(finding, colour=colour)
    if verbose:
        for rule in report.rules:
            uses = ", ".join(rule.uses) or "nothing"
            slow = ", runs on the slow engine" if rule.evaluation == "Engine" else ""
            what = f"{rule.kind.lower()} {rule.name}: uses {uses}{slow}"
            yield clean(f"{rule.file}:{rule.line}: {rule.policy}: {what}")
    yield from _on_engine(report.rules)
    yield _summary(report)


def report_data(report: LintReport) -> dict[str, Any]:
    """Return an object with findings, rules and summary."""
    expressions = [rule for rule in report.rules if rule.expression]
    return {
        "findings": [
            {name: value for name, value in asdict(finding).items() if name != "shown"} for finding in report.findings
        ],
        "rules": [asdict(rule) for rule in report.rules],
        "summary": {
            "policies": report.policies,
            "ignored": report.ignored,
            "errors": report.count("error"),
            "warnings": report.count("warning"),
            "accepted": report.count("accepted"),
            "notes": report.count("note"),
            "expressions": len(expressions),
            "onEngine": sum(1 for rule in expressions if rule.evaluation == "Engine"),
        },
    }


def finding_lines(finding: Finding, *, colour: bool) -> Iterator[str]:
    """Yield the lines of one finding: the message, further hints, and the place with a caret."""
    where = f"{finding.file}:{finding.line}:{finding.column}:"
    said = f"{finding.field}: {finding.message}" if finding.field else finding.message
    hint, _, more = finding.hint.partition("\n")
    said = f"{said}; {hint}" if hint else said
    if finding.accepted:
        said, more = f"{finding.field}: {finding.reason}: {finding.accepted}", ""
    yield (
        f"{paint(clean(where), _BOLD, colour)} {paint(finding.severity, _COLOURS[finding.severity], colour)}: "
        + (clean(said))
    )
    for line in more.splitlines():
        yield f"    {clean(line)}".rstrip()
    if finding.shown is not None:
        text = "".join(one if one.isprintable() or one == "\t" else "\ufffd" for one in finding.shown)
        line, caret = Diagnostic(1, finding.column, "").pointing(text).split("\n")
        yield f"    {line}"
        yield f"    {paint(caret, _COLOURS['caret'], colour)}"


def _on_engine(rules: list[LintedRule]) -> Iterator[str]:
    """Yield a line about the expressions that run on the engine, if there are any."""
    expressions = [rule for rule in rules if rule.expression]
    slow = [rule for rule in expressions if rule.evaluation == "Engine"]
    if not slow:
        return
    each = [
        f"{rule.policy}: {rule.kind.lower()} {rule.name}{f' ({rule.why})' if rule.why else ''}"
        for rule in slow[:_ON_ENGINE_SHOWN]
    ]
    more = [f"{len(slow) - len(each)} more"] if len(slow) > len(each) else []
    verb = "runs" if len(slow) == 1 else "run"
    said = f"{len(slow)} of {pluralize(len(expressions), 'expression')} {verb} on the slow engine"
    yield clean(f"{said}: {', '.join(each + more)}")


def _summary(report: LintReport) -> str:
    parts = [
        pluralize(report.policies, "policy", "policies"),
        pluralize(report.count("error"), "error"),
        pluralize(report.count("warning"), "warning"),
        pluralize(report.count("note"), "note"),
    ]
    if accepted := report.count("accepted"):
        parts.append(f"{pluralize(accepted, 'warning')} accepted")
    if report.ignored:
        parts.append(f"{pluralize(report.ignored, 'object')} of other kinds ignored")
    return ", ".join(parts)
