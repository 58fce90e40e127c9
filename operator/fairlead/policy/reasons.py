"""What can be said of a policy that compiles."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from fairlead.api.errors import FieldPath

Severity = Literal["warning", "note"]


class Reason(StrEnum):
    """Why something is said; the words never change."""

    NEVER_PASSES = "NeverPasses"
    ALWAYS_PASSES = "AlwaysPasses"
    SAME_FOR_EVERY_NODE = "SameForEveryNode"
    SCORE_IS_ZERO = "ScoreIsZero"
    SCORE_OUT_OF_RANGE = "ScoreOutOfRange"
    SCORE_IS_TINY = "ScoreIsTiny"
    MATCHES_NOTHING = "MatchesNothing"
    DOES_NOTHING = "DoesNothing"
    POD_IDENTITY = "PodIdentity"
    RESOLVABLE_NOT_HONOURED = "ResolvableNotHonoured"
    RESOLVABLE_CANNOT_HELP = "ResolvableCannotHelp"
    RUNS_ON_ENGINE = "RunsOnEngine"
    UNUSED_VARIABLE = "UnusedVariable"
    UNUSED_DATA = "UnusedData"
    EVENTUALLY_CONSISTENT = "EventuallyConsistent"
    INVISIBLE_TO_AUTOSCALERS = "InvisibleToAutoscalers"
    READS_NOW = "ReadsNow"
    SWITCHED_OFF = "SwitchedOff"


_NOTES: Final = frozenset(
    {Reason.EVENTUALLY_CONSISTENT, Reason.INVISIBLE_TO_AUTOSCALERS, Reason.READS_NOW, Reason.SWITCHED_OFF}
)


@dataclass(frozen=True, slots=True)
class PolicyWarning:
    """One thing to be said of a policy."""

    reason: Reason
    path: FieldPath
    message: str
    hint: str = ""

    @property
    def severity(self) -> Severity:
        """How much it matters."""
        return "note" if self.reason in _NOTES else "warning"
