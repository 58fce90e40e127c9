"""Generation of each policy that serves: the choice among those that compiled, within the limits of the process. Pure.

The newest generation that compiles and is within the limits serves; an earlier one continues to serve in place of one
that is not (decision 5). If there is none, the failure policy decides for the pods of the policy.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fairlead.api.mode import Mode
from fairlead.policy.compile.entry_limits import EntryLimits
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.webhook.serving.policy_status import PolicyStatus, Reason

_BEYOND: Final = (
    "there are more than {} policies, of which the oldest serve; delete policies, or raise maxPolicies in the settings"
)
Age = tuple[str, str]
"""Creation time and name of a policy: older ones sort first. The oldest policies of files have no time."""


@dataclass(frozen=True, slots=True)
class PolicyLimits:
    """Limits of all policies together. The oldest come first, so that a new policy takes no room from another one."""

    policies: int = 1_000_000
    entries: Mapping[str, int] | None = None
    """Different measured entries by Prometheus server; None if that is not known."""


@dataclass(frozen=True, slots=True)
class NotCompiled:
    """Failure of a generation to compile, or to be within the limits."""

    generation: str
    why: str
    is_internal: bool = False
    """Whether the compiler itself failed, so that the policy is not at fault."""
    is_too_long: bool = False
    """Whether it takes too long to compile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Generations of a policy that may serve, all in the mode of its newest object."""

    name: str
    uid: str = ""
    created: str = ""
    generation: str = ""
    """Generation of its newest object."""
    mode: Mode = "Enforce"
    newest: CompiledPolicy | NotCompiled | None = None
    """Result of the newest object that was compiled; None before any was."""
    earlier: Sequence[CompiledPolicy] = ()
    """Generations that compiled before it, in the order in which they are preferred."""

    @property
    def compiled(self) -> Iterator[CompiledPolicy]:
        """Return those that compiled, in the order in which they are preferred."""
        if isinstance(self.newest, CompiledPolicy):
            yield self.newest
        yield from self.earlier

    @property
    def precedence(self) -> tuple[str, tuple[int, str]]:
        """Return the sort key by which policies take measured entries: by creation, then by their order."""
        preferred = next(self.compiled, None)
        return self.created, (0, self.name) if preferred is None else preferred.order


@dataclass(frozen=True, slots=True)
class Choice:
    """Generation that serves of a policy."""

    serving: CompiledPolicy | None
    """None: its failure policy decides."""
    status: PolicyStatus | None
    """None before its newest object was compiled."""


def choose(policies: Sequence[Candidates], limits: PolicyLimits) -> Mapping[str, Choice]:
    """Return which generation of each policy serves, and why, by name."""
    left_out = beyond([(one.created, one.name) for one in policies], limits.policies)
    taken, choices = EntryLimits(limits.entries), dict[str, Choice]()
    for one in sorted(policies, key=lambda one: one.precedence):
        if one.name in left_out:
            why = NotCompiled(one.generation, _BEYOND.format(limits.policies))
            choices[one.name] = Choice(None, _status(one, why, None))
        else:
            choices[one.name] = _choose(one, taken)
    return choices


def beyond(policies: Sequence[Age], limit: int) -> frozenset[str]:
    """Return the names of policies that neither compile nor serve, because there are more than this limit."""
    return frozenset(name for _, name in sorted(policies)[limit:]) if len(policies) > limit else frozenset()


def _choose(candidates: Candidates, taken: EntryLimits) -> Choice:
    why = candidates.newest if isinstance(candidates.newest, NotCompiled) else None
    for candidate in candidates.compiled:
        if (fault := taken.take(candidate)) is None:
            return Choice(candidate, _status(candidates, why, candidate))
        if candidate is candidates.newest:
            why = NotCompiled(candidate.generation, str(fault))
    return Choice(None, _status(candidates, why, None))


def _status(candidates: Candidates, why: NotCompiled | None, serving: CompiledPolicy | None) -> PolicyStatus | None:
    served = None if serving is None else serving.generation
    if why is not None:
        return PolicyStatus(
            candidates.name,
            why.generation,
            served,
            _reason(candidates, why, serving),
            why.why,
            candidates.uid,
            candidates.mode,
        )
    if isinstance(candidates.newest, CompiledPolicy):
        return PolicyStatus(
            candidates.name, candidates.newest.generation, served, "Compiled", uid=candidates.uid, mode=candidates.mode
        )
    return None


def _reason(candidates: Candidates, why: NotCompiled, serving: CompiledPolicy | None) -> Reason:
    if why.is_internal:
        return "InternalError"
    if candidates.mode != "Enforce":
        return "NotCompiled"  # nothing is applied, whatever would serve
    return "NothingServes" if serving is None else "LastGoodServes"
