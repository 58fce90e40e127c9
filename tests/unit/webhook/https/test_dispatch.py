"""From a call to its answer: who is asked, what is counted, and what is said when nothing can be."""

import asyncio
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from fairlead import logs
from fairlead.cel.values.structs import from_json
from fairlead.metrics import Metrics
from fairlead.pki.identities import OPERATOR
from fairlead.policy.compile.policy_conflicts import Conflict
from fairlead.webhook.binding.api_calls import Posted
from fairlead.webhook.binding.binder import Binder
from fairlead.webhook.binding.poster import Poster
from fairlead.webhook.extender.bind import BindDecision, refuse
from fairlead.webhook.extender.call import CallClock, Caller, IncomingCall, Reply, Verb, VerbReply
from fairlead.webhook.extender.state import ServingState
from fairlead.webhook.holding.passed_calls import PassedCall, encode
from fairlead.webhook.https.dispatch import PASSED_ON, PATHS, Dispatcher
from fairlead.webhook.https.wall_clock import BACK_NS, TimeOfDay
from support.policy import SECOND, node, policy
from support.webhook import Asking, body, go


class Nobody:
    """An API server that is asked for bindings alone, and makes them."""

    async def post_binding(self, binding: Mapping[str, Any], timeout_s: float) -> Posted:
        return Posted()

    async def read_body(self, namespace: str, name: str, timeout_s: float) -> bytes:
        raise AssertionError


@dataclass
class Ground:
    asking: Asking
    ready: bool = True
    time: int = 10 * SECOND
    step: int = 0
    operator: Caller | None = None

    def __post_init__(self) -> None:
        self.metrics = Metrics()
        self.calls = Dispatcher(Binder(Nobody()), self.caller, self.world, 1.0, self.metrics, clock=self.clock)

    def caller(self, name: str, verb: Verb) -> Caller | None:
        if name == OPERATOR:
            return self.operator
        may_call = name in ("all", "fairlead:scheduler:fairlead") or (name, verb) == ("half", "filter")
        return self.asking.caller if may_call else None

    def world(self) -> ServingState | None:
        return self.asking.serving if self.ready else None

    def clock(self) -> int:
        self.time += self.step
        return self.time

    def ask(self, path: str, sent: bytes, ago_s: float = 0) -> Reply:
        async def asked() -> Reply:
            answer = self.calls.routes()[path](
                IncomingCall("all", self.asking.caller, sent, self.time - int(ago_s * SECOND))
            )
            return answer if isinstance(answer, Reply) else await answer

        return asyncio.run(asked())

    def counted(self) -> dict[tuple[str, ...], float]:
        return dict(samples(self.metrics))


def samples(metrics: Metrics) -> Iterator[tuple[tuple[str, ...], float]]:
    for family in text_string_to_metric_families(metrics.exposition().decode()):
        for one in family.samples:
            yield (one.name.removeprefix("fairlead_").removeprefix("webhook_"), *one.labels.values()), one.value


def ground(**spec: Any) -> Ground:
    return Ground(Asking([policy(**spec)] if spec else [], [node("a"), node("b")]))


MANY = [f"n{at}" for at in range(500)]
NEVER_KEPT = {"f": "pod.metadata.name != node.metadata.name"}
FILTER = {"f": "node.metadata.name == 'a'"}


def test_each_path_asks_its_verb_and_its_gate() -> None:
    hard, soft = ground(filters=FILTER), ground(filters=FILTER, failurePolicy="Ignore")
    names = {
        (path, which): go.decode("filter", one.ask(path, body(["a", "b"])).body)["NodeNames"]
        for path in ("/filter", "/ignore/filter")
        for which, one in (("hard", hard), ("soft", soft))
    }
    assert names == {
        ("/filter", "hard"): ["a"],
        ("/filter", "soft"): ["a", "b"],
        ("/ignore/filter", "hard"): ["a", "b"],
        ("/ignore/filter", "soft"): ["a"],
    }
    for path in ("/preempt", "/ignore/preempt"):
        assert go.decode("preempt", hard.ask(path, body(victims={"a": []})).body)
    scored = ground(scores={"s": "node.metadata.name == 'a' ? 100.0 : 0.0"})
    assert go.decode("prioritize", scored.ask("/prioritize", body(["a", "b"])).body) == [{"Host": "a", "Score": 10}]
    assert "PodName" in go.decode("bind", hard.ask("/bind", b"{}").body)["Error"]
    assert {*hard.calls.routes()} == {*PATHS, PASSED_ON}


# the timeout of the caller, and that of its binds; seconds until a bind has to be decided, and until it may be held
BINDS: Mapping[str, tuple[float | None, float | None, float, float | None]] = {
    "no group": (2.0, None, 1.6, None),
    "groups": (2.0, 35, 1.6, 34.0),
    "groups, and no timeout that is known": (None, 65, 0.8, 64.0),
    "a timeout that is longer than that of binds": (60.0, 35, 48.0, 48.0),
}


@pytest.mark.parametrize("case", BINDS)
@pytest.mark.parametrize("ago_s", [0.0, 0.5])
def test_a_bind_that_is_held_has_a_deadline_of_its_own(case: str, ago_s: float) -> None:
    timeout_s, bind_timeout_s, decided_s, held_s = BINDS[case]
    one = Ground(Asking([], timeout_s=timeout_s, bind_timeout_s=bind_timeout_s))
    seen = list[CallClock]()

    class Noting(Binder):
        async def bind(self, call: IncomingCall, state: ServingState, when: CallClock) -> VerbReply:
            seen.append(when)
            return await super().bind(call, state, when)

    one.calls.binder = Noting(Nobody())
    one.ask("/bind", b"{}", ago_s)
    (when,) = seen
    received = one.time - int(ago_s * SECOND)
    assert when.deadline_ns == received + int(decided_s * SECOND)
    assert when.hold_deadline_ns == (None if held_s is None else received + int(held_s * SECOND))
    assert when.held_until_ns == received + int((held_s or decided_s) * SECOND)


def test_callers_are_allowed_by_verb() -> None:
    authorize = ground().calls.authorize
    assert [path for path in PATHS if authorize("half", path)] == ["/filter", "/ignore/filter"]
    assert [path for path in PATHS if authorize("nobody", path)] == []


def test_calls_are_passed_on_by_the_operator_alone() -> None:
    one = ground()
    one.operator = Caller(schedulers=frozenset())
    assert one.calls.authorize("all", PASSED_ON) is None
    assert one.calls.authorize(OPERATOR, PASSED_ON) is not None
    one.operator = None  # it may not call where its certificate is not known
    assert one.calls.authorize(OPERATOR, PASSED_ON) is None


ARGS = {"PodName": "x", "PodNamespace": "ml", "PodUID": "u-x", "Node": "n"}


class Members:
    """A holder that notes the calls of members."""

    def __init__(self) -> None:
        self.calls: list[tuple[IncomingCall, CallClock]] = []

    async def bind(self, decision: BindDecision, _: Poster, call: IncomingCall, when: CallClock) -> VerbReply:
        self.calls.append((call, when))
        return refuse(decision.request.uid, "held")


def member_ground() -> tuple[Ground, Members]:
    gang = {"name": "job", "group": "'red'", "size": "2"}
    metadata = {"name": "x", "namespace": "ml", "uid": "u-x"}
    waiting = from_json("Pod", {"metadata": metadata, "spec": {"schedulerName": "fairlead"}})
    one = Ground(Asking([policy(binding={"gang": [gang]})], [node("n")], unplaced=[waiting]))
    one.operator, members = Caller(schedulers=frozenset()), Members()
    one.calls.binder.groups = members
    return one, members


def passed(scheduler: str = "fairlead") -> bytes:
    return encode(PassedCall(scheduler, "10.0.0.9", msgspec.Raw(json.dumps(ARGS).encode())))


def test_a_call_that_was_passed_on_is_answered_as_that_of_its_scheduler() -> None:
    one, members = member_ground()
    assert go.decode("bind", one.ask(PASSED_ON, passed()).body) == {"Error": "held"}
    ((call, _),) = members.calls
    assert (call.name, call.caller, call.address, call.is_passed_on) == (
        "fairlead:scheduler:fairlead",
        one.asking.caller,
        "10.0.0.9",
        True,
    )
    assert json.loads(call.body) == ARGS
    assert one.counted()["request_duration_seconds_count", "error", "fairlead", "bind"] == 1


@pytest.mark.parametrize(
    ("sent", "status", "why"),
    [
        (b"{", 400, "cannot be read"),
        (b'{"scheduler":"fairlead","arguments":{}}', 400, "cannot be read"),
        (passed("another"), 403, "the scheduler 'another' may not call"),
        (encode(PassedCall("fairlead", "10.0.0.9", msgspec.Raw(b"{}"))), 200, "PodName"),
    ],
)
def test_a_call_that_was_passed_on_is_checked_once_more(sent: bytes, status: int, why: str) -> None:
    one, members = member_ground()
    answer = one.ask(PASSED_ON, sent)
    assert (answer.status, why in answer.body.decode(), members.calls) == (status, True, [])


def test_a_pod_of_another_scheduler_is_not_bound_for_who_passes_it_on() -> None:
    one, members = member_ground()
    one.asking.caller = Caller(schedulers=frozenset({"another"}))
    assert "whose pods the caller may not place" in one.ask(PASSED_ON, passed()).body.decode()
    assert members.calls == []


@pytest.mark.parametrize("path", PATHS)
def test_before_everything_is_there_the_scheduler_is_told_to_try_again(path: str) -> None:
    one = ground()
    one.ready = False
    answer = one.ask(path, body(["a"]))
    assert (answer.status, b"/readyz" in answer.body) == (503, True)
    assert one.counted()["request_duration_seconds_count", "unready", "fairlead", PATHS[path]] == 1


def test_a_clock_goes_back_by_much_or_not_at_all() -> None:
    told: list[str] = []
    shown = iter([5 * BACK_NS, 4 * BACK_NS, 6 * BACK_NS, BACK_NS, 2 * BACK_NS])
    now = TimeOfDay(lambda: next(shown), lambda: told.append("back"))
    assert [now() // BACK_NS for _ in range(5)] == [5, 5, 6, 1, 2]
    assert told == ["back"]


def test_a_body_that_came_too_slowly_blames_no_policy() -> None:
    one = Ground(Asking([policy(filters=NEVER_KEPT)], [node(name) for name in MANY]))
    answer = one.ask("/filter", body(MANY), ago_s=0.8)
    assert (answer.status, one.counted()["request_duration_seconds_count", "late", "fairlead", "filter"]) == (503, 1)
    one.step = SECOND // 2  # the policy misses what little is left, again and again
    for _ in range(5):
        assert "too slow" in go.decode("filter", one.ask("/filter", body(MANY), ago_s=0.1).body)["Error"]
    assert not one.asking.pace.open_circuits(one.time)
    one.step = int(0.39 * SECOND)
    for _ in range(2):
        one.ask("/filter", body(MANY))
    assert one.asking.pace.open_circuits(one.time), "but one that had time enough is switched"


def test_what_is_counted() -> None:
    one = ground(filters=FILTER)
    for sent in (body(["a", "b", "new"]), body(["a"]), b"{"):
        one.ask("/filter", sent)
    counted = one.counted()
    assert {key: value for key, value in counted.items() if not key[0].startswith("request_")} == {
        ("candidates_total", "fairlead", "filter"): 4,
        ("filter_rejected_nodes_total", "p", "f"): 1,
        ("unknown_nodes_total", "fairlead"): 1,
    }
    assert {key[1]: value for key, value in counted.items() if key[0] == "request_duration_seconds_count"} == {
        "passed": 1,
        "refused": 1,
        "error": 1,
    }
    assert counted["request_duration_seconds_bucket", "0.0001", "passed", "fairlead", "filter"] == 1


def test_errors_that_come_again_and_again_are_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    one = ground()
    with caplog.at_level(logging.INFO, "fairlead"):
        for _ in range(500):
            one.ask("/bind", b"{}")
    assert 1 <= len(caplog.records) <= 10


def test_each_call_is_a_line_at_trace_and_none_at_info(caplog: pytest.LogCaptureFixture) -> None:
    one = ground(filters=FILTER)
    for level, want in ((logging.INFO, 0), (logs.TRACE, 1)):
        caplog.clear()
        with caplog.at_level(level, "fairlead"):
            one.ask("/filter", body(["a", "b"]))
        assert len(caplog.records) == want


def test_an_annotation_that_two_policies_write_is_told_of_both(caplog: pytest.LogCaptureFixture) -> None:
    rules = [policy(name, annotations={"fairlead.dev/a": f"'{name}'"}) for name in ("one", "two")]
    metadata = {"name": "x", "namespace": "ml", "uid": "u-x"}
    waiting = from_json("Pod", {"metadata": metadata, "spec": {"schedulerName": "fairlead"}})
    one = Ground(Asking(rules, [node("n")], unplaced=[waiting]))
    asked = json.dumps({"PodName": "x", "PodNamespace": "ml", "PodUID": "u-x", "Node": "n"}).encode()
    for _ in range(2):
        assert go.decode("bind", one.ask("/bind", asked).body) == {"Error": ""}
    counted = {key[1:]: value for key, value in one.counted().items() if "warnings" in key[0]}
    assert counted == {("one", "Conflict"): 2, ("two", "Conflict"): 2}
    assert one.asking.serving.conflicts == {Conflict("fairlead.dev/a", "one", "two"): 2}
    (line,) = caplog.records
    assert {"reason": "Conflict", "annotation": "fairlead.dev/a", "winner": "one", "loser": "two"}.items() <= vars(
        line
    ).items()


def test_a_bind_that_was_held_is_neither_slow_nor_an_error() -> None:
    one, members = member_ground()

    async def hold(decision: BindDecision, _: Poster, call: IncomingCall, when: CallClock) -> VerbReply:
        one.time += 30 * SECOND
        reply = refuse(decision.request.uid, "1 of 2 members of the group found room (attempt 1)")
        reply.outcome = replace(reply.outcome, is_held=True)
        return reply

    members.bind = hold  # type: ignore[method-assign]
    one.ask("/bind", json.dumps(ARGS).encode())
    counted = {key[1]: value for key, value in one.counted().items() if key[0] == "request_duration_seconds_count"}
    assert counted == {"held": 1}
