"""Which devices a pod gets: tables of cases, and what holds for all of them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.grants.device_usage import Charge, DeviceAsk
from fairlead.strategies.contract import (
    PASS,
    CompiledShare,
    GrantedDevice,
    Nominated,
    Pass,
    PodGrant,
    Reject,
    RequestingContainers,
    Unknown,
)
from fairlead.strategies.devices.charges import charges_on, foreign_pods_on, usage_with
from fairlead.strategies.devices.choice import (
    CARDS,
    NEWER,
    NO_DEVICE,
    NO_ROOM,
    REASONS,
    RESOLVABLE,
    SEVERAL_CONTAINERS,
    TOO_FEW_HAVE_ROOM,
    TOO_FEW_HEALTHY,
    TOO_LARGE,
    WAITING,
    Refusal,
    choose_grants,
    need_of,
    usage_for,
)
from fairlead.strategies.devices.device_rules import device_filter, device_score
from fairlead.strategies.devices.layout import layout_of
from support.examples import MANY
from support.strategies.facts import Node, Notes, OnNode, Pod
from support.strategies.samples import device_share

MEM, CORE, COUNT = "example.org/gpu-mem", "example.org/gpu-core", "example.org/gpus"
CARDS_KEY = "example.org/cards"
UNEQUAL: dict[str, Any] = {"layout": {"annotation": "devices"}}
BOTH: dict[str, Any] = {"shares": [{"resource": MEM}, {"resource": CORE}], **UNEQUAL}
GPUSHARE: dict[str, Any] = {"record": "Gpushare"}


def pod(mem: float = 0, *, cards: int | None = None, core: float = 0, **more: Any) -> Pod:
    amounts = {name: float(amount) for name, amount in ((MEM, mem), (CORE, core)) if amount}
    return Pod(request=amounts, annotations={} if cards is None else {CARDS_KEY: str(cards)}, **more)


def entry(uid: str, *grants: tuple[str, int], core: int = 0, **more: Any) -> PodGrant:
    return PodGrant(
        uid, tuple(GrantedDevice(one, {MEM: mem, **({CORE: core} if core else {})}) for one, mem in grants), **more
    )


def equal(size: int, count: int, *granted: PodGrant, **more: Any) -> Node:
    """Cards of one size."""
    amounts = {MEM: float(size * count), COUNT: float(count)}
    return Node(**{"capacity": amounts, "allocatable": amounts, "granted": granted} | more)


def cards(*sizes: int, sick: Sequence[str] = (), core: int = 0, granted: Sequence[PodGrant] = (), **more: Any) -> Node:
    """Cards of several sizes."""
    listed = [
        {"id": str(at), "capacity": {MEM: size, CORE: core}, "healthy": str(at) not in sick}
        for at, size in enumerate(sizes)
    ]
    return Node(annotations={"devices": json.dumps(listed)}, granted=granted, **more)


def chosen(share: CompiledShare, wanted: Pod, node: Node) -> tuple[GrantedDevice, ...] | Refusal | Unknown:
    """Devices that a pod gets: none if it requests none, or has no need that can be told."""
    need = need_of(share, wanted)
    if need is None:
        return ()
    return need if isinstance(need, Unknown) else choose_grants(share, wanted, need, node)


def said(found: Any) -> Any:
    """A choice in short: ids, or why there is none."""
    if isinstance(found, Refusal):
        return found.reason
    return str(found) if isinstance(found, Unknown) else ",".join(one.id for one in found)


HALF = (entry("a", ("0", 15)), entry("b", ("1", 20)), entry("c", ("2", 18)))
"""What leaves 9, 4 and 22 of cards with 24, 24 and 40."""


@pytest.mark.parametrize(
    ("share", "wanted", "node", "want"),
    [
        # The example of the specification.
        (UNEQUAL, pod(16, cards=2), cards(24, 24, 40, granted=HALF), "0,2"),
        (UNEQUAL, pod(16), cards(24, 24, 40, granted=HALF), "2"),
        (UNEQUAL | {"split": "Each"}, pod(16, cards=2), cards(24, 24, 40, granted=HALF), TOO_FEW_HAVE_ROOM),
        # BestFit, WorstFit, Lowest, and ties.
        (UNEQUAL, pod(4), cards(24, 24, 40, granted=HALF), "1"),
        (UNEQUAL | {"choose": "WorstFit"}, pod(4), cards(24, 24, 40, granted=HALF), "2"),
        (UNEQUAL | {"choose": "Lowest"}, pod(4), cards(24, 24, 40, granted=HALF), "0"),
        ({}, pod(4), equal(8, 12), "0"),
        ({"choose": "WorstFit"}, pod(4), equal(8, 12, *(entry(f"u{at}", (str(at), 1)) for at in range(10))), "10"),
        ({"choose": "Lowest"}, pod(4), equal(8, 11, *(entry(f"u{at}", (str(at), 8)) for at in (0, 1, 2))), "3"),
        # Exactly enough, and one too much.
        ({}, pod(8), equal(8, 2, entry("a", ("0", 1))), "1"),
        ({}, pod(8), equal(8, 2, entry("a", ("0", 1)), entry("b", ("1", 1))), NO_ROOM),
        # Several shares: the first one ranks, each must have room.
        (BOTH, pod(4, core=3), cards(8, 8, core=4, granted=[entry("a", ("0", 2), core=2)]), "1"),
        (BOTH, pod(4, core=2), cards(8, 8, core=4, granted=[entry("a", ("0", 2), core=2)]), "0"),
        (BOTH, pod(core=4), cards(8, 8, core=4, granted=[entry("a", ("0", 2), core=2)]), "1"),
        (BOTH, pod(4, core=5), cards(8, 8, core=4), TOO_LARGE),
        # An odd request over several cards is rounded up on each.
        ({}, pod(7, cards=2), equal(4, 2), "0,1"),
        ({}, pod(7, cards=2), equal(4, 2, entry("a", ("1", 1))), TOO_FEW_HAVE_ROOM),
        # Why not.
        ({}, pod(4), Node(), NO_DEVICE),
        ({}, pod(4), equal(0, 2), NO_DEVICE),
        (UNEQUAL, pod(4), Node(), NO_DEVICE),
        (UNEQUAL, pod(4), cards(), NO_DEVICE),
        (UNEQUAL, pod(4), Node(annotations={"devices": "?"}), "device layout is not JSON"),
        ({}, pod(9), equal(8, 2), TOO_LARGE),
        ({"split": "Each"}, pod(9, cards=2), equal(8, 2), TOO_LARGE),
        (UNEQUAL, pod(9), cards(4, 16, sick="1"), TOO_FEW_HEALTHY),
        ({}, pod(9, cards=3), equal(8, 2), TOO_FEW_HEALTHY),
        (UNEQUAL, pod(9), cards(4, 16, sick="0", granted=[entry("a", ("1", 8))]), NO_ROOM),
        ({}, pod(4, cards=0), equal(8, 2), str(CARDS)),
        ({}, pod(4, cards=17), equal(8, 2), str(CARDS)),
        ({}, pod(16, cards=16), equal(8, 16), ",".join(map(str, range(16)))),
        ({}, pod(), equal(8, 2), ""),
        # A device that the layout no longer has: charged in full to every device.
        ({}, pod(4), equal(8, 2, entry("a", ("7", 5))), NO_ROOM),
        ({}, pod(3), equal(8, 2, entry("a", ("7", 5))), "0"),
        ({}, pod(4), equal(8, 2, entry("a", ("7", 2), ("8", 3))), NO_ROOM),
        ({}, pod(4), equal(8, 2, entry("a", ("0", 1), ("8", 4))), NO_ROOM),
        ({}, pod(3), equal(8, 2, entry("a", ("0", 1), ("8", 4))), "0"),
        # An entry that cannot be read: what its pod asks for, or all.
        ({}, pod(1), equal(8, 2, PodGrant("a", None)), NO_ROOM),
        ({}, pod(3), equal(8, 2, PodGrant("a", None), pods=[OnNode(uid="a", request={MEM: 5.0})]), "0"),
        # An entry of a newer version: nothing is granted.
        (
            {},
            pod(1),
            equal(8, 2, PodGrant("a", None, is_newer=True), pods=[OnNode(uid="a", request={MEM: 1.0})]),
            NEWER,
        ),
        # Foreign pods: in full on every device.
        ({}, pod(4), equal(8, 2, pods=[OnNode(uid="a", request={MEM: 5.0})]), NO_ROOM),
        ({}, pod(3), equal(8, 2, pods=[OnNode(uid="a", request={MEM: 5.0})]), "0"),
        ({}, pod(4), equal(8, 2, entry("a", ("0", 5)), pods=[OnNode(uid="a", request={MEM: 5.0})]), "1"),
        ({}, pod(8), equal(8, 2, pods=[OnNode(uid="a", request={MEM: 5.0}, phase="Succeeded")]), "0"),
        ({}, pod(4), equal(8, 2, pods=[OnNode(uid="a", request={MEM: 5.0}, deleting=True)]), NO_ROOM),
        # Granted one resource by another policy, the other by nobody.
        (
            BOTH,
            pod(core=2),
            cards(8, 8, core=4, granted=[entry("a", ("0", 8))], pods=[OnNode(uid="a", request={MEM: 8.0, CORE: 3.0})]),
            NO_ROOM,
        ),
        # Its own entry counts for nothing, and its devices are kept while they have room.
        ({}, pod(8), equal(8, 2, entry("u-train", ("1", 8))), "1"),
        ({}, pod(8), equal(8, 2, entry("u-train", ("1", 8)), entry("a", ("1", 1))), "0"),
        ({}, pod(4), equal(8, 2, entry("u-train", ("1", 8))), "0"),
        ({}, pod(8, cards=2), equal(8, 3, entry("u-train", ("2", 4), ("1", 4))), "1,2"),
        ({}, pod(8), equal(8, 2, entry("u-train", ("5", 8))), "0"),
    ],
)
def test_the_devices_that_a_pod_gets(share: dict[str, Any], wanted: Pod, node: Node, want: str) -> None:
    assert said(chosen(device_share(**share), wanted, node)) == want


@pytest.mark.parametrize(
    ("wanted", "node", "want"),
    [
        # Plugins find a pod by its amount: while one of this size waits, its card it is, or none.
        (pod(3), equal(8, 2, entry("a", ("1", 3), taken=False)), "1"),
        (pod(3), equal(8, 2, entry("a", ("1", 3), taken=True)), "1"),  # the best fit
        (pod(3), equal(8, 2, entry("a", ("1", 3), taken=False), entry("b", ("0", 5))), "1"),
        (pod(3), equal(8, 2, entry("a", ("1", 3), taken=True), entry("b", ("0", 5))), "0"),
        (pod(5), equal(8, 2, entry("a", ("1", 5), taken=False)), WAITING),
        (pod(5), equal(8, 2, entry("a", ("1", 5), taken=True)), "0"),
        (pod(4), equal(8, 2, entry("a", ("1", 5), taken=False)), "0"),
        (pod(2), equal(8, 2, entry("a", ("0", 2), taken=False), entry("b", ("1", 2), taken=False)), WAITING),
        (pod(2), equal(8, 2, entry("a", ("7", 2), taken=False)), WAITING),
        # Its own entry waits for itself only.
        (pod(5), equal(8, 2, entry("u-train", ("1", 5), taken=False)), "1"),
        (pod(5), equal(8, 2, entry("u-train", ("1", 5), taken=False), entry("a", ("0", 5), taken=False)), WAITING),
        (pod(5, askers_of={MEM: RequestingContainers(2, 0)}), equal(8, 2), SEVERAL_CONTAINERS),
        (pod(5, askers_of={MEM: RequestingContainers(1, 1)}), equal(8, 2), SEVERAL_CONTAINERS),
        (pod(5, askers_of={MEM: RequestingContainers(0, 1)}), equal(8, 2), SEVERAL_CONTAINERS),
    ],
)
def test_what_the_gpushare_plugin_can_tell_apart(wanted: Pod, node: Node, want: str) -> None:
    assert said(chosen(device_share(**GPUSHARE), wanted, node)) == want


def waits(mem: int, name: str = "w", priority: int = 0, created: int = 0, cards: int | None = None) -> Nominated:
    return Nominated(pod(mem, cards=cards, name=name, uid=f"u-{name}", priority=priority), created)


LEAVING = OnNode(uid="a", request={MEM: 6.0}, deleting=True)


@pytest.mark.parametrize(
    ("wanted", "node", "want"),
    [
        (pod(4), equal(8, 2, nominated=[waits(8)]), "1"),
        (pod(4), equal(8, 1, nominated=[waits(8)]), NO_ROOM),
        (pod(4, priority=1), equal(8, 1, nominated=[waits(8)]), "0"),  # it counts those of its own priority or higher
        (pod(4, priority=1), equal(8, 1, nominated=[waits(8, priority=1)]), NO_ROOM),
        (pod(4, uid="u-w"), equal(8, 1, nominated=[waits(8)]), "0"),  # itself
        # The victims may still be there. Their room is kept for the pod that evicts them.
        (pod(2), equal(8, 1, entry("a", ("0", 6)), pods=[LEAVING], nominated=[waits(8)]), NO_ROOM),
        (pod(2), equal(8, 1, entry("a", ("0", 6)), pods=[LEAVING]), "0"),
        (pod(2), equal(8, 2, entry("a", ("0", 6)), pods=[LEAVING], nominated=[waits(8)]), "0"),
        # What cannot be placed at all keeps nobody away.
        (pod(2), equal(8, 1, entry("a", ("0", 6)), nominated=[waits(8)]), "0"),
        # By priority, then creation: first the 5, so that the 4 goes to the other card.
        (pod(4), equal(8, 2, nominated=[waits(4, "w", 1, created=1), waits(5, "x", 2, created=2)]), "1"),
        (pod(4), equal(8, 2, nominated=[waits(4, "w", 1, created=2), waits(5, "x", 1, created=1)]), "1"),
        (pod(4), equal(8, 2, nominated=[waits(4, "w", 1, created=1), waits(5, "x", 1, created=2)]), "0"),
        (pod(4), equal(8, 3, nominated=[waits(12, cards=2)]), "2"),
        (pod(4), equal(8, 3, nominated=[waits(12, cards=99)]), "0"),
    ],
)
def test_pods_for_which_others_were_evicted_come_first(wanted: Pod, node: Node, want: str) -> None:
    assert said(chosen(device_share(), wanted, node)) == want


def judged(share: CompiledShare, wanted: Pod, node: Node, trace: Notes | None = None) -> Any:
    return device_filter(share).for_pod(wanted)(node, 0, trace)


@pytest.mark.parametrize(
    ("wanted", "node", "want"),
    [
        (pod(4), equal(8, 1), PASS),
        (pod(), Node(), PASS),
        (pod(4), Node(), Reject(NO_DEVICE)),
        (pod(9), equal(8, 1), Reject(TOO_LARGE)),
        (pod(9, cards=3), equal(8, 1), Reject(TOO_FEW_HEALTHY)),
        (pod(4), equal(8, 1, entry("a", ("0", 5))), Reject(NO_ROOM, resolvable=True)),
        (pod(8, cards=2), equal(8, 2, entry("a", ("0", 5))), Reject(TOO_FEW_HAVE_ROOM, resolvable=True)),
        (pod(4, cards=0), equal(8, 1), CARDS),
        # A pod that is nominated to the node is among those that wait for it.
        (pod(8), equal(8, 1, nominated=[waits(8)]), Reject(NO_ROOM, resolvable=True)),
        (pod(8, nominated="n1"), equal(8, 1, nominated=[waits(8)]), PASS),
        (pod(8, nominated="n2"), equal(8, 1, nominated=[waits(8)]), Reject(NO_ROOM, resolvable=True)),
        (pod(8, nominated="n1"), equal(8, 1, nominated=[waits(8), waits(8, "x")]), Reject(NO_ROOM, resolvable=True)),
        (pod(4, nominated="n1"), equal(8, 1, nominated=[waits(4), waits(4, "x")]), PASS),
    ],
)
def test_the_filter(wanted: Pod, node: Node, want: object) -> None:
    assert judged(device_share(), wanted, node) == want


def test_a_pod_that_the_plugin_cannot_serve_is_rejected_everywhere() -> None:
    two = pod(4, askers_of={MEM: RequestingContainers(2, 0)})
    assert judged(device_share(**GPUSHARE), two, equal(8, 1)) == Reject(SEVERAL_CONTAINERS)
    assert judged(device_share(), two, equal(8, 1)) == PASS


def test_reasons_are_rejections_of_the_filter() -> None:
    assert device_filter(device_share()).reasons == REASONS
    assert {*REASONS} >= RESOLVABLE


def test_preemption_keeps_a_node_if_the_pod_fits_without_its_victims() -> None:
    node = equal(
        8, 2, entry("a", ("0", 6)), entry("b", ("1", 6)), pods=[OnNode(uid=one, request={MEM: 6.0}) for one in "ab"]
    )
    assert judged(device_share(), pod(8), node) == Reject(NO_ROOM, resolvable=True)
    assert judged(device_share(), pod(8), node.without("a")) == PASS
    assert judged(device_share(), pod(16, cards=2), node.without("a")) == Reject(TOO_FEW_HAVE_ROOM, resolvable=True)


@pytest.mark.parametrize(
    ("share", "wanted", "node", "want"),
    [
        ({}, pod(4), equal(8, 2), 50.0),
        ({}, pod(4), equal(8, 2, entry("a", ("0", 4))), 100.0),
        ({"choose": "WorstFit"}, pod(4), equal(8, 2, entry("a", ("0", 4))), 50.0),
        ({}, pod(4, cards=2), equal(8, 2, entry("a", ("0", 4))), 50.0),
        (BOTH, pod(core=2), cards(0, core=4), 100.0),
        ({}, pod(9), equal(8, 2), None),
        ({}, pod(), equal(8, 2), None),
    ],
)
def test_the_score(share: dict[str, Any], wanted: Pod, node: Node, want: float | None) -> None:
    made = device_share(**share)
    pack: object = device_score(made, "Pack").for_pod(wanted)(node, 0)
    spread: object = device_score(made, "Spread").for_pod(wanted)(node, 0)
    if want is None:
        assert (pack, spread) == (0.0, 0.0)
    else:
        assert pack == pytest.approx(want)
        assert spread == pytest.approx(100.0 - want)


def test_explain_shows_the_free_room_of_each_card_and_the_largest() -> None:
    notes = Notes()
    judged(device_share(**UNEQUAL), pod(16), cards(24, 24, 40, sick="1", granted=HALF), notes)
    assert {name: (item["free"], item["fits"]) for name, item in notes.items.items() if name.startswith("device ")} == {
        "device 0": (9, False),
        "device 1": (4, False),
        "device 2": (22, True),
    }
    assert (notes.values["largestFree"], notes.values["chosen"]) == (22, "2")


def test_foreign_pods_are_those_without_a_grant_of_the_resource() -> None:
    node = equal(
        8, 1, entry("a", ("0", 1)), PodGrant("b", None), pods=[OnNode(uid=one, request={MEM: 1.0}) for one in "abc"]
    )
    assert [one.uid for one in foreign_pods_on(node, MEM)] == ["b", "c"]


def test_what_a_pod_needs() -> None:
    needs = [need_of(device_share(split=split), pod(7, cards=2)) for split in ("Even", "Each")]
    assert needs == [DeviceAsk("gpu", 2, {MEM: 4}), DeviceAsk("gpu", 2, {MEM: 7})]
    assert need_of(device_share(), pod(0.5)) == DeviceAsk("gpu", 1, {MEM: 1})


SHARES = [
    device_share(**UNEQUAL, choose=choose, split=split)
    for choose in ("BestFit", "WorstFit", "Lowest")
    for split in ("Even", "Each")
] + [device_share(**BOTH)]
amounts = st.integers(0, 9)
pods = st.builds(
    lambda mem, core, cards, priority, uid: pod(mem, core=core, cards=cards, priority=priority, uid=uid),
    amounts,
    st.integers(0, 3),
    st.integers(1, 3),
    st.integers(0, 2),
    st.integers(0, 99).map("p{}".format),
)


@settings(max_examples=MANY, derandomize=True, database=None, deadline=None)
@given(st.data())
def test_no_choice_makes_a_device_hold_more_than_it_has(data: st.DataObject) -> None:
    """Pods come and go and wait, until every device is full; what is granted never exceeds what there is."""
    share = data.draw(st.sampled_from(SHARES))
    sizes = data.draw(st.lists(st.integers(0, 12), max_size=4))
    node = cards(*sizes, core=4, sick=data.draw(st.lists(st.sampled_from("0123"), max_size=1)))
    granted: dict[str, PodGrant] = {}
    foreign = data.draw(st.lists(st.builds(OnNode, uid=st.uuids().map(str), request=st.just({MEM: 2.0})), max_size=1))
    for wanted in data.draw(st.lists(pods, max_size=12)):
        waiting = [Nominated(one, 0) for one in data.draw(st.lists(pods, max_size=1))]
        facts = Node(annotations=node.annotations, granted=[*granted.values()], pods=foreign, nominated=waiting)
        found = chosen(share, wanted, facts)
        assert found == chosen(share, wanted, facts), "equal facts, another answer"
        reordered = Node(
            annotations=node.annotations, granted=[*granted.values()][::-1], pods=foreign, nominated=waiting
        )
        assert found == chosen(share, wanted, reordered), "the order of the entries is nothing"
        if isinstance(found, Refusal | Unknown):
            _says_the_same(share, wanted, facts, found)
            continue
        devices = layout_of(share.entry, facts)
        assert not isinstance(devices, Unknown)
        _is_sound(share, wanted, found, {one.id: one.healthy for one in devices})
        if found:
            granted[wanted.uid] = PodGrant(wanted.uid, found)
        charges = [Charge(uid, one.id, one.amounts) for uid, held in granted.items() for one in held.grants or ()]
        usage = usage_with(devices, charges)
        assert all(usage.free(resource, one.id) >= 0 for one in devices for resource in one.capacity)
        if data.draw(st.booleans()) and granted:
            granted.pop(data.draw(st.sampled_from(sorted(granted))))


def _is_sound(share: CompiledShare, wanted: Pod, found: Sequence[GrantedDevice], healthy: Mapping[str, bool]) -> None:
    need = need_of(share, wanted)
    if not isinstance(need, DeviceAsk):
        assert found == ()
        return
    assert len({one.id for one in found}) == len(found) == need.devices
    assert all(healthy[one.id] and one.amounts == need.each for one in found)


def _says_the_same(share: CompiledShare, wanted: Pod, node: Node, found: Refusal | Unknown) -> None:
    """The filter rejects what binding refuses, for a pod that has no entry and is not nominated."""
    others = {one.uid for one in node.granted} | {one.pod.uid for one in node.nominated}
    if isinstance(found, Refusal) and wanted.uid not in others:
        assert judged(share, wanted, node) == Reject(found.reason, found.resolvable)


@settings(max_examples=MANY, derandomize=True, database=None, deadline=None)
@given(
    st.lists(amounts, max_size=3),
    st.lists(st.tuples(st.sampled_from(["0", "1", "2", "9"]), st.integers(0, 1 << 53)), max_size=5),
    st.lists(st.floats(0, 1e18), max_size=3),
)
def test_what_is_free_is_below_zero_rather_than_huge(
    sizes: list[int], granted: list[tuple[str, int]], asked: list[float]
) -> None:
    entries = [entry(f"e{at}", one) for at, one in enumerate(granted)]
    placed = [OnNode(uid=f"f{at}", request={MEM: amount}) for at, amount in enumerate(asked)]
    node = cards(*sizes, granted=entries, pods=placed)
    share = device_share(**UNEQUAL)
    devices = layout_of(share.entry, node)
    assert not isinstance(devices, Unknown)
    usage = usage_for(share, devices, node, ())
    free = [usage.free(MEM, one.id) for one in devices]
    assert all(left <= size for left, size in zip(free, sizes, strict=True))
    whole = usage_with(devices, charges_on(node, (MEM,)))
    assert sum(whole.free(MEM, one.id) for one in devices) <= sum(sizes)
    verdict = judged(share, pod(1), node)
    assert isinstance(verdict, Pass | Reject)
    assert isinstance(verdict, Pass) == any(left >= 1 for left in free)
