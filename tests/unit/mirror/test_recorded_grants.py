"""Without a ledger a node is judged by what annotations record, as the bind that makes the ledger will read them."""

import json
from typing import Any

import pytest

from fairlead.cel.values.structs import from_json
from fairlead.grants.entry import GrantedDevice, LedgerEntry
from fairlead.mirror import decode
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.evaluate.matching import policy_set
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.devices.choice import NO_ROOM
from policies.good import device_share
from support.mirror import FedMirror, node, written
from support.policy import policy
from support.policy.asking import filtered

MEM, COUNT, NPU = "aliyun.com/gpu-mem", "aliyun.com/gpu-count", "example.org/npu"
GPUSHARE = policy(binding={"deviceShare": [device_share(record="Gpushare")]})
FAIRLEAD = policy(binding={"deviceShare": [device_share()]})
EACH = policy(binding={"deviceShare": [device_share(split="Each", cards="2")]})


def told(*policies: Any) -> FedMirror:
    made = FedMirror(annotations={key for one in policies for key in one.pod_annotations})
    made.mirror.devices.set_shares([rule.share.entry for one in policies for rule in one.device_shares])
    there = node("n1", allocatable={"cpu": "8", "pods": "110", MEM: "16", COUNT: "2"})
    there["status"]["capacity"] = there["status"]["allocatable"]
    made.mirror.node_sink.put(decode.node(written(there)))
    return made


def place(made: FedMirror, name: str, amount: int, on: str = "n1", asks: str = MEM, **annotations: str) -> None:
    resources = {"requests": {asks: str(amount)}, "limits": {asks: str(amount)}}
    made.pod(name, on=on, containers=[{"name": "main", "resources": resources}], annotations=annotations)


def gpushare(made: FedMirror, name: str, card: int, amount: int, **how: Any) -> None:
    place(made, name, amount, ALIYUN_COM_GPU_MEM_IDX=str(card), ALIYUN_COM_GPU_MEM_POD=str(amount), **how)


def held(made: FedMirror, name: str = "n1") -> dict[str, list[tuple[str, int]]]:
    return {one.uid: [(each.id, each.amounts[MEM]) for each in one.grants or ()] for one in made.view(name).granted}


def _asking(amount: int) -> PodView:
    resources = {"requests": {MEM: str(amount)}}
    whole = {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "main", "resources": resources}]}}
    return PodView(from_json("Pod", whole), None, {MEM: float(amount)})


def reasons(made: FedMirror, rules: Any, *amounts: int) -> list[str]:
    """Why a pod of this amount is rejected; empty where it passes."""
    evaluator = Evaluator(policy_set([rules]), made.mirror.nodes)
    pods = [_asking(amount) for amount in amounts]
    return [next((one.reason for one in filtered(evaluator, pod, ["n1"]).rejected.values()), "") for pod in pods]


def test_pods_of_another_extender_are_where_their_annotations_say() -> None:
    """The node of the guide: GPUs of 8 of which 3 and 4 are left."""
    made = told(GPUSHARE)
    gpushare(made, "a", 0, 5)
    gpushare(made, "b", 1, 4)
    assert held(made) == {"u-a": [("0", 5)], "u-b": [("1", 4)]}
    assert reasons(made, GPUSHARE, 1, 3, 4, 5) == ["", "", "", NO_ROOM]


@pytest.mark.parametrize(
    ("annotations", "want"),
    [
        ({"fairlead.dev/devices": {"v": 1, "gpu": [{"id": "1", MEM: 5}]}}, [("1", 5)]),
        ({"fairlead.dev/devices": {"v": 1, "gpu": [{"id": "0", MEM: 3}, {"id": "1", MEM: 3}]}}, [("0", 3), ("1", 3)]),
        ({"fairlead.dev/devices": {"v": 1, "gpu": [{"id": "1", MEM: 4}]}}, None),
        ({"fairlead.dev/devices": {"v": 1, "gpu": []}}, None),
        ({"fairlead.dev/devices": {"v": 2, "gpu": [{"id": "1", MEM: 5}]}}, None),
        ({"fairlead.dev/devices": "what?"}, None),
        ({}, None),
    ],
)
def test_annotations_count_if_their_amounts_are_what_the_pod_requests(
    annotations: dict[str, Any], want: list[tuple[str, int]] | None
) -> None:
    made = told(FAIRLEAD)
    place(made, "a", 5, **{key: json.dumps(one) for key, one in annotations.items()})
    assert held(made) == ({} if want is None else {"u-a": want})
    assert reasons(made, FAIRLEAD, 8) == [NO_ROOM if want is None or len(want) == 2 else ""]


def test_with_split_each_every_device_has_the_whole_request() -> None:
    made = told(EACH)
    both = {"v": 1, "gpu": [{"id": "0", MEM: 5}, {"id": "1", MEM: 5}]}
    place(made, "a", 5, **{"fairlead.dev/devices": json.dumps(both)})
    assert held(made) == {"u-a": [("0", 5), ("1", 5)]}


def test_a_ledger_that_is_seen_is_what_counts() -> None:
    made = told(GPUSHARE)
    gpushare(made, "a", 0, 5)
    made.mirror.devices.put_ledger(
        "n1", [("u-a", LedgerEntry("ml/a", "1", "p", {"gpu": (GrantedDevice("1", {MEM: 5}),)}))]
    )
    assert held(made) == {"u-a": [("1", 5)]}
    made.mirror.devices.put_ledger("n1", [])
    assert (held(made), reasons(made, GPUSHARE, 4)) == ({}, [NO_ROOM])
    made.mirror.devices.remove_ledger("n1")
    assert (held(made), reasons(made, GPUSHARE, 8)) == ({"u-a": [("0", 5)]}, [""])


def test_pods_move_change_and_go() -> None:
    made = told(GPUSHARE)
    made.node("n2")
    gpushare(made, "a", 0, 5)
    gpushare(made, "a", 1, 5)
    assert held(made) == {"u-a": [("1", 5)]}
    gpushare(made, "a", 1, 5, on="n2")
    assert (held(made), held(made, "n2")) == ({}, {"u-a": [("1", 5)]})
    made.pod_gone("a")
    assert held(made, "n2") == {}


def test_policies_that_come_and_go_are_heard_of() -> None:
    made = told(GPUSHARE)
    gpushare(made, "a", 0, 5)
    made.mirror.devices.set_shares([])
    assert held(made) == {}
    made.mirror.devices.set_shares([rule.share.entry for rule in GPUSHARE.device_shares])
    assert held(made) == {"u-a": [("0", 5)]}


def test_gpushares_annotations_are_of_one_entry() -> None:
    other = policy(
        "other", binding={"deviceShare": [device_share(name="npu", shares=[{"resource": NPU}], record="Gpushare")]}
    )
    made = told(GPUSHARE, other)
    resources = {"requests": {MEM: "5", NPU: "5"}, "limits": {MEM: "5", NPU: "5"}}
    annotations = {"ALIYUN_COM_GPU_MEM_IDX": "0", "ALIYUN_COM_GPU_MEM_POD": "5"}
    made.pod("a", containers=[{"name": "main", "resources": resources}], annotations=annotations)
    (one,) = made.view().granted
    assert one.grants == (GrantedDevice("0", {MEM: 5}),)
