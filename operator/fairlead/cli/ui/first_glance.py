"""First glance of the page: what waits, which policy alone is the cause, what is in shadow, what is behind. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from fairlead.cli.console.output import pluralize
from fairlead.cli.ui.node_rows import NodeTable
from fairlead.cli.ui.policy_effects import JUDGED_MAX, ShadowEffects, coverage, pod_counts
from fairlead.cli.ui.policy_rows import ShownPolicy
from fairlead.cli.ui.shown_pods import ShownPods

FactKind = Literal["Cause", "Shadow", "Behind", "Plain"]
_NODES_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of the first glance."""

    kind: FactKind
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class FirstGlance:
    """Numbers of pods, and facts about them."""

    waiting: int
    stuck: int
    unknown: int
    """Number of those of which a rule that may reject nodes is not evaluated."""
    gated: int
    """Number of those with scheduling gates."""
    facts: Sequence[Fact]

    @property
    def headline(self) -> str:
        """The one sentence that is read first."""
        if self.stuck:
            said = f"{pluralize(self.stuck, 'pod')} {_have(self.stuck)} no node to go to"
            more = self.waiting - self.stuck
            return said + (f", {more:,} more {'waits' if more == 1 else 'wait'}" if more else "")
        if self.waiting:
            said = f"{pluralize(self.waiting, 'pod')} {'waits' if self.waiting == 1 else 'wait'}"
            kinds = [*self._kinds()]
            return said + (f", and {kinds[0]}" if len(kinds) == 1 else f": {', '.join(kinds)}")
        return "No pod waits"

    def _kinds(self) -> Iterator[str]:
        """Yield what is so of pods that are not stuck, each kind once."""

        def who(count: int) -> str:
            return f"{count:,} {_have(count)}" if count < self.waiting else "it has" if count == 1 else "each has"

        if possible := self.waiting - self.unknown - self.gated:
            yield f"{who(possible)} a node that {'it' if possible in (1, self.waiting) else 'they'} could use"
        if self.unknown:
            of = f"of {self.unknown:,} " if self.unknown < self.waiting else ""
            them = f"{'it' if self.unknown == 1 else 'they'} {_have(self.unknown)}"
            yield f"{of}it is not known whether {them} a node to go to"
        if self.gated:
            yield f"{who(self.gated)} scheduling gates"


def first_glance(shown: ShownPods, policies: Sequence[ShownPolicy], nodes: NodeTable) -> FirstGlance:
    """Return the first glance."""
    waiting = shown.waiting
    facts = [*_causes(policies), *_shadow(policies), *_behind(shown, policies, nodes), _size(shown)]
    because = Counter(pod.waits_because for pod in waiting)
    stuck = sum(1 for pod in waiting if pod.is_stuck)
    return FirstGlance(len(waiting), stuck, because["Unknown"], because["Gated"], facts)


def _have(count: int) -> str:
    return "has" if count == 1 else "have"


def _causes(policies: Sequence[ShownPolicy]) -> Iterator[Fact]:
    for policy in sorted(policies, key=lambda row: -row.alone):
        if policy.alone:
            them = "it" if policy.alone == 1 else "them"
            text = f"alone keeps {pluralize(policy.alone, 'pod')} from every node with room for {them}"
            yield Fact("Cause", policy.name, text)


def _shadow(policies: Sequence[ShownPolicy]) -> Iterator[Fact]:
    for policy in policies:
        if policy.effects is not None:
            yield Fact("Shadow", policy.name, shadow_sentence(policy.effects))
        if (live := policy.live) is not None:
            text = f"on live calls: {coverage(live)}"
            counts = [f"{count:,} {words}" for count, words in pod_counts(live) if count or words == "compared"]
            yield Fact("Shadow", policy.name, f"{text}; pods: {', '.join(counts)}" if live.sums["calls"] else text)


def shadow_sentence(effects: ShadowEffects) -> str:
    """Return in one sentence what enforcing the rules in shadow would do to the pods that are shown."""
    if effects.is_left_out:
        return f"has rules in shadow that are not judged here: only {JUDGED_MAX} policies are, each by itself"
    if effects.is_unanswered:
        return "has rules in shadow that are not judged while no replica of the operator answers"
    if not effects.compared:
        return "would, if enforced, apply to none of these pods"
    unknown = f"; for {pluralize(effects.unknown, 'pod')} not all is known" if effects.unknown else ""
    if not effects.restricted and not effects.reordered:
        if effects.unknown == effects.compared:
            pods = pluralize(effects.compared, "pod")
            return f"has rules in shadow that are not evaluated: what they would change for {pods} is not known"
        return f"would, if enforced, change nothing for {pluralize(effects.compared - effects.unknown, 'pod')}{unknown}"
    parts = []
    if effects.restricted:
        left = effects.unschedulable
        rest = f"and leave {left:,} of them without any" if left else "and leave each of them at least one"
        parts.append(f"take nodes from {effects.restricted:,} of {pluralize(effects.compared, 'pod')}, {rest}")
    if effects.reordered:
        parts.append(f"make {pluralize(effects.reordered, 'pod')} prefer other nodes")
    return f"would, if enforced, {'; and '.join(parts)}{unknown}"


def _behind(shown: ShownPods, policies: Sequence[ShownPolicy], nodes: NodeTable) -> Iterator[Fact]:
    for name, state in shown.explained.schedulers.items():
        scheduler = state.scheduler
        if state.is_unanswered:
            does = "its pods wait" if state.waits else "it places pods without policies"
            yield Fact("Behind", f"scheduler {name}", f"asks the operator, and no replica answers: {does}")
        elif scheduler is not None and scheduler.ready is False:
            yield Fact("Behind", f"scheduler {name}", f"is not ready: {scheduler.message}")
    yield from (
        Fact("Behind", policy.name, policy.fault.removeprefix(f"{policy.name}: "))
        for policy in policies
        if policy.fault
    )
    missing: Mapping[str, list[str]] = {entry: [] for entry in nodes.entries}
    for row in nodes.rows:
        for entry, cell in zip(nodes.entries, row.measured, strict=True):
            if cell.is_missing:
                missing[entry].append(row.name)
    for entry, names in missing.items():
        if names:
            which = ", ".join(names[:_NODES_SHOWN]) + (" and others" if len(names) > _NODES_SHOWN else "")
            those = f"{pluralize(len(names), 'node')} that {'is' if len(names) == 1 else 'are'} shown"
            yield Fact("Behind", entry, f"has no usable value for {those}: {which}")


def _size(shown: ShownPods) -> Fact:
    schedulers = ", ".join(sorted({policy.scheduler_name for policy in shown.policies})) or "no scheduler"
    text = f"{pluralize(len(shown.simulation.names), 'node')}, {pluralize(len(shown.pods), 'pod')} of {schedulers}"
    if shown.left_out:
        text += f"; {pluralize(shown.left_out, 'more pod')} not judged, which would take too long"
    return Fact("Plain", "", text)
