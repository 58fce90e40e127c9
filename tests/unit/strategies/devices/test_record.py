"""Annotations that tell what was granted, and what is believed of them when they are read."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.grants.entry import GrantedDevice, copies
from fairlead.strategies.devices.record import (
    ShareGrant,
    differs,
    gpushare_annotations,
    grants_in,
    is_taken,
    recorded_grants,
)
from support.strategies.facts import Pod
from support.strategies.samples import device_share

MEM, CORE = "example.org/gpu-mem", "example.org/gpu-core"
ALL, OF_GPU = "fairlead.dev/devices", "fairlead.dev/devices.gpu"
GPU = device_share()
BOTH = device_share(name="both", shares=[{"resource": MEM}, {"resource": CORE}])
PLUGIN = device_share(record="Gpushare")


def grants(*several: tuple[str, int]) -> tuple[GrantedDevice, ...]:
    return tuple(GrantedDevice(one, {MEM: amount}) for one, amount in several)


def by_plugin(**fields: str) -> dict[str, str]:
    given = {"IDX": "2", "POD": "16", "DEV": "24", "ASSIGNED": "false", "ASSUME_TIME": "7"} | fields
    return {f"ALIYUN_COM_GPU_MEM_{key}": text for key, text in given.items()}


def test_a_container_reads_the_ids() -> None:
    made = copies({"gpu": grants(("0", 8), ("2", 8)), "both": (GrantedDevice("0", {MEM: 4, CORE: 1}),)})
    assert made == {
        OF_GPU: "0,2",
        "fairlead.dev/devices.both": "0",
        ALL: '{"v":1,"gpu":[{"id":"0","example.org/gpu-mem":8},{"id":"2","example.org/gpu-mem":8}],'
        '"both":[{"id":"0","example.org/gpu-mem":4,"example.org/gpu-core":1}]}',
    }


def test_the_plugin_reads_its_five_keys() -> None:
    assert gpushare_annotations(grants(("2", 16))[0], PLUGIN.entry, 24, 7) == by_plugin()


@pytest.mark.parametrize(
    ("annotations", "phase", "want"),
    [
        (by_plugin(), "Pending", False),
        (by_plugin(ASSIGNED="true"), "Pending", True),
        (by_plugin(), "Running", True),
        (by_plugin(), "Failed", True),
        ({}, "", False),
    ],
)
def test_when_the_plugin_has_taken_a_pod(annotations: dict[str, str], phase: str, want: bool) -> None:
    assert is_taken(annotations, phase) is want


def listed(*several: object, version: object = 1) -> dict[str, str]:
    return {ALL: json.dumps({"v": version, "gpu": [*several]})}


ONE, TWO = {"id": "2", MEM: 16}, {"id": "0", MEM: 16}


@pytest.mark.parametrize(
    ("asked", "annotations", "want"),
    [
        (16, listed(ONE), "2"),
        (16, listed({"id": "GPU-1", MEM: 16, "other": True}), "GPU-1"),
        # Not what the pod asks for.
        (17, listed(ONE), None),
        (15, listed(ONE), None),
        (16, listed(ONE, TWO), None),
        (16, listed(ONE, ONE), None),
        (16, listed(), None),
        (16, listed({"id": "2"}), None),
        # Not readable.
        (16, {}, None),
        (16, {ALL: ""}, None),
        (16, {ALL: "["}, None),
        (16, {ALL: "[" * 50_000}, None),
        (16, {ALL: " " * 70_000 + "{}"}, None),
        (16, {ALL: "1"}, None),
        (16, {ALL: '{"v":1}'}, None),
        (16, listed(ONE, version=2), None),
        (16, listed(2), None),
        (16, listed({"id": 2, MEM: 16}), None),
        (16, listed({"id": "2", MEM: "16"}), None),
        (16, listed({"id": "2", MEM: -16}), None),
        (16, listed({"id": "2", MEM: True}), None),
        # The pod asks for nothing.
        (0, listed({"id": "2", MEM: 0}), None),
    ],
)
def test_what_a_ledger_begins_with(asked: int, annotations: dict[str, str], want: str | None) -> None:
    found = recorded_grants(GPU, Pod(request={MEM: float(asked)}, annotations=annotations))
    assert (found and ",".join(one.id for one in found)) == want


@pytest.mark.parametrize(
    ("annotations", "want"),
    [
        (by_plugin(), "2"),
        (by_plugin(ASSIGNED="true"), "2"),
        (by_plugin(POD="8"), None),
        (by_plugin(IDX="-1"), None),
        (by_plugin(IDX="²"), None),
        (by_plugin(IDX="9" * 5000), None),
        (by_plugin(POD=""), None),
        ({}, None),
        (listed(ONE), None),
    ],
)
def test_what_a_ledger_begins_with_where_the_plugin_is_told(annotations: dict[str, str], want: str | None) -> None:
    found = recorded_grants(PLUGIN, Pod(request={MEM: 16.0}, annotations=annotations))
    assert (found and ",".join(one.id for one in found)) == want


def test_several_devices_are_read_back() -> None:
    asked = Pod(
        request={MEM: 15.0}, annotations={**listed({"id": "0", MEM: 8}, {"id": "2", MEM: 8}), "example.org/cards": "2"}
    )
    assert recorded_grants(GPU, asked) == grants(("0", 8), ("2", 8))


LEDGER = grants(("0", 8), ("2", 8))


@pytest.mark.parametrize(
    ("changed", "want"),
    [
        ({}, False),
        ({ALL: json.dumps({"v": 1, "gpu": [{"id": "2", MEM: 8}, {"id": "0", MEM: 8}]})}, False),
        ({OF_GPU: "0"}, True),
        ({OF_GPU: "0,3"}, True),
        ({ALL: json.dumps({"v": 1, "gpu": [{"id": "0", MEM: 8}, {"id": "2", MEM: 1}]})}, True),
        ({ALL: "[[0,1]]"}, True),
        ({ALL: ""}, True),
    ],
)
def test_a_forged_copy_is_noticed(changed: dict[str, str], want: bool) -> None:
    assert differs([ShareGrant(GPU, LEDGER)], copies({"gpu": LEDGER}) | changed) is want


def test_a_forged_copy_for_the_plugin_is_noticed() -> None:
    ledger = [ShareGrant(PLUGIN, grants(("2", 16)))]
    assert not differs(ledger, by_plugin(ASSIGNED="true", ASSUME_TIME="9"))
    assert differs(ledger, by_plugin(IDX="1"))
    assert differs(ledger, {})


ids = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"], exclude_characters=","), min_size=1)


@given(st.dictionaries(ids, st.integers(1, 1 << 53), min_size=1, max_size=5))
def test_what_is_written_is_what_is_read(devices: dict[str, int]) -> None:
    granted = grants(*devices.items())
    assert grants_in(GPU.entry, copies({"gpu": granted})) == granted


@given(
    st.text()
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["v", "gpu", "id", MEM]), inner),
    ).map(json.dumps)
)
def test_nothing_that_is_written_there_raises(text: str) -> None:
    pod = Pod(request={MEM: 1.0}, annotations={ALL: text, OF_GPU: text, **by_plugin(IDX=text, POD=text)})
    for share in (GPU, PLUGIN, BOTH):
        recorded_grants(share, pod)
        differs([ShareGrant(share, grants(("0", 1)))], pod.annotations)
