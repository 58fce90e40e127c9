"""Model of a test suite: policies, nodes and pods, and cases with expected results.

Objects are Kubernetes objects with only the fields that matter; `objects.py` completes them.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, GetJsonSchemaHandler, Tag, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from fairlead.api.params import ITEMS, MAP, Listed, Params
from fairlead.api.values import Duration, Quantity, within
from fairlead.groups.group import SIZE_MAX, VALUE_MAX

Object = dict[str, Any]
_OBJECTS_MAX = 1000
_DEMANDS_MAX = 4000
_PAIRS_MAX = 20_000


def _as_group(value: object) -> object:
    return [value] if isinstance(value, str) else value


NodeGroup = Annotated[
    Listed[str], Field(min_length=1), BeforeValidator(_as_group, json_schema_input_type=str | list[str])
]
"""Nodes with one score: a name, or a list of names."""


class ExpectedRejection(Params):
    """Expected rejection of a node. Only the fields that are set are compared; a string is the reason."""

    reason: str | None = None
    """The full reason."""
    rule: str | None = None
    """The rule: its name, or policy/name."""
    resolvable: bool | None = None
    """True if evicting pods from the node might help."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        return {"reason": value} if isinstance(value, str) else value

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema of the object, or of the string that stands for it."""
        return {"anyOf": [{"type": "string"}, handler.resolve_ref_schema(handler(schema))]}


class ExpectedGroup(Params):
    """Expected group of the pod. Only the fields that are set are compared."""

    name: Annotated[str, Field(max_length=VALUE_MAX)] | None = None
    """Its name: the value of `group` of an entry of `binding.gang`. Empty: the pod is in no group."""
    size: Annotated[int, Field(ge=1, le=SIZE_MAX)] | None = None
    """Members that must find room together: the largest size that the pod or a waiting pod of the group says."""
    known: Annotated[int, Field(ge=0)] | None = None
    """Number of its waiting members, the pod among them."""
    started: bool | None = None
    """Whether a placed pod of it lives, or `groups` says so."""


class ExpectedRequirement(Params):
    """Requirement of an expected term."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    key: str
    """Key of the label, or metadata.name."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    """Relation between the label and the values."""
    values: Listed[str] = ()
    """Values, in any order. Exists and DoesNotExist have none."""


class ExpectedTerm(Params):
    """Expected term of node affinity."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    match_expressions: Listed[ExpectedRequirement] = ()
    """Requirements on labels, in any order."""
    match_fields: Listed[ExpectedRequirement] = ()
    """Requirements on the name, in any order."""


class Expect(Params):
    """Expected results. Absent fields are not compared."""

    policies: Listed[str] | None = None
    """The policies that match the pod: these and no others."""
    passed: Listed[str] | None = None
    """The nodes that no filter rejects: these and no others."""
    rejected: dict[str, ExpectedRejection] = Field(default_factory=dict)
    """By node: the expected rejection. Other nodes are not compared."""
    scores: dict[str, float] = Field(default_factory=dict)
    """By node: the points of all policies, to a hundredth. A node that does not fit or is rejected has none."""
    order: Annotated[Listed[NodeGroup], Field(min_length=2)] | None = None
    """These nodes from the highest score to the lowest; an inner list has nodes with equal scores."""
    preferred: Listed[str] | None = None
    """The nodes with the highest score: these and no others."""
    protected: dict[str, str] = Field(default_factory=dict)
    """By placed pod: the rule that protects it from eviction for the pod."""
    evictable: Listed[str] = ()
    """Placed pods that may be evicted for the pod."""
    annotations: dict[str, dict[str, str]] = Field(default_factory=dict)
    """By node: the annotations that the pod gets when it is bound there: these and no others."""
    group: ExpectedGroup | None = None
    """The group of the pod."""
    affinity: Listed[ExpectedTerm] | None = None
    """The terms of required node affinity that the pod is created with, as `fairlead affinity` prints them, in any
    order: these and no others. Empty: nothing is published for it."""


class LearnedPair(Params):
    """Outcomes of the pods of a type on a node, as a rule has learned them."""

    list_keys: ClassVar[tuple[str, ...]] = ("type", "node")

    type: Annotated[str, Field(min_length=1, max_length=128)]
    """Type of the pods."""
    node: str
    """Name of the node; empty for one that is gone, whose outcomes matter to no other node."""
    value: Annotated[float, Field(ge=0, le=1)]
    """Mean reward as of the last outcome, in which the prior counts as one outcome."""
    count: Annotated[float, Field(ge=0.01, le=1_000_000_000)]
    """Sum of the weights of the outcomes as of the last one: their number, if none is much older than the others."""
    age: Annotated[Duration, within("0s", "87600h")] | None = None
    """Time since the last outcome. 0s when absent."""
    prior: Annotated[float, Field(ge=0, le=1)] | None = None
    """Prior that the value has, from 0 to 1. That of the rule when absent."""


def _as_text(value: object) -> object:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else value


RequestedAmount: TypeAlias = Annotated[Quantity, BeforeValidator(_as_text, json_schema_input_type=str | int | float)]


class LearnedDemand(Params):
    """Requests of a pod that a rule has learned: a quantity for each resource of the rule, 0 for those left out."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, RequestedAmount] = Field(init=False)

    list_keys: ClassVar[tuple[str, ...]] = ()

    copies: Annotated[int, Field(ge=1, le=_DEMANDS_MAX)] = 1
    """Number of pods that request this. 1 when absent."""

    @property
    def amounts(self) -> Mapping[str, RequestedAmount]:
        """Return what is requested, by resource."""
        return self.__pydantic_extra__


class GivenDemands(Params):
    """Requests of pods, as a rule has learned them."""

    demands: Annotated[Listed[LearnedDemand], Field(max_length=_DEMANDS_MAX)]
    """Requests in the order in which the pods were created, the newest last; beyond `samples` the newest ones count."""


def _form(value: object) -> str:
    return MAP if isinstance(value, Mapping | GivenDemands) else ITEMS


LearnedPairs: TypeAlias = Annotated[Listed[LearnedPair], Field(max_length=_PAIRS_MAX)]
LearnedOfRule: TypeAlias = Annotated[
    Annotated[LearnedPairs, Tag(ITEMS)] | Annotated[GivenDemands, Tag(MAP)], Discriminator(_form)
]
"""Outcomes of pods, or requests of pods, that a rule has learned."""


class GivenGroup(Params):
    """Group in a state that pods alone do not show, of the scheduler of a case's pod."""

    list_keys: ClassVar[tuple[str, ...]] = ("namespace", "value")

    namespace: Annotated[str, Field(min_length=1, max_length=63)] = "default"
    """Namespace of its pods. default when absent."""
    value: Annotated[str, Field(min_length=1, max_length=VALUE_MAX)]
    """Value of the group."""
    state: Literal["Started", "Turn", "Resting", "Waiting"]
    """Started: a pod of it is on a node. Turn: it is being placed, and other groups wait. Resting: it found no room a
    moment ago. Waiting: none of these, in place of what the suite says of it."""


class Case(Params):
    """One pod with its expected results."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    """A sentence that describes the case."""
    now: str | None = None
    """Time of the case, if not that of the suite."""
    namespaces: Annotated[Listed[Object], Field(max_length=_OBJECTS_MAX)] = ()
    """Merged over the suite's namespaces with the same name; others are added."""
    nodes: Annotated[Listed[Object], Field(max_length=_OBJECTS_MAX)] = ()
    """Merged over the suite's nodes with the same name; others are added."""
    pods: Annotated[Listed[Object], Field(max_length=_OBJECTS_MAX)] = ()
    """Merged over the suite's pods with the same name; others are added."""
    waiting: Annotated[Listed[Object], Field(max_length=_OBJECTS_MAX)] = ()
    """Merged over the suite's waiting pods with the same name; others are added."""
    groups: Annotated[Listed[GivenGroup], Field(max_length=_OBJECTS_MAX)] = ()
    """States of groups, in place of what the suite says of these groups."""
    learned: dict[str, LearnedOfRule] = Field(default_factory=dict)
    """What rules have learned, by rule, as `rule` or `policy/rule`; replaces what the suite says of that rule."""
    pod: Object
    """The pod to place."""
    expect: Expect
    """The expected results."""


class Suite(Params):
    """Policies, the cluster they are tested on, and cases."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    name: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """Name of the suite. Absent: the name of the file."""
    policies: Annotated[Listed[str], Field(min_length=1, max_length=100)]
    """Files of the policies, relative to the directory of the suite."""
    now: str | None = None
    """The time that rules see. 2027-01-15T12:00:00Z when absent."""
    templates: dict[str, Object] = Field(default_factory=dict)
    """Partial objects by name, for objects with `from`."""
    namespaces: Annotated[Listed[Object], Field(max_length=_OBJECTS_MAX)] = ()
    """Namespaces for which more than the name matters."""
    nodes: Annotated[Listed[Object], Field(max_length=_OBJECTS_MAX)] = ()
    """The nodes of the cluster."""
    pods: Annotated[Listed[Object], Field(max_length=_OBJECTS_MAX)] = ()
    """The placed pods, each with spec.nodeName."""
    waiting: Annotated[Listed[Object], Field(max_length=_OBJECTS_MAX)] = ()
    """Pods without a node that wait beside the pod of a case, such as the other members of its group."""
    groups: Annotated[Listed[GivenGroup], Field(max_length=_OBJECTS_MAX)] = ()
    """States of groups. Absent: a group has started if a placed pod is in it, no group has the turn, and none rests."""
    learned: dict[str, LearnedOfRule] = Field(default_factory=dict)
    """What rules have learned, by rule, as `rule` or `policy/rule`. Absent: nothing."""
    cases: Annotated[Listed[Case], Field(min_length=1, max_length=_OBJECTS_MAX)]
    """The cases, each about one pod."""
