"""What became different about a node is named, and nothing else is."""

from typing import Any

import pytest

from fairlead.cel.values.structs import from_json
from fairlead.mirror.node_changes import node_changes
from support.mirror import node

_READY = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-05-01T10:00:00Z"}
_DISK = {"type": "DiskPressure", "status": "False", "lastHeartbeatTime": "2026-05-01T10:00:00Z"}
_LATER = {"lastHeartbeatTime": "2026-05-01T10:05:00Z"}
_BEFORE: dict[str, Any] = {
    "labels": {"zone": "z1", "gpu": "a"},
    "annotations": {"load": "1"},
    "allocatable": {"cpu": "8"},
    "conditions": [_READY, _DISK],
    "taints": [{"key": "a", "effect": "NoSchedule"}],
}
_CASES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "nothing": ({}, set()),
    "its version": ({"version": 2}, {"metadata.resourceVersion"}),
    "a label's value": ({"labels": {"zone": "z2", "gpu": "a"}}, {"metadata.labels.zone"}),
    "a label came and one went": (
        {"labels": {"zone": "z1", "new": ""}},
        {"metadata.labels.gpu", "metadata.labels.new"},
    ),
    "all labels went": ({"labels": {}}, {"metadata.labels.gpu", "metadata.labels.zone"}),
    "an annotation": ({"annotations": {"load": "2"}}, {"metadata.annotations.load"}),
    "what it has": ({"allocatable": {"cpu": "9"}}, {"status.allocatable.cpu"}),
    "a field of the spec": ({"unschedulable": True}, {"spec.unschedulable"}),
    "a taint": ({"taints": []}, {"spec.taints"}),
    "a text that is empty now and was absent": ({"providerID": ""}, {"spec.providerID"}),
    "a heartbeat": ({"conditions": [_READY | _LATER, _DISK | _LATER]}, {"status.conditions.lastHeartbeatTime"}),
    "a condition": (
        {"conditions": [_READY | _LATER | {"status": "False"}, _DISK]},
        {"status.conditions.Ready.status", "status.conditions.lastHeartbeatTime"},
    ),
    "a condition went": ({"conditions": [_READY]}, {"status.conditions.DiskPressure", "status.conditions"}),
    "the order of conditions": ({"conditions": [_DISK, _READY]}, {"status.conditions"}),
    "a part that was not there": ({"configSource": {"configMap": {"name": "x"}}}, {"spec.configSource"}),
}


@pytest.mark.parametrize("case", _CASES)
def test_what_became_different(case: str) -> None:
    changed, want = _CASES[case]
    before, after = (from_json("Node", node(**fields)) for fields in (_BEFORE, _BEFORE | changed))
    assert {".".join(path) for path in node_changes(before, after)} == want
    assert {".".join(path) for path in node_changes(after, before)} == want
