"""What can be said of a policy that compiles."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from fairlead.api.errors import FieldPath

Severity = Literal["warning", "note"]


class LintCode(StrEnum):
    """Why something is said; the words never change."""

    NEVER_PASSES = "NeverPasses"
    ALWAYS_PASSES = "AlwaysPasses"
    SAME_FOR_EVERY_NODE = "SameForEveryNode"
    SCORE_IS_ZERO = "ScoreIsZero"
    SCORE_OUT_OF_RANGE = "ScoreOutOfRange"
    SCORE_IS_TINY = "ScoreIsTiny"
    MATCHES_NOTHING = "MatchesNothing"
    DOES_NOTHING = "DoesNothing"
    DEFAULT_SCHEDULER = "DefaultScheduler"
    NAMESPACE_IGNORED = "NamespaceIgnored"
    SAME_NAME = "SameName"
    CONFLICT = "Conflict"
    COMPARED_AS_TEXT = "ComparedAsText"
    ABSENT_RAISES = "AbsentRaises"
    ALWAYS_RAISES = "AlwaysRaises"
    SHADOWS = "Shadows"
    POD_IDENTITY = "PodIdentity"
    RESOLVABLE_NOT_HONOURED = "ResolvableNotHonoured"
    RESOLVABLE_CANNOT_HELP = "ResolvableCannotHelp"
    RUNS_ON_ENGINE = "RunsOnEngine"
    UNUSED_VARIABLE = "UnusedVariable"
    UNUSED_DATA = "UnusedData"
    EVENTUALLY_CONSISTENT = "EventuallyConsistent"
    INVISIBLE_TO_AUTOSCALERS = "InvisibleToAutoscalers"
    READS_NOW = "ReadsNow"
    DISABLED = "Disabled"


_NOTES: Final = frozenset(
    {
        LintCode.DEFAULT_SCHEDULER,
        LintCode.EVENTUALLY_CONSISTENT,
        LintCode.INVISIBLE_TO_AUTOSCALERS,
        LintCode.READS_NOW,
        LintCode.DISABLED,
    }
)


@dataclass(frozen=True, slots=True)
class LintWarning:
    """One thing to be said of a policy."""

    reason: LintCode
    path: FieldPath
    message: str
    hint: str = ""
    place: tuple[int, int] | None = None
    """Line and column in the expression, where the field is one and a part of it is meant."""

    @property
    def severity(self) -> Severity:
        """How much it matters."""
        return "note" if self.reason in _NOTES else "warning"
