"""One node with two cards, pods, and a replica that grants them, without a server; what its filter says, too."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from msgspec.structs import replace

from fairlead.grants.entry_state import Gone, PodState
from fairlead.grants.ledger import Ledger
from fairlead.mirror import decode
from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.matching import policy_set
from fairlead.webhook.binding.api_calls import Failed, Missing, Posted, WriteFailure
from fairlead.webhook.binding.granter import Granter
from fairlead.webhook.binding.ledger_writer import LedgerWriter
from fairlead.webhook.binding.mirror_views import MirrorViews
from fairlead.webhook.binding.poster import Poster
from fairlead.webhook.extender import bind
from fairlead.webhook.extender.bind import BindDecision
from fairlead.webhook.extender.caches import NodeNameCache
from fairlead.webhook.extender.call import CallClock, Caller, VerbReply
from fairlead.webhook.extender.circuit_breaker import CircuitBreaker
from fairlead.webhook.extender.requests import BindArgs
from fairlead.webhook.extender.state import build_serving_state
from policies.good import device_share
from support.grants.api_server import ApiServer
from support.mirror import FOUND, FedMirror, node, written
from support.policy import policy

MEM, COUNT = "aliyun.com/gpu-mem", "aliyun.com/gpu-count"
SECOND: Final = 10**9


class Server:
    """The API server in memory; each call is answered at once."""

    def __init__(self, api: ApiServer) -> None:
        self.api = api
        self.bindings: list[Mapping[str, Any]] = []
        self.reads: list[str] = []
        """Pods that were read."""
        self.lists: list[str] = []
        """Lists of pods: of a node, or of those that are unplaced."""
        self.metadata_hashes: dict[str, int] = {}
        """Of the pods whose labels or annotations were changed."""

    async def read_pod(self, pod: str, _timeout_s: float) -> PodState | Gone:
        self.reads.append(pod)
        found = self.api.read_pod(pod)
        return found if isinstance(found, Gone) else replace(found, metadata_hash=self.metadata_hashes.get(pod))

    async def read_ledger(self, node: str, _timeout_s: float) -> Ledger | Missing:
        return self.api.read_ledger(node)

    async def list_pods(self, node: str, _timeout_s: float) -> Sequence[PodState]:
        self.lists.append(node)
        return self.api.list_pods(node)

    async def list_unplaced(self, _timeout_s: float) -> Sequence[PodState]:
        self.lists.append("unplaced")
        return self.api.list_unplaced()

    async def create_ledger(self, body: Mapping[str, Any], _timeout_s: float) -> Ledger | WriteFailure:
        return self.api.create_ledger(body)

    async def patch_ledger(self, node: str, patch: Mapping[str, Any], _timeout_s: float) -> Ledger | WriteFailure:
        return self.api.patch_ledger(node, patch)

    async def read_body(self, _namespace: str, _name: str, _timeout_s: float) -> bytes | Missing | Failed:
        raise AssertionError("a bind with grants reads states of pods")

    async def post_binding(self, binding: Mapping[str, Any], _timeout_s: float) -> Posted | WriteFailure:
        self.bindings.append(binding)
        return self.api.post_binding(binding)


class Cluster:
    """One node with two cards of 8, pods, and a replica that grants."""

    def __init__(self, *others: CompiledPolicy, **share: Any) -> None:
        self.fed = FedMirror()
        size = {MEM: "16", COUNT: "2"}
        made = node("n1", allocatable={"cpu": "8", "pods": "110", **size})
        made["status"]["capacity"] = made["status"]["allocatable"]
        self.fed.mirror.node_sink.put(decode.node(written(made)))
        self.policy = policy("shares", binding={"deviceShare": [device_share(**share)]})
        self.api = ApiServer({"n1": {MEM: {"0": 8, "1": 8}}}, numbers=True)
        self.server = Server(self.api)
        self.views = MirrorViews(self.fed.mirror, lambda: [self.policy, *others])
        ledgers = LedgerWriter(self.server, self.views)
        self.granter = Granter(self.fed.mirror, self.server, ledgers, self.views)
        self.granted: Mapping[str, Any] = {}
        """Devices of the last bind, as listeners are told of them."""
        self.results: list[bool] = []
        self.granter.on_bind = self.results.append
        self.state = build_serving_state(
            policy_set([self.policy, *others]),
            self.fed.mirror.nodes,
            self.fed.mirror,
            CircuitBreaker(),
            NodeNameCache(),
            RuleErrorTally(),
        )

    def make(self, name: str, amount: int, *, more: Mapping[str, str] = MappingProxyType({}), **fields: Any) -> None:
        """Make a pod that waits, and let the mirror hear of it. `more`: what else it requests."""
        self.api.create_pod(f"ml/{name}", {MEM: amount})
        state = self.api.pods[f"ml/{name}"]
        asked = {MEM: str(amount), **more}
        containers = [{"name": "main", "image": "main", "resources": {"requests": asked, "limits": asked}}]
        made = {"uid": state.uid, "version": int(state.rv), "containers": containers, "schedulerName": "fairlead"}
        self.fed.unplaced(name, **made, **fields)

    def land(self, name: str, phase: str = "Running", **annotations: str) -> None:
        """Let the mirror hear that a pod is placed, and of the newest ledger."""
        pod = self.api.pods[f"ml/{name}"]
        self.fed.mirror.unplaced_sink.remove(("ml", name))
        resources = {"requests": {MEM: str(pod.request[MEM])}, "limits": {MEM: str(pod.request[MEM])}}
        containers = [{"name": "main", "image": "main", "resources": resources}]
        made = {"uid": pod.uid, "version": int(pod.rv), "phase": phase, "containers": containers}
        self.fed.pod(name, **made, annotations=annotations)
        self.hear_ledger()

    def end(self, name: str) -> None:
        """Delete a placed pod, and let the mirror hear of it."""
        self.api.delete_pod(f"ml/{name}")
        self.fed.pod_gone(name)

    def hear_ledger(self) -> None:
        """Let the mirror hear of the newest ledger."""
        ledger = self.api.ledgers["n1"]
        self.views.ledgers["n1"] = ledger
        self.fed.mirror.devices.put_ledger("n1", ledger.all.items())

    def write_ledger(self, **data: str) -> None:
        """Create the ledger by hand, with these entries by UID, and let the mirror hear of it."""
        marks = {"labels": {"fairlead.dev/grants": ""}, "annotations": {"fairlead.dev/node": "n1"}}
        metadata = {"name": "fairlead-grants-n1", **marks}
        self.api.create_ledger(
            {"metadata": metadata, "data": {uid.replace("_", "-"): one for uid, one in data.items()}}
        )
        self.hear_ledger()

    def filter(self, name: str) -> str:
        """Filter the node for a pod that waits; the reason, which is empty if it passes."""
        evaluator = self.state.entries["Fail"]
        view = self.state.pod_view(self.fed.mirror.unplaced("ml", name))
        self.state.read_requests(view)
        ever = 1 << 62
        matched = evaluator.matching(view, "fairlead", FOUND, clock=lambda: 0, deadline_ns=ever)
        found = evaluator.filter(view, matched, ["n1"], now=FOUND, clock=lambda: 0, deadline_ns=ever)
        return next((one.reason for one in found.rejected.values()), "")

    async def bind(self, name: str, *, hung_up: bool = False) -> str:
        """Bind a pod to the node; the error, which is empty if it was bound."""
        request = BindArgs(name, "ml", self.api.pods[f"ml/{name}"].uid, "n1")
        pod, caller = self.state.unplaced(request), Caller(schedulers=frozenset({"fairlead"}))
        when = CallClock(FOUND, lambda: 0, SECOND)
        decision = bind.decide_bind(request, pod, self.state, caller, when)
        if isinstance(decision, VerbReply):
            return str(json.loads(decision.body)["Error"])
        assert isinstance(decision, BindDecision)
        poster = Poster(self.server, is_abandoned=lambda: hung_up)
        reply = await self.granter.bind(decision, poster, when)
        self.granted = {} if reply.considered is None else reply.considered.grant or {}
        return str(json.loads(reply.body)["Error"])

    def grants(self) -> dict[str, list[str]]:
        """Devices by the name of their pod, as the ledger says."""
        entries = self.api.ledgers["n1"].entries.values()
        return {one.pod.removeprefix("ml/"): [each.id for each in one.grant["gpu"]] for one in entries}

    def annotations(self) -> Mapping[str, str]:
        """Annotations of the last Binding."""
        made: Mapping[str, str] = self.server.bindings[-1]["metadata"]["annotations"]
        return made
