"""Findings of lint, and where fields of a policy are in its file. Pure.

The fields of a Finding are those of `-o json`: they stay, and more may be added.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from fairlead.api.errors import FieldPath, render_path
from fairlead.cli.yaml.plain_values import find, text_at
from fairlead.cli.yaml.scalar_positions import index_in_file
from fairlead.cli.yaml.source import SourceText
from fairlead.cli.yaml.yaml_tree import YamlNode, YamlScalar
from fairlead.plain_data import resolve_scalar
from fairlead.policy.lint.acceptances import Acceptance, unused
from fairlead.policy.lint.codes import LintWarning

Severity = Literal["error", "warning", "accepted", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One error, warning or note about a file."""

    file: str
    line: int
    """Line, from 1."""
    column: int
    """Column, from 1, in code points."""
    severity: Severity
    field: str
    """Path such as `spec.filters[2].expression`; empty for the file or the object as a whole."""
    message: str
    hint: str = ""
    """How to fix it; may have several lines."""
    reason: str = ""
    """Fixed one-word reason of warnings and notes."""
    policy: str = ""
    rule: str = ""
    accepted: str = ""
    """Reason for which a warning is accepted."""
    shown: str | None = None
    """The line of the file, if it is shown with a caret."""


@dataclass(frozen=True, slots=True)
class LintedRule:
    """A rule that compiles."""

    file: str
    line: int
    policy: str
    name: str
    kind: str
    evaluation: str
    why: str
    """Why it runs on the engine."""
    uses: tuple[str, ...]
    expression: bool


@dataclass(slots=True)
class LintReport:
    """All findings about all files."""

    findings: list[Finding] = field(default_factory=list)
    rules: list[LintedRule] = field(default_factory=list)
    policies: int = 0
    ignored: int = 0
    """Number of documents of other kinds."""

    def count(self, severity: Severity) -> int:
        """Return the number of findings of a severity."""
        return sum(1 for finding in self.findings if finding.severity == severity)


@dataclass(frozen=True, slots=True)
class PolicyLocation:
    """A policy in a file, with the positions of its fields."""

    file: str
    source: SourceText
    root: YamlNode
    name: str

    def of(self, path: FieldPath, *, key: bool = False) -> tuple[int, int]:
        """Return line and column of a field: of its value if that is a scalar, else of its key, else of its parent."""
        name, node, there = find(self.root, path)
        if there and name is not None and (key or not isinstance(node, YamlScalar)):
            return self.source.place(name.start)
        return self.source.place(node.start)

    def within(self, path: FieldPath, part: tuple[int, int]) -> tuple[int, int] | None:
        """Return where a line and column of a field's text are in the file; None if the field is not a scalar."""
        _, node, there = find(self.root, path)
        if not there or not isinstance(node, YamlScalar):
            return None
        return self.source.place(index_in_file(self.source.text, node, _offset(node.value, part)))

    def _word(self, path: FieldPath) -> str:
        """Return the hint for a value that must be a text: YAML takes some words for true and false."""
        _, node, there = find(self.root, path)
        if there and isinstance(node, YamlScalar) and isinstance(truth := resolve_scalar(node.value), bool):
            word = str(truth).lower()
            if node.value.lower() != word:
                return f"YAML reads {node.value} as {word}: {_IN_QUOTES}"
        return _IN_QUOTES

    def warning(self, warning: LintWarning) -> Finding:
        """Return what lint says about a field of the policy."""
        return self.finding(
            warning.path,
            warning.message,
            warning.hint,
            severity=warning.severity,
            reason=warning.reason.value,
            part=warning.place,
            accepted=warning.accepted,
        )

    def finding(
        self,
        path: FieldPath,
        message: str,
        hint: str,
        *,
        severity: Severity = "error",
        reason: str = "",
        at: tuple[int, int] | None = None,
        part: tuple[int, int] | None = None,
        accepted: str = "",
    ) -> Finding:
        """Return a finding about a field or a part of its text; `at` overrides the position of the field."""
        inside = self.within(path, part) if part else None
        hint = self._word(path) if hint == _IN_QUOTES else hint
        line, column = inside or at or self.of(path)
        return Finding(
            file=self.file,
            line=line,
            column=column,
            severity=severity,
            field=render_path(path),
            message=message,
            hint=hint,
            reason=reason,
            policy=self.name,
            rule=_rule(self.root, path),
            accepted=accepted,
            shown=self.source.line(line) if inside else None,
        )


_IN_QUOTES: Final = "write it in quotes"


def with_accepted(
    findings: Iterable[Finding], acceptances: Iterable[tuple[PolicyLocation, Acceptance]]
) -> Iterator[Finding]:
    """Yield the findings, accepted where their policies accept them, and one for each acceptance of no warning."""
    left = {(place.file, place.name, each): place for place, each in acceptances}
    used = set[tuple[str, str, Acceptance]]()
    for one in findings:
        keys = (key for key in left if key[:2] == (one.file, one.policy) and key[2].covers(one.reason, one.rule))
        if (key := next(keys, None)) is None:
            yield one
        else:
            used.add(key)
            yield replace(one, severity="accepted", accepted=key[2].why)
    yield from (place.warning(unused(key[2])) for key, place in left.items() if key not in used)


def _offset(value: str, part: tuple[int, int]) -> int:
    line, column = part
    before = sum(len(one) + 1 for one in value.split("\n")[: line - 1])
    return min(before + column - 1, len(value))


def _rule(root: YamlNode, path: FieldPath) -> str:
    """Return the name of the rule that a field belongs to."""
    for end in range(len(path), 0, -1):
        if isinstance(path[end - 1], int):
            return text_at(root, *path[:end], "name") or text_at(root, *path[:end], "key")
    return ""
