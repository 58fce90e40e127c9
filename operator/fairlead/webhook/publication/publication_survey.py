"""Survey of a publication: pods that lack what is published for them, and nodes that got its labels late."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

from fairlead.cooperative import Steps
from fairlead.mirror.mirror import Mirror
from fairlead.policy.affinity.published_pods import PUBLISHED_ANNOTATION, Manifest, alternatives_in_force
from fairlead.replica_state import PublicationGaps
from fairlead.time_units import SECOND_NS, age_text
from fairlead.webhook.publication.affinity_feed import CurrentAffinity
from fairlead.webhook.publication.late_labels import LateLabel, late_labels, published_keys
from fairlead.webhook.publication.pod_findings import PodFinding, find_about, manifest_of
from fairlead.webhook.publication.visible_rejections import AlternativesByPolicy, WaitingPods, is_unschedulable

NAMED: Final = 3
OUTDATED_MAX: Final = 2_000
"""Pods with an older affinity that are looked at in one round."""
MISSED_MAX: Final = 512
MISSED_KEPT_S: Final = 600.0
"""Time for which a pod that has a node by now is still reported."""
_AT_ONCE: Final = 20


class SurveyResult(NamedTuple):
    """Result of a round: gaps by policy, and the pods that wait with what is published now."""

    gaps: Mapping[str, PublicationGaps]
    waiting: WaitingPods


class _Missed(NamedTuple):
    pod: str
    policies: tuple[str, ...]
    seen_s: float


@dataclass(slots=True, eq=False)
class Surveyor:
    """Surveyor of the pods and nodes of a mirror."""

    mirror: Mirror
    current: Mapping[str, CurrentAffinity]
    """Published affinity, by scheduler."""
    left_out: Collection[str]
    """Namespaces whose pods get nothing."""
    now: Callable[[], int]
    """Returns the time of day in nanoseconds."""
    _missed: dict[str, _Missed] = field(default_factory=dict)

    def forget(self) -> None:
        """Forget pods without node affinity: nothing is published any more."""
        self._missed.clear()

    def look_at_new(self, pod: Any) -> PodFinding:
        """Return what is found about a pod that was just created."""
        current, labels = self.current.get(str(pod.spec.schedulerName)), self._namespace_labels(pod)
        if current is None or labels is None:
            return PodFinding()
        found = find_about(pod, labels, current, self._now_s)
        if found.missed and len(self._missed) < MISSED_MAX:
            self._missed[str(pod.metadata.uid)] = _Missed(_name(pod), found.missed, self._now_s)
        return found

    def survey(self, rejected: Collection[str]) -> Steps[SurveyResult]:
        """Look at all pods that wait, and at the nodes. `rejected` are the UIDs of pods that we left without a node."""
        outdated, waiting, left, pending = dict[str, list[str]](), WaitingPods(), OUTDATED_MAX, set[str]()
        for number, pod in enumerate(self._unplaced(), 1):
            if not number % _AT_ONCE:
                yield
            pending.add(str(pod.metadata.uid))
            annotation = pod.metadata.annotations.get(PUBLISHED_ANNOTATION)
            current, labels = self.current.get(str(pod.spec.schedulerName)), self._namespace_labels(pod)
            if not annotation or current is None or labels is None:
                continue
            if annotation == current.affinity["hash"]:
                if is_unschedulable(pod) and str(pod.metadata.uid) not in rejected:
                    waiting.add(pod, partial(_read, labels, current))
            elif left:
                left -= 1
                for policy in find_about(pod, labels, current, self._now_s).outdated:
                    outdated.setdefault(policy, []).append(_name(pod))
        late = yield from self._late_labels()
        return SurveyResult(self._gaps(outdated, self._missed_pods(pending), late), waiting)

    @property
    def _now_s(self) -> float:
        return self.now() / SECOND_NS

    def _unplaced(self) -> Iterator[Any]:
        """Yield the pods that wait; they may come and go meanwhile."""
        pods = self.mirror.unplaced_sink.objects
        for key in [*pods]:
            if (pod := pods.get(key)) is not None:
                yield pod

    def _namespace_labels(self, pod: Any) -> Mapping[str, str] | None:
        """Return the labels of a pod's namespace; None if it is not known, or its pods get nothing."""
        name = str(pod.metadata.namespace)
        found = None if name in self.left_out else self.mirror.namespace(name)
        return None if found is None else found.metadata.labels

    def _missed_pods(self, pending: Collection[str]) -> Mapping[str, list[str]]:
        """Return the pods that lack what was published before them, by policy, and forget the others."""
        oldest_s, found = self._now_s - MISSED_KEPT_S, dict[str, list[str]]()
        for uid, missed in [*self._missed.items()]:
            if missed.seen_s < oldest_s and uid not in pending:
                del self._missed[uid]
                continue
            for policy in missed.policies:
                found.setdefault(policy, []).append(missed.pod)
        return found

    def _late_labels(self) -> Steps[Mapping[str, list[LateLabel]]]:
        """Return the published labels that came late on a node, by policy."""
        keys = {one["name"]: published_keys(one) for each in self.current.values() for one in each.affinity["policies"]}
        by_key = yield from late_labels(self.mirror.nodes.views, frozenset[str]().union(*keys.values()))
        return {
            policy: [late for key in sorted(own & by_key.keys()) for late in by_key[key]]
            for policy, own in keys.items()
        }

    def _gaps(
        self,
        outdated: Mapping[str, list[str]],
        missed: Mapping[str, list[str]],
        late: Mapping[str, list[LateLabel]],
    ) -> Mapping[str, PublicationGaps]:
        found: dict[str, PublicationGaps] = {}
        for policy in {*outdated, *missed, *(name for name, labels in late.items() if labels)}:
            of_old, of_none, labels = outdated.get(policy, []), missed.get(policy, []), late.get(policy, [])
            found[policy] = PublicationGaps(
                outdated=len(of_old),
                outdated_pods=tuple(sorted(of_old)[:NAMED]),
                missed=len(of_none),
                missed_pods=tuple(sorted(of_none)[:NAMED]),
                late_labels=len(labels),
                late=tuple(map(_text, labels[:NAMED])),
            )
        return found


def _read(labels: Mapping[str, str], current: CurrentAffinity, pod: Any) -> tuple[Manifest, AlternativesByPolicy]:
    manifest = manifest_of(pod)
    return manifest, alternatives_in_force(manifest, labels, current.affinity)


def _name(pod: Any) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


def _text(late: LateLabel) -> str:
    return f"{late.key} came on node {late.node} {age_text(late.delay_s * SECOND_NS)} after it had joined"
