"""Strategy `telemetry`: rejects nodes by thresholds of measured values, and orders nodes by one of them."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fairlead.api.params import DataName, FieldCheck, Listed, Params
from fairlead.strategies.builtin.comparison import at_least, at_most, equal, position
from fairlead.strategies.contract import (
    PASS,
    Decide,
    Filter,
    NodeFacts,
    NodeScorer,
    PodFacts,
    Reads,
    Reject,
    Score,
    Strategy,
    Trace,
    Unknown,
    Use,
    Value,
    Verdict,
    graver,
)

TOO_HIGH = "{name} is too high"
TOO_LOW = "{name} is too low"
FORBIDDEN = "{name} has a forbidden value"

_Target = Annotated[float, Field(ge=-1e18, le=1e18)]
Operator = Literal["LessThan", "GreaterThan", "Equals"]


class TelemetryRule(Params):
    """A threshold of a measured value."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    value: DataName
    """Entry of data with the value of the node."""
    operator: Operator
    """Comparison of the value with the target: the rule fires if it holds. A value that is equal to the target is
    neither less nor greater."""
    target: _Target
    """Number to which the value is compared."""


class TelemetryFilter(Params):
    """Reject nodes by thresholds of measured values.

    If a value is missing or stale and the other rules do not decide, this is a rule error, and onError decides.
    """

    reject_when: Literal["AnyOf", "AllOf"] = "AnyOf"
    """AnyOf rejects a node if one of the rules fires, AllOf if all of them fire. Defaults to AnyOf."""
    rules: Annotated[Listed[TelemetryRule], Field(min_length=1, max_length=16)]
    """Thresholds. The first that fires gives the reason."""


class TelemetryRange(Params):
    """A range of values, which becomes the scores from 0 to 100."""

    low: Annotated[float, Field(ge=-1e18, le=1e18, alias="from")]
    """Value that scores 0, or with prefer Lowest 100; so do lower values."""
    high: Annotated[float, Field(ge=-1e18, le=1e18, alias="to")]
    """Value that scores 100, or with prefer Lowest 0; so do higher values."""

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Require that the range goes up."""
        return (
            FieldCheck(
                rule="self.from < self.to",
                holds=lambda self: self.low < self.high,
                message="from must be less than to: to prefer low values, set prefer to Lowest",
            ),
        )


class TelemetryScore(Params):
    """Prefer nodes by a measured value.

    Without range, the rule's normalize decides what the values score, and MinMax is its default: the best node of each
    call scores 100 and the worst 0, however little they differ. With normalize None, a value is a score, and with
    prefer Lowest 100 minus the value is.
    """

    value: DataName
    """Entry of data with the value of the node."""
    prefer: Literal["Lowest", "Highest"]
    """Values that are better."""
    range: TelemetryRange | None = None
    """Range of values that become the scores from 0 to 100, in place of normalize: a rule cannot have both. Give one
    for measured values, so that small differences stay small."""


@dataclass(frozen=True, slots=True)
class _Threshold:
    value: str
    operator: Operator
    target: float
    reject: Reject

    def fires(self, value: float) -> bool:
        match self.operator:
            case "GreaterThan":
                return not at_most(value, self.target)
            case "LessThan":
                return not at_least(value, self.target)
            case "Equals":
                return equal(value, self.target)


_REASONS: dict[Operator, str] = {"GreaterThan": TOO_HIGH, "LessThan": TOO_LOW, "Equals": FORBIDDEN}


def _threshold(rule: TelemetryRule) -> _Threshold:
    reason = _REASONS[rule.operator].format(name=rule.value)
    return _Threshold(rule.value, rule.operator, rule.target, Reject(reason))


def _filter(params: TelemetryFilter) -> Filter:
    rules = tuple(map(_threshold, params.rules))
    # One rule decides alone: with AnyOf one that fires, with AllOf one that does not.
    decisive = params.reject_when == "AnyOf"
    otherwise: Verdict = PASS if decisive else rules[0].reject

    def one(node: NodeFacts, _now: int, trace: Trace | None = None) -> Verdict:
        decided: Verdict | None = None
        unknown: Unknown | None = None
        for rule in rules:
            value = node.data(rule.value)
            fires: bool | None = None
            if isinstance(value, Unknown):
                unknown = graver(unknown, value)
            else:
                fires = rule.fires(value)
                if fires is decisive:
                    decided = decided or (rule.reject if fires else PASS)
            if trace is not None:
                _show(trace, rule, value, fires)
            elif decided is not None:
                return decided
        return decided or unknown or otherwise

    def for_pod(_pod: PodFacts) -> Decide:
        return one

    return Filter(
        reads=Reads(data=frozenset(rule.value for rule in rules)),
        for_pod=for_pod,
        reasons=tuple(dict.fromkeys(rule.reject.reason for rule in rules)),
    )


def _show(trace: Trace, rule: _Threshold, value: float | Unknown, fires: bool | None) -> None:  # noqa: FBT001
    found = {"why": value.why} if isinstance(value, Unknown) else {"value": value}
    trace.item(rule.value, **found, operator=rule.operator, target=rule.target, fires=fires)


def _score(params: TelemetryScore) -> Score:
    name, mirrored, scale = params.value, params.prefer == "Lowest", params.range

    def one(node: NodeFacts, _now: int, trace: Trace | None = None) -> Value:
        value = node.data(name)
        if trace is not None:
            ends = {} if scale is None else {"from": scale.low, "to": scale.high}
            trace.note(value=None if isinstance(value, Unknown) else value, prefer=params.prefer, **ends)
        if isinstance(value, Unknown):
            return value
        score = value if scale is None else position(value, scale.low, scale.high)
        # Right for every normalization: MinMax and Rank see only that lower values are better.
        return 100.0 - score if mirrored else score

    def for_pod(_pod: PodFacts) -> NodeScorer[NodeFacts]:
        return one

    return Score(
        reads=Reads(data=frozenset({name})),
        for_pod=for_pod,
        normalize="MinMax" if scale is None else "None",
        scale="" if scale is None else "range",
    )


STRATEGY = Strategy(name="telemetry", filter=Use(TelemetryFilter, _filter), score=Use(TelemetryScore, _score))
