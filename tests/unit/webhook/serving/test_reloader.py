"""A policy set is swapped as a whole, and serves once what it reads is held."""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest

from fairlead.cooperative import Share
from fairlead.mirror.mirror import Mirror
from fairlead.policy.columns.rule_errors import RuleErrorTally, RuleFailures
from fairlead.policy.compile.compiler import CompileOptions
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.views.faults import internal_error
from fairlead.webhook.capability import Capability
from fairlead.webhook.serving.policy_store import PolicyStore
from fairlead.webhook.serving.reloader import PolicyReloader
from fairlead.webhook.serving.rule_error_totals import RuleErrorTotals
from scripted.loop import in_loop
from support.policy import MODEL, obj
from support.policy.building import INSTALLED

READS = {"f": "pods.all(p, p.metadata.annotations[?'example.com/a'].orValue('') == '')"}


class Ground(Capability):
    """What was wanted; what is wanted is held once the gate is open."""

    def __init__(self) -> None:
        self.wanted: list[tuple[set[str], set[str]]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.measured: list[list[str]] = []
        self.provided = asyncio.Event()
        self.provided.set()
        policies = PolicyStore(MODEL, CompileOptions(INSTALLED))
        self.current = PolicyReloader(policies, Mirror(lambda: 0), self.want, [self])

    async def follow(self, policies: Sequence[CompiledPolicy]) -> None:
        self.measured.append([one.name for one in policies])
        await self.provided.wait()

    async def want(self, annotations: Iterable[str], schedulers: Iterable[str], in_shadow: Iterable[str]) -> None:
        self.wanted.append(({*annotations}, {*schedulers}))
        await self.gate.wait()

    async def settled(self) -> None:
        for _ in range(50):
            await asyncio.sleep(0)

    def put(self, **spec: Any) -> None:
        self.current.policies.put(obj(**spec))

    @property
    def generation(self) -> str | None:
        return self.current.state.policies.generation if self.current.state else None


@in_loop
async def test_a_set_serves_without_what_a_capability_does_not_have_in_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("fairlead.webhook.capability.FOLLOW_S", 0.01)
    ground = Ground()
    ground.provided.clear()
    running = asyncio.create_task(ground.current.run())
    ground.put(filters={"f": "true"})
    while ground.generation is None:
        await asyncio.sleep(0.001)
    assert [one.message for one in caplog.records if one.levelname == "WARNING"] == ["policy_set.serves_without"]
    running.cancel()


@in_loop
async def test_a_set_serves_once_what_it_reads_is_held() -> None:
    ground = Ground()
    running = asyncio.create_task(ground.current.run())
    ground.current.wake()
    await ground.settled()
    first = ground.generation
    assert first is not None, "no policies are a set, too"
    ground.gate.clear()
    ground.put(filters=READS, schedulerName="batch")
    await ground.settled()
    assert (ground.generation, ground.current.schedulers) == (first, frozenset())
    assert ground.wanted == [(set(), set()), ({"example.com/a"}, {"batch"})]
    ground.gate.set()
    await ground.settled()
    assert ground.generation != first
    assert ground.current.schedulers == {"batch"}
    ground.current.policies.remove("p")
    await ground.settled()
    assert ground.current.state
    assert ground.current.state.policies.policies == ()
    running.cancel()


@in_loop
async def test_a_policy_that_is_off_keeps_its_scheduler_and_reads_nothing() -> None:
    ground = Ground()
    running = asyncio.create_task(ground.current.run())
    ground.put(filters=READS, schedulerName="batch", mode="Disabled")
    await ground.settled()
    assert ground.wanted == [(set(), {"batch"})]
    running.cancel()


@in_loop
async def test_a_scheduler_that_is_gone_is_served_no_more() -> None:
    ground = Ground()
    ground.current.stays = lambda name: name == "wired"
    running = asyncio.create_task(ground.current.run())
    for generation, name in enumerate(("a", "b", "wired", "last"), 1):
        made = obj(schedulerName=name)
        ground.current.policies.put({**made, "metadata": {**made["metadata"], "generation": generation}})
        await ground.settled()
        assert ground.current.schedulers >= {name}
    assert ground.current.schedulers == ground.wanted[-1][1] == {"wired", "last"}
    running.cancel()


@in_loop
async def test_each_transition_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    ground = Ground()
    caplog.set_level(logging.INFO, "fairlead")
    running = asyncio.create_task(ground.current.run())
    steps = [("true", 1), ("true", 1), ("nonsense", 2), ("nonsense", 2), ("false", 3)]
    for expression, generation in steps:
        ground.put(filters={"f": expression}, generation=generation)
        ground.current.wake()
        await ground.settled()
    told = [vars(one)["state"].partition(": spec")[0] for one in caplog.records if one.msg == "policy.state"]
    assert told == [
        "p: generation 1 serves",
        "p: generation 2 does not compile, generation 1 serves",
        "p: generation 3 serves",
    ]
    running.cancel()


@in_loop
async def test_calls_are_answered_while_the_states_of_many_policies_are_logged(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground = Ground()
    caplog.set_level(logging.INFO, "fairlead")
    ground.current.policies.set_max_policies(1)
    for number in range(100):
        ground.current.policies.put(obj(f"p{number:03}", filters={"f": "true"}))
    for _ in ground.current.policies.compile_pending():
        pass
    logged = list[int]()
    swapping = asyncio.create_task(ground.current._swap())
    while not swapping.done():
        logged.append(sum(one.msg == "policy.state" for one in caplog.records))
        await asyncio.sleep(0)
    most = max(after - before for before, after in pairwise(logged))
    assert (max(logged), most) == (100, 20)


@pytest.mark.parametrize(("long_s", "times"), [(0.25, 1), (-1.0, 10)])
@in_loop
async def test_once_calls_are_answered_what_takes_long_leaves_them_most_of_the_time(
    monkeypatch: pytest.MonkeyPatch, long_s: float, times: int
) -> None:
    ground, slept = Ground(), list[float]()
    now, sleep = [0.0], asyncio.sleep

    def clock() -> float:
        now[0] += 0.01
        return now[0]

    async def slowly(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds
        await sleep(0)

    ground.current.share, ground.current.long_share = Share(clock), Share(clock, 1 / 12)
    monkeypatch.setattr("fairlead.webhook.serving.reloader._LONG_S", long_s)
    monkeypatch.setattr("fairlead.webhook.serving.reloader.asyncio.sleep", slowly)
    running = asyncio.create_task(ground.current.run())
    ground.put(filters={f"f{at}": f"node.metadata.name == 'n{at}'" for at in range(8)})
    for _ in range(500):
        await sleep(0)
    assert ground.generation is not None
    assert sum(slept) == 0, "nobody is answered yet"
    ground.put(filters={f"f{at}": f"node.metadata.name == 'm{at}'" for at in range(8)}, generation=2)
    for _ in range(500):
        await sleep(0)
    assert sum(slept) == pytest.approx(times * 0.01 * len([one for one in slept if one]), rel=0.2)  # beside one tick
    assert any(slept)
    running.cancel()


@in_loop
async def test_whatever_fails_is_not_the_end(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    ground = Ground()
    running = asyncio.create_task(ground.current.run())

    def fails(_: PolicyStore) -> Iterator[None]:
        raise RecursionError("deep")
        yield

    with monkeypatch.context() as patched:
        patched.setattr(PolicyStore, "compile_pending", fails)
        ground.put(filters=READS)
        await ground.settled()
    assert "policy.compile_fault" in caplog.text
    ground.put(filters=READS, generation=2)
    await ground.settled()
    assert ground.current.policies.states["p"].serving == "2"
    running.cancel()


def test_what_rules_could_not_decide_is_added_up_until_another_generation_serves(
    caplog: pytest.LogCaptureFixture,
) -> None:
    counted: list[tuple[str, str, int]] = []
    undecided = RuleErrorTotals(lambda *one: counted.append(one))
    failures = [RuleFailures("p", "f", 2, "no such key"), RuleFailures("gone", "f", 1, "x")]
    undecided.add(failures, {"p": "1"})
    undecided.add([RuleFailures("p", "f", 3, "still none")], {"p": "1"})
    assert [*undecided] == [RuleFailures("p", "f", 5, "still none")]
    assert counted == [("p", "f", 2), ("gone", "f", 1), ("p", "f", 3)]
    assert [one.message for one in caplog.records] == ["rule.error"]
    undecided.add([], {"p": "2"})
    assert [*undecided] == []


def test_a_fault_is_counted_and_logged_once_with_its_traceback_and_without_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    counted: list[tuple[str, str, int]] = []
    undecided, secret = RuleErrorTotals(lambda *_: None, lambda *one: counted.append(one)), "hunter2"
    tally = RuleErrorTally()
    for _ in range(2):
        for rule in ("f", "g"):
            try:
                int(secret)
            except ValueError as error:
                for _ in range(3):
                    tally.count_error("p", rule, internal_error(error))
        undecided.add(tally.drain(), {"p": "1"})
    assert counted == [("p", "f", 3), ("p", "g", 3)] * 2
    faults = [one for one in caplog.records if one.levelno == logging.ERROR]
    assert [(one.policy, one.rule, one.error) for one in faults] == [("p", rule, "ValueError") for rule in "fg"]  # type: ignore[attr-defined]
    told = logging.Formatter().format(faults[0])
    assert "test_reloader.py" in told
    assert secret not in told + repr([*undecided])
    tally.count_error("p", "f", internal_error(ValueError("another")))
    undecided.add([], {"p": "2"})
    undecided.add(tally.drain(), {"p": "2"})
    assert len([one for one in caplog.records if one.levelno == logging.ERROR]) == 3, "again in its next generation"
