"""Groups of the pods of a snapshot, with what its ConfigMaps say of turns and of domains."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from fairlead.api.names import CLUSTERS_OWN_SCHEDULER
from fairlead.grants.entry import LedgerEntry
from fairlead.grants.entry_state import GONE, EntryState, PodState, judge_read
from fairlead.grants.group_domain import common_domain
from fairlead.grants.ledger import OF_GROUPS, Ledger, decode_ledger
from fairlead.groups.turns import NO_TURNS, read_turns, scheduler_of, turns_name
from fairlead.mirror import decode
from fairlead.mirror.mirror import Mirror
from fairlead.mirror.resource_requests import ENDED
from fairlead.pki.identities import NAMESPACE
from fairlead.policy.evaluate.filter_result import NO_DOMAIN, Filtered, SharedDomain, within_domains
from fairlead.policy.evaluate.group_membership import required_groups
from fairlead.policy.evaluate.matching import Matched, PolicySet
from fairlead.policy.explain.explanation import NodeExplained, RuleExplained
from fairlead.policy.explain.group_explained import GroupsOfPods
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.pod_view import PodView
from fairlead.simulation.results import NodeResult
from fairlead.simulation.snapshot import Key, Snapshot, SnapshotObject, reading

_NO_VERSION: Final = {"uid": "", "resourceVersion": ""}


class PodGroups(GroupsOfPods):
    """Groups of the pods of a snapshot. Of policies without groups nothing is read."""

    def __init__(self, policies: PolicySet, mirror: Mirror, snapshot: Snapshot, now: int) -> None:
        """`mirror` has the placed pods and the namespaces of the snapshot."""
        super().__init__(policies, now)
        self._mirror: Final = mirror
        self._pods: Final = snapshot.pods
        if not self:
            return
        for entry in mirror.placed_sink.objects.values():
            self.put_placed(entry.pod, mirror.namespace(entry.pod.namespace))
        for key, held in snapshot.pods.items():
            if key not in mirror.placed_sink.objects:
                self._put(key, held)
        # Of several namespaces the operator's usual one counts.
        for key, held in sorted(snapshot.turns.items(), key=lambda one: (one[0][0] == NAMESPACE, one[0])):
            with reading("configmap", key, held):
                self._put_turns(held)

    def add_waiting(self, key: Key, obj: SnapshotObject) -> None:
        """Add a pod that waits beside those of the snapshot."""
        if self and key not in self._pods:
            self._put(key, obj)

    def _put(self, key: Key, obj: SnapshotObject) -> None:
        with reading("pod", key, obj):
            pod = decode.pod(obj.raw)
        if not pod.spec.nodeName and str(pod.status.phase) not in ENDED:
            view = PodView(pod, self._mirror.namespace(str(pod.metadata.namespace) or "default"))
            self.put_unplaced(view, str(pod.spec.schedulerName) or CLUSTERS_OWN_SCHEDULER)

    def _put_turns(self, obj: SnapshotObject) -> None:
        config_map = msgspec.json.decode(obj.raw)
        scheduler = scheduler_of(config_map)
        if config_map["metadata"]["name"] == turns_name(scheduler):
            self.turns[scheduler] = read_turns(config_map).value or NO_TURNS


class SharedDomains:
    """Domains of the groups of a snapshot. Of policies that require none nothing is read."""

    def __init__(self, policies: PolicySet, snapshot: Snapshot) -> None:
        """Read the ledgers. Raises SnapshotError for one that cannot be read."""
        self._snapshot: Final = snapshot
        self._ledgers: Final = dict[str, Ledger]()
        for key, held in snapshot.domains.items() if any(one.domain_rules for one in policies.policies) else ():
            with reading("configmap", key, held):
                obj = msgspec.json.decode(held.raw)
                ledger = decode_ledger({**obj, "metadata": {**_NO_VERSION, **obj["metadata"]}}, OF_GROUPS)
                self._ledgers[ledger.subject] = ledger

    def left(
        self, filtered: Filtered, pod: PodView, matched: Sequence[Matched], nodes: Nodes, fitting: Collection[str]
    ) -> Filtered:
        """Return the result of filters without the nodes outside the domains of the pod's groups.

        `fitting` are the nodes that the scheduler leaves, with which it calls.
        """
        required = required_groups(pod, matched) if has_domains(matched) else ()
        if not required:
            return filtered
        called = replace(filtered, passed=[name for name in filtered.passed if name in fitting])
        # A placed pod is judged as if it were not, and so as if it kept no domain.
        but = pod.uid if pod.pod.spec.nodeName else ""
        return within_domains(called, required, pod, nodes.view_of, lambda group: self.of(group, but), sees_all=True)

    def of(self, group: str, but: str = "") -> SharedDomain:
        """Return the domain of a group, as it is without the entry of one UID."""
        ledger = self._ledgers.get(group)
        if ledger is None:
            return NO_DOMAIN
        in_force = [one.domain for uid, one in ledger.entries.items() if uid != but and self._holds(uid, one)]
        return SharedDomain(common_domain(in_force))

    def _holds(self, uid: str, entry: LedgerEntry) -> bool:
        namespace, _, name = entry.pod.partition("/")
        key: Key = namespace, name
        if (held := self._snapshot.pods.get(key)) is None:
            return False
        with reading("pod", key, held):
            pod = decode.pod(held.raw)
        rv, node = str(pod.metadata.resourceVersion), str(pod.spec.nodeName)
        seen = PodState(str(pod.metadata.uid), entry.pod, rv, node, ended=str(pod.status.phase) in ENDED)
        return judge_read(uid, entry, None, seen if seen.uid else GONE) is EntryState.HOLDS


def has_domains(matched: Sequence[Matched]) -> bool:
    """Return whether policies that apply to a pod require that its group shares a domain."""
    return any(each.policy.domain_rules for each in matched)


def as_judged(explained: NodeExplained, node: NodeResult) -> NodeExplained:
    """Return what rules compared on a node, with the rejections that only all nodes of a call tell."""
    reasons = {(one.policy, one.rule): one.reason for one in node.rejections}

    def judged(rule: RuleExplained) -> RuleExplained:
        why = reasons.get((rule.policy, rule.rule))
        return rule if why is None or rule.outcome == "Rejected" else replace(rule, outcome="Rejected", reason=why)

    filters = [judged(one) for one in explained.filters]
    passed = not any(one.outcome == "Rejected" for one in filters)
    return replace(explained, filters=filters, passed=passed and explained.passed)
