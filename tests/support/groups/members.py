"""An API server in memory with members of groups, and what is true of their groups at each moment."""

import json
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from fairlead.grants.entry_state import PodState
from fairlead.grants.ledger import Ledger
from fairlead.webhook.binding.api_calls import Conflicting, Missing, Posted
from support.grants.api_server import GONE_, ApiServer

SCHEDULER = "fairlead"


class MemberState(PodState, frozen=True):
    """A pod of a group, or of none, at one of its versions."""

    group: str = ""
    size: int = 1
    deleting: bool = False
    gated: bool = False
    message: str = ""
    """What its scheduler has written of the last failure."""
    unschedulable: bool = False

    @property
    def lives(self) -> bool:
        """Return whether its group has started by it."""
        return bool(self.node) and not self.ended and not self.deleting

    @property
    def is_known(self) -> bool:
        """Return whether it counts as a member that may be placed."""
        return not self.node and not self.deleting and not self.gated


class MemberServer(ApiServer):
    """Pods with groups: deletions take time, and when each group has last been started is known."""

    pods: dict[str, MemberState]  # type: ignore[assignment]

    def __init__(self, capacity: Mapping[str, Any], *, numbers: bool) -> None:
        self.alive_at: dict[str, int] = {}
        """Moment at which a pod of a group has last lived; moments are the numbers of versions."""
        self.on_landed: Callable[[Mapping[str, Any]], None] = lambda _: None
        self.on_ledger: Callable[[Ledger], None] = lambda _: None
        super().__init__(capacity, numbers=numbers)

    @property
    def moment(self) -> int:
        """Return the number of the last change."""
        return self._version

    def create_member(self, pod: str, **fields: Any) -> None:
        """Create a pod."""
        rv = self._next()
        self._store(MemberState(f"{pod[-2:]}-{rv}", pod, rv, **fields))

    def by_uid(self, uid: str) -> MemberState | None:
        """Return the pod that has this UID."""
        return next((one for one in self.pods.values() if one.uid == uid), None)

    def lived_since(self, group: str, moment: int) -> bool:
        """Return whether a pod of a group lives, or has lived at this moment or later."""
        self._note()
        return self.alive_at.get(group, -1) >= moment

    def delete_pod(self, pod: str) -> None:
        self._note()
        super().delete_pod(pod)

    def _store(self, state: PodState) -> None:
        self._note()
        super()._store(state)
        self._note()

    def _note(self) -> None:
        for one in self.pods.values():
            if one.group and one.lives:
                self.alive_at[one.group] = self._version

    def _put(self, node: str, config_map: dict[str, Any], rv: str) -> Ledger:
        made = super()._put(node, config_map, rv)
        self.on_ledger(made)
        return made

    def post_binding(self, binding: Mapping[str, Any]) -> Posted | Missing | Conflicting:
        found = self.by_uid(binding["metadata"]["uid"])
        if found is not None and (found.deleting or found.gated):
            return Conflicting("the pod is being deleted, or has scheduling gates")
        outcome = super().post_binding(binding)
        if isinstance(outcome, Posted):
            self.on_landed(binding)
        return outcome

    def read_body(self, namespace: str, name: str) -> bytes | Missing:
        """Read a pod as the API server sends it."""
        found = self.pods.get(f"{namespace}/{name}")
        if found is None:
            return GONE_
        metadata: dict[str, Any] = {"namespace": namespace, "name": name, "uid": found.uid, "resourceVersion": found.rv}
        metadata["labels"] = {"group": found.group}
        if found.deleting:
            metadata["deletionTimestamp"] = "2026-05-01T10:00:00Z"
        spec = {"schedulerName": SCHEDULER, "nodeName": found.node, "containers": []}
        status = {"phase": "Succeeded" if found.ended else "Running"}
        return json.dumps({"metadata": metadata, "spec": spec, "status": status}).encode()


def has_entry(ledger: Ledger | None, uid: str) -> bool:
    """Return whether devices are promised to a pod."""
    return ledger is not None and uid in ledger.entries


def as_mirror_has_it(state: MemberState) -> Any:
    """Return a pod as the mirror shows it."""
    namespace, _, name = state.pod.partition("/")
    metadata = SimpleNamespace(
        namespace=namespace,
        name=name,
        uid=state.uid,
        resourceVersion=state.rv,
        labels={"group": state.group},
        annotations={},
        deletionTimestamp=1 if state.deleting else None,
        creationTimestamp=0,
    )
    conditions = []
    if state.message and not state.node:
        reason = "Unschedulable" if state.unschedulable else "SchedulerError"
        conditions = [SimpleNamespace(type="PodScheduled", status="False", reason=reason, message=state.message)]
    spec = SimpleNamespace(
        schedulerName=SCHEDULER,
        nodeName=state.node,
        schedulingGates=["gate"] if state.gated else [],
        schedulingGroup=None,
        priority=0,
    )
    status = SimpleNamespace(phase="Running" if state.node else "Pending", conditions=conditions)
    return SimpleNamespace(
        metadata=metadata, spec=spec, status=status, deleting=state.deleting, size=state.size, group=state.group
    )
