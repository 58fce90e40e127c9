"""The rules of a policy: what refuses, prefers and protects, and what is written when a pod is bound."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fairlead.api.params import Check, Listed, Params, exactly_one_of
from fairlead.api.selectors import LabelSelector
from fairlead.api.values import Expression, Identifier, Name, QualifiedKey


class Condition(Params):
    """Something that must hold for a pod."""

    name: Name
    """What the condition is called; no other rule of the policy has this name."""
    expression: Expression
    """CEL that gives true for the pods meant. It sees pod, namespaceObject, now, and variables that read only these."""


class Match(Params):
    """Which pods a policy is for. Every part that is given must hold."""

    namespaces: Annotated[Listed[Name], Field(min_length=1, max_length=64)] | None = None
    """The namespaces, by name. Absent: all."""
    namespace_selector: LabelSelector | None = None
    """The namespaces, by their labels. Absent: all."""
    pod_selector: LabelSelector | None = None
    """The pods, by their labels. Absent: all."""
    conditions: Annotated[Listed[Condition], Field(max_length=16)] = ()
    """What else must hold for a pod. A condition that cannot be decided makes the policy's filters refuse the pod."""


class Variable(Params):
    """A name for a value that several expressions use. It is computed when one of them needs it."""

    name: Identifier
    """What expressions call it, such as wants in variables.wants."""
    expression: Expression
    """CEL that gives the value. It sees what the rule that uses it sees, and other variables, but not in a circle."""


class Rule(Params):
    """What filters and scores have in common: a name, and one thing that decides."""

    strategies: ClassVar[tuple[str, ...]] = ()
    """The fields that hold a built-in strategy; `policy_model` fills them in."""

    name: Name
    """What the rule is called; no other rule of the policy has this name."""

    @property
    def strategy(self) -> tuple[str, Params] | None:
        """The built-in strategy that stands in place of an expression, by its name."""
        for name in self.strategies:
            params = getattr(self, name)
            if isinstance(params, Params):
                return name, params
        return None

    @classmethod
    def checks(cls) -> tuple[Check, ...]:
        """Exactly one thing decides."""
        return (exactly_one_of("expression", *cls.strategies),)


class Filter(Rule):
    """A rule that refuses nodes. It decides by an expression or by one built-in strategy."""

    expression: Expression | None = None
    """CEL that gives true for the nodes that the pod may use. It sees everything but victim."""
    reason: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    """What is said about a node that is refused. A stable text without values of the node or the pod: kubectl fairlead
    explain shows these. Absent: what the strategy says, else the rule's name."""
    resolvable: bool | None = None
    """true: evicting pods from the node might help. It takes effect from the version of the scheduler that can honour
    it. Absent: what the strategy says, else false."""
    on_error: Literal["Reject", "Pass"] = "Reject"
    """What happens to a node for which the rule cannot decide: Reject refuses it, Pass lets it through. Reject when
    absent."""


class Score(Rule):
    """A rule that prefers nodes. It gives points by an expression or by one built-in strategy."""

    weight: Annotated[int, Field(ge=1, le=1000)] = 1
    """How much the rule counts, as the weight of a plugin of the scheduler: it adds weight times its score, from 0 to
    100, to the score of the node. 1 when absent."""
    expression: Expression | None = None
    """CEL that gives a number for a node, more for a better one. It sees everything but victim."""
    normalize: Literal["None", "MinMax", "Rank"] | None = None
    """How values become scores from 0 to 100. None takes them as they are and cuts what lies outside, MinMax stretches
    the values of the nodes of one call, Rank takes their order. Absent: what the strategy says, else None."""


class Protection(Params):
    """Pods that are not evicted to make room for a pod of the policy."""

    name: Name
    """What the protection is called; no other rule of the policy has this name."""
    expression: Expression
    """CEL that gives true for a pod that stays. It sees everything, the pod in question as victim."""


class Preemption(Params):
    """Whom the scheduler may evict to make room for the policy's pods."""

    protect: Annotated[Listed[Protection], Field(max_length=16)] = ()
    """Pods that this scheduler does not evict for the policy's pods. One for which it cannot be decided stays."""


class Annotation(Params):
    """An annotation that a pod gets in the moment it is bound."""

    list_keys: ClassVar[tuple[str, ...]] = ("key",)

    key: QualifiedKey
    """The annotation. Its prefix must be one that the operator's settings allow, by default fairlead.dev/."""
    expression: Expression
    """CEL that gives the value, a string. It sees everything but victim; node is the one that was chosen."""
    on_error: Literal["Omit", "Reject"] = "Omit"
    """What happens when the value cannot be computed: Omit binds the pod without the annotation, Reject does not bind
    it. Omit when absent."""


class Binding(Params):
    """What is done when a pod is bound. It needs failurePolicy Fail."""

    annotations: Annotated[Listed[Annotation], Field(max_length=16)] = ()
    """What is written on the pod. An annotation that the pod has already is never replaced."""
