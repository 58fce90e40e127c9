"""Topology: domains of nodes that the members of a group share."""

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
