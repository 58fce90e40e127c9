"""A policy of the store: its newest object, and what was compiled of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from fairlead.policy.compile.mode import Mode, in_mode, mode_of
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.placeholder import placeholder_policy
from fairlead.webhook.serving.policy_status import Obj, PolicyStatus


@dataclass(slots=True)
class PolicyEntry:
    """A policy of the store."""

    obj: Obj
    mode: Mode | None
    """Mode of the newest object, or of the newest one before it whose mode can be read; None if none can."""
    compiled: CompiledPolicy | None = None
    state: PolicyStatus | None = None
    """Result of compiling the newest object that was compiled."""
    waits: bool = True
    is_too_long: bool = False
    """Whether it takes too long to compile; it is not tried again until it changes."""
    taken: float = 0.0
    """Seconds it has taken, with half of what its previous edit took: frequent edits do not start from zero."""

    def replace(self, obj: Obj) -> bool:
        """Take a newer object; return whether its mode is another one."""
        self.obj, self.waits = obj, True
        before, self.mode = self.mode, mode_of(obj) or self.mode
        return self.mode != before

    def serving(self, mode: Mode) -> CompiledPolicy:
        """Return what serves under this mode: the same object each time, as the serving state compares them."""
        if self.compiled is None:
            return in_mode(placeholder_policy(self.obj, yet=False), mode)
        self.compiled = in_mode(self.compiled, mode)
        return self.compiled

    @property
    def length(self) -> int:
        """Return the total length of its expressions."""
        return length_of(self.obj)


def uid_of(obj: Obj) -> str:
    """Return the UID of a policy; empty for one from a file."""
    return str(obj.get("metadata", {}).get("uid", ""))


def length_of(obj: Obj) -> int:
    """Return the total length of the expressions of a policy."""
    spec = obj.get("spec")
    parts = [spec, *(one for one in spec.values() if isinstance(one, Mapping))] if isinstance(spec, Mapping) else []
    lists = [one for part in parts for one in part.values() if isinstance(one, list)]
    rules = [rule for one in lists for rule in one if isinstance(rule, Mapping)]
    return sum(len(str(rule.get("expression", ""))) for rule in rules)


def written_in(obj: Obj) -> object:
    """Return what its author wrote, with its generation: changes of status and metadata do not count."""
    return obj.get("apiVersion"), obj.get("spec"), obj.get("metadata", {}).get("generation")
