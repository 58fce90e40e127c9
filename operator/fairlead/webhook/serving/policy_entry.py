"""A policy of the store: its newest object, and the generations that compiled."""

from collections.abc import Mapping
from dataclasses import dataclass

from fairlead.api.mode import Mode, mode_of
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import in_mode
from fairlead.policy.compile.placeholder import generation_of, placeholder_policy
from fairlead.webhook.serving.generations import Age, Candidates, NotCompiled
from fairlead.webhook.serving.policy_status import CompiledGeneration, Obj


@dataclass(slots=True)
class PolicyEntry:
    """A policy of the store."""

    obj: Obj
    mode: Mode | None
    """Mode of the newest object, or of the newest one before it whose mode can be read; None if none can."""
    newest: CompiledPolicy | NotCompiled | None = None
    """Result of the newest object that was compiled; None before any was."""
    earlier: tuple[CompiledPolicy, ...] = ()
    """At most two generations that compiled before it, the newest first; the last one is the one that served."""
    waits: bool = True
    is_beyond: bool = False
    """True if it is beyond the number of policies that serve, so that it is not compiled."""
    taken: float = 0.0
    """Seconds it has taken, with half of what its previous edit took: frequent edits do not start from zero."""

    good: CompiledGeneration | None = None
    """The newest generation, with the object it was compiled from, until it serves."""
    _placeholder: CompiledPolicy | None = None

    def replace(self, obj: Obj) -> bool:
        """Take a newer object; return whether its mode is another one."""
        self.obj, self.waits, self._placeholder = obj, True, None
        before, self.mode = self.mode, mode_of(obj) or self.mode
        return self.mode != before

    def set_compiled(self, compiled: CompiledPolicy, obj: Obj) -> None:
        """Take what the newest object compiled to."""
        self.newest, self.earlier = compiled, self.compiled[-1:]
        self.good = CompiledGeneration(compiled.name, compiled.uid, compiled.generation, obj)

    def set_failed(self, failure: NotCompiled) -> None:
        """Take the reason why the newest object does not compile."""
        self.newest, self.earlier, self.good = failure, self.compiled, None

    def forget_results(self, *, is_beyond: bool) -> None:
        """Drop all generations, to be compiled anew unless there are too many policies."""
        self.newest, self.earlier, self.good = None, (), None
        self.is_beyond, self.waits = is_beyond, not is_beyond

    def keep_until(self, serving: CompiledPolicy) -> None:
        """Drop the generations that are older than the one that serves."""
        last = next((at for at, one in enumerate(self.earlier) if one is serving), -1)
        self.earlier = self.earlier[: last + 1]

    def take_good(self, serving: CompiledPolicy | None) -> CompiledGeneration | None:
        """Return the newest generation if it is the one that serves and did not serve before."""
        if serving is None or serving is not self.newest:
            return None
        good, self.good = self.good, None
        return good

    def candidates(self, mode: Mode) -> Candidates:
        """Return the generations that may serve under this mode: the same objects each time.

        The serving state compares them.
        """
        if isinstance(self.newest, CompiledPolicy):
            self.newest = in_mode(self.newest, mode)
        self.earlier = tuple(in_mode(one, mode) for one in self.earlier)
        (created, name), uid = self.age, uid_of(self.obj)
        return Candidates(
            name=name,
            uid=uid,
            created=created,
            generation=generation_of(self.obj) if self.is_beyond else "",
            mode=mode,
            newest=self.newest,
            earlier=self.earlier,
        )

    def placeholder(self, mode: Mode, *, yet: bool) -> CompiledPolicy:
        """Return what serves if none of its generations does: the same object each time."""
        before = self._placeholder
        if before is None or (before.placeholder == "NotCompiled") != yet:
            before = placeholder_policy(self.obj, yet=yet)
        self._placeholder = in_mode(before, mode)
        return self._placeholder

    @property
    def compiled(self) -> tuple[CompiledPolicy, ...]:
        """Return the generations that compiled, the newest first."""
        return (self.newest, *self.earlier) if isinstance(self.newest, CompiledPolicy) else self.earlier

    @property
    def is_edit(self) -> bool:
        """Return whether an earlier generation of it has compiled."""
        return bool(self.compiled)

    @property
    def is_too_long(self) -> bool:
        """Return whether it takes too long to compile; it is not tried again until it changes."""
        return isinstance(self.newest, NotCompiled) and self.newest.is_too_long

    @property
    def age(self) -> Age:
        """Return the sort key by which older policies come first; it is empty for the oldest policies of files."""
        metadata = self.obj.get("metadata", {})
        return str(metadata.get("creationTimestamp") or ""), str(metadata.get("name", ""))

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
