"""Counts of rules in shadow from the statuses of policies, which other versions may have written. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fairlead.api.mode import RULE_LISTS, Mode, mode_of
from fairlead.api.names import scheduler_of
from fairlead.cli.console.output import pluralize

Obj = Mapping[str, Any]
COUNTED: Final = ("pods", "unschedulable", "restricted", "reordered", "evictions")
"""Numbers of pods: of those of which a call was compared, and of those with each effect."""
_SUMS: Final = ("calls", "skipped", "unknown", *COUNTED, "tooSlow")
_KINDS: Final = (
    *zip(("Filter", "Score", "Protection", "Annotation"), RULE_LISTS, ("name", "name", "name", "key"), strict=True),
)
"""Kinds of rules, each with the path of its list and the field that names a rule."""
_GANGS: Final = ("binding", "gang")
_TOPOLOGY: Final = "topology"
_SIMULATE: Final = "`fairlead simulate --as-enforced` shows what it would do to the pods of now"


@dataclass(frozen=True, slots=True)
class RuleCounts:
    """Pods for which one rule alone would have changed something."""

    kind: str
    name: str
    pods: int
    unschedulable: int


@dataclass(frozen=True, slots=True)
class CountedShadow:
    """Counts of one generation of a policy."""

    generation: int
    since: str
    sums: Mapping[str, int]
    rules: Sequence[RuleCounts]

    @property
    def compared(self) -> int:
        """Return the number of calls that were compared."""
        return max(0, self.sums["calls"] - self.sums["skipped"] - self.sums["unknown"])


@dataclass(frozen=True, slots=True)
class PolicyInShadow:
    """A policy with what of it is in shadow, and the counts of its status."""

    name: str
    scheduler: str
    mode: Mode | None
    """None if it cannot be read."""
    generation: int
    rules: Sequence[tuple[str, str]]
    """Kinds and names of the rules in shadow."""
    not_compared: Sequence[str]
    """Groups and filters `topology` in shadow: what they say depends on what they hold or have written."""
    counts: CountedShadow | None
    """None if the status has none."""
    is_compared: bool = True
    """False if nothing of what is in shadow can be compared."""
    rolls: Sequence[str] | None = ()
    """Calls that its scheduler would make in addition if they were enforced, which rolls its pods; None: not known."""

    @property
    def has_shadow(self) -> bool:
        """Return whether something of it is in shadow."""
        return bool(self.rules or self.not_compared)

    @property
    def groups(self) -> int:
        """Return the number of groups in shadow."""
        return len({*self.not_compared} - {name for _, name in self.rules})

    @property
    def is_current(self) -> bool:
        """Return whether the counts are of its newest generation."""
        return self.counts is not None and self.counts.generation == self.generation

    def problems(self, least: int) -> Iterator[str]:
        """Yield what speaks against enforcing it; `least` is the number of pods that have to be compared."""
        if self.mode == "Disabled":
            yield "its mode is Disabled: none of its rules is evaluated"
        elif not self.has_shadow:
            yield "nothing of it is in shadow"
        elif not self.is_compared:
            yield f"nothing of it is ever compared, as it depends on what it holds or writes: {_SIMULATE}"
        elif self.counts is None:
            yield "its status has no counts: the operator is older, not running, or has not written them yet"
        elif not self.is_current:
            yield f"generation {self.generation} has no counts yet: these are of generation {self.counts.generation}"
        elif not self.counts.sums["calls"]:
            yield "no call was seen"
        else:
            if (pods := self.counts.sums["pods"]) < least:
                yield f"{pluralize(pods, 'pod')} of at least {least:,} {'was' if pods == 1 else 'were'} compared"
            if stranded := self.counts.sums["unschedulable"]:
                yield f"{pluralize(stranded, 'pod')} would have been left without a node"


def policy_in_shadow(obj: Obj) -> PolicyInShadow:
    """Return what of a policy is in shadow, whatever else is in the object."""
    metadata, spec = _map(obj.get("metadata")), _map(obj.get("spec"))
    mode = mode_of(obj)
    whole, off = mode == "Shadow", mode == "Disabled"

    def in_shadow(path: Sequence[str]) -> list[Obj]:
        return [one for one in _listed(spec, path) if whole or one.get("mode") == "Shadow"]

    rules = [(kind, str(one.get(key, ""))) for kind, path, key in _KINDS for one in in_shadow(path)]
    held = [str(one.get("name", "")) for one in in_shadow(("filters",)) if _TOPOLOGY in one]
    is_compared = len(rules) > len(held)
    held += [str(one.get("name", "")) for one in _listed(spec, _GANGS)] if whole else []
    return PolicyInShadow(
        str(metadata.get("name", "")),
        scheduler_of({"spec": spec}),
        mode,
        _count(metadata.get("generation")),
        () if off else rules,
        () if off else held,
        _counts(_map(obj.get("status")).get("shadow")),
        is_compared,
    )


def counts_data(policy: PolicyInShadow, least: int) -> dict[str, Any]:
    """Return a policy for programs."""
    counts = policy.counts
    return {
        "policy": policy.name,
        "scheduler": policy.scheduler,
        "mode": policy.mode,
        "generation": policy.generation,
        "inShadow": [{"kind": kind, "name": name} for kind, name in policy.rules],
        "notCompared": [*policy.not_compared],
        "counts": None
        if counts is None
        else {
            "generation": counts.generation,
            "since": counts.since or None,
            **counts.sums,
            "compared": counts.compared,
            "rules": [
                {"kind": one.kind, "name": one.name, "pods": one.pods, "unschedulable": one.unschedulable}
                for one in counts.rules
            ],
        },
        "rolls": None if policy.rolls is None else bool(policy.rolls),
        "rollsFor": [*(policy.rolls or ())],
        "problems": [*policy.problems(least)],
    }


def _counts(written: object) -> CountedShadow | None:
    if not isinstance(written, Mapping):
        return None
    rules = [
        RuleCounts(
            str(one.get("kind", "")),
            str(one.get("name", "")),
            _count(one.get("pods")),
            _count(one.get("unschedulable")),
        )
        for one in _listed(written, ("rules",))
    ]
    since = written.get("since")
    return CountedShadow(
        _count(written.get("generation")),
        since if isinstance(since, str) else "",
        {name: _count(written.get(name)) for name in _SUMS},
        sorted(rules, key=lambda one: (-one.unschedulable, -one.pods)),
    )


def _count(value: object) -> int:
    """Return a number that may be written as a text; 0 if it is none."""
    try:
        return max(0, int(value)) if isinstance(value, int | str) else 0
    except ValueError:
        return 0


def _map(value: object) -> Obj:
    return value if isinstance(value, Mapping) else {}


def _listed(of: object, path: Sequence[str]) -> list[Obj]:
    for name in path:
        of = _map(of).get(name)
    return [one for one in of if isinstance(one, Mapping)] if isinstance(of, list) else []
