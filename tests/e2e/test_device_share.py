"""With the real scheduler, pods get shares of single devices, and no device holds more than it has."""

import json
import time
from collections import Counter
from typing import Any

import pytest

from extender import Stage
from fairlead.cli.main import main
from support.grants.card_watch import CardWatch
from support.process.serving import MakeServing, Serving
from testbed.api import Object, wait_for
from testbed.fixtures import MakeNodes
from testbed.node_template import equal

MEM, COUNT = "example.org/gpu-mem", "example.org/gpu-count"
SHARE: dict[str, Any] = {"name": "gpu", "shares": [{"resource": MEM}], "layout": {"count": COUNT}}


def policy(**share: Any) -> dict[str, Any]:
    return {"binding": {"deviceShare": [SHARE | share]}}


def make(stage: Stage, name: str, amount: int, scheduler: str = "") -> None:
    resources = {MEM: str(amount)}
    container = {"name": "main", "image": "main", "resources": {"requests": resources, "limits": resources}}
    spec = {
        "schedulerName": scheduler or stage.name,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [container],
    }
    stage.api.create(stage.path, {"metadata": {"name": name}, "spec": spec})


def placed_again(stage: Stage, name: str, node: str) -> str:
    """Where a pod is placed after it was rejected.

    `serve` wakes no pods. If the scheduler tries one before a change is heard here, it waits for another event.
    """

    def look() -> str | None:
        stage.api.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"looked-at": str(time.monotonic_ns())}}})
        return stage.places()[name] or None

    return wait_for(f"{name} to be placed", look)


def cards(pod: Object) -> tuple[str, str]:
    return pod["spec"]["nodeName"], pod["metadata"]["annotations"]["fairlead.dev/devices.gpu"]


def ledgers(stage: Stage) -> dict[str, list[Any]]:
    """The grants of each node, as its ledger says."""
    found = stage.api.items(f"/api/v1/namespaces/{stage.name}/configmaps", labelSelector="fairlead.dev/grants")
    return {
        one["metadata"]["annotations"]["fairlead.dev/node"]: [json.loads(text) for text in one.get("data", {}).values()]
        for one in found
    }


def test_each_pod_gets_a_card_with_room(stage: Stage, serving: Serving, kwok_nodes: MakeNodes) -> None:
    nodes = kwok_nodes(2, equal(extended={MEM: "16", COUNT: "2"}))
    serving.put("gpu", **policy())
    serving.start()
    stage.start(*serving.entries(), podMaxBackoffSeconds=1)
    names = [f"p-{number}" for number in range(5)]
    for name in names:
        make(stage, name, 5)
    wait_for("four to be placed", lambda: sum(bool(node) for node in stage.places().values()) == 4 or None)
    placed = [stage.pod(name) for name, node in stage.places().items() if node]
    assert Counter(map(cards, placed)) == Counter((node, card) for node in nodes for card in "01")
    for pod in placed:
        (entry,) = [
            one for one in ledgers(stage)[pod["spec"]["nodeName"]] if one["pod"].endswith(f"/{pod['metadata']['name']}")
        ]
        assert entry["g"] == {"gpu": [{"id": cards(pod)[1], MEM: 5}]}
        assert json.loads(pod["metadata"]["annotations"]["fairlead.dev/devices"])["gpu"] == entry["g"]["gpu"]
    (left,) = {*names} - {str(pod["metadata"]["name"]) for pod in placed}
    wait_for(
        "it to be told why",
        lambda: any("no single device has room" in str(note) for _, note in stage.events(left)) or None,
    )
    stage.api.delete(f"{stage.path}/{placed[0]['metadata']['name']}")
    assert placed_again(stage, left, nodes[0]) == placed[0]["spec"]["nodeName"]
    assert cards(stage.pod(left)) == cards(placed[0])


def test_a_card_that_a_config_map_calls_sick_is_not_used_until_it_is_well(
    stage: Stage, serving: Serving, kwok_nodes: MakeNodes
) -> None:
    (node,) = kwok_nodes(1, equal(extended={MEM: "16", COUNT: "2"}))
    config_maps = f"/api/v1/namespaces/{stage.name}/configmaps"
    stage.api.create(config_maps, {"metadata": {"name": f"sick-{node}"}, "data": {"ids": "0"}})
    lists = {"configMap": {"namespace": stage.name, "prefix": "sick-", "key": "ids"}}
    serving.put("gpu", **policy(unhealthy=lists))
    serving.start()
    stage.start(*serving.entries(), podMaxBackoffSeconds=1)
    make(stage, "first", 5)
    assert stage.placed("first") == node
    assert cards(stage.pod("first")) == (node, "1")
    make(stage, "second", 5)
    wait_for(
        "it to be told why",
        lambda: any("no single device has room" in str(note) for _, note in stage.events("second")) or None,
    )
    stage.api.delete(f"{config_maps}/sick-{node}")
    assert placed_again(stage, "second", node) == node
    assert cards(stage.pod("second")) == (node, "0")


def test_two_schedulers_fill_one_pool_and_no_card_holds_more_than_it_has(
    stage: Stage, make_serving: MakeServing, kwok_nodes: MakeNodes
) -> None:
    nodes = kwok_nodes(4, equal(extended={MEM: "120", COUNT: "4"}))
    schedulers = stage.name, f"{stage.name}-batch"
    with CardWatch(stage.api, stage.path, MEM, 30) as watch:
        for name, choose in zip(schedulers, ("BestFit", "WorstFit"), strict=True):
            serving = make_serving()
            serving.put("gpu", schedulerName=name, **policy(choose=choose))
            serving.start()
            profiles = [{"schedulerName": name}]
            stage.start_scheduler({"profiles": profiles, "extenders": serving.entries(), "podMaxBackoffSeconds": 1})
        for number in range(48):
            make(stage, f"p-{number}", 10, scheduler=schedulers[number % 2])
        stage.all_placed()
        last = stage.api.get(stage.path, limit="1")["metadata"]["resourceVersion"]
        wait_for("the watch to have seen all", lambda: watch.reached(last) or None)
    assert watch.overbooked == 0
    placed = Counter(cards(stage.pod(name)) for name in stage.places())
    assert placed == Counter({(node, card): 3 for node in nodes for card in "0123"})


def test_fairlead_devices_tells_what_the_ledgers_say_and_which_annotations_are_wrong(
    stage: Stage, serving: Serving, kwok_nodes: MakeNodes, capsys: pytest.CaptureFixture[str]
) -> None:
    (node,) = kwok_nodes(1, equal(extended={MEM: "16", COUNT: "2"}))
    serving.put("gpu", **policy())
    serving.start()
    stage.start(*serving.entries())
    for name in ("a", "b"):
        make(stage, name, 5)
    stage.all_placed()
    held = {name: cards(stage.pod(name))[1] for name in ("a", "b")}
    forged = {"metadata": {"annotations": {"fairlead.dev/devices.gpu": held["a"]}}}
    stage.api.patch(f"{stage.path}/b", forged)

    def devices() -> Any:
        files = ("--policies", str(serving.policies), "--kubeconfig", str(serving.kubeconfig))
        assert main(["devices", node, *files, "-o", "json"]) == 0
        (found,) = json.loads(capsys.readouterr().out)["nodes"]
        return found

    found = devices()
    assert found["source"] == "Ledger"
    assert {(one["id"], one["granted"], one["free"]) for one in found["devices"]} == {("0", 5, 3), ("1", 5, 3)}
    assert {one["pod"]: one["device"] for one in found["pods"]} == {
        f"{stage.name}/{name}": device for name, device in held.items()
    }
    assert [one["pod"] for one in found["differingAnnotations"]] == [f"{stage.name}/b"]
    wait_for("the metric to tell", lambda: serving.metric("fairlead_device_differing_annotations") == 1 or None)
    assert serving.metric("fairlead_device_granted", resource=MEM) == 10
    assert serving.metric("fairlead_device_binds_total", result="granted") == 2
    assert serving.metric("fairlead_ledger_writes_total") >= 1
    assert "[+] ledgers: 1" in serving.readyz()
    make(stage, "c", 6)
    assert "no single device has room" in stage.refusal("c")
