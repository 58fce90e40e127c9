"""What lint says: one finding for each thing, and the sum of them.

The fields of a Finding are those of `-o json`: they stay, and more may come.
"""

from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is said about a file."""

    file: str
    line: int
    """From 1."""
    column: int
    """From 1, in code points."""
    severity: Severity
    field: str
    """As in `spec.filters[2].expression`; empty for the file or the object as a whole."""
    message: str
    hint: str = ""
    """What would be right; it may have several lines."""
    reason: str = ""
    """Of warnings and notes: why, in one word that never changes."""
    policy: str = ""
    rule: str = ""
    shown: str | None = None
    """The line of the file, where the place in it says something."""


@dataclass(frozen=True, slots=True)
class LintedRule:
    """What is known of a rule that compiles."""

    file: str
    line: int
    policy: str
    name: str
    kind: str
    evaluation: str
    why: str
    """What keeps it on the engine."""
    uses: tuple[str, ...]
    expression: bool


@dataclass(slots=True)
class LintReport:
    """Everything that is said about all files."""

    findings: list[Finding] = field(default_factory=list)
    rules: list[LintedRule] = field(default_factory=list)
    policies: int = 0
    ignored: int = 0
    """Documents of other kinds."""

    def count(self, severity: Severity) -> int:
        """How many findings are so."""
        return sum(1 for finding in self.findings if finding.severity == severity)
