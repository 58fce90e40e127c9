"""A node that is decoded in full only if more than a heartbeat changed is the one that is always decoded in full."""

import json
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.mirror import decode
from fairlead.mirror.watched_node import WatchedNode
from support.mirror import FedMirror, Object, node, plain, written

CONDITIONS = [
    {"type": kind, "status": "True", "reason": "Fine", "lastHeartbeatTime": "2026-05-01T10:00:00Z"}
    for kind in ("MemoryPressure", "Ready")
]
TIMES = ["2026-05-01T10:00:00Z", "2026-05-01T10:00:10Z", "2026-05-01T10:00:10\\u005a", None, "", "soon"]
TEXTS = ["", "x", '"lastHeartbeatTime":"2026-05-01T10:00:00Z"', '"resourceVersion":"1"', "[]"]
KEYS = ["lastHeartbeatTime", "resourceVersion", "conditions", "managedFields", "time"]


def _node() -> Object:
    made = node(conditions=CONDITIONS, annotations={"a": "b"}, taints=[{"key": "a", "effect": "NoSchedule"}])
    made["metadata"]["managedFields"] = [{"manager": "kubelet", "time": "2026-05-01T10:00:00Z"}]
    made["status"] |= {"images": [{"names": ["app"], "sizeBytes": 1}], "nodeInfo": {"kernelVersion": "6"}}
    return made


def _set(*path: Any) -> Callable[[Object, Any], None]:
    def change(one: Any, value: Any) -> None:
        for step in path[:-1]:
            one = one[step] if isinstance(one, list) else one.setdefault(step, {})
            if one is None:
                return
        one[path[-1]] = value

    return change


def _without(*path: Any) -> Callable[[Object, Any], None]:
    def change(one: Any, _: Any) -> None:
        for step in path[:-1]:
            one = one[step]
        one.pop(path[-1], None)

    return change


def _beat(one: Object, time: Any) -> None:
    for condition in one["status"]["conditions"]:
        condition["lastHeartbeatTime"] = time


CHANGES: Iterable[st.SearchStrategy[tuple[Callable[[Object, Any], None], Any]]] = [
    st.tuples(st.just(_beat), st.sampled_from(TIMES[:3])),
    st.tuples(st.just(_set("metadata", "resourceVersion")), st.sampled_from(["1", "2", "10"])),
    st.tuples(
        st.just(_set("metadata", "managedFields")),
        st.sampled_from([None, [], [{"manager": "kubelet", "time": "2026-05-01T10:00:10Z"}]]),
    ),
    *(
        st.tuples(st.just(_set("status", "conditions", at, "lastHeartbeatTime")), st.sampled_from(TIMES))
        for at in (0, 1)
    ),
    st.tuples(st.just(_without("status", "conditions", 0, "lastHeartbeatTime")), st.none()),
    st.tuples(st.just(_set("status", "conditions", 1, "reason")), st.sampled_from(TEXTS)),
    st.tuples(st.just(_without("status", "conditions", 1, "reason")), st.none()),
    st.tuples(st.just(_set("status", "conditions", 1, "status")), st.sampled_from(["True", "False"])),
    *(st.tuples(st.just(_set("metadata", "annotations", key)), st.sampled_from([*TEXTS, *TIMES])) for key in KEYS),
    st.tuples(st.just(_set("metadata", "labels", "lastHeartbeatTime")), st.sampled_from(["a", "b"])),
    st.tuples(st.just(_set("metadata", "uid")), st.sampled_from(["u-n1", "other"])),
    st.tuples(st.just(_set("spec", "taints")), st.sampled_from([None, [], [{"key": "b", "effect": "NoExecute"}]])),
    st.tuples(st.just(_set("status", "images")), st.sampled_from([None, [], [{"names": ["b"]}], "wrong"])),
    st.tuples(st.just(_set("status", "nodeInfo", "kernelVersion")), st.sampled_from(["6", "", 7])),
    st.tuples(st.just(_set("status", "allocatable", "cpu")), st.sampled_from(["8", "4", "many"])),
]
STYLES = st.sampled_from([(",", ":"), (", ", ": ")])


def _put(told: FedMirror, read: Callable[[bytes], Any], text: bytes) -> tuple[list[Any], bool]:
    """Return what is in the journal of it, and whether it could be read."""
    before = told.mirror.nodes.head
    try:
        told.mirror.node_sink.put(read(text))
    except msgspec.DecodeError:
        return [], False
    return [*(told.mirror.nodes.since(before) or ())], True


@given(st.lists(st.tuples(st.lists(st.one_of(*CHANGES), max_size=2), STYLES, st.booleans()), min_size=1, max_size=6))
def test_every_state_and_change_is_that_of_a_full_decode(
    steps: list[tuple[list[tuple[Callable[[Object, Any], None], Any]], tuple[str, str], bool]],
) -> None:
    watched, full, now = FedMirror(), FedMirror(), _node()
    for told, read in ((watched, WatchedNode), (full, decode.watched_node)):
        _put(told, read, written(now))
    for changes, separators, sort in steps:
        then = deepcopy(now)
        for change, value in changes:
            change(then, value)
        text = json.dumps(then, separators=separators, sort_keys=sort).replace("\\\\u", "\\u").encode()
        found, wanted = _put(watched, WatchedNode, text), _put(full, decode.watched_node, text)
        assert found == wanted
        if found[1]:
            now = then
        one, other = watched.view(), full.view()
        assert (plain(one.node), one.allocatable) == (plain(other.node), other.allocatable)


def test_a_heartbeat_is_not_decoded_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    told, now = FedMirror(), _node()
    told.mirror.node_sink.put(WatchedNode(written(now)))
    before = told.view().node
    monkeypatch.setattr(decode, "watched_node", lambda _: pytest.fail("it was decoded in full"))
    now["metadata"]["resourceVersion"] = "2"
    now["metadata"]["managedFields"][0]["time"] = "2026-05-01T10:00:10Z"
    _beat(now, "2026-05-01T10:00:10Z")
    told.mirror.node_sink.put(WatchedNode(written(now)))
    after = told.view().node
    assert after.metadata.resourceVersion == "2"
    assert plain(after) == plain(decode.node(written(now)))
    assert after.status.images is before.status.images


def test_a_node_that_returns_is_decoded_in_full() -> None:
    told, now = FedMirror(), _node()
    told.pod()
    told.mirror.node_sink.put(WatchedNode(written(now)))
    told.node_gone("n1")
    told.mirror.node_sink.put(WatchedNode(written(now)))
    assert plain(told.view().node) == plain(decode.node(written(now)))
