"""From a call of the scheduler to a Binding with a grant: what is chosen, what is written, and what is refused."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest

from fairlead.grants.batch import Ledgers
from fairlead.grants.ledger import Ledger
from fairlead.grants.over import Gone, PodState
from fairlead.grants.server import Missing, WriteFailure, Written
from fairlead.mirror import decode
from fairlead.policy.evaluate.matching import policy_set
from fairlead.policy.evaluate.rule_errors import RuleErrorTally
from fairlead.strategies.devices.choice import WAITING
from fairlead.webhook.extender import bind
from fairlead.webhook.extender.bind import BindDecision
from fairlead.webhook.extender.caches import NodeNameCache
from fairlead.webhook.extender.call import CallClock, Caller
from fairlead.webhook.extender.circuit_breaker import CircuitBreaker
from fairlead.webhook.extender.state import build_serving_state
from fairlead.webhook.granting.granter import ASSUMED_AT, Granter
from fairlead.webhook.granting.views import MirrorViews
from policies.good import device_share
from scripted.loop import in_loop
from support.grants.api_server import ApiServer
from support.mirror import FOUND, Told, node, written
from support.policy import policy

MEM, COUNT = "aliyun.com/gpu-mem", "aliyun.com/gpu-count"
SECOND: Final = 10**9


class Server:
    """The API server in memory; each call is answered at once."""

    def __init__(self, api: ApiServer) -> None:
        self.api = api
        self.bindings: list[Mapping[str, Any]] = []

    async def read_pod(self, pod: str, _timeout_s: float) -> PodState | Gone:
        return self.api.read_pod(pod)

    async def read_ledger(self, node: str, _timeout_s: float) -> Ledger | Missing:
        return self.api.read_ledger(node)

    async def list_pods(self, node: str, _timeout_s: float) -> Sequence[PodState]:
        return self.api.list_pods(node)

    async def create_ledger(self, body: Mapping[str, Any], _timeout_s: float) -> Ledger | WriteFailure:
        return self.api.create_ledger(body)

    async def patch_ledger(self, node: str, patch: Mapping[str, Any], _timeout_s: float) -> Ledger | WriteFailure:
        return self.api.patch_ledger(node, patch)

    async def post_binding(self, binding: Mapping[str, Any], _timeout_s: float) -> Written | WriteFailure:
        self.bindings.append(binding)
        return self.api.post_binding(binding)


class Cluster:
    """One node with two cards of 8, pods, and a replica that grants."""

    def __init__(self, **share: Any) -> None:
        self.told = Told()
        size = {MEM: "16", COUNT: "2"}
        made = node("n1", allocatable={"cpu": "8", "pods": "110", **size})
        made["status"]["capacity"] = made["status"]["allocatable"]
        self.told.mirror.node_sink.put(decode.node(written(made)))
        self.policy = policy("shares", binding={"deviceShare": [device_share(**share)]})
        self.api = ApiServer({"n1": {MEM: {"0": 8, "1": 8}}}, numbers=True)
        self.server = Server(self.api)
        self.views = MirrorViews(self.told.mirror, lambda: [self.policy])
        ledgers = Ledgers(self.server, self.views, lambda _: None)
        self.granter = Granter(self.told.mirror, self.server, ledgers, self.views)
        self.results: list[bool] = []
        self.granter.on_bind = self.results.append
        self.state = build_serving_state(
            policy_set([self.policy]),
            self.told.mirror.nodes,
            self.told.mirror,
            CircuitBreaker(),
            NodeNameCache(),
            RuleErrorTally(),
        )

    def make(self, name: str, amount: int, **metadata: Any) -> None:
        """Make a pod that waits, and let the mirror hear of it."""
        self.api.create_pod(f"ml/{name}", {MEM: amount})
        state = self.api.pods[f"ml/{name}"]
        resources = {"requests": {MEM: str(amount)}, "limits": {MEM: str(amount)}}
        containers = [{"name": "main", "image": "main", "resources": resources}]
        made = {"uid": state.uid, "version": int(state.rv), "containers": containers, "schedulerName": "fairlead"}
        self.told.unplaced(name, **made, **metadata)

    async def bind(self, name: str, *, hung_up: bool = False) -> str:
        """Bind a pod to the node; the error, which is empty if it was bound."""
        asked = {"PodName": name, "PodNamespace": "ml", "PodUID": self.api.pods[f"ml/{name}"].uid, "Node": "n1"}
        when = CallClock(FOUND, lambda: 0, SECOND)
        decision = bind.decide_bind(
            json.dumps(asked).encode(), self.state, Caller(schedulers=frozenset({"fairlead"})), when
        )
        assert isinstance(decision, BindDecision)
        reply = await self.granter.bind(decision, lambda: hung_up, when)
        return str(json.loads(reply.body)["Error"])

    def grants(self) -> dict[str, list[str]]:
        """Devices by the name of their pod, as the ledger says."""
        entries = self.api.ledgers["n1"].entries.values()
        return {one.pod.removeprefix("ml/"): [each.id for each in one.grant["gpu"]] for one in entries}

    def annotations(self) -> Mapping[str, str]:
        """Annotations of the last Binding."""
        made: Mapping[str, str] = self.server.bindings[-1]["metadata"]["annotations"]
        return made


@in_loop
async def test_pods_get_the_fullest_card_that_has_room_until_none_has() -> None:
    cluster = Cluster()
    for name, amount in (("a", 5), ("b", 2), ("c", 4), ("d", 4)):
        cluster.make(name, amount)
    assert [await cluster.bind(name) for name in "abc"] == ["", "", ""]
    assert cluster.grants() == {"a": ["0"], "b": ["0"], "c": ["1"]}
    cluster.make("e", 5)
    assert await cluster.bind("e") == "policy shares, gpu: no single device has room"
    assert await cluster.bind("d") == ""
    assert cluster.results == [True, True, True, False, True]
    assert len(cluster.server.bindings) == 4


@in_loop
async def test_the_binding_bears_the_version_and_a_copy_of_the_grant() -> None:
    cluster = Cluster()
    cluster.make("a", 5)
    version = cluster.api.pods["ml/a"].rv
    assert await cluster.bind("a") == ""
    metadata = cluster.server.bindings[-1]["metadata"]
    assert (metadata["resourceVersion"], metadata["name"]) == (version, "a")
    assert cluster.annotations()["fairlead.dev/devices.gpu"] == "0"
    assert json.loads(cluster.annotations()["fairlead.dev/devices"]) == {"v": 1, "gpu": [{"id": "0", MEM: 5}]}


@in_loop
async def test_gpushare_reads_its_keys_and_takes_pods_in_the_order_of_their_grants() -> None:
    cluster = Cluster(record="Gpushare")
    times = []
    for name, amount in (("a", 5), ("b", 2)):
        cluster.make(name, amount)
        assert await cluster.bind(name) == ""
        keys = cluster.annotations()
        assert (keys["ALIYUN_COM_GPU_MEM_IDX"], keys["ALIYUN_COM_GPU_MEM_DEV"]) == ("0", "8")
        assert keys["ALIYUN_COM_GPU_MEM_ASSIGNED"] == "false"
        times.append(int(keys["ALIYUN_COM_GPU_MEM_ASSUME_TIME"]))
    assert ASSUMED_AT < times[0] < times[1]


@in_loop
async def test_gpushare_is_given_equal_pods_on_one_card_and_else_one_after_the_other() -> None:
    cluster = Cluster(record="Gpushare")
    for name in "abc":
        cluster.make(name, 4)
    assert [await cluster.bind(name) for name in "ab"] == ["", ""]
    assert cluster.grants() == {"a": ["0"], "b": ["0"]}
    assert await cluster.bind("c") == f"policy shares, gpu: {WAITING}"


@in_loop
async def test_a_pod_whose_caller_has_gone_is_granted_and_not_bound() -> None:
    cluster = Cluster()
    cluster.make("a", 5)
    assert await cluster.bind("a", hung_up=True) == "the caller has hung up"
    assert (cluster.grants(), cluster.server.bindings) == ({"a": ["0"]}, [])
    assert await cluster.bind("a") == "", "the entry that was written is its grant"
    assert cluster.grants() == {"a": ["0"]}


@in_loop
async def test_a_pod_that_changed_meanwhile_is_bound_at_its_new_version() -> None:
    cluster = Cluster()
    cluster.make("a", 5)
    cluster.api.change_pod("ml/a")
    assert await cluster.bind("a") == ""
    assert cluster.server.bindings[-1]["metadata"]["resourceVersion"] != "101"
    assert len(cluster.server.bindings) == 2


@in_loop
async def test_a_node_that_is_not_known_gets_no_pod() -> None:
    cluster = Cluster()
    cluster.make("a", 5)
    cluster.told.node_gone("n1")
    assert await cluster.bind("a") == "the node is not known yet"


def _placed(cluster: Cluster, name: str, amount: int, **fields: Any) -> None:
    containers = [{"name": "main", "image": "main", "resources": {"requests": {MEM: str(amount)}}}]
    cluster.told.pod(name, containers=containers, **fields)


def test_views_show_devices_and_the_pods_that_ask_for_them() -> None:
    cluster = Cluster()
    _placed(cluster, "asks", 3)
    cluster.told.pod("plain")
    facts = cluster.views.node("n1")
    assert facts.capacity == {MEM: {"0": 8, "1": 8}}
    assert [(one.pod, one.node, one.request) for one in facts.placed] == [("ml/asks", "n1", {MEM: 3})]


@pytest.mark.parametrize(
    ("placed", "waits", "uid", "want"),
    [
        (None, None, "u-p", None),
        ("u-p", None, "u-p", ("u-p", "n1")),
        (None, "u-p", "u-p", ("u-p", "")),
        ("u-old", "u-p", "u-p", ("u-p", "")),
        ("u-p", "u-new", "u-p", ("u-p", "n1")),
        (None, "u-new", "u-p", ("u-new", "")),
    ],
    ids=["not shown", "placed", "waits", "waits, and one before it is placed", "placed, and one after it", "another"],
)
def test_views_show_a_uid_or_else_the_name(
    placed: str | None, waits: str | None, uid: str, want: tuple[str, str] | None
) -> None:
    cluster = Cluster()
    if placed is not None:
        cluster.told.pod("p", uid=placed)
    if waits is not None:
        cluster.told.unplaced("p", uid=waits, schedulerName="fairlead")
    found = cluster.views.seen(uid, "ml/p")
    assert (None if found is None or isinstance(found, Gone) else (found.uid, found.node)) == want
    assert cluster.views.seen(uid, "") is None
