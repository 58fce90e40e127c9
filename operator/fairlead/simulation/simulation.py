"""Simulation of policies on a snapshot: each pod by itself; none is placed or takes capacity from another.

Uses the operator's mirror and the webhook's evaluator at a fixed time. A pod that is on a node is simulated as if it
had none: it is removed, evaluated and added again.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, ItemsView, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final

import msgspec

from fairlead.api.names import CLUSTERS_OWN_SCHEDULER
from fairlead.grants.adoption import REBUILT
from fairlead.grants.entry import AnyEntry, LedgerEntry
from fairlead.grants.ledger import Ledger, decode_ledger, merge_ledgers
from fairlead.mirror import decode
from fairlead.mirror.mirror import Mirror
from fairlead.mirror.pod_entry import PodEntry
from fairlead.mirror.resource_limits import usage_of
from fairlead.mirror.resource_requests import ENDED, request_of
from fairlead.policy.affinity.published_parts import AffinityByScheduler, PublishedOfPod, published_of_pod
from fairlead.policy.affinity.published_pods import PUBLISHED_ANNOTATION, labels_of_namespace
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import shares_in_force
from fairlead.policy.evaluate.deadline import Clock
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.evaluate.matching import Matched, PolicySet
from fairlead.policy.explain.explainer import Compared, explain, explain_compared, explain_scores
from fairlead.policy.explain.explanation import NodeExplained, NodeScored
from fairlead.policy.explain.mismatch import explain_mismatch
from fairlead.policy.nodes.polls import Poll, Reading
from fairlead.policy.views.pod_view import PodView
from fairlead.simulation import scheduler_filters
from fairlead.simulation.learned_states import LearnedStates
from fairlead.simulation.pod_groups import PodGroups, SharedDomains, as_judged, has_domains
from fairlead.simulation.results import CLASSES, NO_REJECTIONS, NodeResult, PodResult, Verdicts, keep
from fairlead.simulation.scheduler_filters import FitColumns, FitFailures, SchedulerFilter
from fairlead.simulation.snapshot import UNREADABLE, Key, Raw, Snapshot, SnapshotObject, reading, spelt
from fairlead.simulation.snapshot_error import SnapshotError
from fairlead.simulation.visibility import SkippedRule
from fairlead.strategies.devices.layout import unhealthy_source
from fairlead.strategies.devices.record import may_record, recorded_by_shares

Each = Callable[[str, ItemsView[Key, SnapshotObject]], Iterable[tuple[Key, SnapshotObject]]]
_NO_VERSION: Final = {"uid": "", "resourceVersion": ""}
_NEVER: Final = 1 << 62
_NOTHING_READ: Final[Mapping[Poll, Reading]] = MappingProxyType({})


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] | None = None


class Simulation:
    """Policies on a snapshot at one time, in nanoseconds since 1970."""

    def __init__(
        self,
        policies: PolicySet,
        snapshot: Snapshot,
        now: int,
        *,
        readings: Mapping[Poll, Reading] = _NOTHING_READ,
        skipped: Sequence[SkippedRule] = (),
        published: AffinityByScheduler | None = None,
        each: Each = lambda _, items: items,
    ) -> None:
        """Read the snapshot; `each` may show progress. Raises SnapshotError for an object that cannot be read.

        `readings` have all measured values; a node that they do not name was never measured. `skipped` are the rules
        that `visibility.judgeable` has taken out of the policies, `published` is what is published now, by scheduler.
        """
        self.policies: Final = policies
        self.now: Final = now
        self.skipped: Final = skipped
        self.published: Final = published or {}
        self.mirror: Final = Mirror(lambda: now, {one.scheduler_name for one in policies.policies})
        self.snapshot: Final = snapshot
        enforced = [one for one in policies.policies if one.enforced]
        self.shares: Final = shares_in_force(enforced)
        self._shares: Final = [share for _, share in self.shares]
        self._placed = decode.PlacedDecoder({key for one in enforced for key in one.pod_annotations})
        for key, held in snapshot.namespaces.items():
            with reading("namespace", key, held):
                self.mirror.namespace_sink.put(decode.namespace(held.raw))
        self._recorded: Final = defaultdict[str, list[tuple[str, AnyEntry]]](list)
        # Pods first, so that each node is computed once, with all its pods.
        for key, held in each("pods read", snapshot.pods.items()):
            with reading("pod", key, held):
                self._put(held.raw)
                self._note_grants(key, held.raw)
        self.ledgers: Final = self._read_ledgers()
        for node, entries in (
            self._recorded | {one.subject: [*one.all.items()] for one in self.ledgers.values()}
        ).items():
            self.mirror.devices.put_ledger(node, entries)
        for key, held in each("nodes read", snapshot.nodes.items()):
            with reading("node", key, held):
                self.mirror.node_sink.put(decode.node(held.raw))
        self.names: Final = [name for _, name in snapshot.nodes]
        self._read_unhealthy()
        nodes = self.mirror.nodes
        for policy in self.policies.policies:
            nodes.measure(policy.data)
        nodes.publish(readings, self.now)
        self.learned: Final = LearnedStates(nodes, policies.policies)
        for key, held in snapshot.learned.items():
            with reading("configmap", key, held):
                self.learned.put(held.raw, key[1])
        self.groups: Final = PodGroups(policies, self.mirror, snapshot, now)
        self._domains: Final = SharedDomains(policies, snapshot)
        self._evaluator = Evaluator(policies, self.mirror.nodes)
        self._at = {name: at for at, name in enumerate(self.names)}
        self._columns: Final = FitColumns(self.mirror.nodes, self.names)
        self._known: dict[Hashable, Verdicts] = {}
        self._compared: tuple[PodResult, Compared] | None = None
        """Scores that compare nodes, of the pod that was explained last."""

    def judge(self, raw: Raw, file: str = "") -> PodResult:
        """Return the result of a pod on every node. Raises SnapshotError if the pod cannot be read."""
        with self.view_without_placement(raw, file) as (view, home):
            matched = self._evaluator.matching(view, scheduler_of(view), self.now)
            published = self._published_of(raw, view)
            # nodeName of a placed pod was set by its scheduler and is not a constraint.
            filters = scheduler_filters.filters_for(view, named=not home, published=published)
            verdicts = self._verdicts(view, matched, filters, home)
            unevaluated = [one for one in self.skipped if applies(one.policy, view, self.now)] if self.skipped else []
            group = self.groups.explain(view, matched, (one.policy for one in unevaluated if not one.rule))
            beyond = (*scheduler_filters.unsimulated_constraints(view.pod, is_of_group=group is not None),)
        return PodResult(view, matched, verdicts, beyond, unevaluated, group=group, published=published)

    def explain(self, raw: Raw, judged: PodResult, names: Sequence[str]) -> list[NodeExplained]:
        """Return what every rule compared on these nodes, for a pod of `judge`."""
        with self.view_without_placement(raw) as (view, _):
            nodes = self.mirror.nodes
            if self._compared is None or self._compared[0] is not judged:
                left = [node.name for node in judged.left]
                self._compared = judged, explain_compared(view, judged.matched, nodes, left, self.now)
            told = [explain(view, judged.matched, nodes, name, self.now, self._compared[1]) for name in names]
            return [as_judged(one, judged.nodes[self._at[one.node]]) if one.node in self._at else one for one in told]

    def explain_scores(self, raw: Raw, judged: PodResult) -> list[NodeScored]:
        """Return the parts of the scores of the nodes that fit and pass."""
        left = [node.name for node in judged.left]
        with self.view_without_placement(raw) as (view, _):
            return explain_scores(view, judged.matched, self.mirror.nodes, left, self.now)

    @contextmanager
    def view_without_placement(self, raw: Raw, file: str = "") -> Iterator[tuple[PodView, str]]:
        """Yield the view of a pod and its node, while the pod is removed from that node."""
        view = _view(self.mirror, raw, file)
        placed = self._placed_as(key := (view.namespace, view.name))
        if placed is None:
            yield view, ""
            return
        self.mirror.placed_sink.remove(placed.key)
        try:
            yield view, placed.node
        finally:
            self._put(self.snapshot.pods[key].raw)

    def _placed_as(self, key: Key) -> PodEntry | None:
        """Return the placed pod with a key; handwritten pods may lack the default namespace."""
        held = self.mirror.placed_sink.objects
        return held.get(key) or (held.get(("", key[1])) if key[0] == "default" else None)

    def _published_of(self, raw: Raw, view: PodView) -> PublishedOfPod | None:
        """Return the published affinity of a pod; None if it has none."""
        if PUBLISHED_ANNOTATION not in view.annotations:
            return None
        labels = labels_of_namespace(view.namespace, view.namespaceObject.metadata.labels)
        return published_of_pod(msgspec.json.decode(raw), labels, self.published.get(scheduler_of(view)))

    def _put(self, raw: Raw) -> None:
        pod = self._placed(raw)
        if pod.spec.nodeName and pod.status.phase not in ENDED:
            self.mirror.placed_sink.put(pod)
        elif self._shares and not pod.spec.nodeName and pod.status.phase not in ENDED:
            # It may wait for a node that was cleared for it, or be bound now.
            self.mirror.unplaced_sink.put(decode.pod(raw))

    def _note_grants(self, key: Key, raw: Raw) -> None:
        placed = self._placed_as(key) if self._shares else None
        if placed is not None and may_record(placed.pod.metadata.annotations):
            pod = decode.pod(raw)
            view = PodView(pod, self.mirror.namespace(key[0]), request_of(pod))
            if grant := recorded_by_shares(self._shares, view):
                entry = LedgerEntry("/".join(placed.key), "", REBUILT, grant)
                self._recorded[placed.node].append((placed.pod.uid, entry))

    def _read_ledgers(self) -> dict[str, Ledger]:
        found = dict[str, Ledger]()
        for key, held in self.snapshot.ledgers.items() if self._shares else ():
            with reading("configmap", key, held):
                obj = msgspec.json.decode(held.raw)
                ledger = decode_ledger({**obj, "metadata": {**_NO_VERSION, **obj["metadata"]}})
                before = found.get(ledger.subject)
                found[ledger.subject] = ledger if before is None else merge_ledgers(before, ledger)
        return found

    def _read_unhealthy(self) -> None:
        """Read the ConfigMaps of unhealthy devices, in the namespaces of which the snapshot has ConfigMaps."""
        there = self.snapshot.config_maps
        for source in {one for share in self._shares if (one := unhealthy_source(share.entry)) is not None}:
            namespace, prefix, field = source
            texts = dict[str, str]()
            for key in [key for key in there if key[0] == namespace and key[1].startswith(prefix)]:
                with reading("configmap", key, there[key]):
                    data = msgspec.json.decode(there[key].raw, type=_ConfigMap).data or {}
                    texts[key[1].removeprefix(prefix)] = data.get(field, "")
            if any(key[0] == namespace for key in there):
                self.mirror.devices.put_unhealthy(source, texts, self.names)

    def _verdicts(
        self, view: PodView, matched: Sequence[Matched], filters: Sequence[SchedulerFilter], home: str
    ) -> Verdicts:
        """Return verdicts, cached by equivalence class except for a pod removed from a node: that changes the node."""
        alike = None if home or has_domains(matched) else self._evaluator.class_of(view, matched)
        key = None if alike is None else (alike, *[one.key for one in filters])
        found = None if key is None else self._known.get(key)
        if found is None:
            found = self._judged(view, matched, self._columns.unfit(filters, home))
            if key is not None:
                keep(self._known, key, found, CLASSES)
        return found

    def _judged(self, view: PodView, matched: Sequence[Matched], unfit: Sequence[FitFailures]) -> Verdicts:
        evaluator, names, now = self._evaluator, self.names, self.now
        found = evaluator.filter(view, matched, names, now=now, clock=_stopped, deadline_ns=_NEVER)
        pairs = [*zip(names, unfit, strict=True)]
        fitting = {name for name, why in pairs if not why}
        rejected = self._domains.left(found, view, matched, evaluator.nodes, fitting).by_all
        left = [name for name, why in pairs if not why and name not in rejected]
        rated = evaluator.score(view, matched, left, now=now, clock=_stopped, deadline_ns=_NEVER)
        scores = dict(zip(left, rated, strict=True))
        return Verdicts(
            [NodeResult(name, why, rejected.get(name, NO_REJECTIONS), scores.get(name)) for name, why in pairs]
        )


def applies(policy: CompiledPolicy, view: PodView, now: int) -> bool:
    """Report whether a policy matches a pod, or may match it."""
    return explain_mismatch(policy, view, scheduler_of(view), now) is None


def policies_for(
    policies: Iterable[CompiledPolicy], snapshot: Snapshot, raw: Raw, now: int, file: str = ""
) -> list[CompiledPolicy]:
    """Return the policies that match a pod or may match it. Raises SnapshotError if the pod cannot be read."""
    mirror = Mirror(lambda: now)
    for key, held in snapshot.namespaces.items():
        with reading("namespace", key, held):
            mirror.namespace_sink.put(decode.namespace(held.raw))
    view = _view(mirror, raw, file)
    return [one for one in policies if applies(one, view, now)]


def _view(mirror: Mirror, raw: Raw, file: str) -> PodView:
    try:
        pod = decode.pod(raw)
        namespace = mirror.namespace(str(pod.metadata.namespace) or "default")
        return PodView(pod, namespace, request_of(pod), usage_of, mirror.granted_uid(pod))
    except UNREADABLE as error:
        raise SnapshotError(f"{file or 'a pod'}: {_named(raw)} cannot be read: {error}") from None


def scheduler_of(view: PodView) -> str:
    """Return the scheduler of a pod, with the default of the API server."""
    return str(view.pod.spec.schedulerName) or CLUSTERS_OWN_SCHEDULER


def _named(raw: Raw) -> str:
    metadata = msgspec.json.decode(raw).get("metadata") or {}
    return f"pod {spelt((str(metadata.get('namespace') or 'default'), str(metadata.get('name'))))}"


_stopped: Final[Clock] = lambda: 0  # noqa: E731
