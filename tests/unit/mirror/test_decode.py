"""What is decoded equals what the slow and thorough way makes of the same object."""

import json
from typing import Any

import msgspec
import pytest

from fairlead.cel.values.structs import from_json
from fairlead.mirror import decode as wire
from fairlead.mirror.pod_entry import PodEntry, entry_of
from fairlead.policy.views.placed_pod import placed_pod
from support.mirror import node, pod, written

_OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-web", "controller": True}
_READY = {"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-05-01T10:00:00Z"}
_PODS: dict[str, dict[str, Any]] = {
    "next to nothing": {
        "metadata": {"name": "p", "namespace": "ml", "uid": "u-p"},
        "spec": {"nodeName": "n1"},
        "status": {},
    },
    "one that runs": pod(labels={"app": "web"}, conditions=[_READY], priority=7),
    "one that is owned and goes": pod()
    | {
        "metadata": {
            "name": "p",
            "namespace": "ml",
            "uid": "u",
            "ownerReferences": [_OWNER],
            "creationTimestamp": "2026-05-01T10:00:00Z",
            "deletionTimestamp": "2026-05-01T10:00:01.5Z",
        }
    },
    "one with all that is read of containers": pod(
        containers=[
            {
                "name": "a",
                "image": "a:1",
                "env": [{"name": "X", "value": '\\"ports":null'}],
                "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 81, "hostPort": 0}],
                "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}, "claims": [{"name": "gpu"}]},
            },
            {"name": "b"},
        ],
        initContainers=[{"name": "s", "restartPolicy": "Always", "image": "s:1"}],
        schedulingGroup={"podGroupName": "g"},
    ),
}


def _held(obj: dict[str, Any], *annotations: str) -> PodEntry:
    return entry_of(wire.PlacedDecoder(annotations)(written(obj)))


@pytest.mark.parametrize("case", _PODS)
def test_a_pod_on_a_node_is_what_it_is(case: str) -> None:
    want = placed_pod(_PODS[case])
    assert _held(_PODS[case]).pod == want
    assert (
        msgspec.structs.asdict(_held(_PODS[case]).pod.metadata).keys() == msgspec.structs.asdict(want.metadata).keys()
    )


def test_only_the_annotations_that_somebody_wants_are_kept() -> None:
    one = pod(annotations={"a.b/c": "1", "other": "2" * 20_000, "d": ""})
    assert dict(_held(one).pod.metadata.annotations) == {}
    assert _held(one, "a.b/c", "d", "missing").pod.metadata.annotations == {"a.b/c": "1", "d": ""}


def test_which_annotations_are_wanted_may_change() -> None:
    decode, raw = wire.PlacedDecoder(["a"]), written(pod(annotations={"a": "1", "b": "2"}))
    assert decode.want(["a", "b"])
    assert wire.annotations_of(decode(raw)) == {"a": "1", "b": "2"}
    assert not decode.want(["b"])
    assert wire.annotations_of(decode(raw)) == {"b": "2"}


def test_what_is_no_key_is_on_no_pod() -> None:
    decode = wire.PlacedDecoder(['a"b', "a\\b", "", "\n", "ä", "a.b/c_d-E"])
    assert wire.annotations_of(decode(written(pod(annotations={"a.b/c_d-E": "1"})))) == {"a.b/c_d-E": "1"}


def test_pods_of_one_owner_have_in_common_what_is_the_same() -> None:
    one, other = (_held(pod(name, labels={"app": "web"}, conditions=[_READY], version=4)) for name in ("p1", "p2"))
    assert one.request is other.request
    assert one.pod.spec.containers is other.pod.spec.containers
    assert one.pod.labels is other.pod.labels
    assert one.pod.status.conditions[0].type is other.pod.status.conditions[0].type


_DIFFERENCES: dict[str, dict[str, Any]] = {
    "a label": {"labels": {"app": "x"}},
    "a wanted annotation": {"annotations": {"a": "2"}},
    "the phase": {"phase": "Pending"},
    "a condition's status": {"conditions": [_READY | {"status": "False"}]},
    "a condition's time": {"conditions": [_READY | {"lastTransitionTime": "2026-05-01T10:00:01Z"}]},
    "a condition's reason, empty where there was none": {"conditions": [_READY | {"reason": ""}]},
    "another condition": {"conditions": [_READY, _READY | {"type": "Other"}]},
    "what it asks for": {"cpu": "2"},
    "the priority": {"priority": 1},
    "the uid": {"uid": "u-other"},
    "the node": {"on": "n2"},
    "what is in effect": {"status": {"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]}},
}


@pytest.mark.parametrize("case", _DIFFERENCES)
def test_a_pod_is_not_as_it_was(case: str) -> None:
    before: dict[str, Any] = {"conditions": [_READY], "annotations": {"a": "1"}}
    one, same = (_held(pod(version=at, **before), "a") for at in (1, 2))
    other = _held(pod(**(before | _DIFFERENCES[case])), "a")
    assert one.is_as(same)
    assert not one.is_as(other)
    assert not other.is_as(one)


def test_a_list_that_go_has_left_empty_is_null() -> None:
    obj = node(taints=None, podCIDRs=["10.0.0.0/24"], providerID='x":null,"y')
    obj["status"]["images"] = [{"names": None, "sizeBytes": 5}, {"sizeBytes": 6, "names": None}]
    assert wire.node(written(obj)) == from_json("Node", obj)


def test_what_is_no_object_of_the_kind_says_which_field_it_is() -> None:
    with pytest.raises(msgspec.DecodeError, match=r"\$\.spec\.priority"):
        wire.PlacedDecoder()(written(pod(priority="high")))
    with pytest.raises(msgspec.DecodeError):
        wire.node(b'{"metadata"')


def test_whole_objects_are_decoded_as_rules_read_them() -> None:
    for decode, kind, obj in ((wire.node, "Node", node()), (wire.pod, "Pod", pod())):
        assert decode(written(obj)) == from_json(kind, json.loads(written(obj)))
