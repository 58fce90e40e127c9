"""When polls are asked, and what becomes of their answers."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fairlead.cooperative import Steps
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.nodes.polls import NodeMetricsPoll, Poll, PollError, PrometheusPoll, Reading
from fairlead.strategies.facts import Unknown
from fairlead.webhook.data_sources.poller import Poller, PollOutcome, PollStatus, Question
from scripted.loop import in_loop
from support.policy import NOW, SECOND, node, policy

LOAD = PrometheusPoll("default", "load", "instance", None, 15)
HEAT = PrometheusPoll("default", "heat", "instance", None, 15)
USED = NodeMetricsPoll("cpu", "Base", 30)
POLICY = policy(
    data=[
        {"name": "load", "prometheus": {"query": "load"}},
        {"name": "heat", "prometheus": {"query": "heat"}},
        {"name": "used", "nodeMetrics": {"resource": "cpu"}},
    ],
    filters={"f": "data.load < 1.0"},
)
AGES: dict[Poll, int] = {LOAD: 60, HEAT: 60, USED: 180}


class _Counted(Nodes):
    """Nodes that count what is published to them."""

    published = 0

    def publication(
        self, readings: Mapping[Poll, Reading], now: int, names: Collection[str] | None = None
    ) -> Steps[None]:
        yield from super().publication(readings, now, names)
        self.published += 1


class Ground:
    """A poller whose clock a test winds, and sources that answer what the test says."""

    def __init__(self, **answers: PollOutcome) -> None:
        self.time, self.synced = 0.0, True
        self.asked: list[tuple[float, set[str]]] = []
        self.answers: dict[Poll, Any] = {}
        self.nodes = _Counted()
        self.nodes.put(node("a"))
        self.nodes.measure(POLICY.data)
        self.poller = Poller(
            self.nodes,
            self,
            now=lambda: NOW + round(self.time * SECOND),
            clock=lambda: self.time,
            is_synced=lambda: self.synced,
        )

    def questions(self, ages: Mapping[Poll, int]) -> Iterable[Question]:
        self.asked.append((self.time, {getattr(poll, "query", "used") for poll in ages}))
        return [Question((poll,), self._answer(poll)) for poll in ages]

    async def _answer(self, poll: Poll) -> Mapping[Poll, PollOutcome]:
        answer = self.answers.get(poll, PollError("connection refused"))
        if isinstance(answer, asyncio.Event):
            await answer.wait()
            answer = self.reading(0.9)
        if isinstance(answer, RuntimeError):
            raise answer
        return {} if answer is None else {poll: answer}

    def reading(self, value: float, **names: float) -> Reading:
        return Reading({"a": value, **names}, NOW + round(self.time * SECOND))

    def value(self, name: str = "a", entry: str = "load") -> float | str:
        view = self.nodes.view_of(name)
        assert view is not None
        now = NOW + round(self.time * SECOND)
        found = self.nodes.with_measured(view, POLICY.data, now).data(entry)
        return str(found) if isinstance(found, Unknown) else found

    @property
    def published(self) -> int:
        return self.nodes.published

    async def until(self, wanted: Callable[[], bool]) -> None:
        """Wait, as long as the loop's own time takes."""
        while not wanted():
            await asyncio.sleep(0.005)

    async def settle(self) -> None:
        for _ in range(100):
            await asyncio.sleep(0)

    async def advance(self, *moments: float) -> None:
        """Let time pass in steps, at each of which the poller looks at the clock."""
        for moment in moments:
            self.time = moment
            self.poller.ask_now(())
            await self.settle()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.poller.run())
        try:
            await self.settle()
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])


@in_loop
async def test_a_new_poll_is_asked_at_once_and_then_with_all_of_its_interval() -> None:
    ground = Ground()
    ground.answers = {LOAD: ground.reading(0.4), HEAT: ground.reading(7.0), USED: ground.reading(2.0)}
    async with ground.running():
        ground.poller.want({LOAD: 60})
        await ground.advance(0.0, 6.0)
        ground.poller.want(AGES)
        await ground.advance(6.0, 10.0, 14.9, 15.0, 29.9, 30.0, 36.0, 45.0)
    assert ground.asked == [
        (0.0, {"load"}),
        (6.0, {"heat", "used"}),
        (15.0, {"load", "heat"}),
        (30.0, {"load", "heat"}),
        (36.0, {"used"}),
        (45.0, {"load", "heat"}),
    ]


@in_loop
async def test_a_poll_that_never_succeeded_is_tried_again_soon() -> None:
    ground = Ground()
    async with ground.running():
        ground.poller.want({USED: 180})
        await ground.advance(*(at / 2 for at in range(41)))
    assert [at for at, _ in ground.asked] == [0.0, 1.0, 3.0, 7.0, 15.0]
    assert ground.poller.states[USED].error == "connection refused"
    assert ground.poller.states[USED].failures == 5


@in_loop
async def test_a_failed_poll_keeps_the_values_with_their_times() -> None:
    ground = Ground()
    ground.answers = {LOAD: ground.reading(0.4)}
    async with ground.running():
        ground.poller.want({LOAD: 60})
        await ground.advance(0.0)
        ground.answers = {}
        await ground.advance(15.0, 30.0, 45.0, 60.0)
        assert ground.value() == 0.4
        await ground.advance(61.0)
        assert ground.value() == "data load is stale"
        status = ground.poller.states[LOAD]
        assert (status.succeeded_at, status.error, status.failures) == (NOW, "connection refused", 4)
        ground.answers = {LOAD: ground.reading(0.7)}
        await ground.advance(75.0)
        assert (ground.value(), ground.poller.states[LOAD].error) == (0.7, "")


@in_loop
async def test_a_fault_of_ours_is_a_failed_poll() -> None:
    ground = Ground()
    ground.answers = {LOAD: RuntimeError("a slip")}
    async with ground.running():
        ground.poller.want({LOAD: 60})
        await ground.advance(0.0)
        assert "internal fault (RuntimeError)" in ground.poller.states[LOAD].error
        ground.answers = {LOAD: ground.reading(0.4)}
        await ground.advance(1.0)
        assert ground.value() == 0.4


@in_loop
async def test_what_is_answered_promptly_is_published_in_one_step_and_a_straggler_when_it_comes() -> None:
    ground = Ground()
    soon, late = asyncio.Event(), asyncio.Event()
    ground.answers = {LOAD: ground.reading(0.4), HEAT: soon, USED: late}
    async with ground.running():
        ground.poller.want(AGES)
        await ground.settle()
        assert (ground.value(), ground.published) == ("data load is missing", 0)
        soon.set()
        await ground.until(lambda: ground.published == 1)
        assert (ground.value(), ground.value(entry="heat")) == (0.4, 0.9)
        assert ground.value(entry="used") == "data used is missing"
        late.set()
        await ground.until(lambda: ground.published == 2)
        assert ground.value(entry="used") == 0.9
        await ground.advance(15.0)
        assert ground.asked == [(0.0, {"load", "heat", "used"}), (15.0, {"load", "heat"})]


@in_loop
async def test_a_straggler_does_not_keep_the_others_from_their_next_polls() -> None:
    ground = Ground()
    ground.answers = {LOAD: ground.reading(0.4), HEAT: asyncio.Event()}
    async with ground.running():
        ground.poller.want({LOAD: 60, HEAT: 60})
        await ground.until(lambda: ground.published == 1)
        await ground.advance(15.0)
        ground.answers[LOAD] = ground.reading(0.7)
        await ground.until(lambda: ground.published == 2)
        assert ground.asked == [(0.0, {"load", "heat"}), (15.0, {"load"})]


@in_loop
async def test_what_changes_while_it_is_asked_is_asked_again_at_once() -> None:
    ground = Ground()
    gate = asyncio.Event()
    ground.answers = {LOAD: gate}
    async with ground.running():
        ground.poller.want({LOAD: 60})
        await ground.settle()
        ground.poller.ask_now([LOAD])
        await ground.settle()
        assert ground.asked == [(0.0, {"load"})]
        gate.set()
        await ground.until(lambda: len(ground.asked) == 2)
        await ground.advance(1.0, 2.0)
    assert ground.asked == [(0.0, {"load"})] * 2


@in_loop
async def test_a_node_that_joins_gets_what_was_measured_of_it_and_not_of_one_before_it() -> None:
    ground = Ground()
    ground.answers = {LOAD: ground.reading(0.4, b=0.5)}
    async with ground.running():
        ground.poller.want({LOAD: 60})
        await ground.advance(0.0)
        ground.nodes.put(node("b"))
        assert ground.value("b") == "data load is missing"
        await ground.advance(1.0)
        assert ground.value("b") == 0.5
        ground.nodes.remove("a")
        ground.nodes.put(node("a", created="2027-01-15T08:00:01Z"))
        await ground.advance(2.0)
        assert ground.value() == "data load is missing"


@in_loop
async def test_an_edited_entry_has_the_values_that_the_last_poll_did_not_repeat() -> None:
    ground = Ground()
    ground.answers = {LOAD: ground.reading(0.4)}
    async with ground.running():
        ground.poller.want({LOAD: 60})
        await ground.advance(0.0)
        ground.answers = {LOAD: Reading({"other": 0.1}, NOW + 15 * SECOND)}
        await ground.advance(15.0)
        edited = policy(
            data={"load": {"prometheus": {"query": "load"}, "factor": 10.0}}, filters={"f": "data.load < 1.0"}
        ).data
        ground.nodes.measure(edited)
        ground.poller.want({LOAD: 60})
        await ground.poller.publish_last()
        view = ground.nodes.view_of("a")
        assert view is not None
        assert ground.nodes.with_measured(view, edited, NOW + 15 * SECOND).data("load") == 4.0


@in_loop
async def test_a_value_without_a_time_does_not_get_that_of_the_value_before_it() -> None:
    """A node that joins makes the last answers be published again, with what came before them."""
    ground = Ground()
    ground.nodes.put(node("b"))
    ground.answers = {LOAD: ground.reading(0.4, b=0.5)}
    async with ground.running():
        ground.poller.want({LOAD: 60})
        await ground.advance(0.0)
        ground.answers = {LOAD: Reading({"a": 0.1}, {})}
        await ground.advance(15.0)
        ground.nodes.put(node("c"))
        await ground.advance(17.0)
        assert (ground.value("a"), ground.value("b")) == ("data load is stale", 0.5)


@in_loop
async def test_nothing_is_asked_before_the_nodes_are_known() -> None:
    ground = Ground()
    ground.synced = False
    async with ground.running():
        ground.poller.want({LOAD: 60})
        await ground.poller.first_values(1e9, [LOAD])
        await ground.settle()
    assert ground.asked == []


@in_loop
async def test_a_set_waits_for_the_first_success_of_each_poll() -> None:
    ground = Ground()
    gate = asyncio.Event()
    ground.answers = {LOAD: gate}
    async with ground.running():
        ground.poller.want({LOAD: 60, HEAT: 60})
        waiting = asyncio.create_task(ground.poller.first_values(1e9, [LOAD, HEAT]))
        gate.set()
        await ground.until(lambda: ground.poller.without_value() == [HEAT])
        assert ground.poller.states[HEAT].error == "connection refused"
        await ground.settle()
        assert not waiting.done()
        ground.answers[HEAT] = ground.reading(7.0)
        await ground.advance(1.0)
        await waiting
        assert (ground.value(), ground.value(entry="heat")) == (0.9, 7.0)
        await ground.poller.first_values(1e9, [LOAD, HEAT])


@in_loop
async def test_a_set_does_not_wait_for_ever() -> None:
    ground = Ground()
    ground.answers = {LOAD: asyncio.Event()}
    async with ground.running():
        ground.poller.want({LOAD: 60})
        await ground.poller.first_values(0.01, [LOAD])
        assert ground.poller.without_value() == [LOAD]
        assert ground.poller.awaits_values(5.0)
        await ground.advance(4.0, 6.0)
        assert not ground.poller.awaits_values(5.0)


@in_loop
async def test_a_later_set_does_not_wait_again_for_what_fails() -> None:
    ground = Ground()
    ground.answers = {HEAT: ground.reading(7.0)}
    async with ground.running():
        ground.poller.want({LOAD: 60})
        await ground.advance(0.0, 6.0)
        ground.poller.want({LOAD: 60, HEAT: 60})
        await ground.poller.first_values(5.0, [LOAD, HEAT])
        assert ground.poller.without_value() == [LOAD]


@in_loop
async def test_a_set_does_not_wait_for_a_poll_that_is_wanted_no_longer() -> None:
    ground = Ground()
    async with ground.running():
        ground.poller.want({LOAD: 60})
        waiting = asyncio.create_task(ground.poller.first_values(1e9, [LOAD]))
        await ground.settle()
        ground.poller.want({})
        await waiting


@in_loop
async def test_a_poll_without_an_answer_yet_is_no_failure_and_is_asked_soon() -> None:
    ground = Ground()
    ground.answers = {LOAD: None}
    async with ground.running():
        ground.poller.want({LOAD: 60})
        await ground.advance(0.0, 0.5, 1.0)
        assert ground.poller.states[LOAD] == PollStatus()
        ground.answers = {LOAD: ground.reading(0.4)}
        await ground.advance(2.0)
        assert ground.value() == 0.4
    assert [at for at, _ in ground.asked] == [0.0, 1.0, 2.0]


@in_loop
async def test_an_answer_that_nobody_wants_any_more_is_dropped() -> None:
    ground = Ground()
    gate = asyncio.Event()
    ground.answers = {LOAD: gate}
    async with ground.running():
        ground.poller.want({LOAD: 60})
        await ground.settle()
        ground.poller.want({})
        gate.set()
        await ground.settle()
        assert ground.value() == "data load is missing"
        assert ground.poller.states == {}
