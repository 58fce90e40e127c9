"""Parameters of `nodeReadiness`, with their checks. The docstrings of fields are the documentation of the CRD."""

from itertools import combinations
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from fairlead.api.params import FieldCheck, Listed, Params
from fairlead.api.selectors import LabelSelector
from fairlead.api.values import Duration, LabelValue, Name, QualifiedKey, Shape, within

_ITEMS_MAX = 16
# The lists of items by their fields in the policy, each with the field that names an item, in the order of the checks.
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
    """DaemonSet whose pod on the node must be ready."""

    name: ObjectName
    """Name of the DaemonSet, and of this item in choose."""
    namespace: Name
    """Namespace of the DaemonSet."""
    when_absent: WhenAbsent = "Reject"
    """Verdict for a node without a pod of the DaemonSet. Reject: it is not ready. Pass: it needs none; use this for
    DaemonSets that run only on some nodes. A new node then passes until its pod is created. Defaults to Reject."""


class PodsItem(Params):
    """Pods of which a minimum on the node must be ready."""

    name: Name
    """Name of this item in reasons and in choose."""
    namespace: Name
    """Namespace of the pods."""
    selector: LabelSelector
    """Selector of the pods in that namespace."""
    min_ready: Annotated[int, Field(ge=1, le=16)] = 1
    """Minimum number of them that must be ready on the node. Defaults to 1."""
    when_absent: WhenAbsent = "Reject"
    """Verdict for a node without any such pod. Reject: it is not ready. Pass: it needs none. Defaults to Reject."""


class ConditionItem(Params):
    """Condition that the node must have."""

    list_keys: ClassVar[tuple[str, ...]] = ("type",)

    type: QualifiedKey
    """Type of the condition, such as NetworkReady, and name of this item in choose."""
    status: Literal["True", "False", "Unknown"] = "True"
    """Status that it must have. A missing condition has no status, not even Unknown. Defaults to True."""


class LabelItem(Params):
    """Label that the node must have."""

    list_keys: ClassVar[tuple[str, ...]] = ("key",)

    key: QualifiedKey
    """Key of the label, and name of this item in choose."""
    value: LabelValue | None = None
    """Value that it must have. Any value if not set."""


class AnnotationItem(Params):
    """Annotation that the node must have."""

    list_keys: ClassVar[tuple[str, ...]] = ("key",)

    key: QualifiedKey
    """Key of the annotation, and name of this item in choose."""
    value: Annotated[str, Field(max_length=1024)] | None = None
    """Value that it must have. Any value if not set."""


class ItemSelection(Params):
    """Selection of items by the pod."""

    pod_annotation: QualifiedKey
    """Annotation of the pod with names of items, separated by commas. A pod with the annotation needs only these, or
    none if it is empty; a pod without it needs all. A name that no item has is a rule error, and onError decides."""


class NodeReadiness(Params):
    """Pass only nodes on which everything that pods depend on is ready: daemons, conditions, labels, annotations.

    A node is Ready long before its agents serve; this keeps pods away until they do. At least one item is required, and
    names of items must be unique in a rule, across all lists.
    """

    list_keys: ClassVar[tuple[str, ...]] = ()

    daemon_sets: Annotated[Listed[DaemonSetItem], Field(max_length=_ITEMS_MAX)] = ()
    """DaemonSets whose pod on the node must be ready: running, with the condition Ready, and not being deleted."""
    pods: Annotated[Listed[PodsItem], Field(max_length=_ITEMS_MAX)] = ()
    """Pods of which a minimum on the node must be ready."""
    conditions: Annotated[Listed[ConditionItem], Field(max_length=_ITEMS_MAX)] = ()
    """Conditions that the node must have."""
    labels: Annotated[Listed[LabelItem], Field(max_length=_ITEMS_MAX)] = ()
    """Labels that the node must have."""
    annotations: Annotated[Listed[AnnotationItem], Field(max_length=_ITEMS_MAX)] = ()
    """Annotations that the node must have."""
    hold_off: Annotated[Duration, within("0s", "1h")] = Duration("0s")
    """How long everything must have been ready without a break, such as 20s. Defaults to 0s."""
    choose: ItemSelection | None = None
    """Selection of items by the pod. If not set, every pod needs all."""

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Return the checks: there is at least one item, and names are unique for `choose`."""
        return (
            FieldCheck(
                rule=" || ".join(f"(has(self.{one}) && self.{one}.size() > 0)" for one in _LISTS),
                holds=lambda self: bool(self.item_names()),
                message=f"give at least one item in {', '.join([*_LISTS][:-1])} or {[*_LISTS][-1]}",
            ),
            FieldCheck(
                # Within one list names are unique anyway. The rule compares pairs of lists, because the API server
                # estimates its worst-case cost, and comparing all names with all names exceeds the limit.
                rule=" && ".join(_apart(one, other) for one, other in combinations(_LISTS, 2)),
                holds=lambda self: not self._in_two_lists(),
                message="an item's name may be used in one list only, or choose could mean either; for two objects with"
                " one name write two rules",
            ),
        )

    def item_names(self) -> list[str]:
        """Return the names of the items, in the order of the checks."""
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


def _apart(first: str, second: str) -> str:
    clash = f"self.{first}.exists(a, self.{second}.exists(b, a.{_LISTS[first]} == b.{_LISTS[second]}))"
    return f"(!has(self.{first}) || !has(self.{second}) || !{clash})"
