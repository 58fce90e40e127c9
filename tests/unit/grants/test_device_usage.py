"""Usage of devices: what is charged to them, and what lacks."""

from fairlead.grants.device_usage import (
    Charge,
    DeviceAsk,
    DeviceUsage,
    RequestingPod,
    answers,
    charges_of,
    foreign_pods,
)
from fairlead.grants.entry import Grant, GrantedDevice

MEM, CORE = "example.org/mem", "example.org/core"
CAPACITY = {MEM: {"0": 10, "1": 8}, CORE: {"0": 100, "1": 100}}


def grant(*devices: tuple[str, int], kind: str = "gpu", resource: str = MEM) -> Grant:
    return {kind: tuple(GrantedDevice(one, {resource: amount}) for one, amount in devices)}


def test_a_grant_is_charged_to_its_devices() -> None:
    usage = DeviceUsage(CAPACITY)
    usage.charge_grant("a", grant(("0", 4), ("1", 3)))
    assert usage.charged == {MEM: {"0": 4, "1": 3}, CORE: {"0": 0, "1": 0}}
    assert (usage.free(MEM, "0"), usage.free(MEM, "1"), usage.free(CORE, "0")) == (6, 5, 100)


def test_two_policies_charge_one_device_whatever_they_call_it() -> None:
    usage = DeviceUsage(CAPACITY)
    usage.charge_grant("a", grant(("0", 4), kind="gpu"))
    usage.charge_grant("b", grant(("0", 3), kind="accelerator"))
    assert usage.charged[MEM] == {"0": 7, "1": 0}


def test_a_grant_of_a_device_that_the_layout_does_not_know_is_charged_to_all() -> None:
    usage = DeviceUsage(CAPACITY)
    usage.charge_grant("a", grant(("0", 2), ("7", 3)))
    assert usage.charged[MEM] == {"0": 5, "1": 5}


def test_a_lost_device_of_one_resource_is_nothing_to_another() -> None:
    usage = DeviceUsage(CAPACITY)
    usage.charge([Charge("a", "7", {MEM: 3, CORE: 0}), Charge("a", "0", {CORE: 10}), Charge("b", "1", {MEM: 1})])
    assert usage.charged == {MEM: {"0": 3, "1": 4}, CORE: {"0": 10, "1": 0}}


def test_what_is_taken_away_leaves_what_was_before() -> None:
    usage = DeviceUsage(CAPACITY)
    for sign in (1, -1):
        usage.charge_grant("a", grant(("0", 4), ("7", 2)), sign)
    assert usage.charged == DeviceUsage(CAPACITY).charged


def test_a_pod_is_foreign_by_resource() -> None:
    requesting = {MEM: [RequestingPod("a", 3), RequestingPod("b", 2)], CORE: [RequestingPod("a", 60.5, deleting=True)]}
    grants = {"a": [GrantedDevice("0", {MEM: 3})], "b": None, "c": None}
    assert [one.uid for one in foreign_pods(MEM, requesting.__getitem__, grants)] == ["b"]
    assert charges_of((MEM, CORE), grants, requesting.__getitem__, "ab") == [
        Charge("a", "0", {MEM: 3}, is_leaving=True),
        Charge("c", None, None),
        Charge("b", None, {MEM: 2}),
        Charge("a", None, {CORE: 61}, is_leaving=True),
    ]
    assert [one.uid for one in charges_of((MEM, CORE), grants, requesting.__getitem__, "ab", but="a")] == ["c", "b"]


def test_other_resources_are_nothing_to_these_devices() -> None:
    usage = DeviceUsage({MEM: {"0": 10}})
    usage.charge_grant("a", grant(("0", 50), resource=CORE))
    usage.charge([Charge("b", None, {CORE: 50, MEM: 1})])
    assert usage.charged == {MEM: {"0": 1}}


def test_a_closed_node_has_room_for_nothing() -> None:
    usage = DeviceUsage(CAPACITY)
    usage.charge([Charge("a", None, None)])
    assert not any(usage.free(resource, device) for resource in CAPACITY for device in CAPACITY[resource])


def test_a_copy_is_charged_on_its_own() -> None:
    usage = DeviceUsage(CAPACITY)
    usage.copy().charge_grant("a", grant(("0", 4)))
    assert usage.free(MEM, "0") == 10


def test_what_lacks_is_said_with_its_device() -> None:
    usage = DeviceUsage(CAPACITY)
    usage.charge_grant("a", grant(("0", 4)))
    assert usage.find_shortage(grant(("0", 6), ("1", 8))) is None
    assert usage.find_shortage(grant(("0", 7))) == "device 0 has no room for 7 of example.org/mem"
    assert usage.find_shortage(grant(("0", 4), ("0", 4))) == "device 0 has no room for 8 of example.org/mem"
    assert usage.find_shortage(grant(("2", 1))) == "there is no device 2 with example.org/mem"
    assert usage.find_shortage(grant(("0", 1), resource="other")) == "there is no device 0 with other"


def test_a_grant_answers_what_was_asked_for_and_nothing_else() -> None:
    ask = (DeviceAsk("gpu", 2, {MEM: 4}),)
    assert answers(grant(("0", 4), ("1", 4)), ask)
    assert not answers(grant(("0", 4)), ask), "too few"
    assert not answers(grant(("0", 4), ("0", 4)), ask), "one device twice"
    assert not answers(grant(("0", 4), ("1", 3)), ask), "too little"
    assert not answers(grant(("0", 4), ("1", 4), kind="other"), ask), "another kind"
    assert not answers({}, ask)
    assert not answers({**grant(("0", 4), ("1", 4)), "other": ()}, ask)
