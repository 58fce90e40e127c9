"""What is wrong with a policy, and where.

    PolicyError          a policy that does not compile: everything that is wrong with it
      Fault              one of these: a field, a sentence, a cure; the place in an expression's text, if it has one

Evaluation raises nothing: a rule that cannot decide says `Unknown`, and the policy says what that means.
"""

from dataclasses import dataclass

from fairlead.api.errors import FieldError, FieldPath
from fairlead.cel.syntax.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a policy."""

    error: FieldError
    at: Diagnostic | None = None
    source: str = ""
    is_too_long: bool = False
    """Whether it is no more than that looking at the policy takes too much time."""

    @property
    def path(self) -> FieldPath:
        """The field."""
        return self.error.path

    def __str__(self) -> str:
        return str(self.error)


def in_field(path: FieldPath, message: str, hint: str = "") -> Fault:
    """Something wrong with a field."""
    return Fault(FieldError(path, message, hint))


def in_expression(path: FieldPath, at: Diagnostic, source: str) -> Fault:
    """Something wrong inside of an expression."""
    where = f"line {at.line}, column {at.column}: " if source.count("\n") or at.column > 1 else ""
    return Fault(FieldError(path, f"{where}{at.message}", at.hint), at, source)


class PolicyError(Exception):
    """A policy that does not compile."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = faults

    @property
    def is_too_long(self) -> bool:
        """Whether it was given up because it takes too much time."""
        return any(fault.is_too_long for fault in self.faults)
