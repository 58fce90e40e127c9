"""What a suite is made of: policies, what they are asked about, and what they have to say.

Objects are those of Kubernetes, written as far as they matter; `objects.py` makes whole ones of them.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, model_validator

from fairlead.api.params import Listed, Params

Object = dict[str, Any]
_OBJECTS_MAX = 1000


def _as_group(value: object) -> object:
    return [value] if isinstance(value, str) else value


Group = Annotated[Listed[str], Field(min_length=1), BeforeValidator(_as_group)]
"""Nodes of one score: a name, or a list of names."""


class Rejection(Params):
    """Why a node is rejected. Only what is given is compared; a text in its place is the reason."""

    reason: str | None = None
    """The reason that people read, as a whole."""
    rule: str | None = None
    """The rule that gives it: its name, or policy/name."""
    resolvable: bool | None = None
    """Whether evicting pods from the node might help."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        return {"reason": value} if isinstance(value, str) else value


class Expect(Params):
    """What the policies have to say. What is absent is not looked at."""

    policies: Listed[str] | None = None
    """The policies that the pod is subject to: these, and no others."""
    passed: Listed[str] | None = None
    """The nodes that no filter rejects: these, and no others."""
    rejected: dict[str, Rejection] = Field(default_factory=dict)
    """By node: why it is rejected. Nodes that are not named are not looked at."""
    scores: dict[str, float] = Field(default_factory=dict)
    """By node: the points of all policies, to a hundredth. A node that does not fit, or is rejected, has none."""
    order: Annotated[Listed[Group], Field(min_length=2)] | None = None
    """These nodes from the highest score to the lowest; a list in the list has nodes of one score."""
    preferred: Listed[str] | None = None
    """The nodes with the highest score: these, and no others."""
    protected: dict[str, str] = Field(default_factory=dict)
    """By pod on a node: the rule that keeps it from being evicted for the pod."""
    evictable: Listed[str] = ()
    """Pods on nodes that may be evicted for the pod."""
    annotations: dict[str, dict[str, str]] = Field(default_factory=dict)
    """By node: the annotations that the pod gets when it is bound there: these, and no others."""


class Case(Params):
    """One pod, and what has to be said of it."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    """A sentence."""
    now: str | None = None
    """Another time than the suite's."""
    namespaces: Annotated[Listed[Object], Field(max_length=_OBJECTS_MAX)] = ()
    """Laid over those of the suite that are called the same; others come in addition."""
    nodes: Annotated[Listed[Object], Field(max_length=_OBJECTS_MAX)] = ()
    """The same of nodes."""
    pods: Annotated[Listed[Object], Field(max_length=_OBJECTS_MAX)] = ()
    """The same of pods on nodes."""
    pod: Object
    """The pod that is to be placed."""
    expect: Expect
    """What the policies have to say."""


class Suite(Params):
    """Some policies, what they are asked about, and cases."""

    list_keys: ClassVar[tuple[str, ...]] = ()

    name: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """What the suite is called. Absent: what the file is called."""
    policies: Annotated[Listed[str], Field(min_length=1, max_length=100)]
    """The files of the policies, from the folder of the suite."""
    now: str | None = None
    """The time of day, such as 2027-01-15T12:00:00Z. That one when absent."""
    templates: dict[str, Object] = Field(default_factory=dict)
    """Parts of objects by name, for objects that say `from`."""
    namespaces: Annotated[Listed[Object], Field(max_length=_OBJECTS_MAX)] = ()
    """Namespaces of which more than the name matters."""
    nodes: Annotated[Listed[Object], Field(max_length=_OBJECTS_MAX)] = ()
    """The nodes that the pod could go to."""
    pods: Annotated[Listed[Object], Field(max_length=_OBJECTS_MAX)] = ()
    """The pods that are on them, each with spec.nodeName."""
    cases: Annotated[Listed[Case], Field(min_length=1, max_length=_OBJECTS_MAX)]
    """What is asked, one pod at a time."""

    def objects(self) -> Mapping[str, tuple[Object, ...]]:
        """The shared objects by field."""
        return {"namespaces": self.namespaces, "nodes": self.nodes, "pods": self.pods}
