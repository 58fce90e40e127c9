"""The rules of a policy: filters, scores, protections and the annotations written at binding."""

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from fairlead.api.devices import RESERVED_ANNOTATIONS, DeviceShare
from fairlead.api.gangs import Gang
from fairlead.api.mode import RuleMode
from fairlead.api.params import AnyFields, FieldCheck, Listed, Params, exactly_one_of
from fairlead.api.selectors import LabelSelector
from fairlead.api.values import Expression, Identifier, Name, QualifiedKey, StrategyName


class MatchCondition(Params):
    """A condition on pods."""

    name: Name
    """Name of the condition, unique among the rules of the policy."""
    expression: Expression
    """CEL that is true for pods to match. It can read pod, namespaceObject, now, and variables that read only these."""


class MatchSpec(Params):
    """The pods that a policy matches. Every part that is set must match."""

    namespaces: Annotated[Listed[Name], Field(min_length=1, max_length=64)] | None = None
    """Namespaces by name. Absent: all."""
    namespace_selector: LabelSelector | None = None
    """Namespaces by label. Absent: all."""
    pod_selector: LabelSelector | None = None
    """Pods by label. Absent: all."""
    conditions: Annotated[Listed[MatchCondition], Field(max_length=16)] = ()
    """Further conditions on pods. If one cannot be decided, the policy's filters reject every node for the pod."""


class Variable(Params):
    """A named value for use in several expressions, computed when one of them needs it."""

    name: Identifier
    """Name in expressions, such as wants in variables.wants."""
    expression: Expression
    """CEL that gives the value. It can read what the rule using it can read, and other variables without cycles."""


class CustomStrategy(Params):
    """Decide by a strategy that the owner of the operator's image has added to it."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    name: StrategyName
    """Name of the strategy."""
    params: AnyFields = Field(default_factory=dict)
    """Parameters of the strategy, which it defines itself. The operator checks them; the API server does not know them.
    None when absent."""


class Rule(Params):
    """Common part of filters and scores: a name, and an expression or a strategy that decides."""

    strategies: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that hold a built-in strategy, set by `policy_model`."""

    name: Name
    """Name of the rule, unique among the rules of the policy."""
    mode: RuleMode | None = None
    """Shadow: the rule is evaluated for real calls and decides nothing. Of its mode and that of the policy,
    the weaker one holds. As the policy when absent."""

    @property
    def strategy(self) -> tuple[str, Params] | None:
        """Name and parameters of the strategy used instead of an expression, if any."""
        for name in self.strategies:
            params = getattr(self, name)
            if isinstance(params, Params):
                return name, params
        return None

    @classmethod
    def deciding_fields(cls) -> tuple[str, ...]:
        """Return the fields of which a rule has exactly one."""
        return ("expression", *cls.strategies, "custom")

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Require exactly one of expression, the strategies and custom."""
        return (exactly_one_of(*cls.deciding_fields()),)


class FilterSpec(Rule):
    """A rule that rejects nodes, by an expression or by one strategy."""

    expression: Expression | None = None
    """CEL that is true for nodes that the pod may use. It can read everything but victim."""
    reason: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    """Message for rejected nodes. Keep it fixed, without values of the node or the pod: kubectl fairlead explain shows
    these. Absent: the strategy's message, else the rule's name."""
    resolvable: bool | None = None
    """true: evicting pods from the node might help. It takes effect with a scheduler version that supports it. Absent:
    as the strategy says, else false."""
    on_error: Literal["Reject", "Pass"] = "Reject"
    """Result for a node if the rule cannot decide: Reject rejects the node, Pass lets it through. Reject when
    absent."""
    custom: CustomStrategy | None = None
    """Decide by a strategy that the owner of the operator's image has added to it."""

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Require also that devices are known before a pod passes."""
        return (*super().checks(), *([_DEVICES_ARE_KNOWN] if _DEVICE_SHARE in cls.strategies else []))


_DEVICE_SHARE: Final = "deviceShare"
_DEVICES_ARE_KNOWN: Final = FieldCheck(
    rule=f"!has(self.{_DEVICE_SHARE}) || !has(self.onError) || self.onError != 'Pass'",
    holds=lambda self: getattr(self, _DEVICE_SHARE) is None or self.on_error != "Pass",
    message="deviceShare rejects nodes whose devices are not known, because they take no pod: leave onError out",
    field="onError",
)


class ScoreSpec(Rule):
    """A rule that prefers nodes. It scores them by an expression or by one strategy."""

    weight: Annotated[int, Field(ge=1, le=1000)] = 1
    """Weight of the rule, as for a scheduler plugin: the rule adds weight times its score, from 0 to 100, to the node's
    score. 1 when absent."""
    expression: Expression | None = None
    """CEL that gives a number for a node, higher for a better one. It can read everything but victim."""
    normalize: Literal["None", "MinMax", "Rank"] | None = None
    """How values become scores from 0 to 100. None clamps them to that range, MinMax scales the values of the nodes of
    one call to it, Rank uses their order. Absent: as the strategy says, else None."""
    custom: CustomStrategy | None = None
    """Decide by a strategy that the owner of the operator's image has added to it."""


class Protection(Params):
    """A rule that keeps pods from being evicted for a pod of the policy."""

    name: Name
    """Name of the protection, unique among the rules of the policy."""
    expression: Expression
    """CEL that is true for pods to protect. It can read everything; victim is the pod that would be evicted."""
    mode: RuleMode | None = None
    """Shadow: the protection is evaluated for real calls and decides nothing. Of its mode and that of the policy,
    the weaker one holds. As the policy when absent."""


class Preemption(Params):
    """The pods that the scheduler may evict for the policy's pods."""

    protect: Annotated[Listed[Protection], Field(max_length=16)] = ()
    """Protections: this scheduler does not evict these pods for the policy's pods. Undecided means protected."""


class Annotation(Params):
    """An annotation that is written on a pod when it is bound."""

    list_keys: ClassVar[tuple[str, ...]] = ("key",)

    key: QualifiedKey
    """Key of the annotation. The operator's settings must allow its prefix; by default they allow fairlead.dev/."""
    expression: Expression
    """CEL that gives the value, a string. It can read everything but victim; node is the chosen node."""
    on_error: Literal["Omit", "Reject"] = "Omit"
    """Result if the value cannot be computed: Omit binds the pod without the annotation, Reject does not bind it. Omit
    when absent."""
    mode: RuleMode | None = None
    """Shadow: the annotation is evaluated for real calls and decides nothing. Of its mode and that of the policy,
    the weaker one holds. As the policy when absent."""

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Refuse the annotations that only grants write."""
        return (
            FieldCheck(
                rule=" && ".join(f"!self.key.startsWith('{one}')" for one in RESERVED_ANNOTATIONS),
                holds=lambda self: not self.key.startswith(RESERVED_ANNOTATIONS),
                message="only grants write annotations that begin like this: choose another key",
                field="key",
            ),
        )


class Binding(Params):
    """Actions when a pod is bound. They need failurePolicy Fail."""

    annotations: Annotated[Listed[Annotation], Field(max_length=16)] = ()
    """Annotations to write on the pod. An existing annotation is never replaced."""
    device_share: Annotated[Listed[DeviceShare], Field(max_length=8)] = ()
    """Shares of single devices to grant to the pod. Annotations that record them replace those that the pod has."""
    gang: Annotated[Listed[Gang], Field(max_length=4)] = ()
    """Groups of pods that start together or not at all. Of a pod's entries, in all policies that match it, the first
    counts that gives it a group."""

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Require that each resource is shared by one entry, and that entries have names of their own."""
        return (
            FieldCheck(
                rule="!has(self.deviceShare) || self.deviceShare.all(a, self.deviceShare.all(b, a.name == b.name"
                " || !a.shares.exists(one, b.shares.exists(other, one.resource == other.resource))))",
                holds=lambda self: not self._shared_twice(),
                message="a resource may be shared by one entry only: remove it from the others",
                field="deviceShare",
                below=lambda self: (next(iter(self._shared_twice())), "shares"),
            ),
            FieldCheck(
                rule="!has(self.deviceShare) || self.deviceShare.filter(one, has(one.record)"
                " && one.record == 'Gpushare').size() <= 1",
                holds=lambda self: len(self._of_gpushare()) <= 1,
                message="gpushare's annotations have room for one grant: record Fairlead in the other entries",
                field="deviceShare",
                below=lambda self: (self._of_gpushare()[1], "record"),
            ),
            FieldCheck(
                rule="!has(self.gang) || !has(self.deviceShare)"
                " || self.gang.all(a, !self.deviceShare.exists(b, a.name == b.name))",
                holds=lambda self: not self._named_as_shares(),
                message="both bring a filter of their name: give the gang another name than the deviceShare has",
                field="gang",
                below=lambda self: (self._named_as_shares()[0], "name"),
            ),
        )

    def _of_gpushare(self) -> list[int]:
        """Return the positions of the entries that record grants as gpushare's plugin reads them."""
        return [at for at, entry in enumerate(self.device_share) if entry.record == "Gpushare"]

    def _named_as_shares(self) -> list[int]:
        """Return the positions of the gangs that have the name of a device share."""
        names = {str(entry.name) for entry in self.device_share}
        return [at for at, entry in enumerate(self.gang) if entry.name in names]

    def _shared_twice(self) -> list[int]:
        """Return the positions of the entries that share a resource of an earlier one."""
        owner: dict[str, str] = {}
        return [
            at
            for at, entry in enumerate(self.device_share)
            for resource in entry.resources
            if owner.setdefault(resource, entry.name) != entry.name
        ]
