"""Wiring of a scheduler: the extender verbs that it calls, derived from its policies.

More policies never remove anything from a wiring, so wirings can be joined: that of the serving generations with that
of the new ones, or the retained one with the current one.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fairlead.api.rules import Annotation, Binding, FilterSpec, Protection, ScoreSpec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.api.v1alpha1 import SchedulerExtenderPolicy

RuleWithMode = FilterSpec | ScoreSpec | Protection | Annotation

_HOLDS_S: Final = 30, 60, 120
"""Times that binds wait for groups: a few, because another time rolls the scheduler."""
_ANSWER_S: Final = 5
"""Time after the longest wait in which members are still bound, and the call is answered."""


def bind_timeout_s(hold_s: int) -> int:
    """Return how long a scheduler waits for a bind if members of groups may be held for so long.

    It is more than the longest time that settings let it wait for other answers.
    """
    return next(one for one in _HOLDS_S if one >= min(hold_s, _HOLDS_S[-1])) + _ANSWER_S


@dataclass(frozen=True, slots=True)
class ExtenderEntry:
    """Entry under `extenders` of a scheduler's configuration."""

    filters: bool = False
    """It filters and preempts: without preempt, pods would be evicted from nodes that the filter rejects."""
    scores: bool = False
    binds: bool = False
    ignorable: bool = False
    """True if pods are placed without it while it is unreachable."""
    path: str = ""
    timeout_s: int = 0
    """How long the scheduler waits for an answer of this entry; 0: for the time that its settings say."""

    @property
    def verbs(self) -> tuple[tuple[str, str], ...]:
        """Verb fields of the configuration, each with the last part of its URL."""
        used = {"filter": self.filters, "preempt": self.filters, "prioritize": self.scores, "bind": self.binds}
        return tuple((f"{verb}Verb", verb) for verb, is_used in used.items() if is_used)


@dataclass(frozen=True, slots=True)
class Wiring:
    """Verbs that the policies of one scheduler use."""

    fails: bool = False
    """True if a policy has failurePolicy Fail: its pods wait while no extender answers."""
    ignores: bool = False
    """True if a policy that filters or protects has failurePolicy Ignore."""
    scores: bool = False
    binds: bool = False
    hold_s: int = 0
    """Longest time for which binds of members of a group are held; 0: none are."""
    asks_all: bool = False
    """True if a policy requires that the members of a group share a domain: a sample of nodes may lack it."""

    def __or__(self, other: "Wiring") -> "Wiring":
        return Wiring(
            self.fails or other.fails,
            self.ignores or other.ignores,
            self.scores or other.scores,
            self.binds or other.binds,
            max(self.hold_s, other.hold_s),
            self.asks_all or other.asks_all,
        )

    @property
    def entries(self) -> tuple[ExtenderEntry, ...]:
        """Extenders in the order in which the scheduler calls them."""
        # The first one always exists, and does not prioritize: so every node has a score of zero, and kube-scheduler
        # chooses at random between equals. It is ignorable unless a policy says otherwise. Only one may bind: the
        # first one, or one of its own where binds are held, because an entry has one timeout for all its verbs.
        apart = self.binds and self.hold_s > 0
        gate = ExtenderEntry(filters=True, binds=self.binds and not apart, ignorable=not (self.fails or self.binds))
        ignore = ExtenderEntry(path="/ignore", filters=True, ignorable=True)
        scores = ExtenderEntry(scores=True)
        binder = ExtenderEntry(binds=True, timeout_s=bind_timeout_s(self.hold_s))
        return (gate, *[ignore] * self.ignores, *[scores] * self.scores, *[binder] * apart)


def wire(policies: "Iterable[SchedulerExtenderPolicy]") -> Wiring:
    """Return the wiring for the policies of one scheduler, whether they compile or not: that of rules that decide.

    Pass both generations of a policy whose last good one serves. A policy without rules may be about pods that must
    wait; one whose rules are all in shadow adds nothing. An unreadable policy counts as `Wiring(fails=True)`, unless
    its modes say that nothing of it decides.
    """
    wiring = Wiring()
    for spec in (one.spec for one in policies if one.spec.mode == "Enforce"):
        rejects = spec.failure_policy == "Fail"
        binding, requires = spec.binding or Binding(), _deciding(spec.domain_filters)
        protections = spec.preemption.protect
        rules: tuple[RuleWithMode, ...] = (*spec.filters, *spec.scores, *protections, *binding.annotations)
        grants = bool(binding.device_share or binding.gang)
        wiring |= Wiring(
            fails=rejects and (not rules or grants or _deciding(rules)),
            ignores=not rejects and (_deciding(spec.filters) or _deciding(protections)),
            scores=_deciding(spec.scores),
            binds=requires or grants or _deciding(binding.annotations),
            hold_s=max((one.hold_for.seconds for one in binding.gang), default=0),
            asks_all=requires,
        )
    return wiring


def _deciding(rules: "Iterable[RuleWithMode]") -> bool:
    return any(one.mode != "Shadow" for one in rules)
