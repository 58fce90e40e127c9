"""Filters and commits charge the devices of a node alike, whatever pods were granted and request."""

from typing import Any, Final

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.grants.commit import NodeInventory, usage_of
from fairlead.grants.entry import GrantedDevice, LedgerEntry, UnreadableEntry
from fairlead.grants.entry_state import PodState
from fairlead.grants.ledger import Ledger
from fairlead.strategies.contract import PodGrant
from fairlead.strategies.devices.charges import charges_on, usage_with
from fairlead.strategies.devices.layout import Device
from support.examples import MANY
from support.strategies.facts import Node, OnNode

MEM, CORE, LANE = "example.org/mem", "example.org/core", "example.org/lane"
CARDS: Final = (Device("0", {MEM: 24, CORE: 100}), Device("1", {MEM: 40, CORE: 100}))
PORTS: Final = (Device("0", {LANE: 8}), Device("a", {LANE: 4}))
CAPACITY: Final = {
    resource: {one.id: one.capacity[resource] for one in devices}
    for devices in (CARDS, PORTS)
    for resource in devices[0].capacity
}

amounts = st.dictionaries(st.sampled_from((MEM, CORE, LANE, "example.org/other")), st.integers(0, 9), max_size=3)
devices = st.lists(st.builds(GrantedDevice, st.sampled_from(("0", "1", "a", "lost")), amounts), max_size=3)
grants = st.dictionaries(st.sampled_from("pq"), devices.map(tuple), max_size=2)
uids = st.sampled_from("abcdef")


@settings(max_examples=MANY, derandomize=True, database=None)
@given(
    st.dictionaries(uids, grants | st.none(), max_size=4),
    st.dictionaries(uids, amounts, max_size=4),
    st.frozensets(uids, max_size=2),
)
def test_filter_and_commit_charge_alike(
    entries: dict[str, Any], placed: dict[str, dict[str, int]], over: frozenset[str]
) -> None:
    over -= placed.keys()
    ledger = Ledger(
        "n1",
        "u",
        "1",
        {uid: LedgerEntry(f"ns/{uid}", "1", "policy", grant) for uid, grant in entries.items() if grant is not None},
        {uid: UnreadableEntry("why") for uid, grant in entries.items() if grant is None},
    )
    pods = [PodState(uid, f"ns/{uid}", "", "n1", request=request) for uid, request in placed.items()]
    committed = usage_of(ledger, NodeInventory(CAPACITY, pods), CAPACITY, over)
    node = Node(
        granted=[
            PodGrant(
                uid,
                None if grant is None else tuple(one for many in grant.values() for one in many),
                is_placed=uid in placed,
            )
            for uid, grant in entries.items()
            if uid not in over
        ],
        pods=[
            OnNode(uid=uid, request={name: float(amount) for name, amount in request.items()})
            for uid, request in placed.items()
        ],
    )
    for layout in (CARDS, PORTS):
        filtered = usage_with(layout, charges_on(node, layout[0].capacity.keys()))
        assert filtered.charged == {resource: committed.charged[resource] for resource in filtered.charged}
