"""The status of a policy, which the operator writes. Readers skip fields that a newer operator added."""

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from fairlead.api.params import Listed, Params

_Text = Annotated[str, Field(max_length=1024)]
_Word = Annotated[str, Field(max_length=64)]
_Count = Annotated[int, Field(ge=0, json_schema_extra={"format": "int64"})]
_Time = Annotated[str, Field(max_length=40, json_schema_extra={"format": "date-time"})]
Evaluation = Literal["ByteCode", "Engine"]


class StatusPart(Params):
    """Base of the parts of the status."""

    model_config = ConfigDict(extra="ignore")


class StatusCondition(StatusPart):
    """A condition of the policy."""

    list_keys: ClassVar[tuple[str, ...]] = ("type",)

    type: Annotated[str, Field(min_length=1, max_length=64)]
    """Accepted, Compiled, Programmed, DataReady, Published or Ready; LearnedStateUnreadable; for tools Reconciling and
    Stalled."""
    status: Literal["True", "False", "Unknown"]
    """Status of the condition."""
    observed_generation: _Count | None = None
    """Generation of the policy that the condition is about."""
    last_transition_time: _Time
    """Time when the status of the condition last changed."""
    reason: _Word
    """Reason in one word, for programs."""
    message: Annotated[str, Field(max_length=32768)]
    """Reason in a sentence, for people."""


class SchedulerStatus(StatusPart):
    """The scheduler of the policy."""

    name: Annotated[str, Field(max_length=63)] | None = None
    """Name that pods put in spec.schedulerName."""
    config_hash: _Word | None = None
    """Hash of the desired configuration."""
    last_good_config_hash: _Word | None = None
    """Hash of the configuration that was last verified while it ran."""
    groups: Literal["Native", "Off"] | None = None
    """Native: it places Kubernetes' own groups of pods (PodGroup). Off: it does not."""
    groups_message: _Text | None = None
    """Why it does, or what is missing."""


class RuleErrors(StatusPart):
    """Errors of a rule during evaluation."""

    count: _Count | None = None
    """Number of errors since the rule last changed."""
    last_message: _Text | None = None
    """Message of the last error."""
    last_time: _Time | None = None
    """Time of the last error."""


class RuleStatus(StatusPart):
    """State of one rule."""

    list_keys: ClassVar[tuple[str, ...]] = ("kind", "name")

    kind: Literal["Condition", "Filter", "Score", "Protection", "Annotation"]
    """Kind of the rule."""
    name: Annotated[str, Field(min_length=1, max_length=317)]
    """Name of the rule, or key of the annotation."""
    mode: Literal["Enforce", "Shadow"] | None = None
    """Shadow: the rule is evaluated for real calls and decides nothing. Enforce when absent."""
    uses: Annotated[Listed[Annotated[str, Field(max_length=512)]], Field(max_length=128)] = ()
    """Fields that the rule reads, such as node.metadata.labels, or data.load (prometheus default) with its source."""
    evaluation: Evaluation | None = None
    """Evaluation of the expression: as ByteCode, or on the Engine, which is slower. Absent for a strategy."""
    errors: RuleErrors | None = None
    """Errors of the rule."""


class StatusWarning(StatusPart):
    """A warning: something that works but is probably not intended."""

    list_keys: ClassVar[tuple[str, ...]] = ("reason",)

    reason: Annotated[str, Field(min_length=1, max_length=64)]
    """Warning in one word, for programs."""
    count: _Count | None = None
    """Number of occurrences."""
    message: _Text | None = None
    """Warning in a sentence, for people."""


class NodesWithoutValue(StatusPart):
    """Nodes without a usable value, for one reason."""

    list_keys: ClassVar[tuple[str, ...]] = ("reason",)

    reason: Annotated[str, Field(min_length=1, max_length=64)]
    """Reason in one word: Stale, InFuture, Missing, SeveralValues or NoNumber."""
    nodes: _Count | None = None
    """Number of these nodes."""
    names: Annotated[str, Field(max_length=256)] | None = None
    """Names of a few of them; values that are too old have their age."""


class DataOnReplica(StatusPart):
    """Values of one entry on one replica of the operator."""

    list_keys: ClassVar[tuple[str, ...]] = ("name",)

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Pod of the operator."""
    nodes: _Count | None = None
    """Number of nodes, without those that have no value and that no pod of the policy may use."""
    with_value: _Count | None = None
    """Number of nodes with a usable value."""
    on_default: _Count | None = None
    """Number of nodes that have the default, because they were never measured."""
    oldest_age_seconds: _Count | None = None
    """Age of the oldest value. Absent if values have no time."""
    median_age_seconds: _Count | None = None
    """Median age of the values."""
    without_value: Annotated[Listed[NodesWithoutValue], Field(max_length=8)] = ()
    """Nodes without a usable value, by the reason."""
    last_success: _Time | None = None
    """Time of the last poll that succeeded."""
    last_error: _Text | None = None
    """Error of the last poll. Absent if it succeeded."""
    note: _Text | None = None
    """Advice about what the source answers."""
    failed_polls: _Count | None = None
    """Number of failed polls since the replica started."""


class DataStatus(StatusPart):
    """State of a measured entry of data."""

    list_keys: ClassVar[tuple[str, ...]] = ("name",)

    name: Annotated[str, Field(min_length=1, max_length=64)]
    """Name of the entry."""
    source: Annotated[str, Field(max_length=256)] | None = None
    """Source of the values."""
    interval_seconds: _Count | None = None
    """Seconds between two polls. Absent for a source that is watched."""
    max_age_seconds: _Count | None = None
    """Seconds after which a value is too old. Absent: never."""
    observed_time: _Time | None = None
    """Time of this state."""
    replicas: Annotated[Listed[DataOnReplica], Field(max_length=10)] = ()
    """State on each replica of the operator: each polls for itself."""


class LeftOutOfPublication(StatusPart):
    """Part of a rule that is not published, so that more nodes are selected than pass."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    rule: Annotated[str, Field(max_length=317)] | None = None
    """Name of the rule."""
    reason: _Text | None = None
    """Reason in a sentence."""


class PublicationStatus(StatusPart):
    """Node affinity that pods get as they are created."""

    generation: _Count | None = None
    """Generation of the policy whose filters are published."""
    terms: Annotated[Listed[_Text], Field(max_length=16)] = ()
    """Alternatives, of which a node must meet one, each as text."""
    left_out: Annotated[Listed[LeftOutOfPublication], Field(max_length=32)] = ()
    """Parts of rules that are not published, so that more nodes are selected than pass."""


class ShadowRuleStatus(StatusPart):
    """Pods for which one rule in shadow alone would have changed something."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    kind: Literal["Condition", "Filter", "Score", "Protection", "Annotation"]
    """Kind of the rule."""
    name: Annotated[str, Field(min_length=1, max_length=317)]
    """Name of the rule, or key of the annotation."""
    pods: _Count | None = None
    """Number of pods for which it would have changed something."""
    unschedulable: _Count | None = None
    """Number of pods to which it would have left no node."""


class ShadowOnReplica(StatusPart):
    """Counts of one process of the operator, from which the sums are made."""

    list_keys: ClassVar[tuple[str, ...]] = ("process",)

    process: Annotated[str, Field(min_length=1, max_length=32)]
    """Random ID of the process, which is another one after each start."""
    counts: _Text | None = None
    """Its counts, packed for the operator alone."""


class EarlierShadow(StatusPart):
    """Counts of processes of the operator that have ended."""

    processes: Annotated[Listed[Annotated[str, Field(max_length=32)]], Field(max_length=16)] = ()
    """The last of these processes."""
    counts: _Text | None = None
    """Sums of their counts, packed for the operator alone."""


class ShadowStatus(StatusPart):
    """Effects that the rules in shadow would have had, counted over all replicas of the operator."""

    generation: _Count
    """Generation of the policy that is counted. Another one starts at zero."""
    since: _Time
    """Time when counting began."""
    calls: _Count | None = None
    """Number of calls, with those that were skipped or are unknown."""
    skipped: _Count | None = None
    """Number of calls that were not compared, because there was no time for them."""
    unknown: _Count | None = None
    """Number of calls of which the effect is unknown, because nodes changed before they were compared."""
    pods: _Count | None = None
    """Number of pods of which a call was compared. Each pod counts once, here and for each effect."""
    restricted: _Count | None = None
    """Number of pods that would have lost some of their nodes."""
    unschedulable: _Count | None = None
    """Number of pods that would have lost all of their nodes."""
    reordered: _Count | None = None
    """Number of pods for which none of the best nodes would have been one of the best."""
    evictions: _Count | None = None
    """Number of pods for which a node would not have been offered for preemption."""
    too_slow: _Count | None = None
    """Number of times that the rules took too long for a class of pods, which then rests for 5 minutes."""
    rules: Annotated[Listed[ShadowRuleStatus], Field(max_length=64)] = ()
    """The same for each rule alone, as if only it were enforced and all else stayed."""
    replicas: Annotated[Listed[ShadowOnReplica], Field(max_length=10)] = ()
    """Counts of each process of the operator: they are added, so that restarts lose nothing."""
    earlier: EarlierShadow | None = None
    """Counts of processes that have ended and are not among the replicas any more."""


class Status(StatusPart):
    """The state of the policy, reported by the operator."""

    observed_generation: _Count | None = None
    """Generation of the policy that this status is about."""
    serving_generation: _Count | None = None
    """Generation that answers the scheduler unless the policy is disabled. It stays behind if the newest one does not
    compile."""
    conditions: Annotated[Listed[StatusCondition], Field(max_length=16)] = ()
    """Conditions: whether the policy is accepted, compiled, programmed and ready."""
    scheduler: SchedulerStatus | None = None
    """The scheduler of the policy."""
    rules: Annotated[Listed[RuleStatus], Field(max_length=128)] = ()
    """State of each rule."""
    data: Annotated[Listed[DataStatus], Field(max_length=16)] = ()
    """State of each measured entry of data."""
    published: PublicationStatus | None = None
    """Node affinity that pods get as they are created."""
    shadow: ShadowStatus | None = None
    """Counts of what its rules in shadow would have changed. Absent if no rule is in shadow."""
    warnings: Annotated[Listed[StatusWarning], Field(max_length=32)] = ()
    """Warnings: things that work but are probably not intended."""
    accepted_warnings: Annotated[Listed[StatusWarning], Field(max_length=32)] = ()
    """Warnings that the annotation fairlead.dev/accept of the policy accepts, each with the reason given there."""
