"""Wiring of a scheduler: the extender verbs that it calls, derived from its policies.

More policies never remove anything from a wiring, so wirings can be joined: that of the serving generations with that
of the new ones, or the retained one with the current one.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.api.v1alpha1 import SchedulerExtenderPolicy


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

    def __or__(self, other: "Wiring") -> "Wiring":
        return Wiring(
            self.fails or other.fails,
            self.ignores or other.ignores,
            self.scores or other.scores,
            self.binds or other.binds,
        )

    @property
    def entries(self) -> tuple[ExtenderEntry, ...]:
        """Extenders in the order in which the scheduler calls them."""
        # The first one always exists, and does not prioritize: so every node has a score of zero, and kube-scheduler
        # chooses at random between equals. It is ignorable unless a policy says otherwise.
        gate = ExtenderEntry(filters=True, binds=self.binds, ignorable=not (self.fails or self.binds))
        ignore = ExtenderEntry(path="/ignore", filters=True, ignorable=True)
        scores = ExtenderEntry(scores=True)
        return (gate, *[ignore] * self.ignores, *[scores] * self.scores)


def wire(policies: "Iterable[SchedulerExtenderPolicy]") -> Wiring:
    """Return the wiring for the policies of one scheduler, whether they compile or not.

    Pass both generations of a policy whose last good one serves. An unreadable policy counts as `Wiring(fails=True)`,
    unless its failurePolicy says otherwise.
    """
    wiring = Wiring()
    for spec in (one.spec for one in policies if one.spec.mode == "Enforce"):
        fails = spec.failure_policy == "Fail"
        wiring |= Wiring(
            fails=fails,
            ignores=not fails and bool(spec.filters or spec.preemption.protect),
            scores=bool(spec.scores),
            binds=spec.binding is not None and bool(spec.binding.annotations or spec.binding.device_share),
        )
    return wiring
