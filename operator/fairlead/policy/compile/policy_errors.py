"""Errors of policies that do not compile.

    PolicyError          all faults of a policy
      Fault              a field, a message and a hint; the place in the expression, if it is about one

Evaluation raises nothing: a rule that cannot decide returns `Unknown`, and the policy says what that means.
"""

from dataclasses import dataclass

from fairlead.api.errors import FieldError, FieldPath
from fairlead.cel.syntax.diagnostics import Diagnostic
from fairlead.cooperative import LIMIT_S, TooLongError


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a policy."""

    error: FieldError
    at: Diagnostic | None = None
    source: str = ""
    is_too_long: bool = False
    """Whether compiling was given up because it takes too long."""

    @property
    def path(self) -> FieldPath:
        """Return the field."""
        return self.error.path

    def __str__(self) -> str:
        return str(self.error)


def in_field(path: FieldPath, message: str, hint: str = "") -> Fault:
    """Return a fault of a field."""
    return Fault(FieldError(path, message, hint))


def in_expression(path: FieldPath, at: Diagnostic, source: str) -> Fault:
    """Return a fault at a place in an expression."""
    where = f"line {at.line}, column {at.column}: " if source.count("\n") or at.column > 1 else ""
    return Fault(FieldError(path, f"{where}{at.message}", at.hint), at, source)


def too_long(error: TooLongError) -> Fault:
    """Return the fault of a policy that takes too long to compile."""
    message = f"takes too long to compile: a policy may take {LIMIT_S:g} s of a processor"
    path = error.path or ("spec",)
    hint = (
        "most of it was spent here; split it into several policies" if error.path else "split it into several policies"
    )
    return Fault(FieldError(path, message, hint), is_too_long=True)


class PolicyError(Exception):
    """A policy that does not compile."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        super().__init__("\n".join(map(str, faults)))
        self.faults = faults

    @property
    def is_too_long(self) -> bool:
        """Report whether compiling was given up because it takes too long."""
        return any(fault.is_too_long for fault in self.faults)
