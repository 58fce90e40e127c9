"""An API server in memory: pods, ledgers and Bindings, with one order of versions and all its preconditions."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from fairlead.grants.device_usage import Capacity, DeviceUsage
from fairlead.grants.entry import COPY, Grant, NewerEntry, UnreadableEntry, decode_copy
from fairlead.grants.entry_state import GONE, Gone, PodState
from fairlead.grants.ledger import OF_NODES, Ledger, LedgerKind, decode_ledger
from fairlead.webhook.binding.api_calls import Conflicting, Missing, Posted
from support.interleavings import PromiseBrokenError

GONE_: Final = Missing()
_MARKS: Final = ("labels", "annotations")
_decoded: dict[str, Grant] = {}


class StuckError(AssertionError):
    """A free device is not granted, or replicas ask without end."""


class ApiServer:
    """The cluster's state, all earlier ones, and the promise, which is checked at every change."""

    kind: LedgerKind = OF_NODES

    def __init__(self, capacity: Mapping[str, Capacity], *, numbers: bool) -> None:
        self.capacity = capacity
        self._numbers = numbers
        self._version = 100
        self.pods: dict[str, PodState] = {}
        self.ledgers: dict[str, Ledger] = {}
        self._config_maps: dict[str, dict[str, Any]] = {}
        self.pod_history: list[dict[str, PodState]] = [{}]
        self.ledger_history: list[dict[str, Ledger]] = [{}]
        self.gone_nodes = set[str]()
        self.lost = set[str]()
        """Nodes whose ledger was deleted by hand, until it is made again."""
        self.bindings = 0

    def _next(self) -> str:
        self._version += 1
        return str(self._version) if self._numbers else f"v{self._version}"

    # pods

    def create_pod(self, pod: str, request: Mapping[str, int]) -> None:
        rv = self._next()
        self._store(PodState(f"{pod[-1]}-{rv}", pod, rv, request=request))

    def change_pod(self, pod: str, **fields: Any) -> None:
        self._store(replace(self.pods[pod], rv=self._next(), **fields))

    def delete_pod(self, pod: str) -> None:
        self._version += 1
        self.pods = {name: one for name, one in self.pods.items() if name != pod}
        self.pod_history.append(self.pods)

    def _store(self, state: PodState) -> None:
        self.pods = {**self.pods, state.pod: state}
        self.pod_history.append(self.pods)

    def read_pod(self, pod: str) -> PodState | Gone:
        return self.pods.get(pod, GONE)

    def list_pods(self, node: str) -> list[PodState]:
        return [one for one in self.pods.values() if one.node == node]

    def list_unplaced(self) -> list[PodState]:
        return [one for one in self.pods.values() if not one.node]

    def post_binding(self, binding: Mapping[str, Any]) -> Posted | Missing | Conflicting:
        metadata = binding["metadata"]
        pod = f"{metadata['namespace']}/{metadata['name']}"
        found = self.pods.get(pod)
        if found is None:
            return GONE_
        if metadata["uid"] != found.uid:
            return Conflicting("Precondition failed: UID in precondition")
        if metadata.get("resourceVersion", found.rv) != found.rv:
            return Conflicting("Precondition failed: ResourceVersion in precondition")
        if found.node:
            return Conflicting(f"pod is already assigned to node {found.node}")
        self.bindings += 1
        self.change_pod(pod, node=binding["target"]["name"], recorded=_copy(metadata.get("annotations", {}).get(COPY)))
        self.check()
        return Posted()

    # ledgers

    def read_ledger(self, node: str) -> Ledger | Missing:
        return self.ledgers.get(node, GONE_)

    def create_ledger(self, body: Mapping[str, Any]) -> Ledger | Conflicting:
        node = body["metadata"]["annotations"][self.kind.annotation]
        if node in self.ledgers:
            return Conflicting("AlreadyExists")
        rv = self._next()
        self.lost.discard(node)
        return self._put(node, {"metadata": {**body["metadata"], "uid": f"l{rv}"}, "data": body["data"]}, rv)

    def patch_ledger(self, node: str, patch: Mapping[str, Any]) -> Ledger | Missing | Conflicting:
        found = self._config_maps.get(node)
        if found is None:
            return GONE_
        named = patch["metadata"].get("resourceVersion", self.ledgers[node].rv)
        if named != self.ledgers[node].rv:
            return Conflicting("the object has been modified")
        data = {key: one for key, one in {**found["data"], **patch["data"]}.items() if one is not None}
        metadata = {**found["metadata"], **{key: patch["metadata"][key] for key in _MARKS if key in patch["metadata"]}}
        return self._put(node, {"metadata": metadata, "data": data}, self._next())

    def unmark_ledger(self, node: str) -> None:
        """Take away what watches find a ledger by, as a person may."""
        found = self._config_maps[node]
        self._put(node, {**found, "metadata": {**found["metadata"], "labels": {}}}, self._next())

    def tamper(self, node: str, uid: str, text: str) -> None:
        """Write another text in place of an entry."""
        found = self._config_maps[node]
        self._put(node, {**found, "data": {**found["data"], uid: text}}, self._next())

    def delete_ledger(self, node: str, body: Mapping[str, Any]) -> Posted | Missing | Conflicting:
        found = self.ledgers.get(node)
        if found is None:
            return GONE_
        if body["preconditions"] != {"uid": found.uid, "resourceVersion": found.rv}:
            return Conflicting("Precondition failed")
        self.remove_ledger(node)
        return Posted()

    def remove_ledger(self, node: str) -> None:
        self._version += 1
        del self._config_maps[node]
        self.ledgers = {name: one for name, one in self.ledgers.items() if name != node}
        self.ledger_history.append(self.ledgers)
        self.check()

    def _put(self, node: str, config_map: dict[str, Any], rv: str) -> Ledger:
        config_map["metadata"] = {**config_map["metadata"], "resourceVersion": rv}
        self._config_maps[node] = config_map
        made = decode_ledger(config_map, self.kind)
        self.ledgers = {**self.ledgers, node: made}
        self.ledger_history.append(self.ledgers)
        self.check()
        return made

    # the promise

    def room(self, node: str) -> DeviceUsage:
        """Return what the pods that run on a node leave of its devices, by the grants that their Bindings carried."""
        room = DeviceUsage(self.capacity[node])
        for pod in self.pods.values():
            if pod.node == node and not pod.ended:
                room.charge_grant(pod.uid, pod.recorded)
        return room

    def check(self) -> None:
        for node, capacity in self.capacity.items():
            _no_more_than(node, self.room(node), "pods hold")
            ledger = self.ledgers.get(node)
            for pod in self.pods.values():
                if pod.node == node and not pod.ended and node not in self.lost:
                    entry = None if ledger is None else ledger.all.get(pod.uid)
                    if isinstance(entry, UnreadableEntry | NewerEntry):
                        continue  # it stands, whatever it promises
                    if entry is None and not any(pod.request.values()):
                        continue  # it requests nothing
                    if entry is None or entry.grant != pod.recorded:
                        raise PromiseBrokenError(f"{pod.uid} runs on {node} with {pod.recorded}; its entry is {entry}")
            if ledger is not None:
                promised = DeviceUsage(capacity)
                for uid, one in ledger.entries.items():
                    promised.charge_grant(uid, one.grant)
                _no_more_than(node, promised, "entries hold")


def _no_more_than(node: str, room: DeviceUsage, who: str) -> None:
    for resource, devices in room.capacity.items():
        for device, has in devices.items():
            if room.charged[resource][device] > has:
                raise PromiseBrokenError(
                    f"{who} {room.charged[resource][device]} of {has} on device {device} of {node}"
                )


def _copy(text: str | None) -> Grant:
    if text is None:
        return {}
    if text not in _decoded:
        _decoded[text] = decode_copy(text) or {}
    return _decoded[text]
