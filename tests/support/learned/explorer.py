"""Interleavings of leaders that learn, of what pods show, and of the network between them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from fairlead.learned import content
from fairlead.learned.content import pairs_in
from fairlead.learned.demands import Arrival, Demands
from fairlead.learned.learner import DemandLearner, PairLearner, StateWrite, Versions
from fairlead.learned.pair import Observation, key_of
from fairlead.learned.pairs import Key, Meaning, shard_of
from fairlead.learned.published import LearningRule
from support.interleavings import Explorer, PromiseBrokenError
from support.learned.store import SentWrite, Store, Truth, Version

STEPS: Final = 70
HALF_LIFE_S: Final = 3600
SAMPLES: Final = 4
_BITS: Final = 40
_BEGIN: Final = 1_764_000_000
_LEADERS: Final = ("A", "B", "C")
_TYPES: Final = ("web", "job")
_NODES: Final = ("node-1", "node-2")
_REWARDS: Final = (0.0, 0.5, 1.0)
_AGES_S: Final = (5, 5, 60, 800, 1200, 8000)
_IDS: Final = (2, 4, 256, 256)
_ROUNDS: Final = 6

Event = Observation | Arrival


class _Pending(NamedTuple):
    """Observations of a leader that were not published when it made its writes."""

    outcomes: Mapping[int, Mapping[Key, list[Observation]]]
    pods: Demands


class Leader:
    """Process that leads, or believes that it does."""

    def __init__(self, name: str, case: "LeadersCase") -> None:
        self.name, self.case = name, case
        self.pairs = PairLearner(case.rule, Meaning(HALF_LIFE_S))
        self.pods = DemandLearner(case.rule, SAMPLES)
        self.events: list[Event] = []
        self.observed: dict[str, Observation] = {}
        """Outcomes that it has observed, and of which no write was accepted."""
        self.first_list: dict[str, Observation] = {}
        """Outcomes of its first list that have to count, as long as no other leader writes."""
        self.flying: set[tuple[int, int]] = set()
        self.at: dict[tuple[int, int], int] = {}
        self.listing: list[Observation] = []
        self._begin()

    def _begin(self) -> None:
        for which, store in enumerate(self.case.stores):
            for number in store.versions:
                self.read(which, number)
            self.versions(which).is_listed = True
        self.list_pods()
        truths = self.case.truths()
        for one in self.case.visible:
            if one.mark > truths.get((one.type, one.node), Truth()).left_out:
                self.first_list[one.id] = one

    def versions(self, which: int) -> Versions:
        return self.pairs.versions if which == 0 else self.pods.versions

    def read(self, which: int, number: int) -> None:
        """See what there is, as in a first list or a read."""
        store = self.case.stores[which]
        found = store.newest(number)
        self.versions(which).was_read(number, None if found is None else found.shown)
        self.at[which, number] = len(store.versions.get(number, ()))

    def watch(self, which: int, number: int) -> None:
        """See the next version, if there is one."""
        versions, at = self.case.stores[which].versions[number], self.at.get((which, number), 0)
        if at < len(versions):
            self.at[which, number] = at + 1
            version = versions[at]
            if version.shown is None:
                self.versions(which).remove(number, str(version.rv))
            else:
                self.versions(which).show(version.shown)

    def list_pods(self) -> None:
        """Begin a list of pods, which is in the order of their names."""
        if not self.listing:
            self.pairs.begin_list()
            listed = [replace(one, listed=True) for one in self.case.visible]
            self.listing = [*sorted(listed, key=lambda one: one.id)]
            self._end_of_list()
        for arrival, amounts in self.case.waiting.items():
            self.pods.observe(arrival, amounts)

    def count_listed(self, many: int) -> None:
        """Observe a part of the list."""
        if self.listing:
            for one in self.listing[:many]:
                self.hear(one)
            del self.listing[:many]
            self._end_of_list()

    def _end_of_list(self) -> None:
        if not self.listing:
            self.pairs.end_list()

    def hear(self, event: Event) -> None:
        """Observe what an event shows."""
        if isinstance(event, Observation):
            self.pairs.observe(event)
            self.observed[event.id] = event
        else:
            self.pods.observe(event, self.case.demands[event])

    def adopt(self, rule: LearningRule) -> None:
        """Follow an edit: with another meaning everything begins anew."""
        if rule.identity == self.pairs.versions.rule.identity:
            self.pairs.versions.rule = self.pods.versions.rule = rule
            return
        pairs, pods = self.pairs, self.pods
        self.pairs, self.pods = PairLearner(rule, Meaning(HALF_LIFE_S)), DemandLearner(rule, SAMPLES)
        self.pairs.versions, self.pods.versions = pairs.versions, pods.versions
        self.pairs.versions.rule = self.pods.versions.rule = rule
        self.listing, self.observed, self.first_list = [], {}, {}
        self.list_pods()

    def forget(self, ids: Iterable[str]) -> None:
        for one in ids:
            self.observed.pop(one, None)

    def writes(self, which: int) -> list[StateWrite]:
        return self.pairs.writes(self.case.now) if which == 0 else self.pods.writes(self.case.now)

    def accepted(self, which: int, write: StateWrite, version: Version) -> None:
        assert version.shown is not None
        if which == 0:
            self.forget(one for ids in write.has.values() for one in ids)
        (self.pairs if which == 0 else self.pods).accepted(write, version.shown)


class LeadersCase:
    """One interleaving, as far as it has come."""

    def __init__(self, setup: int, trace: list[str] | None = None) -> None:
        self._number, self._trace = setup, trace
        self.ids = _IDS[self.draw(len(_IDS))]
        self.now = _BEGIN
        self.rule = LearningRule("policy", "u", "rule", "meaning-1", 1)
        self.stores = (Store(self.ids), Store(self.ids))
        self.outcomes = 0
        self.visible: list[Observation] = []
        self.demands: dict[Arrival, tuple[float, ...]] = {}
        self.waiting: dict[Arrival, tuple[float, ...]] = {}
        self.sent: list[tuple[int, SentWrite]] = []
        self.seen = Counter[str]()
        self.leaders = [Leader(name, self) for name in _LEADERS[: 1 + self.draw(3)]]

    def draw(self, below: int) -> int:
        """Take a number from what is left of this step's number."""
        self._number, found = divmod(self._number, below)
        return found

    def tell(self, text: Callable[[], str]) -> None:
        if self._trace is not None:
            self._trace.append(text())

    def step(self, number: int) -> None:
        self._number = number
        _STEPS[self.draw(len(_STEPS))](self)

    def truths(self) -> dict[Key, Truth]:
        """Return what the newest versions have."""
        found: dict[Key, Truth] = {}
        for number in self.stores[0].versions:
            if (version := self.stores[0].newest(number)) is not None:
                found.update(version.truths)
        return found

    def _others_write(self, number: int, writer: Leader | None) -> None:
        for leader in self.leaders:
            if leader is not writer:
                for one in [*leader.first_list.values()]:
                    if shard_of((one.type, one.node)) == number:
                        del leader.first_list[one.id]

    def _leader(self) -> Leader:
        return self.leaders[self.draw(len(self.leaders))]

    # what happens to pods

    def outcome(self) -> None:
        """Let a pod succeed or fail, now or as its node's clock says."""
        self.outcomes += 1
        at = self.now - self.draw(_AGES_S[self.draw(len(_AGES_S))])
        kind, node = _TYPES[self.draw(2)], _NODES[self.draw(2)]
        one = Observation(kind, "ns", node, at, key_of(self.outcomes), _REWARDS[self.draw(3)])
        self.visible.append(one)
        for each in self.leaders:
            each.events.append(one)
        self.tell(lambda: f"{kind} on {node} gets {one.reward} at {at - _BEGIN}: {one.id}")

    def pod_arrives(self) -> None:
        arrival = (self.now - self.draw(30), f"uid-{self.draw(100):02}")
        self.demands.setdefault(arrival, (1.0 + self.draw(4),))
        self.waiting[arrival] = self.demands[arrival]
        for each in self.leaders:
            each.events.append(arrival)
        self.tell(lambda: f"pod {arrival} waits")

    def pod_goes(self) -> None:
        if self.visible and self.draw(2):
            gone = self.visible.pop(self.draw(len(self.visible)))
            self.tell(lambda: f"the pod of {gone.id} goes")
        elif self.waiting:
            self.waiting.pop(sorted(self.waiting)[self.draw(len(self.waiting))])

    def time_passes(self) -> None:
        self.now += 1 + self.draw(300)
        self.tell(lambda: f"it is {self.now - _BEGIN}")

    # what leaders observe

    def hear(self) -> None:
        leader = self._leader()
        for _ in range(1 + self.draw(3)):
            if leader.events:
                at = self.draw(len(leader.events))
                event = leader.events[at] if self.draw(4) == 0 else leader.events.pop(at)
                leader.hear(event)
                self.tell(lambda event=event: f"{leader.name} hears {event}")  # type: ignore[misc]

    def list_further(self) -> None:
        leader = self._leader()
        many = 1 + self.draw(4)
        leader.count_listed(many)
        self.tell(lambda: f"{leader.name} lists {many} more, {len(leader.listing)} are left")

    def list_again(self) -> None:
        leader = self._leader()
        leader.list_pods()
        self.tell(lambda: f"{leader.name} lists again")

    # what happens to leaders and their rule

    def crash(self) -> None:
        at = self.draw(len(self.leaders))
        name = self.leaders[at].name
        for _, sent in self.sent:
            sent.given_up |= sent.leader is self.leaders[at]
        self.leaders[at] = Leader(name, self)
        self.tell(lambda: f"{name} is killed, and starts again")

    def edit(self) -> None:
        """Edit the rule, or delete its policy and make one of the same name, before its ConfigMaps are gone."""
        rule, how = self.rule, self.draw(6)
        if how == 0:
            self.rule = replace(rule, uid=f"{rule.uid}+", generation=1)
        else:
            meaning = f"{rule.meaning}+" if how <= 2 else rule.meaning
            self.rule = replace(rule, generation=rule.generation + 1, meaning=meaning)
        self.tell(lambda: f"the rule is edited: {self.rule}")

    def adopt(self) -> None:
        leader = self._leader()
        leader.adopt(self.rule)
        self.tell(lambda: f"{leader.name} hears of {self.rule}")

    # what the network does

    def publish(self) -> None:
        leader = self._leader()
        for which in range(2):
            pending = self.pending_of(leader)
            writes = leader.writes(which)
            leader.forget(self._known_to(leader))
            for write in writes:
                if (which, write.number) not in leader.flying:
                    self.sent.append((which, self.sent_by(leader, which, write, pending)))
                    leader.flying.add((which, write.number))
                    self.tell(lambda which=which, write=write: f"{leader.name} writes {which}/{write.number}")  # type: ignore[misc]

    def _known_to(self, leader: Leader) -> list[str]:
        """Return the ids of all outcomes that the versions have which a leader knows: it need not publish them."""
        found: list[str] = []
        for number, known in leader.pairs.versions.known.items():
            version = next(one for one in self.stores[0].versions[number] if str(one.rv) == known.rv)
            found += [one for truth in version.truths.values() for one in truth.counted]
        return found

    def pending_of(self, leader: Leader) -> _Pending:
        """Return what a leader has observed and not published."""
        outcomes = {
            number: {key: [*ids.values()] for key, ids in pending.items()}
            for number, pending in leader.pairs._pending.items()
        }
        return _Pending(outcomes, dict(leader.pods._pending))

    def sent_by(self, leader: Leader, which: int, write: StateWrite, pending: _Pending) -> SentWrite:
        """Return a write with what it really has."""
        versions = self.stores[which].versions.get(write.number, ())
        replaced = None if write.before is None else write.before.rv
        base = next((one for one in versions if one.shown is not None and one.shown.rv == replaced), None)
        if which == 0:
            return SentWrite(leader, write, pending.outcomes.get(write.number, {}), {}, base)
        return SentWrite(leader, write, {}, pending.pods, base)

    def serve(self) -> None:
        """Carry out a write, and answer it; or lose the answer; or carry it out late."""
        if not self.sent:
            return
        which, sent = self.sent.pop(self.draw(len(self.sent)))
        version, leader = self.stores[which].carry_out(sent), sent.leader
        if which == 0 and version is not None:
            self._others_write(sent.write.number, leader)
        self.seen["written" if version is not None else "refused"] += 1
        is_lost = self.draw(5) == 0
        self.tell(lambda: f"{leader.name}'s write {which}/{sent.write.number}: {version}, answer lost: {is_lost}")
        if sent.given_up:
            self.seen["landed late"] += 1
            return
        leader.flying.discard((which, sent.write.number))
        if version is None or is_lost:
            leader.versions(which).refuse(sent.write.number)
        else:
            leader.accepted(which, sent.write, version)

    def lose(self) -> None:
        """Lose a write, or let its sender give it up while it is on its way."""
        if not self.sent:
            return
        at = self.draw(len(self.sent))
        which, sent = self.sent[at]
        if self.draw(2):
            del self.sent[at]
        if not sent.given_up:
            sent.given_up = True
            sent.leader.flying.discard((which, sent.write.number))
            sent.leader.versions(which).refuse(sent.write.number)
        self.tell(lambda: f"{sent.leader.name} gives up {which}/{sent.write.number}")

    def read(self) -> None:
        leader = self._leader()
        for which in range(2):
            for number in sorted(leader.versions(which).to_read):
                leader.read(which, number)
                self.tell(lambda which=which, number=number: f"{leader.name} reads {which}/{number}")  # type: ignore[misc]

    def watch(self) -> None:
        leader, which = self._leader(), self.draw(2)
        for number in sorted(self.stores[which].versions):
            leader.watch(which, number)

    def delete(self) -> None:
        which = self.draw(2)
        numbers = sorted(self.stores[which].versions)
        if numbers:
            number = numbers[self.draw(len(numbers))]
            lost = [one.id for one in self.stores[which].promised.get(number, ()) if isinstance(one, Observation)]
            self.stores[which].delete(number)
            self._others_write(number, None)
            for each in self.leaders:
                each.forget(lost)
            self.tell(lambda: f"{which}/{number} is deleted by hand")


Step = Callable[[LeadersCase], None]
_WEIGHTS: Final[dict[Step, int]] = {
    LeadersCase.outcome: 20,
    LeadersCase.pod_arrives: 8,
    LeadersCase.pod_goes: 8,
    LeadersCase.time_passes: 6,
    LeadersCase.hear: 22,
    LeadersCase.list_further: 10,
    LeadersCase.list_again: 1,
    LeadersCase.crash: 4,
    LeadersCase.edit: 2,
    LeadersCase.adopt: 4,
    LeadersCase.publish: 18,
    LeadersCase.serve: 20,
    LeadersCase.lose: 4,
    LeadersCase.read: 8,
    LeadersCase.watch: 10,
    LeadersCase.delete: 1,
}
_STEPS: Final[list[Step]] = [step for step, weight in _WEIGHTS.items() for _ in range(weight)]


def run_case(numbers: Sequence[int], seen: Counter[str], trace: list[str] | None = None) -> None:
    """Run a case, let a last leader publish what can be seen, and compare."""
    before = vars(content)["IDS_MAX"]
    try:
        case = LeadersCase(numbers[0], trace)
        vars(content)["IDS_MAX"] = case.ids
        for number in numbers[1:]:
            case.step(number)
        _quieten(case)
    finally:
        vars(content)["IDS_MAX"] = before
    seen.update(case.seen)
    seen["outcomes"] += case.outcomes


def _quieten(case: LeadersCase) -> None:
    """Let one leader see everything and publish it without faults, and compare that with all that was observed."""
    case.sent.clear()
    leader = case.leaders[0]
    leader.adopt(case.rule)
    leader.flying.clear()
    for event in leader.events:
        leader.hear(event)
    leader.count_listed(len(leader.listing))
    leader.list_pods()
    leader.count_listed(len(leader.listing))
    observed = [*leader.observed.values()]
    for which in range(2):
        for number in {*case.stores[which].versions, *leader.versions(which).to_read}:
            leader.read(which, number)
        for _ in range(_ROUNDS):
            pending = case.pending_of(leader)
            writes = leader.writes(which)
            for write in writes:
                version = case.stores[which].carry_out(case.sent_by(leader, which, write, pending))
                if version is None:
                    raise PromiseBrokenError(
                        f"a write of {which}/{write.number} is refused, though no other leader writes"
                    )
                leader.accepted(which, write, version)
            if not writes:
                break
        else:
            raise PromiseBrokenError("there is no end of writes")
    if leader.pairs.pending or leader.pods.pending:
        raise PromiseBrokenError("something stays unpublished")
    _check_pairs(case, [*case.visible, *observed])
    _check_pods(case)


def _check_pairs(case: LeadersCase, observed: Sequence[Observation]) -> None:
    store, truths = case.stores[0], dict[Key, Truth]()
    for number in store.versions:
        version = store.newest(number)
        if version is None or version.shown is None:
            continue
        pairs = pairs_in(version.shown.document.value)
        assert pairs is not None
        if pairs.keys() != version.truths.keys():
            raise PromiseBrokenError(f"pairs {sorted(pairs)} are published, not {sorted(version.truths)}")
        for key, truth in version.truths.items():
            truth.check(key, pairs[key], HALF_LIFE_S)
        truths |= version.truths
    for one in case.leaders[0].first_list.values():
        if one.id not in truths.get((one.type, one.node), Truth()).counted:
            raise PromiseBrokenError(f"{one.id} was in a first list, and is in no sum")
    promised = [one for ones in store.promised.values() for one in ones if isinstance(one, Observation)]
    for one in [*observed, *promised]:
        key = one.type, one.node
        truth = truths.get(key, Truth())
        left_out = max(truth.left_out, store.left_out.get(key, truth.left_out))
        if one.id not in truth.counted and one.mark > left_out:
            raise PromiseBrokenError(f"{one.id} of {key} in {shard_of(key)} was observed, and is in no sum")
        case.seen["counted" if one.id in truth.counted else "late"] += 1


def _check_pods(case: LeadersCase) -> None:
    store = case.stores[1]
    version = store.newest(0)
    promised = {one: case.demands[one] for one in store.promised.get(0, ()) if not isinstance(one, Observation)}
    had: Demands = version.pods if version is not None else {}
    expected = newest_of({**had, **promised, **case.waiting})
    found = version.shown.document.value if version is not None and version.shown is not None else {}
    if found != expected:
        raise PromiseBrokenError(f"pods {found} are published, not {expected}")


def newest_of(demands: Demands) -> Demands:
    """Return the newest pods, by a second way."""
    latest = sorted(demands, reverse=True)[:SAMPLES]
    return {one: demands[one] for one in latest}


EXPLORER: Final = Explorer(run_case, STEPS, _BITS)
