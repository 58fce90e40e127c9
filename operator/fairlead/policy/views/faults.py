"""Faults of rules as values: what an evaluation may raise, and what is said of it."""

from typing import Final

from fairlead.strategies.facts import Unknown

RAISED: Final = (Exception,)
"""What an evaluation may raise: errors of the language, and what nobody foresaw."""


class RuleError(Unknown, frozen=True):
    """An expression raised. What it says is stable; the detail is for the status and the log: no fact is in it."""

    detail: str = ""


class InternalRuleError(RuleError, frozen=True):
    """What was raised is a fault of the program, not of the rule or of what it read."""

    error: Exception | None = None


def internal_error(
    error: Exception, what: str = "the rule", until: int | None = None, *, why: str = "cannot be decided"
) -> RuleError:
    """What nobody foresaw."""
    detail = f"an internal fault ({type(error).__name__}); the log of the operator says where"
    return InternalRuleError(what, why, until, detail, error)
