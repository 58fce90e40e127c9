"""A cluster whose replicas bind pods with grants, one request at a time."""

from collections import Counter
from collections.abc import Mapping

from fairlead.grants.entry_state import PodState
from support.grants.api_server import ApiServer
from support.grants.replica import RESOURCE, Call, Replica, Sent

NODE, OTHER = "node-1", "node-2"


class BindScene:
    """A cluster, replicas, and requests that are carried out one by one."""

    def __init__(self, devices: int = 1, pods: Mapping[str, int] | None = None, *, numbers: bool = True) -> None:
        capacity = {RESOURCE: {str(one): 10 for one in range(devices)}}
        self.server = ApiServer(dict.fromkeys((NODE, OTHER), capacity), numbers=numbers)
        for pod, amount in (pods or {"ns/a": 6, "ns/b": 6}).items():
            self.server.create_pod(pod, {RESOURCE: amount})
        self.sent: list[Sent] = []
        self.seen = Counter[str]()
        self.a, self.b = self.replica("A"), self.replica("B")

    def replica(self, name: str) -> Replica:
        return Replica(name, self.server, self.sent, len(self.server.pod_history) - 1, 0)

    def pod(self, name: str) -> PodState:
        return self.server.pods[f"ns/{name}"]

    def bind(self, replica: Replica, name: str, node: str = NODE) -> Call:
        return replica.start_bind(self.pod(name), node)

    def next(self, verb: str, owner: Replica | None = None) -> Sent:
        return next(one for one in self.sent if one.verb == verb and owner in (None, one.owner))

    def serve(self, one: Sent) -> None:
        self.sent.remove(one)
        self.seen[one.verb] += 1
        if not one.carried_out:
            one.carry_out(self.server)
        one.answer(one.outcome)

    def until(self, verb: str, owner: Replica | None = None) -> Sent:
        """Serve all requests until one with this verb is on its way."""
        while not (found := [one for one in self.sent if one.verb == verb and owner in (None, one.owner)]):
            self.serve(next(one for one in self.sent if owner in (None, one.owner)))
        return found[0]

    def finish(self) -> None:
        while self.sent:
            self.serve(self.sent[0])

    def entries(self, node: str = NODE) -> dict[str, str]:
        return {one.pod: one.grant["gpu"][0].id for one in self.server.ledgers[node].entries.values()}
