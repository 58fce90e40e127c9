"""What pods of a snapshot were granted, by their annotations."""

import json
from typing import Any

import pytest

from policies.good import device_share
from support.policy import policy
from support.simulation.snapshot import judged, node, pod, simulation, written

MEM, COUNT = "aliyun.com/gpu-mem", "aliyun.com/gpu-count"
SHARES = policy(binding={"deviceShare": [device_share()]})
PLUGIN = policy(binding={"deviceShare": [device_share(record="Gpushare")]})
FULL = "no single device has room"


def cards(name: str = "n1") -> dict[str, Any]:
    made = node(name, room={MEM: "16", COUNT: "2"})
    made["status"]["capacity"] = made["status"]["allocatable"]
    return made


def placed(name: str, amount: int, annotations: dict[str, str], *, uid: bool = True) -> dict[str, Any]:
    made = pod(name, on="n1", asks={MEM: str(amount)})
    made["metadata"]["annotations"] = annotations
    if not uid:
        del made["metadata"]["uid"]
    return made


def on(card: str, amount: int) -> dict[str, str]:
    return {"fairlead.dev/devices": json.dumps({"v": 1, "gpu": [{"id": card, MEM: amount}]})}


def by_plugin(card: str, amount: int) -> dict[str, str]:
    return {"ALIYUN_COM_GPU_MEM_IDX": card, "ALIYUN_COM_GPU_MEM_POD": str(amount)}


@pytest.mark.parametrize(
    ("share", "there", "asks", "want"),
    [
        (SHARES, [placed("a", 5, on("0", 5))], 8, []),
        (SHARES, [placed("a", 5, on("0", 5)), placed("b", 5, on("1", 5))], 4, [FULL]),
        # Not what it asks for, or of nobody: it may be on any card.
        (SHARES, [placed("a", 5, on("0", 1))], 4, [FULL]),
        (SHARES, [placed("a", 5, {})], 4, [FULL]),
        (SHARES, [placed("a", 5, {})], 3, []),
        (SHARES, [placed("a", 5, by_plugin("0", 5))], 4, [FULL]),
        (PLUGIN, [placed("a", 5, by_plugin("0", 5))], 4, []),
        # Pods from files may have no UID.
        (SHARES, [placed("a", 5, on("0", 5), uid=False), placed("b", 5, {}, uid=False)], 4, [FULL]),
        (SHARES, [placed("a", 5, on("0", 5), uid=False), placed("b", 3, on("0", 3), uid=False)], 8, []),
    ],
)
def test_what_is_left_of_the_cards(share: Any, there: list[Any], asks: int, want: list[str]) -> None:
    (found,) = judged(pod("x", asks={MEM: str(asks)}), cards(), *there, policies=[share]).nodes
    assert [*found.reasons] == want


def test_a_placed_pod_does_not_stand_in_its_own_way() -> None:
    mine = placed("a", 8, on("0", 8))
    there = simulation(cards(), mine, placed("b", 8, on("1", 8)), policies=[SHARES])
    for _ in range(2):
        assert [one.passed for one in there.judge(written(mine)).nodes] == [True]
        assert [one.passed for one in there.judge(written(pod("x", asks={MEM: "1"}))).nodes] == [False]
