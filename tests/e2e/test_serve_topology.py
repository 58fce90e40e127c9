"""With the real scheduler and `fairlead serve`, a group of four is placed in one of two racks."""

import time
from typing import Any

import pytest

from extender import Stage
from support.process.serving import Serving
from testbed.api import Object, wait_for
from testbed.fixtures import MakeNodes
from testbed.node_template import equal

JOB, SIZE, RACK = "example.org/job", "example.org/size", "example.org/rack"
GROUP = f"pod.metadata.labels[?'{JOB}'].orValue('')"
COUNT = f"int(pod.metadata.annotations[?'{SIZE}'].orValue('1'))"
ONE_RACK: dict[str, Any] = {
    "name": "one-rack",
    "topology": {"levels": [RACK], "require": RACK, "group": GROUP, "size": COUNT},
}


def member(stage: Stage, name: str, job: str, size: int) -> Object:
    metadata = {"name": name, "labels": {JOB: job}, "annotations": {SIZE: str(size)}}
    spec = {
        "schedulerName": stage.name,
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [{"name": "main", "image": "main", "resources": {"requests": {"cpu": "1"}}}],
    }
    return {"metadata": metadata, "spec": spec}


def racks(stage: Stage, nodes: list[str]) -> dict[str, str]:
    """Give every other node the label of another rack; the racks by node."""
    found = {name: "ab"[at % 2] for at, name in enumerate(nodes)}
    for name, rack in found.items():
        stage.api.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {RACK: rack}}})
    return found


def used(stage: Stage, job: str, rack_of: dict[str, str]) -> list[str]:
    """Return the rack of each placed member of a job."""
    return [rack_of[node] for name, node in stage.places().items() if node and name.startswith(f"{job}-")]


@pytest.mark.parametrize("gang", [[], [{"name": "whole-job", "group": GROUP, "size": COUNT}]], ids=["alone", "gang"])
def test_groups_of_four_are_each_in_one_of_two_racks(
    stage: Stage, serving: Serving, kwok_nodes: MakeNodes, gang: list[Object]
) -> None:
    rack_of = racks(stage, kwok_nodes(8, equal(cpu="1")))
    serving.put("topology", filters=[ONE_RACK], **({"binding": {"gang": gang}} if gang else {}))
    serving.start()
    stage.start(*serving.entries(hold_s=30 if gang else 0))
    for number in range(4):
        for job in ("red", "blue"):
            stage.api.create(stage.path, member(stage, f"{job}-{number}", job, 4))
    began = time.monotonic()
    wait_for("both to be placed", lambda: all(len(used(stage, job, rack_of)) == 4 for job in ("red", "blue")) or None)
    print(f"placed after {time.monotonic() - began:.2f} s")
    found = {job: {*used(stage, job, rack_of)} for job in ("red", "blue")}
    assert sorted(map(len, found.values())) == [1, 1]
    assert found["red"] != found["blue"]
    labelled = stage.api.items(
        f"/api/v1/namespaces/{serving.namespace}/configmaps", labelSelector="fairlead.dev/groups"
    )
    assert {len(one["data"]) for one in labelled} == {4}


def test_a_group_for_which_no_rack_has_room_is_told_so(stage: Stage, serving: Serving, kwok_nodes: MakeNodes) -> None:
    racks(stage, kwok_nodes(4, equal(cpu="1")))
    serving.put("topology", filters=[ONE_RACK])
    serving.start()
    stage.start(*serving.entries())
    stage.api.create(stage.path, member(stage, "large-0", "large", 3))
    assert f"no {RACK} holds the group" in stage.refusal("large-0")
