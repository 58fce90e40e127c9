"""Which verbs a scheduler calls, decided from its policies: design decision 1.

More policies never take away from a wiring, so that those of a change can be joined: what still serves with what is to
serve, or what was used until a moment ago with what is used now.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from fairlead.api.v1alpha1 import SchedulerExtenderPolicy


@dataclass(frozen=True, slots=True)
class ExtenderEntry:
    """One extender of the scheduler's configuration."""

    filters: bool = False
    """It filters and preempts: a full node never reaches the filter, and would be emptied for nothing."""
    scores: bool = False
    binds: bool = False
    ignorable: bool = False
    """Whether pods are placed without it while it cannot be reached."""
    path: str = ""

    @property
    def verbs(self) -> tuple[tuple[str, str], ...]:
        """Fields of the configuration, with the last part of the URL that each of them names."""
        used = {"filter": self.filters, "preempt": self.filters, "prioritize": self.scores, "bind": self.binds}
        return tuple((f"{verb}Verb", verb) for verb, is_used in used.items() if is_used)


@dataclass(frozen=True, slots=True)
class Wiring:
    """What the policies of one scheduler use."""

    fails: bool = False
    """A policy wants its pods to wait while nobody answers."""
    ignores: bool = False
    """Another one that refuses or protects lets them go on."""
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
        """The extenders, in the order in which the scheduler asks them."""
        # The first is always there, and does not prioritize: because of it every node has a zero, and lots are drawn
        # between equals. Nobody needs to wait for it where no policy says so.
        gate = ExtenderEntry(filters=True, binds=self.binds, ignorable=not (self.fails or self.binds))
        ignore = ExtenderEntry(path="/ignore", filters=True, ignorable=True)
        scores = ExtenderEntry(scores=True)
        return (gate, *[ignore] * self.ignores, *[scores] * self.scores)


def wire(policies: Iterable[SchedulerExtenderPolicy]) -> Wiring:
    """What the policies of one scheduler use, whether they compile or not.

    Hand in both where the last good generation of a policy serves. One that cannot be read counts as
    `Wiring(fails=True)`, unless its failurePolicy says otherwise.
    """
    wiring = Wiring()
    for spec in (one.spec for one in policies if one.spec.mode == "Enforce"):
        fails = spec.failure_policy == "Fail"
        wiring |= Wiring(
            fails=fails,
            ignores=not fails and bool(spec.filters or spec.preemption.protect),
            scores=bool(spec.scores),
            binds=spec.binding is not None and bool(spec.binding.annotations),
        )
    return wiring
