"""Notes on the limits of a simulation, such as inputs that are missing. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fairlead.cli.console.output import pluralize
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.simulation.results import PodResult
from fairlead.simulation.snapshot import GET, Key, Snapshot
from fairlead.simulation.visibility import ObjectKind, SkippedRule, selects_by_namespace

_UNREAD: Final[Mapping[ObjectKind, str]] = {
    "pods": "pods on nodes are unknown, and free capacity is counted as if nodes were empty",
    "namespace": "namespaces are unknown",
    "data": "measured values are unknown",
    "generation": "the generation that serves is unknown",
}
_NODES_MAX: Final = 3
_GUARDED: Final = "kube-system"


def notes_on_snapshot(snapshot: Snapshot, unread: Mapping[ObjectKind, str], where: str) -> Iterator[str]:
    """Yield notes on what a snapshot lacks."""
    for kind, why in unread.items():
        yield f"{_UNREAD[kind]}: {why}"
    if not snapshot.pods and not unread:
        yield f"{where} holds no pods, so its nodes count as empty: `{GET}` writes both"


def notes_on_ledgers(snapshot: Snapshot) -> Iterator[str]:
    """Yield a note on nodes that have ledgers of devices in several namespaces."""
    times = Counter(name for _, name in snapshot.ledgers)
    if several := sorted(name for name, count in times.items() if count > 1):
        where = ", ".join(sorted(namespace for namespace, name in snapshot.ledgers if name == several[0]))
        said = f"{pluralize(len(several), 'node')} {'has' if len(several) == 1 else 'have'} several ledgers of devices"
        cure = "keep the ledgers of everything that grants the same devices in one namespace"
        yield f"{said} ({several[0]} in {where}), and all of them count here: {cure}"


def notes_on_policies(
    policies: Iterable[CompiledPolicy], snapshot: Snapshot, pods: Sequence[Key], where: str, *, is_now: bool
) -> Iterator[str]:
    """Yield notes on what policies read and a snapshot lacks; `is_now`: the simulated time is that of the snapshot."""
    enforced = [one for one in policies if one.enforced]
    lacking = sorted({namespace for namespace, _ in pods if ("", namespace) not in snapshot.namespaces})
    if lacking and any(one.reads.namespace or selects_by_namespace(one) for one in enforced):
        which = f"the namespace{'s' if len(lacking) > 1 else ''} {', '.join(lacking)}"
        yield f"policies read {which}, not in {where}: `{GET}` also writes namespaces"
    aged = sorted(one.name for one in enforced if any(entry.max_age for entry in one.data))
    if aged and not is_now:
        yield f"data of {', '.join(aged)} can be stale: give the time when {where} was written as --now"
    if any(namespace == _GUARDED for namespace, _ in pods):
        yield f"schedulers that the operator manages never place pods of {_GUARDED}"


def notes_on_schedulers(names: Iterable[str], policies: Iterable[CompiledPolicy]) -> Iterator[str]:
    """Yield a note on pods whose scheduler has no policy here, as most pods before they are moved."""
    named = sorted({one.scheduler_name for one in policies})
    others = Counter(one for one in names if one not in named)
    if count := others.total():
        said = f"{pluralize(count, 'pod')} {'names' if count == 1 else 'name'} {', '.join(sorted(others))}"
        cure = f"to simulate them, set schedulerName to {' or '.join(named)}"
        yield f"{said}, for which there is no policy here: {cure}"


@dataclass(slots=True)
class AffinityNotes:
    """Notes on pods whose results depend on node affinity that policies publish."""

    _added: dict[str, None] = field(default_factory=dict)
    """Pods that are taken as created now."""
    _policies: dict[str, None] = field(default_factory=dict)
    _kept: list[str] = field(default_factory=list)
    """Pods that keep what was published before, with the nodes that it excludes."""

    def add(self, judged: PodResult) -> None:
        """Look at a pod."""
        found, name = judged.published, f"{judged.pod.namespace}/{judged.pod.name}"
        if found is not None and found.added and (policies := judged.verdicts.published_by):
            self._added[name] = None
            self._policies |= dict.fromkeys(policies)
        elif nodes := judged.excluded:
            more = f" and {len(nodes) - _NODES_MAX:,} more" if len(nodes) > _NODES_MAX else ""
            self._kept.append(f"{name}: {', '.join(nodes[:_NODES_MAX])}{more}")

    def texts(self) -> Iterator[str]:
        """Yield the notes."""
        if count := len(self._added):
            which = f"{', '.join(self._policies)} {'publishes' if len(self._policies) == 1 else 'publish'}"
            is_one = "pod is" if count == 1 else "pods are"
            yield f"{count:,} {is_one} taken as created now, with the node affinity that {which}"
        if count := len(self._kept):
            more = f"; and {count - _NODES_MAX:,} more" if count > _NODES_MAX else ""
            which = f"{'; '.join(self._kept[:_NODES_MAX])}{more}"
            was, its, it = ("was", "its", "it") if count == 1 else ("were", "their", "them")
            said = f"{pluralize(count, 'pod')} {was} created when something else was published, and {its} node affinity"
            yield f"{said} excludes nodes that all rules pass ({which}): create {it} again"


def notes_on_skipped(rules: Iterable[SkippedRule], which: str = "") -> Iterator[str]:
    """Yield a note on each rule that is not evaluated; `which` comes before it."""
    for one in rules:
        yield f"{which}not evaluated: {one.describe()}"


def notes_on_judged(judged: PodResult) -> Iterator[str]:
    """Yield notes on results that may differ from those of the replicas."""
    rules = [
        f"{each.policy.name}/{name}"
        for each in judged.matched
        for name, reads in [
            *((rule.name, rule.filter.reads) for rule in each.policy.filters),
            *((rule.name, rule.score.reads) for rule in each.policy.scores),
        ]
        if reads.of_pods
    ]
    if rules:
        verb = "reads" if len(rules) == 1 else "read"
        yield f"{', '.join(rules)} {verb} the pods on nodes; replicas may be a moment behind"
