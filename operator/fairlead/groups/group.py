"""Group of pods that start together or not at all, and a pod's membership in one."""

from typing import Final

from msgspec import Struct

from fairlead.documents import subject_hash

VALUE_MAX: Final = 253
"""Longest value of a group, in characters."""
SIZE_MAX: Final = 500
"""Most members that a group may wait for."""


class Group(Struct, frozen=True, gc=False):
    """Group of pods of one scheduler and one namespace that have one value."""

    scheduler: str
    namespace: str
    value: str


class Membership(Struct, frozen=True):
    """Membership of a pod in a group, as the policy that counts for it has decided."""

    group: Group
    size: int
    """Members that must find room together, as this pod says."""
    hold_s: int
    """Time for which held members wait for the others."""
    policy: str
    gang: str
    """Name of the entry of `binding.gang`."""


class UndecidedGroup(Struct, frozen=True):
    """Reason that it cannot be told which group a pod belongs to: it is refused on every node."""

    policy: str
    gang: str
    why: str


def group_hash(group: Group) -> str:
    """Return the hash of a group's namespace and value, by which objects name it."""
    return subject_hash(f"{group.namespace}/{group.value}")
