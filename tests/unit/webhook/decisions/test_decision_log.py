"""The decision log: calls in, lines of JSON and of the log out."""

import json
import logging
from collections.abc import Sequence
from typing import Any, Final

import pytest

from fairlead.metrics import Metrics
from fairlead.mirror.mirror import Mirror
from fairlead.time_units import SECOND_NS
from fairlead.webhook.binding.binder import Binder
from fairlead.webhook.decisions.decision_log import LINES_A_SECOND, PART, DecisionLog, LoggedDecisions
from fairlead.webhook.extender.call import IncomingCall, Reply
from fairlead.webhook.extender.decisions import Listeners
from fairlead.webhook.https.dispatch import Dispatcher
from scripted.loop import in_loop
from support.policy import node, policy
from support.webhook import Asking, body

FILTERS: Final = {"f": "node.metadata.labels[?'secret'].orValue('') != 'value'", "g": "node.metadata.name != 'c'"}
SCORES: Final = {"s": "node.metadata.name == 'a' ? 100.0 : 20.0"}
NAMES: Final = ["a", "b", "c", "d", "unknown"]
T0: Final = 1_800_000_000 * SECOND_NS


class Ground:
    """A dispatcher whose decisions are kept."""

    def __init__(
        self, logged: LoggedDecisions = "None", schedulers: Sequence[str] = ("fairlead",), **spec: Any
    ) -> None:
        nodes = [node(name, labels={"secret": "value"} if name == "b" else {}) for name in "abcd"]
        spec = spec or {"filters": FILTERS, "scores": SCORES}
        self.asking = Asking([policy(**spec)], nodes, schedulers=schedulers)
        self.time, self.metrics = T0, Metrics()
        self.log = DecisionLog(Mirror(lambda: self.time), lambda: self.time, "r-0", logged)
        self.log.register(self.metrics)
        self.calls = Dispatcher(
            Binder(None),  # type: ignore[arg-type]
            lambda *_: self.asking.caller,
            lambda: self.asking.serving,
            1.0,
            Metrics(),
            listeners=Listeners((self.log.record,)),
            clock=lambda: 5_000_000,
        )

    def ask(self, path: str, sent: bytes) -> None:
        reply = self.calls.routes()[path](IncomingCall("all", self.asking.caller, sent, 2_000_000))
        assert isinstance(reply, Reply)
        assert reply.sent is not None
        reply.sent()

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for part in self.log.parts() for line in part.splitlines()]


@in_loop
async def test_a_decision_has_names_numbers_and_reasons_and_no_value() -> None:
    ground = Ground()
    ground.ask("/filter", body(NAMES))
    ground.ask("/prioritize", body(["a", "d"]))
    head, record = ground.lines
    assert head == {"replica": "r-0", "since": "2027-01-15T08:00:00.000Z", "now": "2027-01-15T08:00:00.000Z"}
    assert record == {
        "time": "2027-01-15T08:00:00.000Z",
        "scheduler": "fairlead",
        "pod": {"namespace": "ml", "name": "x", "uid": "u-x"},
        "policies": [{"name": "p", "generation": record["policies"][0]["generation"]}],
        "result": "refused",
        "candidates": 5,
        "passed": 2,
        "rules": [
            {"policy": "p", "rule": "f", "reason": "f", "nodes": 1, "examples": ["b"]},
            {"policy": "p", "rule": "g", "reason": "g", "nodes": 1, "examples": ["c"]},
            {"policy": "", "rule": "", "reason": "node is not known yet", "nodes": 1, "examples": ["unknown"]},
        ],
        "error": None,
        "best": [{"node": "a", "points": 8}, {"node": "d", "points": 0}],
        "node": None,
        "waits": False,
        "attempts": 1,
        "effects": [],
        "milliseconds": 3.0,
    }
    assert "value" not in json.dumps(record).replace("secret", "")


@pytest.mark.parametrize(
    ("path", "sent", "kept"),
    [
        ("/filter", body(NAMES, scheduler="other"), 0),
        ("/filter", body(["b"]), 1),
        ("/filter", b"{", 0),
        ("/prioritize", body(NAMES, scheduler="other"), 0),
        ("/prioritize", body(["a"]), 1),
        ("/preempt", body(victims={"a": [], "b": []}), 0),
    ],
)
@in_loop
async def test_what_is_a_decision(path: str, sent: bytes, kept: int) -> None:
    ground = Ground()
    ground.ask(path, sent)
    assert len(ground.lines) == 1 + kept


@in_loop
async def test_of_schedulers_that_share_a_certificate_the_pods_is_named() -> None:
    ground = Ground(schedulers=("gpu", "fairlead", "batch", "a", "b"))
    ground.ask("/filter", body(["b"]))
    assert [line["scheduler"] for line in ground.lines[1:]] == ["fairlead"]


@in_loop
async def test_lines_come_in_parts() -> None:
    ground = Ground()
    for at in range(PART + 1):
        ground.time += SECOND_NS
        ground.ask("/filter", body(["a"], pod={"name": f"x{at}", "uid": f"u{at}"}))
    assert [part.count(b"\n") for part in ground.log.parts()] == [1, PART, 1]


@pytest.mark.parametrize(("logged", "events"), [("None", []), ("Waiting", ["empty"]), ("All", ["refused", "empty"])])
@in_loop
async def test_decisions_are_logged_without_nodes_and_points(
    logged: LoggedDecisions, events: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "fairlead.webhook.decisions")
    ground = Ground(logged)
    ground.ask("/filter", body(NAMES))
    ground.ask("/filter", body(["b"], pod={"uid": "u-y", "name": "y"}))
    said = [record.__dict__ for record in caplog.records]
    assert [one["message"] for one in said] == ["decision"] * len(events)
    assert [one["result"] for one in said] == events
    assert all("examples" not in str(one["rules"]) for one in said)


@in_loop
async def test_what_is_not_logged_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fairlead.webhook.decisions")
    ground = Ground("All")
    for at in range(LINES_A_SECOND + 3):
        ground.ask("/filter", body(["a"], pod={"uid": f"u{at}"}))
    ground.time += SECOND_NS
    ground.ask("/filter", body(["a"]))
    assert len(caplog.records) == LINES_A_SECOND + 1
    assert "fairlead_decisions_dropped_total 3.0" in ground.metrics.exposition().decode()


@in_loop
async def test_effects_of_rules_in_shadow_are_told_with_the_decision() -> None:
    ground = Ground()
    ground.ask("/filter", body(["a"]))
    ground.log.note_effects("u-x", "q", ["restricted"], ["f"])
    ground.log.note_effects("u-x", "q", ["evictions", "restricted"], ["g"])
    ground.log.note_effects("u-other", "q", ["restricted"], ["f"])
    [_, record] = ground.lines
    assert record["effects"] == [{"policy": "q", "effects": ["restricted", "evictions"], "rules": ["f", "g"]}]


SHADOW: Final = {"name": "f", "mode": "Shadow", "expression": "false"}


@pytest.mark.parametrize(
    "spec",
    [
        {"filters": FILTERS, "mode": "Shadow"},
        {"filters": [SHADOW]},
        {"filters": [SHADOW], "scores": SCORES},
        {"filters": FILTERS},
    ],
    ids=["the policy is in shadow", "its only filter is", "a score decides", "a filter decides"],
)
@in_loop
async def test_an_effect_is_kept_whatever_else_decides_about_the_pod(spec: dict[str, Any]) -> None:
    ground = Ground(**spec)
    ground.ask("/filter", body(["a", "d"]))
    ground.log.note_effects("u-x", "p", ["restricted"], ["f"])
    [_, record] = ground.lines
    assert (record["candidates"], record["passed"], len(record["effects"])) == (2, 2, 1)


@in_loop
async def test_each_reason_of_a_rule_is_told() -> None:
    ground = Ground(filters={"f": "node.metadata.labels['secret'] != 'value'"})
    ground.ask("/filter", body(["a", "b", "c"]))
    [_, record] = ground.lines
    assert sorted((one["reason"], one["nodes"]) for one in record["rules"]) == [
        ("f", 1),
        ("rule f cannot be decided", 2),
    ]
