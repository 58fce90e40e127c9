"""Groups of the pods of a snapshot, with what its ConfigMaps say of turns."""

from typing import Final

import msgspec

from fairlead.api.names import CLUSTERS_OWN_SCHEDULER
from fairlead.groups.turns import NO_TURNS, read_turns, scheduler_of, turns_name
from fairlead.mirror import decode
from fairlead.mirror.mirror import Mirror
from fairlead.mirror.resource_requests import ENDED
from fairlead.pki.identities import NAMESPACE
from fairlead.policy.evaluate.matching import PolicySet
from fairlead.policy.explain.group_explained import GroupsOfPods
from fairlead.policy.views.pod_view import PodView
from fairlead.simulation.snapshot import Key, Snapshot, SnapshotObject, reading


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
