"""The parameters of `nodeReadiness`, and what a policy that writes them wrongly is told."""

from itertools import combinations
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fairlead.api.params import Check, Listed, Params
from fairlead.api.selectors import LabelSelector
from fairlead.api.values import Duration, LabelValue, Name, QualifiedKey, Shape, within

_ITEMS_MAX = 16
# Every list of things that a node can lack, as the policy spells it, with the field that names an item of it. The order
# is the one in which they are looked at.
_LISTS = {"daemonSets": "name", "pods": "name", "conditions": "type", "labels": "key", "annotations": "key"}

ObjectName = Annotated[
    str,
    Field(min_length=1, max_length=253),
    Shape(
        "[a-z0-9]([-a-z0-9.]*[a-z0-9])?",
        "write lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit",
    ),
]
WhenAbsent = Literal["Reject", "Pass"]


class DaemonSetItem(Params):
    """A DaemonSet whose pod on the node must be ready."""

    name: ObjectName
    """The DaemonSet, and what choose calls this item."""
    namespace: Name
    """Where the DaemonSet is."""
    when_absent: WhenAbsent = "Reject"
    """What a node is taken for that has no pod of the DaemonSet: Reject says it is not ready, Pass that it needs none.
    Pass is for DaemonSets that run on some nodes only; a new node then passes until its pod is made. Reject when
    absent."""


class PodsItem(Params):
    """Pods of which enough on the node must be ready."""

    name: Name
    """What reasons and choose call this item."""
    namespace: Name
    """Where the pods are."""
    selector: LabelSelector
    """Which pods of the namespace are meant."""
    min_ready: Annotated[int, Field(ge=1, le=16)] = 1
    """How many of them must be ready on the node. 1 when absent."""
    when_absent: WhenAbsent = "Reject"
    """What a node is taken for that has no such pod at all: Reject says it is not ready, Pass that it needs none.
    Reject when absent."""


class ConditionItem(Params):
    """A condition that the node must have."""

    list_keys: ClassVar[tuple[str, ...]] = ("type",)

    type: QualifiedKey
    """The condition, such as NetworkReady, and what choose calls this item."""
    status: Literal["True", "False", "Unknown"] = "True"
    """The status it must have. A condition that the node does not carry has none. True when absent."""


class LabelItem(Params):
    """A label that the node must have."""

    list_keys: ClassVar[tuple[str, ...]] = ("key",)

    key: QualifiedKey
    """The label, and what choose calls this item."""
    value: LabelValue | None = None
    """The value it must have. Absent: any."""


class AnnotationItem(Params):
    """An annotation that the node must have."""

    list_keys: ClassVar[tuple[str, ...]] = ("key",)

    key: QualifiedKey
    """The annotation, and what choose calls this item."""
    value: Annotated[str, Field(max_length=1024)] | None = None
    """The value it must have. Absent: any."""


class Choose(Params):
    """How a pod says which of the items it needs."""

    pod_annotation: QualifiedKey
    """An annotation of the pod with names of items, separated by commas. A pod that carries it needs only these, and
    none at all when it names none; a pod that does not carry it needs all. For a name that no item has the rule cannot
    decide, and its onError says what happens."""


class NodeReadiness(Params):
    """Only nodes on which everything that pods depend on is ready: daemons, conditions, labels, annotations.

    A node is Ready long before its agents serve; this keeps pods away until they do. At least one item is needed, and
    no two items of a rule have the same name, whatever lists they are in.
    """

    list_keys: ClassVar[tuple[str, ...]] = ()

    daemon_sets: Annotated[Listed[DaemonSetItem], Field(max_length=_ITEMS_MAX)] = ()
    """DaemonSets whose pod on the node must be ready: running, with the condition Ready, and not being deleted."""
    pods: Annotated[Listed[PodsItem], Field(max_length=_ITEMS_MAX)] = ()
    """Pods of which enough on the node must be ready."""
    conditions: Annotated[Listed[ConditionItem], Field(max_length=_ITEMS_MAX)] = ()
    """Conditions that the node must have."""
    labels: Annotated[Listed[LabelItem], Field(max_length=_ITEMS_MAX)] = ()
    """Labels that the node must have."""
    annotations: Annotated[Listed[AnnotationItem], Field(max_length=_ITEMS_MAX)] = ()
    """Annotations that the node must have."""
    hold_off: Annotated[Duration, within("0s", "1h")] = Duration("0s")
    """How long everything must have held without a break before the node is used, such as 20s. 0s when absent."""
    choose: Choose | None = None
    """How a pod says which of the items it needs. Absent: every pod needs all."""

    @classmethod
    def checks(cls) -> tuple[Check, ...]:
        """There is something to wait for, and `choose` cannot mean two things by one name."""
        return (
            Check(
                rule=" || ".join(f"(has(self.{one}) && self.{one}.size() > 0)" for one in _LISTS),
                holds=lambda self: bool(self.item_names()),
                message=f"give at least one item in {', '.join([*_LISTS][:-1])} or {[*_LISTS][-1]}",
            ),
            Check(
                # Within one list names are unique anyway. By pairs of lists, because the API server reckons what a rule
                # costs at worst, and for all names against all names that is more than it allows.
                rule=" && ".join(_apart(one, other) for one, other in combinations(_LISTS, 2)),
                holds=lambda self: not self._in_two_lists(),
                message="an item's name may be used in one list only, or choose could mean either; for two objects with"
                " one name write two rules",
            ),
        )

    def item_names(self) -> list[str]:
        """What `choose` calls the items, in the order in which they are looked at."""
        return [name for names in self._names() for name in names]

    def _names(self) -> list[list[str]]:
        return [
            [item.name for item in self.daemon_sets],
            [item.name for item in self.pods],
            [item.type for item in self.conditions],
            [item.key for item in self.labels],
            [item.key for item in self.annotations],
        ]

    def _in_two_lists(self) -> bool:
        return any({*one} & {*other} for one, other in combinations(self._names(), 2))


def _apart(one: str, other: str) -> str:
    clash = f"self.{one}.exists(a, self.{other}.exists(b, a.{_LISTS[one]} == b.{_LISTS[other]}))"
    return f"(!has(self.{one}) || !has(self.{other}) || !{clash})"
