"""Slow classes: classes of pods that took too long to evaluate in shadow are left alone for a while."""

from collections import OrderedDict
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, TypeAlias

from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.matching import Key
from fairlead.time_units import SECOND_NS

REST_NS: Final = 300 * SECOND_NS
CLASSES: Final = 1024
"""Classes that are remembered, the latest ones."""
_Class: TypeAlias = tuple[str, str, str, bytes]
_ALL: Final = b""
"""Stands for all pods of a policy, also for those that are each a class of their own."""


@dataclass(slots=True, eq=False)
class SlowClasses:
    """Classes that rest, by generation of their policy. Times are nanoseconds of a monotonic clock."""

    _until: OrderedDict[_Class, int] = field(default_factory=OrderedDict)

    def begin(self, policy: CompiledPolicy, key: Key | None, at: int) -> None:
        """Let a class rest from now on; None: all pods of the policy."""
        which = _class_of(policy, key)
        self._until[which] = at + REST_NS
        self._until.move_to_end(which)
        while len(self._until) > CLASSES:
            self._until.popitem(last=False)

    def is_resting(self, policy: CompiledPolicy, key: Key | None, at: int) -> bool:
        """Return whether a class rests; None: whether all pods of the policy do."""
        if not self._until:
            return False
        return self._until.get(_class_of(policy, None), at) > at or self._until.get(_class_of(policy, key), at) > at


def _class_of(policy: CompiledPolicy, key: Key | None) -> _Class:
    digest = _ALL if key is None else blake2b(repr(key).encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return policy.name, policy.uid, policy.generation, digest
