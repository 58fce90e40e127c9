"""From a call of the scheduler to a Binding with a grant: what is chosen, what is written, and what is refused."""

import json
from typing import Any

import pytest

from fairlead.grants.entry import GrantedDevice
from fairlead.grants.entry_state import Gone
from fairlead.strategies.devices.choice import WAITING
from fairlead.webhook.binding.pods_with_grants import ASSUMED_AT
from scripted.loop import in_loop
from support.grants.cluster import MEM, Cluster


@in_loop
async def test_pods_get_the_fullest_card_that_has_room_until_none_has() -> None:
    cluster = Cluster()
    for name, amount in (("a", 5), ("b", 2), ("c", 4), ("d", 4)):
        cluster.make(name, amount)
    assert [await cluster.bind(name) for name in "abc"] == ["", "", ""]
    assert cluster.grants() == {"a": ["0"], "b": ["0"], "c": ["1"]}
    cluster.make("e", 5)
    assert await cluster.bind("e") == "policy shares, gpu: no single device has room"
    assert await cluster.bind("d") == ""
    assert cluster.results == [True, True, True, False, True]
    assert len(cluster.server.bindings) == 4


@in_loop
async def test_listeners_are_told_of_the_grant() -> None:
    cluster = Cluster()
    cluster.make("a", 5)
    cluster.make("b", 9)
    assert (await cluster.bind("a"), cluster.granted) == ("", {"gpu": (GrantedDevice("0", {MEM: 5}),)})
    assert await cluster.bind("b") != ""
    assert cluster.granted == {}


@in_loop
async def test_the_binding_bears_the_version_and_a_copy_of_the_grant() -> None:
    cluster = Cluster()
    cluster.make("a", 5)
    version = cluster.api.pods["ml/a"].rv
    assert await cluster.bind("a") == ""
    metadata = cluster.server.bindings[-1]["metadata"]
    assert (metadata["resourceVersion"], metadata["name"]) == (version, "a")
    assert cluster.annotations()["fairlead.dev/devices.gpu"] == "0"
    assert json.loads(cluster.annotations()["fairlead.dev/devices"]) == {"v": 1, "gpu": [{"id": "0", MEM: 5}]}


@in_loop
async def test_gpushare_reads_its_keys_and_takes_pods_in_the_order_of_their_grants() -> None:
    cluster = Cluster(record="Gpushare")
    times = []
    for name, amount in (("a", 5), ("b", 2)):
        cluster.make(name, amount)
        assert await cluster.bind(name) == ""
        keys = cluster.annotations()
        assert (keys["ALIYUN_COM_GPU_MEM_IDX"], keys["ALIYUN_COM_GPU_MEM_DEV"]) == ("0", "8")
        assert keys["ALIYUN_COM_GPU_MEM_ASSIGNED"] == "false"
        times.append(int(keys["ALIYUN_COM_GPU_MEM_ASSUME_TIME"]))
    assert ASSUMED_AT < times[0] < times[1]


@in_loop
async def test_gpushare_is_given_equal_pods_on_one_card_and_else_one_after_the_other() -> None:
    cluster = Cluster(record="Gpushare")
    for name in "abc":
        cluster.make(name, 4)
    assert [await cluster.bind(name) for name in "ab"] == ["", ""]
    assert cluster.grants() == {"a": ["0"], "b": ["0"]}
    assert await cluster.bind("c") == f"policy shares, gpu: {WAITING}"


@in_loop
async def test_a_pod_whose_caller_has_gone_is_granted_and_not_bound() -> None:
    cluster = Cluster()
    cluster.make("a", 5)
    assert (await cluster.bind("a", hung_up=True)).startswith("the caller has hung up (tried at ")
    assert (cluster.grants(), cluster.server.bindings) == ({"a": ["0"]}, [])
    assert await cluster.bind("a") == "", "the entry that was written is its grant"
    assert cluster.grants() == {"a": ["0"]}


@in_loop
async def test_a_pod_that_changed_meanwhile_is_bound_at_its_new_version() -> None:
    cluster = Cluster()
    cluster.make("a", 5)
    cluster.api.change_pod("ml/a")
    assert await cluster.bind("a") == ""
    assert cluster.server.bindings[-1]["metadata"]["resourceVersion"] != "101"
    assert len(cluster.server.bindings) == 2


@in_loop
async def test_a_node_that_is_not_known_gets_no_pod() -> None:
    cluster = Cluster()
    cluster.make("a", 5)
    cluster.fed.node_gone("n1")
    assert await cluster.bind("a") == "the node is not known yet"


def _placed(cluster: Cluster, name: str, amount: int, **fields: Any) -> None:
    containers = [{"name": "main", "image": "main", "resources": {"requests": {MEM: str(amount)}}}]
    cluster.fed.pod(name, containers=containers, **fields)


def test_views_show_devices_and_the_pods_on_the_node() -> None:
    cluster = Cluster()
    _placed(cluster, "asks", 3)
    cluster.fed.pod("plain")
    facts = cluster.views.facts("n1")
    assert facts.capacity == {MEM: {"0": 8, "1": 8}}
    assert [(one.pod, one.node, one.request) for one in facts.placed] == [
        ("ml/asks", "n1", {MEM: 3}),
        ("ml/plain", "n1", {}),
    ]


@pytest.mark.parametrize(
    ("placed", "waits", "uid", "want"),
    [
        (None, None, "u-p", None),
        ("u-p", None, "u-p", ("u-p", "n1")),
        (None, "u-p", "u-p", ("u-p", "")),
        ("u-old", "u-p", "u-p", ("u-p", "")),
        ("u-p", "u-new", "u-p", ("u-p", "n1")),
        (None, "u-new", "u-p", ("u-new", "")),
    ],
    ids=["not shown", "placed", "waits", "waits, and one before it is placed", "placed, and one after it", "another"],
)
def test_views_show_a_uid_or_else_the_name(
    placed: str | None, waits: str | None, uid: str, want: tuple[str, str] | None
) -> None:
    cluster = Cluster()
    if placed is not None:
        cluster.fed.pod("p", uid=placed)
    if waits is not None:
        cluster.fed.unplaced("p", uid=waits, schedulerName="fairlead")
    found = cluster.views.seen(uid, "ml/p")
    assert (None if found is None or isinstance(found, Gone) else (found.uid, found.node)) == want
    assert cluster.views.seen(uid, "") is None
