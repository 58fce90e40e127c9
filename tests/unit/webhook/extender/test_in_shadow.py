"""Rules in shadow change no reply and no cached result of enforced rules, whatever they are and whenever asked."""

from collections.abc import Callable, Generator, Hashable, Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.cel.values.structs import from_json
from fairlead.cooperative import finish
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.shadow.annotations_in_shadow import unbound_by
from fairlead.policy.shadow.call_comparison import CallComparison, CallToCompare, Stretch
from fairlead.policy.shadow.dropped_candidates import PreemptCall, dropping_rules
from fairlead.policy.shadow.slow_classes import SlowClasses
from fairlead.policy.views.pod_view import PodView
from fairlead.webhook.extender.bind import BindDecision
from fairlead.webhook.extender.call import VerbReply
from support.examples import MANY
from support.policy import NOW, SECOND, Clock
from support.policy.shadows import CHANGES, LABELS, NAMES, ChangingNodes, sets, without_shadow
from support.webhook import Asking, at, body
from support.webhook.asking import SCHEDULER

PODS = [{"name": f"x{number}", "uid": f"u-x{number}", "labels": labels} for number, labels in enumerate(LABELS)]
names = st.permutations(NAMES).flatmap(lambda names: st.integers(0, 5).map(lambda cut: names[: 6 - cut]))
CALLS = st.tuples(
    st.sampled_from(["filter", "filter", "ignore", "prioritize", "preempt", "bind", "nodes", "precompute"]),
    st.sampled_from(range(len(PODS))),
    names,
)
LOOKS = st.tuples(st.sampled_from(["compare", "evictions", "annotations"]), st.sampled_from(range(len(PODS))), names)
STEPS = st.one_of(
    st.tuples(st.just("call"), CALLS),
    st.tuples(st.just("call"), CALLS),
    st.tuples(st.just("look"), LOOKS),
    st.tuples(st.just("goes on"), st.integers(1, 20)),
    st.tuples(st.just("change"), CHANGES),
    st.tuples(st.just("time"), st.sampled_from([1, 20, 40])),
)


class World:
    """A replica with policies, and the nodes of a cluster that changes."""

    def __init__(self, policies: Sequence[CompiledPolicy], journal: int) -> None:
        self.cluster = ChangingNodes(journal)
        pods = [from_json("Pod", {"metadata": {"namespace": "ml", **one}, "spec": _SPEC}) for one in PODS]
        self.asking = Asking([], unplaced=pods)
        self.asking.nodes = self.asking.mirror.nodes = self.cluster.nodes
        self.asking.serve(policies)
        self.now = NOW

    def call(self, verb: str, pod: int, names: Sequence[str]) -> object:
        """Return what the caller gets, and what is counted of it."""
        asking, when, about = self.asking, at(self.now), PODS[pod]
        if verb == "precompute":
            return asking.serving.precompute(when)
        if verb == "bind":
            given = b'{"PodName":"x%d","PodNamespace":"ml","PodUID":"u-x%d","Node":"%s"}'
            return _told(asking.bind(given % (pod, pod, names[0].encode()), when))
        if verb == "preempt":
            victims = {name: ["u-placed-a"] for name in names}
            return _told(asking.preempt(body(victims=victims, pod=about, priority=pod), when=when))
        if verb == "nodes":
            nodes = [{"metadata": {"name": name}, "spec": {}, "status": {}} for name in names]
            return _told(asking.filter(body(nodes=nodes, pod=about, priority=pod), when=when))
        asked = body(names, pod=about, priority=pod)
        if verb == "prioritize":
            return _told(asking.prioritize(asked, when))
        return _told(asking.filter(asked, "Ignore" if verb == "ignore" else "Fail", when))

    def look(self, what: str, number: int, names: Sequence[str], clock: Clock) -> Generator[Any, None, None]:
        """Evaluate rules in shadow in stretches."""
        rules = self.asking.serving.shadow
        if rules is None:
            return
        pod = PodView(
            from_json("Pod", {"metadata": {"namespace": "ml", **PODS[number]}, "spec": _SPEC}), None, {"cpu": 1.0}
        )
        slots, position = [slot for name, slot in rules.nodes.slots.items() if name in names], rules.nodes.head
        if what == "compare":
            call = CallToCompare(pod, SCHEDULER, slots, len(names) - len(slots), position, 1 << 40)
            stretch: Callable[[], Stretch] = lambda: Stretch(self.now, clock, clock.time)  # noqa: E731
            yield from CallComparison(rules, call, SlowClasses(), stretch).steps()
        elif what == "evictions":
            victims = {name: {"u-placed-a"} for name in names}
            asked = PreemptCall(pod, SCHEDULER, victims, position, lambda _: {"cpu": 1.0})
            yield from dropping_rules(rules, asked, SlowClasses(), lambda: self.now, clock)
        else:
            unbound_by(rules, pod, SCHEDULER, names[0], {"cpu": 1.0}, self.now)

    @property
    def kept(self) -> object:
        """Return what enforced rules have cached and counted, without the ids of evaluators."""
        serving = self.asking.serving
        evaluators = (*serving.entries.values(), serving.scores)
        number = {id(one): at for at, one in enumerate(evaluators)}
        keys: list[tuple[int, Hashable]] = [(number[one.key[0]], one.key[1]) for one in serving.scores.classes]
        counts = serving.scores.classes.counts
        return keys, (counts.hits, counts.misses, counts.evictions), {*self.asking.tally.evaluations}


_SPEC = {"schedulerName": SCHEDULER, "priority": 1}


def _told(reply: VerbReply | BindDecision | Any) -> object:
    if isinstance(reply, VerbReply):
        return reply.body, reply.status, reply.outcome
    return reply


@settings(max_examples=3 * MANY, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(policies=sets(), steps=st.lists(STEPS, min_size=4, max_size=24), journal=st.sampled_from([3, 20_000, 20_000]))
def test_replies_are_byte_for_byte_those_without_them(
    policies: list[CompiledPolicy], steps: list[tuple[str, Any]], journal: int
) -> None:
    one = World(policies, journal)
    other = World([without_shadow(each) for each in policies], journal)
    clock, looks = Clock(1000), list[Generator[Any, None, None]]()
    for what, how in steps:
        if what == "look":
            kind, pod, about = how
            looks.append(one.look(kind, pod, about, clock))
        elif what == "goes on":
            for _ in range(how):
                if looks and next(looks[0], _ENDED) is _ENDED:
                    looks.pop(0)
        elif what == "change":
            one.cluster.change(*how)
            other.cluster.change(*how)
        elif what == "time":
            one.now, other.now = one.now + how * SECOND, other.now + how * SECOND
        else:
            assert one.call(*how) == other.call(*how)
            assert one.kept == other.kept
    for left in looks:
        finish(left)
    for verb in ("filter", "ignore", "prioritize", "preempt"):
        for pod in range(len(PODS)):
            assert one.call(verb, pod, NAMES) == other.call(verb, pod, NAMES)
    assert one.kept == other.kept
    assert one.asking.tally.drain() == other.asking.tally.drain()


_ENDED = object()
