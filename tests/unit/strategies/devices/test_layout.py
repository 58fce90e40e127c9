"""Devices of a node, by what it says of itself."""

import json
from typing import Any

import pytest

from fairlead.strategies.contract import Unknown
from fairlead.strategies.devices.layout import (
    DEVICES_MAX,
    NO_SUCH_DEVICE,
    TOO_MANY,
    WHICH_IS_SICK,
    Device,
    layout_of,
    natural_order,
    parse_layout,
)
from support.strategies.facts import Node
from support.strategies.samples import device_share

MEM, CORE, COUNT = "example.org/gpu-mem", "example.org/gpu-core", "example.org/gpus"
BY_ANNOTATION = {"layout": {"annotation": "devices"}}
BAD_IDS = {"unhealthy": {"annotation": "bad"}}


def whole(mem: float, count: float, **more: Any) -> Node:
    amounts = {MEM: mem, COUNT: count}
    return Node(**{"capacity": amounts, "allocatable": amounts} | more)


def shown(found: Any) -> Any:
    if isinstance(found, Unknown):
        return str(found)
    return [(one.id, one.capacity[MEM], one.healthy) for one in found]


@pytest.mark.parametrize(
    ("node", "share", "want"),
    [
        (whole(16, 2), {}, [("0", 8, True), ("1", 8, True)]),
        (whole(17, 2), {}, [("0", 8, True), ("1", 8, True)]),
        (whole(16, 1), {}, [("0", 16, True)]),
        (whole(0, 2), {}, []),
        (whole(16, 0), {}, []),
        (Node(), {}, []),
        (whole(1, DEVICES_MAX + 1), {}, str(TOO_MANY)),
        # One of two is sick. What is allocatable would make both smaller, and hides which one it is.
        (whole(16, 2, allocatable={MEM: 8.0, COUNT: 2.0}), {}, str(WHICH_IS_SICK)),
        (whole(16, 2, allocatable={MEM: 8.0, COUNT: 2.0}), BAD_IDS, str(WHICH_IS_SICK)),
        (
            whole(16, 2, allocatable={MEM: 8.0, COUNT: 2.0}, annotations={"bad": " 1 ,"}),
            BAD_IDS,
            [("0", 8, True), ("1", 8, False)],
        ),
        (whole(16, 2, annotations={"bad": "1,7"}), BAD_IDS, str(NO_SUCH_DEVICE)),
        (whole(24, 3, allocatable={MEM: 8.0}, annotations={"bad": "1"}), BAD_IDS, str(WHICH_IS_SICK)),
        (
            whole(16, 2, unhealthy_texts={("ns", "bad-", "ids"): "0"}),
            {"unhealthy": {"configMap": {"namespace": "ns", "prefix": "bad-", "key": "ids"}}},
            [("0", 8, False), ("1", 8, True)],
        ),
        (
            whole(16, 2),
            {"unhealthy": {"configMap": {"namespace": "ns", "prefix": "bad-", "key": "ids"}}},
            "the list is not read",
        ),
        *(
            (whole(16, 2, annotations={"bad": text}), BAD_IDS, str(NO_SUCH_DEVICE))
            for text in ("0;1", '["0"]', "card-0", "2", "-1", "00", "0 1", "none", "0,1,2")
        ),
        *(
            (whole(16, 2, annotations={"bad": text}), BAD_IDS, [("0", 8, True), ("1", 8, False)])
            for text in ("1", " 1 ", "1,", "1,1")
        ),
        (whole(16, 2, annotations={"bad": " , "}), BAD_IDS, [("0", 8, True), ("1", 8, True)]),
        (Node(annotations={"bad": "0"}), BAD_IDS, []),
        (Node(annotations={}), BY_ANNOTATION, []),
        (
            Node(annotations={"devices": json.dumps([{"id": "GPU-a", "capacity": {MEM: 24, "other": 1}}])}),
            BY_ANNOTATION,
            [("GPU-a", 24, True)],
        ),
        (
            Node(annotations={"devices": json.dumps([{"id": "0", "capacity": {}, "healthy": False}])}),
            BY_ANNOTATION,
            [("0", 0, False)],
        ),
        (
            Node(annotations={"devices": json.dumps([{"id": "0", "capacity": {MEM: 4}}]), "bad": "0"}),
            BY_ANNOTATION | BAD_IDS,
            [("0", 4, False)],
        ),
    ],
)
def test_the_devices_of_a_node(node: Node, share: dict[str, Any], want: object) -> None:
    assert shown(layout_of(device_share(**share).entry, node)) == want


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("", "is not JSON"),
        ("[" * 20_000, "is not JSON"),
        ("{}", "is no list of devices"),
        ("[1]", "has a device that is no object"),
        ('[{"capacity": {}}]', "has a device without an id, which is text without spaces and commas"),
        ('[{"id": 0, "capacity": {}}]', "has a device without an id, which is text without spaces and commas"),
        ('[{"id": "0,1", "capacity": {}}]', "has a device without an id, which is text without spaces and commas"),
        ('[{"id": "\\ud800", "capacity": {}}]', "has a device without an id, which is text without spaces and commas"),
        ('[{"id": "\\u0000", "capacity": {}}]', "has a device without an id, which is text without spaces and commas"),
        ('[{"id": "0"}]', "has a device without a capacity, which is an object of whole numbers"),
        (
            '[{"id": "0", "capacity": {"a": -1}}]',
            "has a device without a capacity, which is an object of whole numbers",
        ),
        (
            '[{"id": "0", "capacity": {"a": true}}]',
            "has a device without a capacity, which is an object of whole numbers",
        ),
        (
            '[{"id": "0", "capacity": {"a": 1.5}}]',
            "has a device without a capacity, which is an object of whole numbers",
        ),
        ('[{"id": "0", "capacity": {}, "healthy": "no"}]', "has a device that is neither healthy nor not"),
        ('[{"id": "0", "capacity": {}}, {"id": "0", "capacity": {}}]', "has an id twice"),
        (" " * 70_000, "has more than 65536 characters"),
    ],
)
def test_a_layout_that_cannot_be_read_says_why(text: str, want: str) -> None:
    assert str(parse_layout(text, (MEM,))) == f"device layout {want}"


def test_a_resource_that_a_device_does_not_list_is_zero() -> None:
    assert parse_layout(json.dumps([{"id": "0", "capacity": {MEM: 4}}]), (MEM, CORE)) == (
        Device("0", {MEM: 4, CORE: 0}),
    )


def test_ids_are_in_natural_order() -> None:
    ids = ["10", "2", "gpu-10", "gpu-9", "a", "01", "1", "²"]
    assert sorted(ids, key=natural_order) == ["01", "1", "2", "10", "a", "gpu-9", "gpu-10", "²"]
