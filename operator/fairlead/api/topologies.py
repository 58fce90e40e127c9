"""Topology: domains of nodes in which the members of a group are near each other, or which they share."""

from typing import Annotated, Final

from pydantic import Field

from fairlead.api.params import FieldCheck, Listed, Params
from fairlead.api.values import Expression, QualifiedKey

TOPOLOGY: Final = "topology"
"""Name of the strategy."""


class TopologyFilter(Params):
    """Reject nodes outside the domain that the members of a group share.

    Before a member is bound, its group's domain is written where every replica reads it. It stays the domain while a
    member runs, or is being bound. It needs failurePolicy Fail.
    """

    levels: Annotated[Listed[QualifiedKey], Field(min_length=1, max_length=6)]
    """Keys of the labels of nodes that tell their domains, the widest level first, such as block, then rack. A domain
    is told by the values of all labels from the widest level on."""
    require: QualifiedKey
    """The level, one of levels, whose domain all members of a group share."""
    group: Expression | None = None
    """CEL that gives the name of the pod's group within its namespace, a string of at most 253 characters. Empty: the
    pod is in no group, and passes. It can read what the group of binding.gang can. If not set: that of the policy's
    only entry of binding.gang, else the UID of the pod's controller."""
    size: Expression | None = None
    """CEL that gives how many members must find room in one domain, from 1 to 500; it counts while no member has a
    node. If not set: that of the policy's only entry of binding.gang, else 1."""

    @classmethod
    def checks(cls) -> tuple[FieldCheck, ...]:
        """Require that the level is one of the levels."""
        return (
            FieldCheck(
                rule="self.require in self.levels",
                holds=lambda self: self.require in self.levels,
                message="require is one of the levels: add it to levels, or name another one",
                field="require",
            ),
        )

    @property
    def shared(self) -> tuple[str, ...]:
        """Return the labels that tell the domain that members share, the widest level first."""
        return tuple(self.levels[: self.levels.index(self.require) + 1])


class TopologyScore(Params):
    """Prefer nodes near the members of the pod's group that have a node.

    The score is 100 for a node that shares all levels with all of them, and 0 for one that shares none. As long as no
    member has a node, the nodes of the smallest domain in which all members find room get 100, and others 0. A node
    that lacks one of the labels gets 0. Members are seen as soon as their bindings are heard of.
    """

    levels: Annotated[Listed[QualifiedKey], Field(min_length=1, max_length=6)]
    """Keys of the labels of nodes that tell their domains, the widest level first, such as block, then rack. A domain
    is told by the values of all labels from the widest level on."""
    group: Expression | None = None
    """CEL that gives the name of the pod's group within its namespace, a string of at most 253 characters. Empty: the
    rule adds nothing. It can read what the group of binding.gang can. If not set: that of the policy's only entry of
    binding.gang, else the UID of the pod's controller. Pods for which it is the same are members, whichever policies
    apply to them."""
    size: Expression | None = None
    """CEL that gives how many members must find room in one domain, from 1 to 500; it counts while no member has a
    node, and with 1 the rule adds nothing then. If not set: that of the policy's only entry of binding.gang, else
    1."""
