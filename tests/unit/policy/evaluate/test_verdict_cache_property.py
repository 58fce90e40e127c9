"""Whatever happens to nodes, pods and time: cached results equal those computed from nothing."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from pydantic import Field

from fairlead.api.params import DataName, Params
from fairlead.api.parse import parse_policy
from fairlead.cooperative import Steps, finish
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.evaluate.class_cache import Classes
from fairlead.policy.evaluate.deadline import TooSlowError
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.evaluate.matching import Matched, policy_set
from fairlead.policy.nodes import measured_table
from fairlead.policy.nodes.journal import Journal
from fairlead.policy.nodes.node_table import Nodes, RequestNodes
from fairlead.policy.nodes.polls import ConfigMapPoll, NodeMetricsPoll, Poll, PrometheusPoll, Reading
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.contract import Reads, Score, Strategy, Use
from fairlead.strategies.reads import NodeChange, owner_of
from fairlead.strategies.registry import policy_with
from support.policy import INSTALLED, NOW, SECOND, Clock, Endless, node, obj, on_node, placed, pod, policy
from support.policy.asking import filtered, scored

NEVER = 1 << 62


class Unseen(Params):
    value: DataName
    lag: Annotated[int, Field(ge=0, le=60)] = 0


def _unseen(params: Unseen) -> Score:
    """What was requested since the value was measured."""
    name, lag_s = str(params.value), params.lag
    return Score(
        reads=Reads(unmeasured=frozenset({(name, lag_s)})),
        for_pod=lambda _: lambda node, *_: node.unmeasured(name, lag_s).request("cpu"),
    )


UNSEEN = Strategy(name="unseen", score=Use(Unseen, _unseen))
HOLD_OFF = {"labels": [{"key": "gpu"}], "conditions": [{"type": "Ready"}], "holdOff": "20s"}
POLICIES = [
    policy(
        "labels",
        filters={
            "gpu": "node.metadata.labels[?'gpu'].orValue('') == pod.metadata.labels[?'gpu'].orValue('')",
            "raises": {"expression": "node.metadata.labels['zone'] != 'z2'", "onError": "Pass"},
            "ready": {"nodeReadiness": {"conditions": [{"type": "Ready"}], "holdOff": "20s"}},
        },
        scores={"zone": {"expression": "node.metadata.labels['zone'] == 'z1' ? 70.0 : 20.0", "weight": 3}},
    ),
    policy(
        "amounts",
        priority=5,
        match={"conditions": {"even": "now.getSeconds() % 4 < 3"}},
        filters={"room": "free['cpu'] >= double(pod.spec.priority)", "few": "pods.size() < 3"},
        scores={
            "packed": {"expression": "requested['cpu']", "normalize": "MinMax"},
            "rank": "double(size(pods))",
            "later": "now.getMinutes() < 2 ? 10.0 : 30.0",
        },
    ),
    policy(
        "values",
        data=[
            {"name": "load", "nodeAnnotation": {"key": "load", "timeKey": "load-time"}, "maxAge": "15s"},
            {"name": "watts", "nodeLabel": {"key": "watts"}, "default": 50.0},
        ],
        filters={
            "cool": "data.load < 0.8",
            "aged": "now - timestamp(1800000000) < duration(string(size(node.metadata.labels) * 9) + 's')",
            "young": "now < timestamp('2027-01-15T08:00:30Z') || node.metadata.labels[?'gpu'].orValue('') == 'a'",
        },
        scores={"idle": {"expression": "1.0 - data.load", "normalize": "Rank"}, "watts": "data.watts"},
    ),
    policy(
        "owned",
        match={"podSelector": {"matchLabels": {"own": "yes"}}},
        filters={"own": "node.metadata.labels[?'for'].orValue('') != pod.metadata.name"},
    ),
    policy("never", mode="Disabled", filters={"no": "false"}),
]
MEASURED = compile_policy(
    parse_policy(
        obj(
            "measured",
            data=[
                {"name": "load", "prometheus": {"query": "load"}, "maxAge": "20s", "default": 0.5},
                {"name": "steps", "prometheus": {"query": "load"}, "maxAge": "40s", "round": 0.5, "factor": 2.0},
                {
                    "name": "young",
                    "nodeMetrics": {"resource": "cpu"},
                    "maxAge": "300s",
                    "default": 5.0,
                    "defaultFor": "20s",
                },
                {"name": "heat", "nodeMetrics": {"resource": "cpu"}, "maxAge": "30s"},
                {"name": "price", "configMap": {"name": "prices"}},
                {"name": "told", "nodeAnnotation": {"key": "load", "timeKey": "load-time"}, "maxAge": "25s"},
            ],
            filters={
                "idle": "data.load < 0.8",
                "calm": "data.load < 0.3 || pod.metadata.labels[?'gpu'].orValue('') != 'a'",
                "even": {"expression": "data.steps < 1.2", "onError": "Pass"},
                "new": "!has(data.young) || data.young != 5.0",
                "known": "!has(data.price) || data.price < 3.0",
            },
            scores={
                "cool": "100.0 - data.heat",
                "unseen": {"unseen": {"value": "load", "lag": 10}},
                "untold": {"unseen": {"value": "told", "lag": 5}},
            },
        ),
        policy_with([*INSTALLED.values(), UNSEEN]),
    ),
    CompileOptions(INSTALLED | {"unseen": UNSEEN}),
)
PODS = [
    pod(f"x{at}", labels=labels, priority=priority)
    for at, (labels, priority) in enumerate(
        [({"gpu": "a"}, 1), ({"gpu": "b"}, 1), ({}, 3), ({"gpu": "a", "other": "1"}, 1), ({"own": "yes"}, 2)]
    )
]
NEWCOMERS = [
    pod("newcomer", labels={"gpu": gpu} | extra, priority=priority)
    for gpu in "abcdef"
    for extra, priority in (({}, 1), ({}, 2), ({"own": "yes"}, 1))
]
"""Pods to which some rules are the same as to others, so that their class begins with results of another."""
NAMES = [f"n{at}" for at in range(5)]


LOAD = PrometheusPoll("default", "load", "instance", None, 15)
HEAT = NodeMetricsPoll("cpu", "Base", 30)
PRICE = ConfigMapPoll("prices", "values.json", None)
numbers = st.sampled_from([0.1, 0.25, 0.5, 0.75, 0.9, 4.0])
readings = st.fixed_dictionaries(dict.fromkeys([*NAMES[:3], "stranger"], numbers)) | st.dictionaries(
    st.sampled_from(NAMES), numbers
)


def _at(seconds: int) -> str:
    return str(NOW // SECOND + seconds)


class Comparison(RuleBasedStateMachine):
    """Every step changes something; every question is asked of the one that keeps and of one that knows nothing."""

    policies: Sequence[CompiledPolicy] = POLICIES

    @initialize(journal=st.sampled_from([3, 10, 1000]), classes=st.sampled_from([1, 2, 50]))
    def start(self, journal: int, classes: int) -> None:
        self.now = NOW
        self.objects: dict[str, dict[str, Any]] = {}
        self.nodes = Nodes(journal=Journal(journal))
        self.kept: tuple[PodView, Sequence[Matched], int, int, list[float]] | None = None
        self.evaluator = Evaluator(policy_set(self.policies), self.nodes, classes=Classes(entries=classes))
        filters = [replace(one, scores=()) for one in self.policies]
        self.of_the_same_nodes = Evaluator(policy_set(filters), self.nodes, classes=Classes(entries=classes))
        for name in NAMES[:3]:
            self.nodes.put(self._seen(name, {}))

    def _seen(self, name: str, changed: dict[str, Any]) -> NodeView:
        made: dict[str, Any] = {"labels": {"gpu": "a", "zone": "z1"}, "annotations": {}, "used": 1.0}
        if name in NAMES[3:]:  # not long ago
            made["created"] = f"{datetime.fromtimestamp(self.now // SECOND - 5, UTC):%Y-%m-%dT%H:%M:%SZ}"
        held = self.objects.setdefault(name, made)
        held.update(changed)
        plain = {key: value for key, value in held.items() if key != "placed"}
        seen = node(name, cpu=6.0, **plain)
        entries = [on_node(f"{name}-{at}", at) for at in held.get("placed", ())]
        newest = max(held.get("placed", ()), default=0)
        return NodeView(
            seen.node,
            pods=[*seen.pods, *(one.pod for one in entries)],
            entries=entries,
            allocatable=seen.allocatable,
            requested=seen.requested,
            newest_placed=newest,
        )

    def _change(self, name: str, change: NodeChange, **changed: Any) -> None:
        if name in self.nodes.slots:
            self.nodes.put(self._seen(name, changed), change)

    @rule(name=st.sampled_from(NAMES), forgets=st.booleans())
    def goes(self, name: str, forgets: bool) -> None:
        self.nodes.remove(name)
        if forgets:
            self.objects.pop(name, None)

    @rule(name=st.sampled_from(NAMES), told=st.booleans())
    def comes_or_is_listed_again(self, name: str, told: bool) -> None:
        self.nodes.put(self._seen(name, {}), NodeChange() if told else None)

    @rule(seconds=st.sampled_from([1, 5, 16, 31]))
    def time_passes(self, seconds: int) -> None:
        self.now += seconds * SECOND

    @rule(at=st.integers(0, len(PODS) - 1), step=st.sampled_from([2_000_000, 600_000]), slices=st.integers(0, 4))
    def is_asked_with_little_time(self, at: int, step: int, slices: int) -> None:
        for ask in (filtered, scored):
            with suppress(TooSlowError):
                ask(self.evaluator, PODS[at], NAMES, now=self.now, clock=Clock(step), deadline_ns=slices * step)

    @rule(at=st.integers(0, len(PODS) - 1))
    def another_one_is_asked_about_a_part_of_the_rules(self, at: int) -> None:
        filtered(self.of_the_same_nodes, PODS[at], NAMES, now=self.now)

    @rule(at=st.integers(0, len(PODS) - 1), names=st.lists(st.sampled_from(NAMES), unique=True))
    def is_asked(self, at: int, names: Sequence[str]) -> None:
        self._compare(PODS[at], names)

    @rule(at=st.integers(0, len(NEWCOMERS) - 1))
    def a_newcomer_is_asked(self, at: int) -> None:
        self._compare(NEWCOMERS[at], NAMES)

    @rule(at=st.integers(0, len(PODS) - 1))
    def scores_are_kept(self, at: int) -> None:
        matched = self.evaluator.matching(PODS[at], "fairlead", self.now)
        scores = self._scores(PODS[at], matched)
        until = self.evaluator.scores_hold_until(PODS[at], matched)
        self.kept = None if until is None else (PODS[at], matched, self.nodes.head, until, scores)

    @rule()
    def kept_scores_hold(self) -> None:
        if self.kept is not None:
            one, matched, head, until, scores = self.kept
            if self.nodes.head == head and self.now < until:
                assert self._scores(one, matched) == scores

    @rule()
    def time_passes_until_kept_scores_expire(self) -> None:
        if self.kept is not None and self.now < self.kept[3] < NEVER:
            self.now = self.kept[3] - 1

    def _scores(self, one: PodView, matched: Sequence[Matched]) -> list[float]:
        return self.evaluator.score(one, matched, NAMES, now=self.now, clock=Endless(), deadline_ns=NEVER)

    @rule()
    def has_nothing_to_do(self) -> None:
        assert self.evaluator.precompute(now=self.now, clock=Endless(), deadline_ns=NEVER)

    @invariant()
    def counts_are_bounded(self) -> None:
        classes = self.evaluator.classes
        assert len(classes) <= classes.entries
        assert classes.size == sum(one.size for one in classes)
        assert {*classes._named} <= {*classes}
        assert len(self.nodes.journal.entries) <= self.nodes.journal.entries_max

    def teardown(self) -> None:
        for one in PODS:
            self._compare(one, NAMES)

    def _compare(self, one: PodView, names: Sequence[str]) -> None:
        nothing = RequestNodes(self.nodes)
        for view in self.nodes.views:
            if view is not None:
                nothing.put(view)
        answers = []
        for asked in (self.evaluator, Evaluator(policy_set(self.policies), nothing)):
            found = filtered(asked, one, names, now=self.now)
            scores = scored(asked, one, names, now=self.now)
            answers.append((list(found.passed), list(found.unknown), dict(found.rejected), scores))
        kept, fresh = answers
        assert kept == fresh


class KeptEqualsFresh(Comparison):
    """Nodes and pods change one by one."""

    @rule(
        name=st.sampled_from(NAMES), key=st.sampled_from(["gpu", "zone", "watts", "for"]), value=st.sampled_from("ab1z")
    )
    def label(self, name: str, key: str, value: str) -> None:
        labels = {**self.objects.get(name, {}).get("labels", {}), key: {"1": "x1", "z": "z2"}.get(value, value)}
        if value == "z" and key == "zone":
            labels.pop("zone")
        self._change(name, NodeChange(node=frozenset({("metadata", "labels", key)})), labels=labels)

    @rule(name=st.sampled_from(NAMES), load=st.sampled_from(["0.1", "0.9", "nan", ""]), age=st.integers(-20, 20))
    def load(self, name: str, load: str, age: int) -> None:
        seconds = (self.now - NOW) // SECOND - age
        annotations = {"load": load, "load-time": _at(seconds)} if load else {}
        paths = frozenset({("metadata", "annotations", "load"), ("metadata", "annotations", "load-time")})
        self._change(name, NodeChange(node=paths), annotations=annotations)

    @rule(name=st.sampled_from(NAMES), status=st.sampled_from(["True", "False"]), late=st.booleans())
    def condition(self, name: str, status: str, late: bool) -> None:
        stamp = "2027-01-15T08:00:10Z" if late else "2026-05-01T00:00:00Z"
        path = ("status", "conditions", "Ready")
        self._change(name, NodeChange(node=frozenset({path})), conditions={"Ready": (status, stamp)})

    @rule(name=st.sampled_from(NAMES), used=st.sampled_from([0.0, 2.0, 4.5]))
    def used(self, name: str, used: float) -> None:
        self._change(name, NodeChange(requested=frozenset({"cpu"})), used=used)

    @rule(name=st.sampled_from(NAMES), count=st.integers(0, 4))
    def pods(self, name: str, count: int) -> None:
        before = self.objects.get(name, {}).get("pods", ())
        after = tuple(placed(f"q{at}") for at in range(count))
        self._change(name, NodeChange(pods=tuple(map(owner_of, (*before, *after)))), pods=after)


class MeasuredEqualsFresh(Comparison):
    """Values are measured of all nodes at once."""

    policies = (MEASURED,)

    publication: Steps[None] | None = None
    """Whatever happens meanwhile, rules see all of it or nothing."""

    def _publish(self, readings: Mapping[Poll, Reading]) -> None:
        """Publish at once what comes after the publication in progress."""
        if self.publication is not None:
            finish(self.publication)
            self.publication = None
        self.nodes.publish(readings, self.now)

    @rule(values=readings, price=numbers, ages=st.lists(st.integers(-310, 40), min_size=6, max_size=6))
    def a_publication_begins(self, values: dict[str, float], price: float, ages: list[int]) -> None:
        if self.publication is None:
            times = {name: self.now - age * SECOND for name, age in zip([*NAMES, "stranger"], ages, strict=True)}
            one = Reading(values, self.now - min(ages) * SECOND)
            read: Mapping[Poll, Reading] = {
                LOAD: one,
                HEAT: Reading(values, times),
                PRICE: Reading({"n1": price}, None),
            }
            self.publication = self.nodes.publication(read, self.now)

    @rule(steps=st.integers(1, 40))
    def it_goes_on(self, steps: int) -> None:
        for _ in range(steps):
            if self.publication is not None:
                try:
                    next(self.publication)
                except StopIteration:
                    self.publication = None

    @rule()
    def it_is_given_up(self) -> None:
        if self.publication is not None:
            self.publication.close()
            self.publication = None

    @rule(values=readings)
    def everything_is_measured(self, values: dict[str, float]) -> None:
        self._publish({LOAD: Reading(values, self.now), HEAT: Reading(values, self.now)})
        self._compare(PODS[0], NAMES)

    @rule(seconds=st.sampled_from([10, 21]))
    def nobody_measures(self, seconds: int) -> None:
        self.now += seconds * SECOND
        self._compare(PODS[0], NAMES)

    @rule(
        values=readings,
        several=st.sets(st.sampled_from(NAMES), max_size=1),
        age=st.sampled_from([0, 0, 3, -30, -310, -400]),
    )
    def load_is_measured(self, values: dict[str, float], several: set[str], age: int) -> None:
        reading = Reading(values, self.now - age * SECOND, several=frozenset(several))
        self._publish({LOAD: reading})

    @rule(values=readings, ages=st.lists(st.integers(-310, 40), min_size=6, max_size=6))
    def heat_is_measured(self, values: dict[str, float], ages: list[int]) -> None:
        times = {name: self.now - age * SECOND for name, age in zip([*NAMES, "stranger"], ages, strict=True)}
        self._publish({HEAT: Reading(values, times)})

    @rule(values=readings, bad=st.sets(st.sampled_from(NAMES), max_size=1))
    def prices_are_written(self, values: dict[str, float], bad: set[str]) -> None:
        self._publish({PRICE: Reading(values, None, no_number=frozenset(bad))})

    @rule(name=st.sampled_from(NAMES), load=st.sampled_from(["0.1", "0.9"]), age=st.integers(0, 30))
    def an_annotation_tells(self, name: str, load: str, age: int) -> None:
        annotations = {"load": load, "load-time": _at((self.now - NOW) // SECOND - age)}
        paths = frozenset({("metadata", "annotations", "load"), ("metadata", "annotations", "load-time")})
        self._change(name, NodeChange(node=paths), annotations=annotations)

    @rule(name=st.sampled_from(NAMES), age=st.integers(0, 40))
    def a_pod_is_placed(self, name: str, age: int) -> None:
        before = self.objects.get(name, {}).get("placed", ())
        one = on_node("new", self.now - age * SECOND).pod
        self._change(name, NodeChange(pods=(owner_of(one),)), placed=(*before, self.now - age * SECOND))


def test_scores_hold_until_the_first_value_they_read_is_too_old() -> None:
    data = [
        {"name": name, "prometheus": {"query": "load"}, "maxAge": age} for name, age in (("x", "20s"), ("y", "60s"))
    ]
    nodes = Nodes()
    nodes.put(node("n0", cpu=1.0))
    evaluator = Evaluator(policy_set([policy(data=data, scores={"s": "data.x + data.y"})]), nodes)
    nodes.publish({LOAD: Reading({"n0": 1.0}, NOW)}, NOW)
    matched = evaluator.matching(PODS[0], "fairlead", NOW)
    before, at_the_end = (scored(evaluator, PODS[0], NAMES, now=NOW + age * SECOND) for age in (0, 20))
    until = evaluator.scores_hold_until(PODS[0], matched)
    after = scored(evaluator, PODS[0], NAMES, now=NOW + 21 * SECOND)
    assert (before == at_the_end, before == after, until) == (True, False, NOW + 20 * SECOND + 1)


@pytest.fixture(autouse=True)
def _many_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_SLICE", "_NODES_SLICE"):
        monkeypatch.setattr(measured_table, name, 1)


TestMeasuredEqualsFresh = MeasuredEqualsFresh.TestCase
TestMeasuredEqualsFresh.settings = settings(
    max_examples=100, stateful_step_count=20, suppress_health_check=[HealthCheck.too_slow]
)
TestKeptEqualsFresh = KeptEqualsFresh.TestCase
TestKeptEqualsFresh.settings = settings(
    max_examples=60, stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow]
)


def test_an_evaluator_of_other_rules_takes_no_change_of_data_away() -> None:
    def seen(seconds: int) -> NodeView:
        annotations = {"load": "0.1", "load-time": _at(seconds)}
        bare = node("n0", annotations=annotations)
        entries = [on_node("new", NOW + 2 * SECOND)]
        return NodeView(bare.node, pods=[one.pod for one in entries], entries=entries, newest_placed=NOW + 2 * SECOND)

    nodes = Nodes()
    nodes.put(seen(0))
    scores = Evaluator(policy_set([replace(MEASURED, filters=())]), nodes)
    others = Evaluator(policy_set([replace(MEASURED, scores=())]), nodes)
    first = scored(scores, PODS[0], ["n0"], now=NOW + 10 * SECOND)
    nodes.put(seen(10), NodeChange(node=frozenset({("metadata", "annotations", "load-time")})))
    filtered(others, PODS[0], ["n0"], now=NOW + 10 * SECOND)
    fresh = Evaluator(scores.policies, nodes)
    assert (
        scored(scores, PODS[0], ["n0"], now=NOW + 10 * SECOND)
        == scored(fresh, PODS[0], ["n0"], now=NOW + 10 * SECOND)
        != first
    )
