"""What somebody should know who believes what is said of pods. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from fairlead.cli.console.output import counted
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.simulation.results import PodResult
from fairlead.simulation.snapshot import GET, Key, Snapshot
from fairlead.simulation.visibility import Kind, selects_by_namespace

_UNREAD: Final[Mapping[Kind, str]] = {
    "pods": "what runs on nodes is not known, and room is told as if they were empty",
    "namespace": "namespaces are not known",
}
_GUARDED: Final = "kube-system"


def of_snapshot(snapshot: Snapshot, unread: Mapping[Kind, str], where: str) -> Iterator[str]:
    """What it lacks."""
    for kind, why in unread.items():
        yield f"{_UNREAD[kind]}: {why}"
    if not snapshot.pods and not unread:
        yield f"{where} holds no pods, so that its nodes are taken as empty: `{GET}` writes both"


def of_policies(
    policies: Iterable[CompiledPolicy], snapshot: Snapshot, pods: Sequence[Key], where: str, *, is_now: bool
) -> Iterator[str]:
    """What they ask for and a snapshot does not say; `is_now`: at the time at which it was made."""
    enforced = [one for one in policies if one.enforced]
    lacking = sorted({namespace for namespace, _ in pods if ("", namespace) not in snapshot.namespaces})
    if lacking and any(one.reads.namespace or selects_by_namespace(one) for one in enforced):
        which = f"the namespace{'s' if len(lacking) > 1 else ''} {', '.join(lacking)}"
        yield f"policies ask for {which}, not in {where}: `{GET}` writes namespaces, too"
    aged = sorted(one.name for one in enforced if any(entry.max_age for entry in one.data))
    if aged and not is_now:
        yield f"the data of {', '.join(aged)} grow stale: --now says when {where} was written"
    if any(namespace == _GUARDED for namespace, _ in pods):
        yield f"schedulers that the operator manages place no pods of {_GUARDED}, whatever policies say"


def of_schedulers(asked: Iterable[str], policies: Iterable[CompiledPolicy]) -> Iterator[str]:
    """Pods whose scheduler none of the policies is for, as nearly all are before they are moved."""
    named = sorted({one.scheduler_name for one in policies})
    others = Counter(one for one in asked if one not in named)
    if count := others.total():
        said = f"{counted(count, 'pod')} {'names' if count == 1 else 'name'} {', '.join(sorted(others))}"
        cure = f"to see what they would get, write schedulerName {' or '.join(named)}"
        yield f"{said}, which no policy here is for: {cure}"


def of_judged(judged: PodResult) -> Iterator[str]:
    """What is only nearly so."""
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
        yield f"{', '.join(rules)} {verb} what runs on nodes, and replicas may be behind by the last moments"
