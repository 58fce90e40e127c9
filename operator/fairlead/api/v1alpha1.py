"""The SchedulerExtenderPolicy. Strategies are added to its rules by `policy_model`, so that this package knows none."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Any, ClassVar, Final, Literal, get_args

from pydantic import ConfigDict, Field, create_model

from fairlead.api.data import DataEntry
from fairlead.api.mode import Mode
from fairlead.api.names import DEFAULT_SCHEDULER_NAME, KIND
from fairlead.api.params import FieldCheck, Listed, Params, Transition
from fairlead.api.rules import (
    Binding,
    FilterSpec,
    MatchCondition,
    MatchSpec,
    Preemption,
    Protection,
    Rule,
    ScoreSpec,
    Variable,
)
from fairlead.api.status import Status
from fairlead.api.topologies import TOPOLOGY
from fairlead.api.values import Name, ObjectName

RULES_MAX = 32


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of rule, with the path of its list in CEL and in Python."""

    rule: str
    of: Callable[["Spec"], Sequence[MatchCondition | Rule | Protection]]

    @property
    def is_there(self) -> str:
        """CEL that tests for the list; `orValue` would hide its greatest length from the estimated cost."""
        parts = self.rule.split(".")
        return " && ".join(f"has({'.'.join(parts[:count])})" for count in range(2, len(parts) + 1))


_KINDS = {
    "condition": _Kind("self.match.conditions", lambda spec: spec.match.conditions),
    "filter": _Kind("self.filters", lambda spec: spec.filters),
    "score": _Kind("self.scores", lambda spec: spec.scores),
    "protection": _Kind("self.preemption.protect", lambda spec: spec.preemption.protect),
}


class Metadata(Params):
    """The metadata that Fairlead reads."""

    model_config = ConfigDict(extra="ignore")

    name: ObjectName
    """Name of the policy."""
    uid: str = ""
    """Unique ID of the object."""
    generation: int = 0
    """Number of changes of the spec."""


class Spec(Params):
    """The rules for the pods of one scheduler."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    scheduler_name: Name = DEFAULT_SCHEDULER_NAME
    """Name of the scheduler; pods opt in with spec.schedulerName. It cannot be changed, added or removed later.
    fairlead when absent."""
    mode: Mode = "Enforce"
    """Enforce applies the policy. Shadow evaluates its rules for real calls and reports what enforcing them would
    change, but they decide nothing. Disabled compiles it and reports on it but never applies it. Under both, no earlier
    generation decides either, whether or not this one compiles. Enforce when absent."""
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 0
    """Order of policies that match the same pod: higher first, then by name. It decides whose reason is reported and
    which policy writes an annotation that several define. 0 when absent."""
    match: MatchSpec = MatchSpec()
    """The pods that the policy matches. Absent: every pod of the scheduler."""
    data: Annotated[Listed[DataEntry], Field(max_length=16)] = ()
    """Values per node that rules read as data."""
    variables: Annotated[Listed[Variable], Field(max_length=RULES_MAX)] = ()
    """Named values that expressions read as variables."""
    filters: Annotated[Listed[FilterSpec], Field(max_length=RULES_MAX)] = ()
    """Rules that reject nodes. A pod can use the nodes that pass all filters of all policies that match it."""
    scores: Annotated[Listed[ScoreSpec], Field(max_length=RULES_MAX)] = ()
    """Rules that prefer nodes. Their scores add up over all policies that match a pod."""
    preemption: Preemption = Preemption()
    """The pods that the scheduler may evict for the policy's pods."""
    binding: Binding | None = None
    """Actions when a pod is bound. They need failurePolicy Fail."""
    publish: Literal["None", "NodeAffinity"] = "None"
    """NodeAffinity gives pods that the policy matches, when they are created, the node affinity that its filters imply,
    as far as labels can say it, so that autoscalers see it. None when absent."""
    failure_policy: Literal["Fail", "Ignore"] = "Fail"
    """What the scheduler does while it cannot reach the operator: Fail keeps the pods pending, Ignore places them
    without this policy. Fail when absent."""

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Require failurePolicy Fail for binding, and unique rule names."""
        return (
            FieldCheck(
                rule="!has(self.binding) || !has(self.failurePolicy) || self.failurePolicy == 'Fail'",
                holds=lambda self: self.binding is None or self.failure_policy == "Fail",
                message="binding needs failurePolicy Fail: set it to Fail or remove binding",
                field="failurePolicy",
            ),
            FieldCheck(
                rule="!has(self.mode) || self.mode != 'Shadow' || !has(self.binding) || !has(self.binding.deviceShare)"
                " || self.binding.deviceShare.size() == 0",
                holds=lambda self: self.mode != "Shadow" or self.binding is None or not self.binding.device_share,
                message="device shares cannot be in shadow, because what is granted would be wrong: use fairlead"
                " simulate, or mode Disabled",
                field="mode",
            ),
            *([_DOMAINS_ARE_KEPT] if TOPOLOGY in cls._filter_strategies() else []),
            *(_names_differ(one, other) for one, other in combinations(_KINDS, 2)),
        )

    @classmethod
    def _filter_strategies(cls) -> tuple[str, ...]:
        rule: type[Rule] = get_args(cls.model_fields["filters"].annotation)[0]
        return rule.strategies

    @property
    def domain_filters(self) -> Sequence[FilterSpec]:
        """Filters that require that members of a group share a domain, which is written before they are bound."""
        return [one for one in self.filters if one.strategy is not None and one.strategy[0] == TOPOLOGY]

    @classmethod
    def transitions(cls) -> tuple[Transition, ...]:
        """Forbid a change of the scheduler."""
        return (
            Transition(
                rule="has(self.schedulerName) == has(oldSelf.schedulerName)"
                " && (!has(self.schedulerName) || self.schedulerName == oldSelf.schedulerName)",
                message="schedulerName cannot be changed, added or removed: create another policy instead",
                field="schedulerName",
            ),
        )


_DOMAINS_ARE_KEPT: Final = FieldCheck(
    rule="!has(self.failurePolicy) || self.failurePolicy == 'Fail'"
    f" || !has(self.filters) || !self.filters.exists(one, has(one.{TOPOLOGY}))",
    holds=lambda self: self.failure_policy == "Fail" or not self.domain_filters,
    message="a filter topology needs failurePolicy Fail, as it binds pods: set it to Fail or remove the filter",
    field="failurePolicy",
)


def _names_differ(left: str, right: str) -> FieldCheck:
    """Return a check that no rule of one kind has the name of a rule of another."""
    first, second = _KINDS[left], _KINDS[right]
    message = f"rule names are unique within a policy: give the {right} another name than the {left} has"

    def common(spec: Spec) -> dict[int, str]:
        taken = {rule.name for rule in first.of(spec)}
        return {at: rule.name for at, rule in enumerate(second.of(spec)) if rule.name in taken}

    differ = f"{second.rule}.all(b, !{first.rule}.exists(a, a.name == b.name))"
    return FieldCheck(
        rule=f"!({first.is_there} && {second.is_there}) || {differ}",
        holds=lambda spec: not common(spec),
        message=message,
        # The API server cannot name the rule: it has no bound for the length of a string from a list.
        message_of=lambda spec: f"{message}; found {', '.join(common(spec).values())}",
        below=lambda spec: (next(iter(common(spec))), "name"),
        field=second.rule.removeprefix("self."),
    )


class SchedulerExtenderPolicy(Params):
    """A policy for pods: the nodes they can use and prefer, the pods they may evict, and how they are bound."""

    api_version: Literal["fairlead.dev/v1alpha1"]
    """API version of the resource, fairlead.dev/v1alpha1."""
    kind: Literal["SchedulerExtenderPolicy"]
    """Kind of the resource, SchedulerExtenderPolicy."""
    metadata: Metadata
    """Standard metadata of the object."""
    spec: Spec
    """The rules."""
    status: Status = Status()
    """The state that the operator reports."""


def policy_model(
    filters: Mapping[str, type[Params]], scores: Mapping[str, type[Params]]
) -> type[SchedulerExtenderPolicy]:
    """Return the model of the resource with these strategies, each a field that holds its parameters."""
    spec = create_model(
        "Spec",
        __base__=Spec,
        __doc__=Spec.__doc__,
        filters=(_list_with(FilterSpec, filters), Spec.model_fields["filters"]),
        scores=(_list_with(ScoreSpec, scores), Spec.model_fields["scores"]),
    )
    return create_model(
        KIND,
        __base__=SchedulerExtenderPolicy,
        __doc__=SchedulerExtenderPolicy.__doc__,
        spec=(spec, SchedulerExtenderPolicy.model_fields["spec"]),
    )


def deciding_fields(model: type[SchedulerExtenderPolicy]) -> Mapping[str, tuple[str, ...]]:
    """Return the fields of which a rule has exactly one, by the list of rules in the spec of a model."""
    spec: Any = model.model_fields["spec"].annotation
    rules: dict[str, type[Rule]] = {
        name: get_args(spec.model_fields[name].annotation)[0] for name in ("filters", "scores")
    }
    return {name: rule.deciding_fields() for name, rule in rules.items()}


def _list_with(rule: type[Rule], strategies: Mapping[str, type[Params]]) -> Any:
    taken = {str(field.alias) for field in rule.model_fields.values()} & {*strategies}
    if taken:
        kind = rule.__name__.removesuffix("Spec").lower()
        raise ValueError(f"a {kind} has a field of its own named {', '.join(sorted(taken))}")
    fields: dict[str, Any] = {
        name: (params | None, Field(default=None, alias=name)) for name, params in sorted(strategies.items())
    }
    made = create_model(rule.__name__, __base__=rule, __doc__=rule.__doc__, **fields)
    made.strategies = tuple(sorted(strategies))
    return Listed[made]  # type: ignore[valid-type]
