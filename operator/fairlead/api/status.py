"""What the operator says about a policy. Readers skip what a newer operator added."""

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from fairlead.api.params import Listed, Params

_Text = Annotated[str, Field(max_length=1024)]
_Word = Annotated[str, Field(max_length=64)]
_Count = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]
_Time = Annotated[str, Field(max_length=40, json_schema_extra={"format": "date-time"})]


class StatusPart(Params):
    """The base of what is read back."""

    model_config = ConfigDict(extra="ignore")


class StatusCondition(StatusPart):
    """One thing that is true of the policy, or is not, or is not known."""

    list_keys: ClassVar[tuple[str, ...]] = ("type",)

    type: Annotated[str, Field(min_length=1, max_length=64)]
    """Accepted, Compiled, Programmed or Ready, and Reconciling and Stalled for tools that wait."""
    status: Literal["True", "False", "Unknown"]
    """Whether it is so."""
    observed_generation: _Count | None = None
    """The generation of the policy that this was said about."""
    last_transition_time: _Time
    """When the status last changed."""
    reason: _Word
    """Why, in one word for programs."""
    message: Annotated[str, Field(max_length=32768)]
    """Why, in a sentence for people."""


class SchedulerStatus(StatusPart):
    """The scheduler that the policy is for."""

    name: Annotated[str, Field(max_length=63)] | None = None
    """What pods put in spec.schedulerName."""
    config_hash: _Word | None = None
    """The configuration that is wanted for it."""
    last_good_config_hash: _Word | None = None
    """The configuration that last ran and was verified."""


class RuleErrors(StatusPart):
    """The errors that a rule raised while it was evaluated."""

    count: _Count | None = None
    """How many there were since the rule last changed."""
    last_message: _Text | None = None
    """What the last one said."""
    last_time: _Time | None = None
    """When the last one was."""


class RuleStatus(StatusPart):
    """What became of one rule."""

    list_keys: ClassVar[tuple[str, ...]] = ("kind", "name")

    kind: Literal["Condition", "Filter", "Score", "Protection", "Annotation"]
    """What the rule does."""
    name: Annotated[str, Field(min_length=1, max_length=317)]
    """The name of the rule, or the key of the annotation."""
    uses: Annotated[Listed[Annotated[str, Field(max_length=512)]], Field(max_length=128)] = ()
    """What the rule reads, such as node.metadata.labels or data.load."""
    evaluation: Literal["Lowered", "Engine"] | None = None
    """How its expression is evaluated: Lowered to the operator's own code, or by the slower Engine. Absent for a
    strategy."""
    errors: RuleErrors | None = None
    """The errors it raised."""


class StatusWarning(StatusPart):
    """Something that works and is probably not what was meant."""

    list_keys: ClassVar[tuple[str, ...]] = ("reason",)

    reason: Annotated[str, Field(min_length=1, max_length=64)]
    """What it is, in one word for programs."""
    count: _Count | None = None
    """How often it was seen."""
    message: _Text | None = None
    """What it is, in a sentence for people."""


class Status(StatusPart):
    """What the operator says about the policy."""

    observed_generation: _Count | None = None
    """The generation of the policy that this status is about."""
    serving_generation: _Count | None = None
    """The generation that answers the scheduler. It stays behind when the newest does not compile."""
    conditions: Annotated[Listed[StatusCondition], Field(max_length=16)] = ()
    """Whether the policy is accepted, compiled, programmed and ready."""
    scheduler: SchedulerStatus | None = None
    """The scheduler that the policy is for."""
    rules: Annotated[Listed[RuleStatus], Field(max_length=128)] = ()
    """What became of each rule."""
    warnings: Annotated[Listed[StatusWarning], Field(max_length=32)] = ()
    """What works and is probably not what was meant."""
