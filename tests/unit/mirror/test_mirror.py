"""Objects in, nodes and exact changes out."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest

from fairlead.mirror import decode
from fairlead.mirror.resource_requests import request_of
from fairlead.mirror.watched_node import WatchedNode
from fairlead.policy.nodes.journal import JournalEntry
from fairlead.strategies.facts import ControllerRef
from fairlead.strategies.reads import NodeChange, PodOwner
from support.mirror import CREATED_NS, FOUND, FedMirror, change, node, pod, written
from support.policy import placed

_READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-05-01T10:00:00Z"}


def _paths(one: NodeChange | None) -> set[str]:
    assert one is not None
    return {".".join(path) for path in one.node}


def test_a_node_has_its_amounts_from_the_start() -> None:
    told = FedMirror()
    assert (
        change(told.node(allocatable={"cpu": "3920m", "memory": "1Gi", "pods": "110", "example.org/gpu": "2"})) is None
    )
    view = told.view()
    assert view.allocatable == {"cpu": 3.92, "memory": float(1 << 30), "pods": 110.0, "example.org/gpu": 2.0}
    nothing = {"cpu": 0.0, "memory": 0.0, "ephemeral-storage": 0.0, "pods": 0.0, "example.org/gpu": 0.0}
    assert view.requested == nothing
    assert view.free == view.allocatable


def test_a_node_whose_amounts_cannot_be_read_stays_as_it_was() -> None:
    told = FedMirror()
    told.node(labels={"a": "1"})
    before = told.view()
    with pytest.raises(ValueError, match="'x' is no quantity"):
        told.node(labels={"a": "2"}, allocatable={"cpu": "x"}, version=2)
    assert told.view() is before
    assert "metadata.labels.a" in _paths(change(told.node(labels={"a": "2"}, version=3)))


def test_pods_are_counted_as_they_come_and_go() -> None:
    told = FedMirror()
    told.node()
    came = change(told.pod("a", cpu="1500m"))
    assert came is not None
    assert (came.pods, {*came.requested}, {*came.node}) == ((PodOwner("ml"),), {"cpu", "pods"}, set())
    told.pod("b", cpu="0")
    assert (told.view().requested["cpu"], told.view().requested["pods"], told.on()) == (1.5, 2.0, ["a", "b"])
    assert told.view().free == {"cpu": 6.5, "pods": 108.0}
    went = change(told.pod_gone("a"))
    assert went is not None
    assert (went.pods, {*went.requested}) == ((PodOwner("ml"),), {"cpu", "pods"})
    assert (told.view().requested["cpu"], told.on()) == (0.0, ["b"])


def test_of_a_pod_that_changed_its_owner_is_told_and_what_is_requested_now() -> None:
    told = FedMirror()
    told.node()
    told.pod(cpu="1")
    resized = change(told.pod(cpu="2", version=2))
    assert resized is not None
    assert resized == NodeChange(pods=(PodOwner("ml"),), requested=frozenset({"cpu"}))
    became_ready = change(told.pod(cpu="2", version=3, conditions=[_READY]))
    assert became_ready is not None
    assert (became_ready.pods, became_ready.requested) == ((PodOwner("ml"),), frozenset())
    assert [one.ready for one in told.view().pods] == [True]


def test_of_a_pod_that_has_another_controller_both_are_told() -> None:
    told = FedMirror()
    told.node()
    one = pod()
    told.mirror.placed_sink.put(told.placed(written(one)))
    one["metadata"] |= {"ownerReferences": [{"kind": "ReplicaSet", "name": "a", "uid": "u", "controller": True}]}
    one["metadata"]["resourceVersion"] = "2"
    told.mirror.placed_sink.put(told.placed(written(one)))
    adopted = told.mirror.nodes.journal.entries[-1]
    assert isinstance(adopted, JournalEntry)
    assert adopted.change == NodeChange(pods=(PodOwner("ml"), PodOwner("ml", ControllerRef("ReplicaSet", "a"))))


def test_the_journal_keeps_nothing_of_single_pods() -> None:
    told = FedMirror()
    told.node()
    for number in range(100):
        told.pod(f"p{number}", uid=f"u{number}", cpu="1")
        told.pod_gone(f"p{number}")
    changes = [one.change for one in told.mirror.nodes.journal.entries[1:] if isinstance(one, JournalEntry)]
    assert (len(changes), len({id(one) for one in changes})) == (200, 1), "they share what they say"


def test_what_rules_do_not_see_of_a_pod_is_no_news() -> None:
    told = FedMirror(annotations=["mine"])
    told.node()
    told.pod(annotations={"mine": "1", "other": "1"}, status={"podIP": "10.0.0.1"})
    before = told.view()
    assert told.pod(annotations={"mine": "1", "other": "2"}, status={"podIP": "10.0.0.2"}, version=2) == []
    assert told.view() is before


def test_pods_listed_again_for_an_annotation_that_is_read_now_have_it() -> None:
    told = FedMirror()
    told.node()
    told.pod("a", annotations={"mine": "1"})
    told.pod("b")
    assert told.placed.want(["mine"])
    listed_again = change(told.pod("a", annotations={"mine": "1"}))
    assert listed_again is not None
    assert told.pod("b") == []
    found: Any = told.view().pods
    assert {one.name: dict(one.metadata.annotations) for one in found} == {"a": {"mine": "1"}, "b": {}}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_went(phase: str) -> None:
    told = FedMirror()
    told.node()
    told.pod()
    ended = change(told.pod(phase=phase, version=2))
    assert ended is not None
    assert (ended.pods, told.on()) == ((PodOwner("ml"),), [])
    assert told.view().requested["pods"] == 0.0
    assert told.pod("other", phase=phase) == []


def test_a_pod_that_is_being_deleted_still_counts() -> None:
    told = FedMirror()
    told.node()
    one = written(
        {
            "metadata": {"name": "p", "namespace": "ml", "deletionTimestamp": "2026-05-01T10:00:00Z"},
            "spec": {"nodeName": "n1"},
        }
    )
    told.mirror.placed_sink.put(told.placed(one))
    assert [found.deleting for found in told.view().pods] == [True]
    assert told.view().requested["pods"] == 1.0


def test_pods_wait_for_their_node() -> None:
    told = FedMirror()
    assert told.pod("a", on="n2") == []
    assert told.pod("b", on="n2") == []
    assert told.pod_gone("b") == []
    assert change(told.node("n2")) is None
    assert (told.on("n2"), told.view("n2").requested["cpu"]) == (["a"], 1.0)


def test_pods_wait_for_a_node_that_comes_again() -> None:
    told = FedMirror()
    told.node()
    told.pod()
    assert change(told.node_gone("n1")) is None
    assert told.mirror.nodes.view_of("n1") is None
    assert change(told.node(uid="other", allocatable={"cpu": "2"})) is None
    assert (told.on(), told.view().free) == (["p"], {"cpu": 1.0})


def test_nothing_is_left_of_a_node_and_its_pods_that_went_in_any_order() -> None:
    for order in (("node", "pod"), ("pod", "node")):
        told = FedMirror()
        told.node()
        told.pod()
        for what in order:
            told.node_gone("n1") if what == "node" else told.pod_gone("p")
        assert (told.mirror._entries, told.mirror.placed_sink.objects) == ({}, {})
        assert (told.node_gone("n1"), told.pod_gone("p")) == ([], [])


def test_a_pod_made_anew_on_another_node_is_off_the_first_one() -> None:
    told = FedMirror()
    told.node("n1")
    told.node("n2")
    told.pod(on="n1", uid="first")
    gone, came = told.pod(on="n2", uid="second")
    assert [(told.mirror.nodes.views[entry.slot], entry.change) for entry in (gone, came)] == [
        (told.view("n1"), gone.change),
        (told.view("n2"), came.change),
    ]
    assert [entry.change.pods for entry in (gone, came) if entry.change] == 2 * [(PodOwner("ml"),)]
    assert (told.on("n1"), told.on("n2"), told.view("n1").requested["cpu"]) == ([], ["p"], 0.0)


def test_a_pod_made_anew_on_the_same_node_is_another_one() -> None:
    told = FedMirror()
    told.node()
    told.pod(uid="first")
    again = change(told.pod(uid="second"))
    assert again is not None
    assert again.pods == (PodOwner("ml"),)
    assert [one.uid for one in told.view().pods] == ["second"]


def test_a_node_made_anew_is_another_one() -> None:
    told = FedMirror()
    told.node()
    assert change(told.node(uid="other")) is None


_NEWS: dict[str, tuple[dict[str, Any], set[str], set[str], set[str]]] = {
    "a label": ({"labels": {"zone": "z1"}}, {"metadata.labels.zone"}, set(), set()),
    "more of what it has": ({"allocatable": {"cpu": "9", "pods": "110"}}, {"status.allocatable.cpu"}, {"cpu"}, set()),
    "something that it did not have": (
        {"allocatable": {"cpu": "8", "pods": "110", "gpu": "1"}},
        {"status.allocatable.gpu"},
        {"gpu"},
        {"gpu"},
    ),
    "the same, written differently": (
        {"allocatable": {"cpu": "8000m", "pods": "110"}},
        {"status.allocatable.cpu"},
        set(),
        set(),
    ),
    "a heartbeat": (
        {"conditions": [{"type": "Ready", "lastHeartbeatTime": "2026-05-01T10:05:00Z"}], "version": 2},
        {"status.conditions.lastHeartbeatTime", "metadata.resourceVersion"},
        set(),
        set(),
    ),
}


@pytest.mark.parametrize("case", _NEWS)
def test_what_became_different_about_a_node(case: str) -> None:
    changed, paths, allocatable, requested = _NEWS[case]
    told = FedMirror()
    before = {"conditions": [{"type": "Ready", "lastHeartbeatTime": "2026-05-01T10:00:00Z"}]}
    told.node(**before)
    told.pod()
    found = change(told.node(**(before | changed)))
    assert _paths(found) == paths
    assert found is not None
    assert ({*found.allocatable}, {*found.requested}, found.pods) == (allocatable, requested, ())


def test_a_node_listed_again_is_no_news() -> None:
    told = FedMirror()
    told.node(labels={"a": "b"}, conditions=[_READY])
    told.pod()
    assert told.node(labels={"a": "b"}, conditions=[_READY]) == []
    assert told.pod() == []


def test_amounts_are_exact_however_often_they_are_added() -> None:
    told = FedMirror()
    told.node()
    for at in range(10):
        told.pod(f"p{at}", cpu="100m")
    assert told.view().requested["cpu"] == 1.0
    for at in range(9):
        told.pod_gone(f"p{at}")
    assert told.view().requested["cpu"] == 0.1


def test_a_victim_counts_for_what_it_was_counted_for() -> None:
    told = FedMirror()
    told.node()
    told.pod(cpu="1500m")
    (one,) = told.view().pods
    assert told.mirror.requests_of_placed(one) == {"cpu": 1.5, "memory": 0.0, "ephemeral-storage": 0.0, "pods": 1.0}
    assert told.view().without({one.uid}, [told.mirror.requests_of_placed(one)]).requested["cpu"] == 0.0
    told.pod(uid="other")
    assert told.mirror.requests_of_placed(one) == {}
    assert told.mirror.requests_of_placed(placed("stranger")) == {}


def test_namespaces_are_known_by_name() -> None:
    told = FedMirror()
    told.namespace("ml", team="a")
    found = told.mirror.namespace("ml")
    assert found is not None
    assert found.metadata.labels == {"team": "a"}
    told.mirror.namespace_sink.remove(("", "ml"))
    assert told.mirror.namespace("ml") is None


def test_pods_of_our_schedulers_wait() -> None:
    told = FedMirror(schedulers=["ours"])
    told.unplaced("a", schedulerName="ours", cpu="2")
    told.unplaced("b", schedulerName="theirs")
    found = told.mirror.unplaced("ml", "a")
    assert found is not None
    assert (found.metadata.uid, told.mirror.request_of(found)) == ("u-a", request_of(found))
    assert told.mirror.unplaced("ml", "b") is None
    told.mirror.unplaced_sink.remove(("ml", "a"))
    assert told.mirror.unplaced("ml", "a") is None


def test_which_schedulers_are_ours_may_change() -> None:
    told = FedMirror(schedulers=["a", "b"])
    for name in "ab":
        told.unplaced(name, schedulerName=name)
    sink = told.mirror.unplaced_sink
    assert not sink.set_schedulers(["b"])
    assert [*sink.objects] == [("ml", "b")]
    assert sink.set_schedulers(["b", "c"])
    told.unplaced("c", schedulerName="c")
    assert [*sink.objects] == [("ml", "b"), ("ml", "c")]


def test_a_node_that_a_caller_brings_along_has_the_pods_of_its_name() -> None:
    told = FedMirror()
    told.node(labels={"old": "1"})
    told.pod()
    before = [*told.mirror.nodes.journal.entries]
    told.now += 7
    view = told.bring(node(labels={"new": "1", "old": "1"}, allocatable={"cpu": "2", "gpu": "1"}))
    assert view.labels == {"new": "1", "old": "1"}
    assert (view.allocatable, view.free) == ({"cpu": 2.0, "gpu": 1.0}, {"cpu": 1.0, "gpu": 1.0})
    assert [one.name for one in view.pods] == ["p"]
    assert (view.since("labels", "old", "1"), view.since("labels", "new", "1")) == (CREATED_NS, FOUND + 7)
    assert (told.mirror.nodes.journal.entries, dict(told.view().labels)) == (before, {"old": "1"})


def test_a_node_that_a_caller_brings_along_may_come_without_its_images() -> None:
    told = FedMirror()
    brought = node(labels={"a": "b"}, allocatable={"cpu": "2"})
    brought["status"]["images"] = [{"names": ["app"], "sizeBytes": 7}]
    whole, lean = (told.bring(brought, images=images) for images in (True, False))
    assert ([one.sizeBytes for one in whole.node.status.images], [*lean.node.status.images]) == ([7], [])
    assert (lean.labels, lean.allocatable, lean.node.metadata) == (whole.labels, whole.allocatable, whole.node.metadata)


_APP = {"names": ["app", "app@sha256:1"], "sizeBytes": 7}
_IMAGES: dict[str, tuple[object, list[int]]] = {
    "the same": ([_APP], [7]),
    "another size": ([{**_APP, "sizeBytes": 8}], [8]),
    "one more": ([_APP, {"names": None, "sizeBytes": 9}], [7, 9]),
    "none": ([], []),
    "null, as Go writes none": (None, []),
}


@pytest.mark.parametrize("case", _IMAGES)
def test_images_are_those_of_the_last_state(case: str) -> None:
    written_images, want = _IMAGES[case]
    mirror = FedMirror().mirror
    for version, images in enumerate(([_APP], [_APP], written_images, written_images)):
        told = node(version=version)
        told["status"]["images"] = images
        mirror.node_sink.put(WatchedNode(written(told)))
    found = mirror.nodes.view_of("n1")
    assert found is not None
    assert [one.sizeBytes for one in found.node.status.images] == want
    assert all(isinstance(one.names, tuple) for one in found.node.status.images)


def test_images_that_a_heartbeat_repeats_are_not_decoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    mirror, decoded, real = FedMirror().mirror, list[msgspec.Raw](), decode.node_images

    def decode_images(raw: msgspec.Raw) -> Iterable[Any]:
        decoded.append(raw)
        return real(raw)

    monkeypatch.setattr(decode, "node_images", decode_images)
    told = node()
    told["status"]["images"] = [_APP]
    for version in range(5):
        told["metadata"]["resourceVersion"] = str(version)
        mirror.node_sink.put(WatchedNode(written(told)))
    assert len(decoded) == 1


def test_a_node_whose_images_cannot_be_read_stays_as_it_was() -> None:
    told = FedMirror()
    told.node()
    before, wrong = told.view(), node(version=2)
    wrong["status"]["images"] = [{"sizeBytes": "x"}]
    with pytest.raises(msgspec.DecodeError):
        told.mirror.node_sink.put(WatchedNode(written(wrong)))
    assert told.view() is before


def test_nothing_is_left_of_a_node_that_could_never_be_read() -> None:
    told, wrong = FedMirror(), node()
    wrong["status"]["nodeInfo"] = {"kernelVersion": 7}
    with pytest.raises(msgspec.DecodeError):
        told.mirror.node_sink.put(WatchedNode(written(wrong)))
    assert told.mirror._entries == {}


def test_a_node_that_nobody_knows_is_empty() -> None:
    told = FedMirror()
    view = told.bring(node("template", labels={"a": "b"}))
    assert (view.name, view.requested["cpu"], [*view.pods]) == ("template", 0.0, [])
    assert view.since("labels", "a", "b") == CREATED_NS
    assert told.mirror._entries == {}
    with pytest.raises(msgspec.DecodeError):
        told.mirror.decode_full_node(b"[]")


def test_sinks_have_nothing_to_do_when_a_list_begins_and_ends() -> None:
    mirror = FedMirror().mirror
    for sink in (mirror.node_sink, mirror.placed_sink, mirror.unplaced_sink, mirror.namespace_sink):
        sink.begin()
        sink.end()
    assert mirror.nodes.journal.entries == list[JournalEntry]()
