"""Which entries of a ledger count for filters and scores, and that a change of them is a change of the node."""

import json
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fairlead.cel.values.structs import from_json
from fairlead.grants.entry import AnyEntry, LedgerEntry, UnreadableEntry
from fairlead.mirror.mirror import Mirror
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.evaluate.matching import policy_set
from fairlead.policy.nodes.journal import JournalEntry
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.contract import GrantedDevice, Unknown
from fairlead.strategies.devices.record import ASSIGNED
from fairlead.strategies.reads import NodeChange
from support.mirror import FedMirror, node
from support.policy import policy
from support.policy.asking import filtered, scored

MEM = "example.org/gpu-mem"
GRANTS = (GrantedDevice("0", {MEM: 4}),)
DEVICES = NodeChange(devices=True)
Kept = tuple[str, AnyEntry]


def entry(name: str = "p", version: str = "1", uid: str = "") -> Kept:
    return uid or f"u-{name}", LedgerEntry(f"ml/{name}", version, "policy", {"gpu": GRANTS}, 7)


def counted(told: FedMirror, name: str = "n1") -> list[str]:
    return [one.uid for one in told.view(name).granted]


def changes(told: FedMirror, do: Any) -> list[tuple[str, NodeChange | None]]:
    """What the journal has of it, by node."""
    names = {slot: name for name, slot in told.mirror.nodes.slots.items()}
    before = len(told.mirror.nodes.journal.entries)
    do()
    lines = told.mirror.nodes.journal.entries[before:]
    return [(names[one.slot], one.change) for one in lines if isinstance(one, JournalEntry)]


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        (None, []),  # gone, or not known yet: who writes the ledger asks
        ({"on": ""}, ["u-p"]),
        ({"on": "", "version": 2}, []),  # its Binding would be refused
        ({"on": "", "uid": "u-other"}, []),
        ({"on": "n1"}, ["u-p"]),
        ({"on": "n1", "version": 9}, ["u-p"]),
        ({"on": "n1", "uid": "u-other"}, []),
        ({"on": "n2"}, []),
        ({"on": "n1", "phase": "Succeeded"}, []),
    ],
)
def test_the_entries_that_count(pod: dict[str, Any] | None, want: list[str]) -> None:
    told = FedMirror()
    told.node("n1")
    told.mirror.devices.put_ledger("n1", [entry()])
    if pod is not None and pod["on"]:
        told.pod("p", **pod)
    elif pod is not None:
        told.unplaced("p", schedulerName="fairlead", **{key: one for key, one in pod.items() if key != "on"})
    assert counted(told) == want


@pytest.mark.parametrize(("granted", "now", "counts"), [("9", 10, False), ("10", 9, True), ("x", 9, False)])
def test_versions_are_numbers(granted: str, now: int, counts: bool) -> None:
    told = FedMirror()
    told.node("n1")
    told.mirror.devices.put_ledger("n1", [entry(version=granted)])
    told.unplaced("p", schedulerName="fairlead", version=now)
    assert bool(counted(told)) is counts


def test_a_binding_from_beginning_to_end() -> None:
    told = FedMirror(annotations=[ASSIGNED])
    told.node("n1")
    devices = told.mirror.devices
    told.unplaced("p", schedulerName="fairlead")
    assert changes(told, lambda: devices.put_ledger("n1", [entry()])) == [("n1", DEVICES)]
    (waiting,) = told.view().granted
    assert (waiting.taken, waiting.assumed_at, waiting.grants) == (False, 7, GRANTS)
    told.mirror.unplaced_sink.remove(("ml", "p"))
    assert counted(told) == []
    told.pod("p", phase="Pending")
    (placed,) = told.view().granted
    assert placed.taken is False
    told.pod("p", phase="Pending", annotations={ASSIGNED: "true"}, version=2)
    assert [one.taken for one in told.view().granted] == [True]
    told.pod_gone("p")
    assert counted(told) == []
    assert changes(told, lambda: devices.remove_ledger("n1")) == []


def test_nothing_is_left_of_an_entry_that_names_another_pod_than_its_uid_has() -> None:
    told = FedMirror()
    told.node("n1")
    devices = told.mirror.devices
    devices.put_ledger("n1", [entry("q", uid="u-p"), entry("p", uid="u-other")])
    told.pod("p", uid="u-p", on="n1")
    told.pod_gone("p")
    devices.remove_ledger("n1")
    assert devices.granted_uid(("ml", "q"), "u-q") == ""
    told.pod("q", on="n1")
    told.pod_gone("q")


def test_a_ledger_that_is_told_again_keeps_what_is_known_of_pods_that_are_gone() -> None:
    told = FedMirror()
    told.node("n1")
    devices = told.mirror.devices
    told.pod("p")
    devices.put_ledger("n1", [entry(), entry("q")])
    told.pod_gone("p")
    for entries, known in (([entry(), entry("q")], True), ([entry()], True), ([entry("q")], False)):
        devices.put_ledger("n1", entries)
        assert (devices.seen("u-p", ("ml", "p")) is not None) == known


def test_a_failed_binding_frees_the_device_when_the_scheduler_says_so() -> None:
    told = FedMirror()
    told.node("n1")
    told.unplaced("p", schedulerName="fairlead")
    told.mirror.devices.put_ledger("n1", [entry()])
    assert changes(told, lambda: told.unplaced("p", schedulerName="fairlead", version=2)) == [("n1", DEVICES)]
    assert counted(told) == []


def test_a_pod_with_two_entries_is_on_one_node() -> None:
    told = FedMirror()
    for name in ("n1", "n2"):
        told.node(name)
        told.mirror.devices.put_ledger(name, [entry()])
    told.unplaced("p", schedulerName="fairlead")
    assert (counted(told, "n1"), counted(told, "n2")) == (["u-p"], ["u-p"])
    told.pod("p", on="n2")
    assert (counted(told, "n1"), counted(told, "n2")) == ([], ["u-p"])


def test_what_changes_nothing_is_no_change_of_the_node() -> None:
    told = FedMirror()
    told.node("n1")
    devices = told.mirror.devices
    told.unplaced("p", schedulerName="fairlead")
    devices.put_ledger("n1", [entry()])
    assert changes(told, lambda: devices.put_ledger("n1", [entry()])) == []
    assert changes(told, lambda: told.unplaced("other", schedulerName="fairlead")) == []
    assert changes(told, lambda: devices.put_ledger("n2", [entry()])) == []


def test_a_node_that_comes_later_has_its_devices() -> None:
    told = FedMirror()
    told.unplaced("p", schedulerName="fairlead", status={"nominatedNodeName": "n1"})
    told.mirror.devices.put_ledger("n1", [entry()])
    told.mirror.devices.put_unhealthy(("ns", "bad-", "ids"), {"n1": "0"}, ["n1"])
    told.node("n1")
    view = told.view()
    assert (counted(told), [one.pod.name for one in view.nominated]) == (["u-p"], ["p"])
    assert view.unhealthy("ns", "bad-", "ids") == "0"
    assert isinstance(view.unhealthy("ns", "bad-", "other"), Unknown)
    assert [one.uid for one in told.bring(node("n1")).granted] == ["u-p"]


def test_pods_that_are_nominated_to_a_node() -> None:
    told = FedMirror()
    told.node("n1")
    told.node("n2")
    came = changes(
        told, lambda: told.unplaced("p", schedulerName="fairlead", status={"nominatedNodeName": "n1"}, priority=5)
    )
    assert came == [("n1", DEVICES)]
    (one,) = told.view().nominated
    assert (one.pod.uid, one.pod.priority, one.pod.nominated) == ("u-p", 5, "n1")
    moved = changes(told, lambda: told.unplaced("p", schedulerName="fairlead", status={"nominatedNodeName": "n2"}))
    assert sorted(name for name, _ in moved) == ["n1", "n2"]
    assert (told.view("n1").nominated, len(told.view("n2").nominated)) == ((), 1)
    assert changes(told, lambda: told.mirror.unplaced_sink.set_schedulers([])) == [("n2", DEVICES)]
    assert told.view("n2").nominated == ()


def test_a_pod_whose_requests_cannot_be_read_waits_for_nothing() -> None:
    told = FedMirror()
    told.node("n1")
    told.unplaced("p", schedulerName="fairlead", cpu="x", status={"nominatedNodeName": "n1"})
    assert told.view().nominated == ()


NODES, NAMES = ("n1", "n2"), ("a", "b")
LAYOUT = {"devices": json.dumps([{"id": "0", "capacity": {MEM: 8}}, {"id": "1", "capacity": {MEM: 6}}])}
SHARE = {"name": "gpu", "shares": [{"resource": MEM}], "layout": {"annotation": "devices"}}
POLICY = policy(
    binding={"deviceShare": [SHARE]}, scores={"fill": {"deviceShare": {"name": "gpu", "objective": "Pack"}}}
)


def _containers(amount: int) -> list[dict[str, Any]]:
    return [{"name": "c", "resources": {"requests": {MEM: str(amount)}}}]


def _asking(amount: int, nominated: str = "", priority: int = 0) -> PodView:
    spec = {"containers": _containers(amount), "priority": priority}
    whole = {"metadata": {"name": "x", "uid": "x"}, "spec": spec, "status": {"nominatedNodeName": nominated}}
    return PodView(from_json("Pod", whole), None, {MEM: float(amount)})


ASKING = [_asking(3), _asking(4), _asking(6), _asking(4, "n1"), _asking(4, priority=9)]


def _mirror() -> FedMirror:
    made = FedMirror(annotations=POLICY.pod_annotations)
    made.mirror.devices.set_shares([rule.share.entry for rule in POLICY.device_shares])
    return made


def _of_unknown_pod(uid: str) -> Kept:
    """As of a text that a person wrote."""
    return uid, UnreadableEntry("it is no entry")


UIDS = ("u1", "u2", "u3", "u4")


class Devices(RuleBasedStateMachine):
    """In whatever order things come: what nodes show is what a mirror shows that is told the last state alone.

    And verdicts that are kept are those that are computed from nothing.
    """

    @initialize()
    def start(self) -> None:
        self.told = _mirror()
        self.kept = Evaluator(policy_set([POLICY]), self.told.mirror.nodes)
        self.nodes: set[str] = set()
        self.pods: dict[str, dict[str, Any]] = {}
        self.ended: set[str] = set()
        self.ledgers: dict[str, list[Kept]] = {}

    @rule(name=st.sampled_from(NODES))
    def node_comes(self, name: str) -> None:
        self.told.node(name, annotations=LAYOUT)
        self.nodes.add(name)

    @rule(name=st.sampled_from(NODES))
    def node_goes(self, name: str) -> None:
        self.told.node_gone(name)
        self.nodes.discard(name)

    @rule(
        name=st.sampled_from(NAMES),
        on=st.sampled_from(["", "", *NODES]),
        version=st.integers(1, 3),
        uid=st.sampled_from(UIDS),
        nominated=st.sampled_from(["", *NODES]),
        asks=st.sampled_from([0, 2, 4]),
        records=st.sampled_from(["", "", "0", "1"]),
    )
    def pod(self, name: str, on: str, **state: Any) -> None:
        before = self.pods.get(name)
        if before is not None and (before["uid"] != state["uid"] or before["on"] not in ("", on)):
            self.ended.add(before["uid"])
        others = {other["uid"] for key, other in self.pods.items() if key != name}
        if state["uid"] in self.ended | others:  # no UID comes again, and a pod stays where it was placed
            self.pod_goes(name)
            return
        self.pods[name] = {"on": on, **state}
        self._tell(self.told, name)

    @rule(name=st.sampled_from(NAMES))
    def pod_goes(self, name: str) -> None:
        if (before := self.pods.pop(name, None)) is not None:
            self.ended.add(before["uid"])
        self.told.mirror.unplaced_sink.remove(("ml", name))
        self.told.pod_gone(name)

    @rule(
        name=st.sampled_from(NODES),
        entries=st.lists(
            st.builds(entry, st.sampled_from(NAMES), st.sampled_from("12"), st.sampled_from(UIDS))
            | st.builds(_of_unknown_pod, st.sampled_from(UIDS)),
            max_size=2,
            unique_by=lambda one: one[0],
        ),
    )
    def ledger(self, name: str, entries: list[Kept]) -> None:
        self.ledgers[name] = entries
        self.told.mirror.devices.put_ledger(name, entries)

    @rule(name=st.sampled_from(NODES))
    def ledger_goes(self, name: str) -> None:
        self.ledgers.pop(name, None)
        self.told.mirror.devices.remove_ledger(name)

    def _tell(self, told: FedMirror, name: str) -> None:
        state = dict(self.pods[name])
        on, status = state.pop("on"), {"nominatedNodeName": state.pop("nominated")}
        card, asks = state.pop("records"), state.pop("asks")
        if card:
            recorded = {"v": 1, "gpu": [{"id": card, MEM: asks}]}
            state["annotations"] = {"fairlead.dev/devices": json.dumps(recorded)}
        state["containers"] = _containers(asks)
        if on:
            told.mirror.unplaced_sink.remove(("ml", name))
            told.pod(name, on=on, **state)
        else:
            told.pod_gone(name)
            told.unplaced(name, schedulerName="fairlead", status=status, **state)

    @invariant()
    def shows_the_last_state(self) -> None:
        fresh = _mirror()
        for name in self.pods:
            self._tell(fresh, name)
        for name, entries in self.ledgers.items():
            fresh.mirror.devices.put_ledger(name, entries)
        for name in self.nodes:
            fresh.node(name, annotations=LAYOUT)
            one, other = _shown(self.told.mirror, name), _shown(fresh.mirror, name)
            assert one == other, name

    @invariant()
    def kept_equals_fresh(self) -> None:
        fresh = Evaluator(policy_set([POLICY]), self.told.mirror.nodes)
        for one in ASKING:
            answers = [
                (dict(filtered(asked, one, NODES).rejected), scored(asked, one, NODES)) for asked in (self.kept, fresh)
            ]
            assert answers[0] == answers[1]


def _shown(mirror: Mirror, name: str) -> object:
    view = mirror.nodes.view_of(name)
    assert view is not None
    return sorted(map(repr, view.granted)), sorted(one.pod.uid + one.pod.name for one in view.nominated)


TestDevices = Devices.TestCase
TestDevices.settings = settings(max_examples=50, stateful_step_count=20, derandomize=True, database=None, deadline=None)
