"""Plans: what a version of a ledger becomes by a batch of requests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest

from fairlead.grants.commit import (
    NEWER,
    Accepted,
    GrantRequest,
    LedgerPlan,
    NodeInventory,
    Refused,
    StalePod,
    plan,
    usage_of,
)
from fairlead.grants.device_usage import Ask, Charge, DeviceAsk, DeviceUsage
from fairlead.grants.entry import (
    AMOUNT_MAX,
    Grant,
    GrantedDevice,
    LedgerEntry,
    NewerEntry,
    UnreadableEntry,
    decode_entry,
    encode_entry,
)
from fairlead.grants.entry_state import EntryState, PodState
from fairlead.grants.ledger import Ledger

MEM = "example.org/mem"
FACTS = NodeInventory({MEM: {"0": 10, "1": 10}})
FULL = Refused("no device free")


def grant(device: str, amount: int) -> Grant:
    return {"gpu": (GrantedDevice(device, {MEM: amount}),)}


Choose = Callable[[DeviceUsage, Mapping[str, LedgerEntry]], Grant | Refused]


@dataclass
class Wanted:
    """Devices for a pod, chosen by a function."""

    by: str
    ask: Ask
    choose: Choose


def first_free(amount: int) -> Choose:
    def choose(room: DeviceUsage, _entries: Mapping[str, LedgerEntry]) -> Grant | Refused:
        free = [one for one in room.capacity[MEM] if room.free(MEM, one) >= amount]
        return grant(free[0], amount) if free else FULL

    return choose


def always(given: Grant) -> Choose:
    return lambda _room, _entries: given


def request(uid: str, amount: int, rv: str = "20", choose: Choose | None = None) -> GrantRequest:
    ask = (DeviceAsk("gpu", 1, {MEM: amount}),)
    return GrantRequest(uid, f"ns/{uid}", rv, Wanted("policy", ask, choose or first_free(amount)))


def entry(uid: str, device: str, amount: int, rv: str = "10", order: int = 1) -> LedgerEntry:
    return LedgerEntry(f"ns/{uid}", rv, "policy", grant(device, amount), order)


def planned(
    requests: list[GrantRequest],
    entries: Mapping[str, LedgerEntry] | None = None,
    states: Mapping[str, EntryState] | None = None,
    facts: NodeInventory = FACTS,
    **others: Mapping[str, object],
) -> LedgerPlan:
    ledger = Ledger("node-1", "u", "9", entries or {}, **others)  # type: ignore[arg-type]
    return plan(ledger, requests, facts, {**dict.fromkeys(ledger.all, EntryState.HOLDS), **(states or {})})


def devices(found: LedgerPlan) -> dict[str, str]:
    return {uid: one.grant["gpu"][0].id for uid, one in found.put.items()}


def test_a_batch_shares_a_version_and_its_room() -> None:
    found = planned([request("a", 6), request("b", 6), request("c", 6), request("d", 4)])
    assert devices(found) == {"a": "0", "b": "1", "d": "0"}
    assert found.answers == [Accepted(found.put["a"]), Accepted(found.put["b"]), FULL, Accepted(found.put["d"])]
    assert found.patch["metadata"] == {"resourceVersion": "9", "managedFields": [{}]}
    assert [found.put[one].order for one in "abd"] == [1, 2, 3]


def test_an_entry_of_this_version_is_the_grant_however_often_it_is_asked_for() -> None:
    stands = entry("a", "1", 6, rv="20")
    found = planned([request("a", 6, choose=always(grant("0", 6)))], {"a": stands})
    assert found.answers == [Accepted(stands)]
    assert (found.put, found.drop) == ({}, frozenset())


def test_two_calls_for_one_pod_get_one_grant() -> None:
    found = planned([request("a", 6), request("a", 6)])
    assert found.answers[0] == found.answers[1] == Accepted(found.put["a"])


def test_two_versions_of_one_pod_do_not_meet_in_one_write() -> None:
    found = planned([request("a", 6), request("a", 6, rv="21")])
    assert found.put["a"].rv == "20"
    assert found.answers[1] == StalePod()


def test_a_pod_may_keep_its_devices_while_they_have_room() -> None:
    entries = {"a": entry("a", "1", 6)}

    def keep(room: DeviceUsage, known: Mapping[str, LedgerEntry]) -> Grant | Refused:
        return known["a"].grant if room.find_shortage(known["a"].grant) is None else first_free(6)(room, known)

    kept = planned([request("a", 6, choose=keep)], entries)
    assert (devices(kept), kept.drop) == ({"a": "1"}, frozenset())
    assert devices(planned([request("a", 6, choose=keep)], {**entries, "b": entry("b", "1", 5)})) == {"a": "0"}
    assert "its choice is not" in str(planned([request("a", 7, choose=keep)], entries).answers[0])


@pytest.mark.parametrize("rv", ["5", "x"])
def test_a_request_that_is_not_known_to_be_the_newer_one_reads_the_pod(rv: str) -> None:
    found = planned([request("a", 6, rv=rv)], {"a": entry("a", "1", 6)})
    assert (found.answers, found.put) == ([StalePod()], {})
    assert ("a" in found.unclear) == (rv == "x"), "what versions do not tell, reading the pod does"


def test_what_is_over_makes_room_and_goes_with_the_write() -> None:
    entries = {"a": entry("a", "0", 10), "b": entry("b", "1", 10)}
    found = planned([request("c", 6)], entries, {"b": EntryState.POD_GONE})
    assert (devices(found), {*found.drop}) == ({"c": "1"}, {"b"})


def test_nothing_is_written_only_to_clean_up() -> None:
    entries = {"a": entry("a", "0", 10), "b": entry("b", "1", 10)}
    found = planned([request("c", 11)], entries, {"b": EntryState.POD_GONE})
    assert (found.answers, found.put, found.drop) == ([FULL], {}, frozenset())


def test_an_entry_that_is_over_is_no_grant_even_for_its_own_version() -> None:
    found = planned([request("a", 6, rv="10")], {"a": entry("a", "0", 6)}, {"a": EntryState.POD_CHANGED})
    assert found.answers == [StalePod()]


def test_what_is_unclear_holds_and_is_worth_reading_only_where_room_is_missing() -> None:
    entries = {"a": entry("a", "0", 10), "b": entry("b", "1", 6)}
    unclear = {"a": EntryState.UNCLEAR}
    refused = planned([request("c", 6)], entries, unclear)
    assert (refused.answers, [*refused.unclear], refused.wants_room) == ([FULL], ["a"], True)
    granted = planned([request("c", 4)], entries, unclear)
    assert (devices(granted), [*granted.unclear], granted.wants_room) == ({"c": "1"}, ["a"], False)


@pytest.mark.parametrize(
    ("choice", "why"),
    [
        (grant("0", 6), "device 0 has no room for 6 of example.org/mem"),
        (grant("7", 6), "there is no device 7 with example.org/mem"),
        (grant("1", 5), "its choice is not what the pod asks for"),
        ({}, "its choice is not what the pod asks for"),
    ],
)
def test_who_chooses_is_not_trusted(choice: Grant, why: str) -> None:
    found = planned([request("c", 6, choose=always(choice))], {"a": entry("a", "0", 5)})
    assert found.answers == [Refused(f"the policy policy cannot be followed: {why}")]
    assert found.put == {}


def test_who_chooses_may_charge_what_it_likes_in_its_own_room() -> None:
    def wild(room: DeviceUsage, _entries: Mapping[str, LedgerEntry]) -> Grant:
        room.charged[MEM]["0"] = -1000
        room.charge([Charge("x", None, None)])
        return grant("0", 6)

    found = planned([request("c", 6, choose=wild)], {"a": entry("a", "0", 5)})
    assert isinstance(found.answers[0], Refused)
    assert isinstance(planned([request("c", 6, choose=wild)]).answers[0], Accepted)


def test_who_chooses_sees_the_entries_that_hold_and_those_of_its_batch() -> None:
    told: list[set[str]] = []

    def curious(_room: DeviceUsage, entries: Mapping[str, LedgerEntry]) -> Grant:
        told.append({*entries})
        return grant("0", 1)

    entries = {"a": entry("a", "0", 1), "b": entry("b", "0", 1)}
    planned([request("c", 1, choose=curious), request("d", 1, choose=curious)], entries, {"b": EntryState.POD_ENDED})
    assert told == [{"a"}, {"a", "c"}]


def test_the_order_is_greater_than_that_of_all_that_stand() -> None:
    entries = {"a": entry("a", "0", 1, order=7), "b": entry("b", "0", 1, order=50)}
    assert planned([request("c", 1)], entries, {"b": EntryState.POD_GONE}).put["c"].order == 8


def test_a_foreign_pod_is_charged_to_every_device() -> None:
    pods = [PodState("f", "ns/f", "5", "node-1", request={MEM: 7}), PodState("g", "ns/g", "5", "node-1")]
    facts = NodeInventory(FACTS.capacity, pods)
    assert planned([request("c", 4)], facts=facts).answers == [FULL]
    assert devices(planned([request("c", 3)], facts=facts)) == {"c": "0"}
    with_entry = planned([request("c", 4)], {"f": entry("f", "0", 7)}, facts=facts)
    assert devices(with_entry) == {"c": "1"}, "its entry says where it is"


def test_a_pod_is_foreign_in_each_resource_of_which_it_was_granted_nothing() -> None:
    capacity = {MEM: {"0": 10}, "example.org/core": {"0": 10}}
    entries = {"f": LedgerEntry("ns/f", "10", "policy", {"core": (GrantedDevice("0", {"example.org/core": 3}),)})}
    placed = [PodState("f", "ns/f", "", "node-1", request={MEM: 6, "example.org/core": 3})]
    found = planned([request("c", 5), request("d", 4)], entries, facts=NodeInventory(capacity, placed))
    assert found.answers[0] == FULL
    assert devices(found) == {"d": "0"}


def test_an_unreadable_entry_is_charged_to_every_device() -> None:
    unreadable = {"x": UnreadableEntry("why")}
    assert planned([request("c", 1)], unreadable=unreadable).answers == [FULL]
    known = NodeInventory(FACTS.capacity, [PodState("x", "ns/x", "5", "node-1", request={MEM: 7})])
    assert planned([request("c", 4)], unreadable=unreadable, facts=known).answers == [FULL]
    assert devices(planned([request("c", 3)], unreadable=unreadable, facts=known)) == {"c": "0"}
    gone = planned([request("c", 10)], states={"x": EntryState.POD_GONE}, unreadable=unreadable)
    assert (devices(gone), {*gone.drop}) == ({"c": "0"}, {"x"})


def test_the_pod_of_an_unreadable_entry_gets_no_other_one() -> None:
    found = planned([request("x", 1)], unreadable={"x": UnreadableEntry("why")})
    assert found.answers == [Refused("the entry x of the ledger cannot be read; remove it once the pod is gone")]


def test_an_entry_of_a_newer_version_closes_the_node() -> None:
    found = planned(
        [request("c", 1)], {"b": entry("b", "0", 1)}, {"b": EntryState.POD_GONE}, newer={"x": NewerEntry(2)}
    )
    assert (found.answers, found.put, found.drop) == ([Refused(NEWER)], {}, frozenset())


@pytest.mark.parametrize("state", [EntryState.HOLDS, EntryState.UNCLEAR])
def test_an_entry_of_a_newer_version_is_read_where_it_is_unclear(state: EntryState) -> None:
    found = planned([request("c", 1)], states={"x": state}, newer={"x": NewerEntry(2)})
    assert found.wants_room is (state is EntryState.UNCLEAR)
    assert found.unclear.keys() == ({"x"} if found.wants_room else set())


def test_an_entry_of_a_newer_version_that_is_over_goes_with_the_write() -> None:
    found = planned([request("c", 1)], states={"x": EntryState.POD_GONE}, newer={"x": NewerEntry(2)})
    assert (devices(found), {*found.drop}) == ({"c": "0"}, {"x"})


def test_an_order_that_somebody_wrote_leaves_one_for_those_that_follow() -> None:
    text = encode_entry(entry("b", "0", 1, order=AMOUNT_MAX))
    found = decode_entry(text)
    assert isinstance(found, LedgerEntry)
    (made,) = planned([request("c", 1)], {"b": found}).put.values()
    assert decode_entry(encode_entry(made)) == made


def test_a_pod_on_the_node_holds_whatever_its_unreadable_entry_says_of_it() -> None:
    unreadable = {"x": UnreadableEntry("why", "ns/another")}
    here = NodeInventory(FACTS.capacity, [PodState("x", "ns/x", "5", "node-1", request={MEM: 7})])
    found = planned([request("c", 4)], states={"x": EntryState.POD_GONE}, unreadable=unreadable, facts=here)
    assert (found.answers, {*found.drop}) == ([FULL], set())


def test_a_node_whose_devices_are_not_known_says_why() -> None:
    unknown = Refused("no device of this kind")
    assert planned([request("c", 1)], facts=NodeInventory(unknown)).answers == [unknown]


def test_advice_does_not_wait_for_what_only_a_bind_reads() -> None:
    ledger = Ledger("node-1", "u", "9", {"a": entry("a", "0", 10), "b": entry("b", "1", 4)})
    usage = usage_of(ledger, FACTS, {MEM: {"0": 10, "1": 10}}, frozenset("a"))
    assert (usage.free(MEM, "0"), usage.free(MEM, "1")) == (10, 6)
