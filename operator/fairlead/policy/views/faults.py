"""Errors of rules as values: what an evaluation may raise, and what status and log say about it."""

import traceback
from pathlib import PurePath
from typing import Final

from fairlead.strategies.facts import Unknown
from fairlead.strategies.guard import EndlessStrategyError

RAISED: Final = (Exception,)
"""Exceptions that an evaluation may raise: errors of CEL, and faults of Fairlead, which may be of any kind."""


class RuleError(Unknown, frozen=True):
    """Verdict of an expression that raised; `detail` is for status and log. Neither has values of objects in it."""

    detail: str = ""


class InternalRuleError(RuleError, frozen=True):
    """Verdict of a rule that failed because of a fault of Fairlead, not of the rule or of what it read."""

    error: Exception | None = None


def internal_error(
    error: Exception, what: str = "the rule", until: int | None = None, *, why: str = "cannot be decided"
) -> RuleError:
    """Return the verdict for an unexpected exception."""
    detail = f"an internal fault ({type(error).__name__}); the log of the operator says where"
    if isinstance(error, EndlessStrategyError):  # its text is the guard's, and says when the strategy runs again
        detail = str(error)
    return InternalRuleError(what, why, until, detail=detail, error=error)


def error_with_place(error: Exception) -> str:
    """Return an exception with its message and where it was raised, for the author of the code."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({PurePath(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"
