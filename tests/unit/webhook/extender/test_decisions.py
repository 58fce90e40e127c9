"""Decisions for those who listen: a call and what came of it."""

import json
import logging
from collections.abc import Mapping
from typing import Any, Final

import pytest

from fairlead.metrics import Metrics
from fairlead.webhook.binding.api_calls import Posted
from fairlead.webhook.binding.binder import Binder
from fairlead.webhook.extender.call import GUARD, IncomingCall, Reply, VerbReply
from fairlead.webhook.extender.decisions import Decision, Listeners
from fairlead.webhook.https.dispatch import Dispatcher
from scripted.loop import in_loop
from support.policy import SECOND, node, pod, policy
from support.webhook import Asking, body

FILTERS: Final = {"f": "node.metadata.name != 'b'", "g": "node.metadata.name != 'c'"}
POLICY: Final = policy(
    filters=FILTERS,
    scores={"s": "node.metadata.name == 'a' ? 100.0 : 20.0"},
    preemption={"protect": [{"name": "n", "expression": "victim.metadata.name == 'y'"}]},
)
BIND: Final = json.dumps({"PodName": "x", "PodNamespace": "ml", "PodUID": "u-x", "Node": "a"}).encode()


class Api:
    """An API server that makes every Binding."""

    async def post_binding(self, binding: Mapping[str, Any], timeout_s: float) -> Posted:
        return Posted()

    async def read_body(self, namespace: str, name: str, timeout_s: float) -> bytes:
        raise AssertionError


class Ground:
    """A dispatcher, and a listener that reads all of each decision at the time."""

    def __init__(self, asking: Asking, *, is_ready: bool = True) -> None:
        self.asking, self.decisions, self.time = asking, list[Decision](), SECOND
        self.step = 0
        self.read = list[Mapping[str, Any]]()
        self.calls = Dispatcher(
            Binder(Api()),
            lambda *_: asking.caller,
            lambda: asking.serving if is_ready else None,
            1.0,
            Metrics(),
            listeners=Listeners((self.listen,)),
            clock=self.clock,
        )

    def clock(self) -> int:
        self.time += self.step
        return self.time

    def listen(self, one: Decision) -> None:
        self.decisions.append(one)
        self.read.append(
            {
                "pod": "/".join(one.pod),
                "candidates": one.candidates,
                "passed": one.passed,
                "rejected": one.rejected,
                "points": one.points,
                "node": one.node,
                "grant": one.grant,
            }
        )

    async def ask(self, path: str, sent: bytes) -> Reply:
        answer = self.calls.routes()[path](IncomingCall("all", self.asking.caller, sent, self.time))
        return answer if isinstance(answer, Reply) else await answer


NOTHING: Final[Mapping[str, Any]] = {
    "candidates": None,
    "passed": None,
    "rejected": {},
    "points": {},
    "node": "",
    "grant": {},
}
NAMES: Final = ["a", "b", "c", "d"]
CASES: Final[dict[str, tuple[str, bytes, Mapping[str, Any]]]] = {
    "some nodes are rejected": (
        "/filter",
        body(NAMES),
        {"candidates": NAMES, "passed": ["a"], "rejected": {("p", "f"): ["b"], ("p", "g"): ["c"]}},
    ),
    "all nodes pass": ("/filter", body(["a"]), {"candidates": ["a"], "passed": ["a"]}),
    "all nodes are rejected": (
        "/filter",
        body(["b"]),
        {"candidates": ["b"], "passed": [], "rejected": {("p", "f"): ["b"]}},
    ),
    "no policy decides, so the nodes are not read": ("/filter", body(NAMES, scheduler="other"), {}),
    "the other entry": ("/ignore/filter", body(NAMES), {}),
    "a namespace that the scheduler must not place": (
        "/filter",
        body(NAMES, pod={"namespace": "kube-system"}),
        {"pod": "kube-system/x/u-x", "candidates": NAMES, "passed": (), "rejected": {GUARD: NAMES}},
    ),
    "points": (
        "/prioritize",
        body(["a", "c"]),
        {"candidates": ["a", "c"], "passed": ["a", "c"], "points": {"a": 8, "c": 0}},
    ),
    "victims": (
        "/preempt",
        body(victims={"a": [], "b": []}),
        {"candidates": ["a", "b"], "passed": ["a"], "rejected": {("p", "f"): ["b"]}},
    ),
    "a bind": ("/bind", BIND, {"candidates": ("a",), "passed": ("a",), "node": "a"}),
    "a request that cannot be read": ("/filter", b"{", {"pod": "//"}),
}


def ground() -> Ground:
    unplaced = [pod(schedulerName="fairlead").pod]
    nodes = [node(name) for name in "abc"]
    return Ground(Asking([POLICY], nodes, unplaced=unplaced, excluded_namespaces=frozenset({"kube-system"})))


@pytest.mark.parametrize("name", CASES)
@in_loop
async def test_decision(name: str) -> None:
    path, sent, want = CASES[name]
    one = ground()
    reply = await one.ask(path, sent)
    assert (one.decisions, isinstance(reply, VerbReply)) == ([], True)
    assert reply.sent is not None
    reply.sent()
    [decision], [read] = one.decisions, one.read
    assert read == {"pod": "ml/x/u-x", **NOTHING, **want}
    assert decision.verb == path.rpartition("/")[2]
    assert decision.policies is one.asking.serving.policies
    assert {rule: len(nodes) for rule, nodes in decision.rejected.items()} == decision.outcome.refusals


@in_loop
async def test_a_bind_that_is_refused_has_its_pod_and_node() -> None:
    one = Ground(Asking([POLICY], [node("a")], unplaced=[pod(schedulerName="another").pod]))
    reply = await one.ask("/bind", BIND)
    assert reply.sent is not None
    reply.sent()
    assert one.decisions[0].outcome.result == "error"
    assert one.read == [{"pod": "ml/x/u-x", **NOTHING, "candidates": ("a",), "passed": ()}]


@in_loop
async def test_decision_of_a_call_before_there_is_a_state_and_of_one_that_came_too_slowly() -> None:
    for is_ready, step, result in ((False, 0, "unready"), (True, SECOND, "late")):
        one = Ground(Asking([POLICY], [node("a")]), is_ready=is_ready)
        one.step = step
        reply = await one.ask("/filter", body(["a"]))
        assert reply.sent is not None
        reply.sent()
        [decision], [read] = one.decisions, one.read
        assert (decision.outcome.result, decision.policies, read) == (result, None, {"pod": "//", **NOTHING})


@in_loop
async def test_a_policy_that_is_too_slow_leaves_the_pod() -> None:
    one = ground()
    one.step = SECOND // 5
    reply = await one.ask("/filter", body(["a", "b"]))
    assert reply.sent is not None
    reply.sent()
    assert (one.decisions[0].outcome.result, one.read[0]["pod"]) == ("error", "ml/x/u-x")


@in_loop
async def test_where_nothing_listens_nothing_is_made() -> None:
    one = ground()
    one.calls.listeners = Listeners()
    assert (await one.ask("/filter", body(NAMES))).sent is None


@in_loop
async def test_a_fault_of_one_listener_is_logged_and_the_others_are_told(caplog: pytest.LogCaptureFixture) -> None:
    def fails(_: Decision) -> None:
        raise RuntimeError("on purpose")

    one = ground()
    one.calls.listeners = Listeners((fails, one.listen))
    for _ in range(2):
        reply = await one.ask("/filter", body(NAMES))
        assert reply.sent is not None
        reply.sent()
    assert len(one.decisions) == 2
    faults = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert {record.message for record in faults} == {"decision_listener.fault"}
