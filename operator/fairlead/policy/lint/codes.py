"""Reasons of lint, and the warning that carries one."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from fairlead.api.errors import FieldPath

Severity = Literal["warning", "accepted", "note"]


class LintCode(StrEnum):
    """Reasons of warnings and notes; these words never change."""

    NEVER_PASSES = "NeverPasses"
    ALWAYS_PASSES = "AlwaysPasses"
    ABSENT_RAISES = "AbsentRaises"
    COMPARED_AS_TEXT = "ComparedAsText"
    SCORE_OUT_OF_RANGE = "ScoreOutOfRange"
    WRONG_UNIT = "WrongUnit"
    COUNTS_PODS = "CountsPods"
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
    PUBLISHES_NOTHING = "PublishesNothing"
    PUBLISHES_WIDER = "PublishesWider"
    DEFAULT_SCHEDULER = "DefaultScheduler"
    SHADOW = "Shadow"
    NOT_COMPARED = "NotCompared"
    DISABLED = "Disabled"
    UNUSED_ACCEPTANCE = "UnusedAcceptance"


NOTES: Final = frozenset(
    {
        LintCode.EVENTUALLY_CONSISTENT,
        LintCode.INVISIBLE_TO_AUTOSCALERS,
        LintCode.PUBLISHES_WIDER,
        LintCode.SHADOW,
        LintCode.NOT_COMPARED,
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
    accepted: str = ""
    """Reason for which the policy's owner accepts the warning; "" if it is not accepted."""

    @property
    def severity(self) -> Severity:
        """Return `note` for what is meant but may surprise, `accepted` for what its owner says is meant."""
        return "note" if self.reason in NOTES else "accepted" if self.accepted else "warning"


LintWarnings = Iterator[LintWarning | None]
"""Warnings, found one by one. None: a pause."""
