"""A group that has to share a rack: what filter passes, what bind writes, and what is left when it is gone."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest

from fairlead.grants.ledger import OF_GROUPS
from fairlead.mirror import decode
from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.evaluate.filter_result import SharedDomain
from fairlead.policy.evaluate.matching import policy_set
from fairlead.strategies.domains import Values
from fairlead.webhook.binding.binder import Binder
from fairlead.webhook.binding.granter import Granter
from fairlead.webhook.binding.ledger_writer import LedgerWriter
from fairlead.webhook.binding.mirror_views import MirrorViews
from fairlead.webhook.domains.domain_views import LATELY_NS, DomainsLately, DomainViews
from fairlead.webhook.extender import preempt, verbs
from fairlead.webhook.extender.caches import NodeNameCache
from fairlead.webhook.extender.call import CallClock, Caller, IncomingCall
from fairlead.webhook.extender.circuit_breaker import CircuitBreaker
from fairlead.webhook.extender.group_view import GroupView
from fairlead.webhook.extender.state import build_serving_state
from scripted.loop import in_loop
from support.grants.api_server import ApiServer
from support.grants.cluster import Server
from support.mirror import FOUND, FedMirror, node, written
from support.policy import policy

BLOCK, RACK = "example.org/block", "example.org/rack"
GROUP = "pod.metadata.labels[?'job'].orValue('')"
SECOND = 10**9
CALLER = Caller(schedulers=frozenset({"fairlead"}), wants_all_reasons=True)
RACKS: Mapping[str, tuple[str, str]] = {"a1": ("1", "a"), "a2": ("1", "a"), "b1": ("1", "b"), "b2": ("1", "b")}


class LedgersOfGroups(ApiServer):
    """The API server in memory, with the ledgers of groups."""

    kind = OF_GROUPS


class Domains(GroupView):
    """View of the domains that a replica keeps."""

    def __init__(self, views: DomainViews) -> None:
        self.views = views
        self.avoided: Mapping[str, str] | None = None
        self.lately = DomainsLately()

    def shared_domain(self, group: str, at: int, /) -> SharedDomain:
        return SharedDomain(self.views.domain_of(group), self.avoided, self.lately.of(group, at))

    def holds_lately(self, group: str, domains: Values, at: int, /) -> None:
        self.lately.put(group, domains, at)


class Scene:
    """Nodes in two racks, pods that wait, and a replica that keeps domains."""

    def __init__(self, room: int = 2, topology: Mapping[str, str] = MappingProxyType({})) -> None:
        self.fed, self.at = FedMirror(), 0
        for name, (block, rack) in RACKS.items():
            self.put_node(name, {BLOCK: block, RACK: rack}, room)
        self.put_node("bare", {BLOCK: "1"}, room)
        spec = {"levels": [BLOCK, RACK], "require": RACK, "group": GROUP, "size": "3", **topology}
        self.policy = policy("racks", filters=[{"name": "one-rack", "topology": spec}])
        self.api = LedgersOfGroups({}, numbers=True)
        self.server = Server(self.api)
        pods = MirrorViews(self.fed.mirror, lambda: [self.policy])
        self.views = DomainViews(pods)
        self.granter = Granter(self.fed.mirror, self.server, LedgerWriter(self.server, pods), pods)
        self.granter.steps.domains = LedgerWriter(self.server, self.views, kind=OF_GROUPS)
        self.domains = Domains(self.views)
        self.state = build_serving_state(
            policy_set([self.policy]),
            self.fed.mirror.nodes,
            self.fed.mirror,
            CircuitBreaker(),
            NodeNameCache(),
            RuleErrorTally(),
            groups=self.domains,
        )

    def put_node(self, name: str, labels: Mapping[str, str], room: int) -> None:
        made = node(name, labels=labels, allocatable={"cpu": str(room), "pods": "110"})
        self.fed.mirror.node_sink.put(decode.node(written(made)))

    def make(self, name: str, job: str = "train") -> Any:
        """Make a pod that waits, and let the mirror hear of it."""
        self.api.create_pod(f"ml/{name}", {})
        state = self.api.pods[f"ml/{name}"]
        containers = [{"name": "main", "image": "main", "resources": {"requests": {"cpu": "1"}}}]
        labels = {"job": job} if job else {}
        made = {"uid": state.uid, "version": int(state.rv), "containers": containers, "schedulerName": "fairlead"}
        self.fed.unplaced(name, labels=labels, **made)
        return {
            "metadata": {"name": name, "namespace": "ml", "uid": state.uid, "labels": labels},
            "spec": {"schedulerName": "fairlead", "containers": containers},
        }

    def when(self) -> CallClock:
        return CallClock(FOUND, lambda: self.at, self.at + SECOND)

    def filter(self, pod: Any, names: list[str], caller: Caller = CALLER) -> dict[str, str]:
        """Filter nodes; the reasons by rejected node."""
        body = json.dumps({"Pod": pod, "NodeNames": names}).encode()
        found = json.loads(verbs.filter(body, self.state, caller, "Fail", self.when()).body)
        assert not found.get("Error"), found
        rejected = {**(found.get("FailedNodes") or {}), **(found.get("FailedAndUnresolvableNodes") or {})}
        assert sorted([*found["NodeNames"], *rejected]) == sorted(names)
        return rejected

    def preempt(self, pod: Any, names: list[str]) -> list[str]:
        """Return the candidates that are left."""
        victims = {name: {"Pods": [{"UID": "v"}], "NumPDBViolations": 0} for name in names}
        body = json.dumps({"Pod": pod, "NodeNameToMetaVictims": victims}).encode()
        found = json.loads(preempt.preempt(body, self.state, CALLER, "Fail", self.when()).body)
        return sorted(found["NodeNameToMetaVictims"] or {})

    async def bind(self, name: str, where: str) -> str:
        """Bind a pod; the error, which is empty if it was bound."""
        uid = self.api.pods[f"ml/{name}"].uid
        body = json.dumps({"PodName": name, "PodNamespace": "ml", "PodUID": uid, "Node": where}).encode()
        call = IncomingCall("fairlead", CALLER, body, 0)
        reply = await Binder(self.server, self.granter).bind(call, self.state, self.when())
        if (ledger := self.api.ledgers.get("ml/train")) is not None:
            self.views.ledgers["ml/train"] = ledger
        return str(json.loads(reply.body)["Error"])

    def land(self, name: str) -> None:
        """Let the mirror hear that a pod is placed."""
        pod = self.api.pods[f"ml/{name}"]
        self.fed.mirror.unplaced_sink.remove(("ml", name))
        self.fed.pod(name, uid=pod.uid, version=int(pod.rv), phase="Running", node=pod.node)


ALL = ["a1", "a2", "b1", "b2", "bare"]


@in_loop
async def test_the_first_member_chooses_and_the_others_follow() -> None:
    scene = Scene()
    first, second = scene.make("w-0"), scene.make("w-1")
    assert scene.filter(first, ALL) == {"bare": f"no label {RACK}"}
    assert await scene.bind("w-0", "b1") == ""
    entry = scene.api.ledgers["ml/train"].entries[first["metadata"]["uid"]]
    assert (entry.domain, entry.by, entry.pod) == ({BLOCK: "1", RACK: "b"}, "racks", "ml/w-0")
    scene.land("w-0")
    outside = f"not in the group's {RACK}"
    assert scene.filter(second, ALL) == {"a1": outside, "a2": outside, "bare": f"no label {RACK}"}
    assert scene.preempt(second, ["a1", "b2"]) == ["b2"]
    assert (await scene.bind("w-1", "a1")).startswith(outside)
    assert await scene.bind("w-1", "b2") == ""


@in_loop
async def test_a_binding_names_the_version_of_the_entry_and_comes_after_it() -> None:
    scene = Scene()
    pod = scene.make("w-0")
    rv = scene.api.pods["ml/w-0"].rv
    assert await scene.bind("w-0", "b1") == ""
    (binding,) = scene.server.bindings
    assert binding["metadata"]["resourceVersion"] == rv
    assert scene.api.ledgers["ml/train"].entries[pod["metadata"]["uid"]].rv == rv


def test_without_a_domain_those_pass_that_hold_the_group() -> None:
    scene = Scene(room=1)
    pod = scene.make("w-0")
    none = f"no {RACK} holds the group"
    assert scene.filter(pod, ["a1", "a2", "b1", "b2"]) == dict.fromkeys(["a1", "a2", "b1", "b2"], none)
    scene.put_node("a3", {BLOCK: "1", RACK: "a"}, 1)
    assert scene.filter(pod, ["a1", "a2", "a3", "b1", "b2"]) == dict.fromkeys(["b1", "b2"], none)
    assert scene.filter(pod, ["b1"]) == {}, "one node does not tell"


def test_members_that_only_the_scheduler_has_placed_take_no_room_for_a_moment() -> None:
    scene = Scene(room=1, topology={"size": "2"})
    pods = [scene.make(f"w-{at}") for at in range(3)]
    assert scene.filter(pods[0], ["a1", "a2", "b1"]) == {"b1": f"no {RACK} holds the group"}
    assert scene.filter(pods[1], ["a2", "b1"]) == {"b1": f"no {RACK} holds the group"}, "a1 is taken by a member"
    scene.at = LATELY_NS
    assert scene.filter(pods[2], ["a2", "b1"]) == dict.fromkeys(["a2", "b1"], f"no {RACK} holds the group")


@in_loop
async def test_the_next_member_follows_one_whose_entry_is_not_seen_yet() -> None:
    scene = Scene()
    scene.make("w-0")
    pod = scene.make("w-1")
    assert scene.filter(pod, ["a1", "a2", "b1", "b2"]) == {}
    assert await scene.bind("w-0", "b1") == ""
    scene.views.ledgers.clear()
    assert scene.filter(pod, ["a1", "a2", "b2"]) == dict.fromkeys(["a1", "a2"], f"no {RACK} holds the group")


def test_a_rack_of_one_name_is_another_one_in_another_block() -> None:
    scene = Scene()
    scene.put_node("c1", {BLOCK: "2", RACK: "a"}, 2)
    pod = scene.make("w-0")
    assert scene.filter(pod, ["a1", "c1"]) == dict.fromkeys(["a1", "c1"], f"no {RACK} holds the group")


def test_a_sample_passes_if_the_scheduler_is_set_to_ask_for_one() -> None:
    scene = Scene(room=1, topology={"size": "300"})
    names = [f"n{at}" for at in range(100)]
    for name in names:
        scene.put_node(name, {BLOCK: "1", RACK: "n"}, 1)
    pod = scene.make("w-0")
    assert len(scene.filter(pod, names)) == 100
    assert scene.filter(pod, names, Caller(schedulers=frozenset({"fairlead"}), asks_a_sample=True)) == {}


def test_the_domain_of_the_last_attempt_is_avoided_if_another_holds_the_group() -> None:
    scene = Scene()
    pod = scene.make("w-0")
    scene.domains.avoided = {BLOCK: "1", RACK: "a"}
    none = f"no {RACK} holds the group"
    assert scene.filter(pod, ["a1", "a2", "b1", "b2"]) == {"a1": none, "a2": none}
    scene.at = LATELY_NS
    assert scene.filter(pod, ["a1", "a2", "b1"]) == {"b1": none}


@in_loop
async def test_when_no_member_is_left_the_next_one_chooses() -> None:
    scene = Scene()
    scene.make("w-0")
    assert await scene.bind("w-0", "b1") == ""
    scene.land("w-0")
    scene.api.delete_pod("ml/w-0")
    scene.fed.pod_gone("w-0")
    scene.at = LATELY_NS
    pod = scene.make("w-1")
    assert scene.filter(pod, ALL) == {"bare": f"no label {RACK}"}, "an entry whose state is unclear is no domain"
    assert await scene.bind("w-1", "a1") == ""
    assert [one.pod for one in scene.api.ledgers["ml/train"].entries.values()] == ["ml/w-1"]


@in_loop
async def test_who_is_in_no_group_is_bound_as_ever() -> None:
    scene = Scene()
    pod = scene.make("w-0", job="")
    assert scene.filter(pod, ["a1", "b1"]) == {}
    assert await scene.bind("w-0", "a1") == ""
    assert scene.api.ledgers == {}
    assert "resourceVersion" not in scene.server.bindings[0]["metadata"]


@pytest.mark.parametrize(
    "broken", [{"group": "pod.metadata.labels['no']"}, {"size": "int(pod.metadata.labels['job'])"}]
)
@in_loop
async def test_a_group_that_cannot_be_decided_is_refused(broken: Mapping[str, str]) -> None:
    scene = Scene(topology=broken)
    pod = scene.make("w-0")
    why = "the group of the pod cannot be decided"
    assert scene.filter(pod, ["a1", "b1"]) == {"a1": why, "b1": why}
    assert await scene.bind("w-0", "a1") == why


@in_loop
async def test_a_node_without_the_label_is_refused_at_bind() -> None:
    scene = Scene()
    scene.make("w-0")
    assert await scene.bind("w-0", "bare") == f"no label {RACK}"
    assert await scene.bind("w-0", "unheard-of") == "node is not known yet"
    assert scene.api.ledgers == {}


@in_loop
async def test_a_process_that_keeps_no_domains_binds_no_member() -> None:
    scene = Scene()
    scene.make("w-0")
    scene.granter.steps.domains = None
    assert await scene.bind("w-0", "a1") == "this process keeps no domains of groups"
    assert scene.server.bindings == []
