"""Filter and bind agree about a node: what is charged, which entries are over, and who may be bound at all."""

import asyncio
import json
from typing import Any

import pytest

from fairlead.grants.commit import LedgerPlan, plan
from fairlead.grants.entry import GrantedDevice, LedgerEntry, encode_entry
from fairlead.grants.ledger import Ledger, create_body, decode_ledger
from fairlead.kube.watch.store import Meta
from fairlead.strategies.devices.choice import TOO_FEW_HAVE_ROOM
from fairlead.webhook.binding import ledger_writer
from fairlead.webhook.binding.bind_steps import CHANGED
from fairlead.webhook.binding.ledger_feed import LedgerSink, ListedLedger
from policies.good import device_share
from scripted.loop import in_loop
from support.grants.cluster import MEM, Cluster
from support.policy import policy

NO_ROOM = "no single device has room"


EIGHT = {"gpu": (GrantedDevice("0", {MEM: 8}),)}


def old_entry(number: int) -> LedgerEntry:
    """Return an entry of a pod that ended."""
    return LedgerEntry(f"ml/old-{number}", "5", "p", {"gpu": (GrantedDevice("0", {MEM: 1}),)})


async def place(cluster: Cluster, *pods: tuple[str, int]) -> None:
    """Bind pods one after the other, each of which the mirror hears of before the next."""
    for name, amount in pods:
        cluster.make(name, amount)
        assert await cluster.bind(name) == ""
        cluster.land(name)


NEWER = "granted by a newer version"
UNREAD = pytest.mark.parametrize(
    ("written", "why"),
    [
        ('{"v": 2, "what": "ever"}', NEWER),
        ('{"v": 2, "pod": "ml/old", "rv": "999"}', NEWER),
        ('{"v": 1, "pod": "ml/old"}', NO_ROOM),
        ("garbage", NO_ROOM),
    ],
    ids=["newer", "newer that tells its pod", "unreadable that tells its pod", "unreadable"],
)


@UNREAD
@in_loop
async def test_an_entry_that_cannot_be_read_closes_the_node_for_the_filter_too(written: str, why: str) -> None:
    cluster = Cluster()
    cluster.make("old", 3)
    cluster.write_ledger(**{cluster.api.pods["ml/old"].uid: written})
    cluster.make("a", 4)
    assert cluster.filter("a") == why
    assert why in await cluster.bind("a")


@pytest.mark.parametrize("heard", [True, False], ids=["its end is heard", "it ends while no replica watches"])
@UNREAD
@in_loop
async def test_an_entry_that_cannot_be_read_is_over_once_its_pod_has_ended(written: str, why: str, heard: bool) -> None:
    """Also one of a version that was rolled back; and no key is removed by hand."""
    cluster = Cluster()
    cluster.make("old", 3)
    cluster.api.change_pod("ml/old", node="n1")
    uid = cluster.api.pods["ml/old"].uid
    cluster.write_ledger(**{uid: written})
    if heard:
        cluster.land("old")
        cluster.make("a", 6)
        assert cluster.filter("a") == why
        assert why in await cluster.bind("a")
    cluster.end("old")
    cluster.fed.mirror.unplaced_sink.remove(("ml", "old"))
    cluster.make("b", 8)
    assert cluster.filter("b") == ""
    assert await cluster.bind("b") == ""
    assert cluster.api.ledgers["n1"].all.keys() == {cluster.api.pods["ml/b"].uid}


@in_loop
async def test_an_order_that_was_tampered_with_leaves_the_next_entries_readable() -> None:
    cluster = Cluster()
    await place(cluster, ("a", 1))
    uid = cluster.api.pods["ml/a"].uid
    text = json.loads(encode_entry(cluster.api.ledgers["n1"].entries[uid]))
    cluster.api.tamper("n1", uid, json.dumps({**text, "n": (1 << 63) - 1}))
    cluster.hear_ledger()
    await place(cluster, ("b", 1), ("c", 1))
    assert cluster.grants().keys() == {"a", "b", "c"}


@in_loop
async def test_a_ledger_without_its_label_gets_it_back_by_a_bind_granted_or_not() -> None:
    for amount in (4, 8):
        cluster = Cluster()
        await place(cluster, ("a", 8), ("b", 4))
        cluster.api.unmark_ledger("n1")
        cluster.views.ledgers.clear()  # a watch with a selector tells of it as deleted
        cluster.fed.mirror.devices.remove_ledger("n1")
        cluster.make("c", amount)
        assert (await cluster.bind("c") == "") is (amount == 4)
        assert cluster.api.ledgers["n1"].marked
        assert len(cluster.api.ledgers["n1"].entries) == 2 + (amount == 4)
        await asyncio.sleep(0)


@in_loop
async def test_entries_of_many_pods_that_are_gone_cost_a_bind_two_lists_and_two_plans(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plans = list[int]()

    def counted(ledger: Ledger, *rest: Any) -> LedgerPlan:
        plans.append(len(ledger.entries))
        return plan(ledger, *rest)

    monkeypatch.setattr(ledger_writer, "plan", counted)
    cluster = Cluster()
    old = {f"u-{at}": old_entry(at) for at in range(7298)}
    cluster.api.capacity = {"n1": {MEM: {"0": len(old), "1": 8}}}  # once a larger card
    cluster.write_ledger(**{uid: encode_entry(one) for uid, one in old.items()})
    cluster.make("a", 8)
    cluster.make("b", 8)
    assert (await cluster.bind("a"), await cluster.bind("b")) == ("", "")
    assert cluster.grants().keys() == {"a", "b"}
    assert (cluster.server.reads, cluster.server.lists) == ([], ["unplaced", "n1"])
    assert len(plans) <= 4


@in_loop
async def test_a_device_that_is_gone_charges_its_entry_to_all_in_both() -> None:
    cluster = Cluster()
    lost = LedgerEntry("ml/x", "5", "p", {"gpu": (GrantedDevice("0", {MEM: 1}), GrantedDevice("7", {MEM: 4}))})
    cluster.write_ledger(lost=encode_entry(lost))
    resources = {"requests": {MEM: "5"}, "limits": {MEM: "5"}}
    cluster.fed.pod("x", uid="lost", containers=[{"name": "main", "image": "main", "resources": resources}])
    cluster.make("a", 4)
    assert cluster.filter("a") == NO_ROOM
    assert NO_ROOM in await cluster.bind("a")
    cluster.make("b", 3)
    assert (cluster.filter("b"), await cluster.bind("b")) == ("", "")


@in_loop
async def test_a_pod_may_come_back_to_the_card_that_its_own_entry_holds() -> None:
    cluster = Cluster()
    await place(cluster, ("b", 8))
    cluster.make("a", 8)
    cluster.make("other", 8)
    assert (await cluster.bind("a", hung_up=True)).startswith("the caller has hung up")
    cluster.hear_ledger()
    assert (cluster.filter("a"), cluster.filter("other")) == ("", NO_ROOM)
    assert await cluster.bind("a") == ""


@in_loop
async def test_a_nominated_pod_that_has_its_grant_counts_once() -> None:
    cluster = Cluster()
    cluster.make("p", 5, status={"nominatedNodeName": "n1"}, priority=10)
    assert (await cluster.bind("p", hung_up=True)).startswith("the caller has hung up")
    cluster.hear_ledger()
    cluster.make("q", 5)
    assert (cluster.filter("q"), await cluster.bind("q")) == ("", "")


@in_loop
async def test_what_a_nominated_pod_needs_may_depend_on_its_namespace() -> None:
    cluster = Cluster(split="Each", cards="int(namespaceObject.metadata.labels[?'cards'].orValue('1'))")
    cluster.make("p", 8, status={"nominatedNodeName": "n1"}, priority=10)
    cluster.make("q", 1)
    assert cluster.filter("q") == ""
    cluster.fed.namespace("ml", cards="2")
    assert (cluster.filter("p"), cluster.filter("q")) == ("", TOO_FEW_HAVE_ROOM)


@pytest.mark.parametrize(
    ("share", "placed", "ended", "then", "want"),
    [
        ({}, [("a", 3), ("b", 6)], "b", 2, {"a": ["0"], "new": ["0"]}),
        ({"choose": "Lowest"}, [("a", 8)], "a", 1, {"new": ["0"]}),
        ({"choose": "WorstFit", "record": "Gpushare"}, [("a", 2), ("c", 2)], "a", 2, {"c": ["1"], "new": ["0"]}),
    ],
    ids=["BestFit", "Lowest", "Gpushare"],
)
@in_loop
async def test_a_pod_whose_end_was_heard_holds_nothing(
    share: dict[str, Any], placed: list[tuple[str, int]], ended: str, then: int, want: dict[str, list[str]]
) -> None:
    cluster = Cluster(**share)
    await place(cluster, *placed)
    cluster.end(ended)
    await place(cluster, ("new", then))
    assert cluster.grants() == want


@in_loop
async def test_entries_of_pods_that_ended_do_not_pile_up() -> None:
    cluster = Cluster()
    for number in range(20):
        await place(cluster, (f"job-{number}", 1))
        cluster.end(f"job-{number}")
    assert len(cluster.grants()) == 1


@in_loop
async def test_entries_of_pods_that_ended_unseen_are_read_once_and_removed() -> None:
    """As by a replica that starts after they ended."""
    cluster = Cluster()
    old = {f"u-{at}": old_entry(at) for at in range(3)}
    cluster.write_ledger(**{uid: encode_entry(one) for uid, one in old.items()})
    for name in ("a", "b", "c", "d"):
        await place(cluster, (name, 1))
        await asyncio.sleep(0)
    assert cluster.grants().keys() == {"a", "b", "c", "d"}
    assert sorted(cluster.server.reads) == ["ml/old-0", "ml/old-1", "ml/old-2"]


@pytest.mark.parametrize(
    ("other", "asks"),
    [
        ({"name": "gpu", "shares": [{"resource": "example.org/npu"}]}, {"example.org/npu": "1"}),
        ({"name": "both", "shares": [{"resource": MEM}, {"resource": "example.org/npu"}]}, {"example.org/npu": "1"}),
    ],
    ids=["the same name", "a resource in common"],
)
@in_loop
async def test_no_pod_is_bound_without_a_share_that_another_policy_keeps_it_from(
    other: dict[str, Any], asks: dict[str, str]
) -> None:
    later = policy("later", binding={"deviceShare": [device_share(**other)]}, priority=-1)
    cluster = Cluster(later)
    cluster.make("a", 4, more=asks)
    why = await cluster.bind("a")
    assert why.startswith("policy later, ")
    assert "example.org/npu cannot be granted, because shares has an entry of the same name" in why
    cluster.make("b", 4)
    assert await cluster.bind("b") == ""


@in_loop
async def test_a_pod_has_room_for_one_grant_that_gpushares_plugin_reads() -> None:
    """The five annotations of a second one would be written over those of the first."""
    npu = "example.org/npu"
    shares = [{"resource": npu}]
    later = policy("later", binding={"deviceShare": [device_share(name="npu", shares=shares, record="Gpushare")]})
    cluster = Cluster(later, record="Gpushare")
    cluster.make("a", 4, more={npu: "1"})
    why = await cluster.bind("a")
    assert why == (
        "policy shares, gpu: aliyun.com/gpu-mem cannot be granted, because later also records for gpushare, whose"
        " annotations have room for one grant"
    )
    assert cluster.server.bindings == []
    cluster.make("b", 4)
    assert await cluster.bind("b") == ""


@in_loop
async def test_a_copy_of_a_ledger_is_no_ledger() -> None:
    cluster = Cluster()
    sink = LedgerSink(cluster.views.ledgers)

    def listed(name: str, version: str, **entries: LedgerEntry) -> ListedLedger:
        body = create_body("n1", entries)
        body["metadata"] |= {"name": name, "namespace": "fairlead-system", "uid": name, "resourceVersion": version}
        return ListedLedger(Meta(name, "fairlead-system", name, version), decode_ledger(json.loads(json.dumps(body))))

    sink.put(
        listed("fairlead-grants-n1", "5", real=LedgerEntry("ml/a", "4", "p", {"gpu": (GrantedDevice("0", {MEM: 8}),)}))
    )
    sink.put(listed("backup", "9"))
    sink.remove(("fairlead-system", "backup"))
    found = cluster.views.ledger("n1")
    assert found is not None
    assert (found.rv, [*found.entries]) == ("5", ["real"])


@pytest.mark.parametrize(("changed", "why"), [(None, ""), (0, CHANGED)], ids=["its status", "its labels"])
@in_loop
async def test_a_pod_that_was_changed_is_bound_unless_policies_may_decide_anew(changed: int | None, why: str) -> None:
    cluster = Cluster()
    cluster.make("a", 4)
    cluster.api.change_pod("ml/a")  # the mirror has not heard of it, and the Binding is refused
    if changed is not None:
        cluster.server.metadata_hashes["ml/a"] = changed
    assert await cluster.bind("a") == why
