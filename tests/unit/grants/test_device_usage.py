"""DeviceUsage on devices: what is charged to them, and who is believed."""

from fairlead.grants.device_usage import DeviceAsk, DeviceUsage, answers
from fairlead.grants.entry import Grant, GrantedDevice

MEM, CORE = "example.org/mem", "example.org/core"
CAPACITY = {MEM: {"0": 10, "1": 8}, CORE: {"0": 100, "1": 100}}


def grant(*devices: tuple[str, int], kind: str = "gpu", resource: str = MEM) -> Grant:
    return {kind: tuple(GrantedDevice(one, {resource: amount}) for one, amount in devices)}


def test_a_grant_is_charged_to_its_devices() -> None:
    room = DeviceUsage(CAPACITY)
    room.charge(grant(("0", 4), ("1", 3)))
    assert room.charged == {MEM: {"0": 4, "1": 3}, CORE: {"0": 0, "1": 0}}
    assert (room.free(MEM, "0"), room.free(MEM, "1"), room.free(CORE, "0")) == (6, 5, 100)


def test_two_policies_charge_one_device_whatever_they_call_it() -> None:
    room = DeviceUsage(CAPACITY)
    room.charge(grant(("0", 4), kind="gpu"))
    room.charge(grant(("0", 3), kind="accelerator"))
    assert room.charged[MEM] == {"0": 7, "1": 0}


def test_a_grant_of_a_device_that_the_layout_does_not_know_is_charged_to_all() -> None:
    room = DeviceUsage(CAPACITY)
    room.charge(grant(("0", 2), ("7", 3)))
    assert room.charged[MEM] == {"0": 5, "1": 5}


def test_other_resources_are_nothing_to_these_devices() -> None:
    room = DeviceUsage({MEM: {"0": 10}})
    room.charge(grant(("0", 50), resource=CORE))
    room.charge_everywhere({CORE: 50, MEM: 1})
    assert room.charged == {MEM: {"0": 1}}


def test_a_closed_node_has_room_for_nothing() -> None:
    room = DeviceUsage(CAPACITY)
    room.close()
    assert all(room.free(resource, device) <= 0 for resource in CAPACITY for device in CAPACITY[resource])


def test_a_copy_is_charged_on_its_own() -> None:
    room = DeviceUsage(CAPACITY)
    room.copy().charge(grant(("0", 4)))
    assert room.free(MEM, "0") == 10


def test_what_lacks_is_said_with_its_device() -> None:
    room = DeviceUsage(CAPACITY)
    room.charge(grant(("0", 4)))
    assert room.lacking(grant(("0", 6), ("1", 8))) is None
    assert room.lacking(grant(("0", 7))) == "device 0 has no room for 7 of example.org/mem"
    assert room.lacking(grant(("0", 4), ("0", 4))) == "device 0 has no room for 8 of example.org/mem"
    assert room.lacking(grant(("2", 1))) == "there is no device 2 with example.org/mem"
    assert room.lacking(grant(("0", 1), resource="other")) == "there is no device 0 with other"


def test_a_grant_answers_what_was_asked_for_and_nothing_else() -> None:
    ask = (DeviceAsk("gpu", 2, {MEM: 4}),)
    assert answers(grant(("0", 4), ("1", 4)), ask)
    assert not answers(grant(("0", 4)), ask), "too few"
    assert not answers(grant(("0", 4), ("0", 4)), ask), "one device twice"
    assert not answers(grant(("0", 4), ("1", 3)), ask), "too little"
    assert not answers(grant(("0", 4), ("1", 4), kind="other"), ask), "another kind"
    assert not answers({}, ask)
    assert not answers({**grant(("0", 4), ("1", 4)), "other": ()}, ask)
