"""Reasons of lint, and the warning that carries one."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from fairlead.api.errors import FieldPath

Severity = Literal["warning", "note"]


class LintCode(StrEnum):
    """Reasons of warnings and notes; these words never change."""

    NEVER_PASSES = "NeverPasses"
    ALWAYS_PASSES = "AlwaysPasses"
    ABSENT_RAISES = "AbsentRaises"
    COMPARED_AS_TEXT = "ComparedAsText"
    SCORE_OUT_OF_RANGE = "ScoreOutOfRange"
    MATCHES_NOTHING = "MatchesNothing"
    HAS_NO_EFFECT = "HasNoEffect"
    UNUSED_VARIABLE = "UnusedVariable"
    UNUSED_DATA = "UnusedData"
    POD_IDENTITY = "PodIdentity"
    RUNS_ON_ENGINE = "RunsOnEngine"
    UNUSED_GRANT = "UnusedGrant"
    MEASURED_VALUES = "MeasuredValues"
    CONFLICT = "Conflict"
    SAME_NAME = "SameName"
    EVENTUALLY_CONSISTENT = "EventuallyConsistent"
    INVISIBLE_TO_AUTOSCALERS = "InvisibleToAutoscalers"
    DEFAULT_SCHEDULER = "DefaultScheduler"
    DISABLED = "Disabled"


_NOTES: Final = frozenset(
    {
        LintCode.EVENTUALLY_CONSISTENT,
        LintCode.INVISIBLE_TO_AUTOSCALERS,
        LintCode.DEFAULT_SCHEDULER,
        LintCode.DISABLED,
    }
)


@dataclass(frozen=True, slots=True)
class LintWarning:
    """Warning or note about one field of a policy."""

    reason: LintCode
    path: FieldPath
    message: str
    hint: str = ""
    place: tuple[int, int] | None = None
    """Line and column in the expression, if the warning is about a part of it."""

    @property
    def severity(self) -> Severity:
        """Return `note` for what is meant but may surprise, else `warning`."""
        return "note" if self.reason in _NOTES else "warning"


LintWarnings = Iterator[LintWarning | None]
"""Warnings, found one by one. None: a pause."""
