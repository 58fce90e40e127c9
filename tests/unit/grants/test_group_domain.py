"""Plans of a group's ledger: all entries in force name one domain."""

from collections.abc import Mapping
from typing import Any

import pytest

from fairlead.grants.commit import NEWER, Accepted, LedgerPlan, Refused, StalePod, plan
from fairlead.grants.entry import Domain, LedgerEntry, NewerEntry, UnreadableEntry
from fairlead.grants.entry_state import EntryState
from fairlead.grants.group_domain import UNREADABLE, DomainRequest, GroupFacts, agrees, common_domain, outside
from fairlead.grants.ledger import OF_GROUPS, Ledger

BLOCK, A, B, OTHER = (
    {"block": "1"},
    {"block": "1", "rack": "a"},
    {"block": "1", "rack": "b"},
    {"block": "2", "rack": "a"},
)
HOLDS, OVER, UNCLEAR = EntryState.HOLDS, EntryState.POD_GONE, EntryState.UNCLEAR


def request(uid: str, domain: Domain, rv: str = "20") -> DomainRequest:
    return DomainRequest(uid, f"ns/{uid}", rv, "policy", domain)


def entry(uid: str, domain: Domain, rv: str = "10") -> LedgerEntry:
    return LedgerEntry(f"ns/{uid}", rv, "policy", order=1, domain=domain)


def planned(
    requests: list[DomainRequest],
    entries: Mapping[str, LedgerEntry] | None = None,
    states: Mapping[str, EntryState] | None = None,
    **others: Mapping[str, object],
) -> LedgerPlan:
    ledger = Ledger("ns/g", "u", "9", entries or {}, kind=OF_GROUPS, **others)  # type: ignore[arg-type]
    return plan(ledger, requests, GroupFacts(), dict.fromkeys(ledger.all, HOLDS) | dict(states or {}))


def refused(found: LedgerPlan) -> list[str]:
    return [one.why for one in found.answers if isinstance(one, Refused)]


@pytest.mark.parametrize(
    ("there", "state", "wanted", "is_accepted"),
    [
        (A, HOLDS, A, True),
        (A, HOLDS, B, False),
        (A, HOLDS, OTHER, False),
        (A, UNCLEAR, B, False),
        (A, OVER, B, True),
        (BLOCK, HOLDS, B, True),
        (BLOCK, HOLDS, OTHER, False),
        (B, HOLDS, BLOCK, True),
        ({"zone": "z"}, HOLDS, A, True),
    ],
)
def test_a_member_goes_where_those_in_force_are(
    there: Domain, state: EntryState, wanted: Domain, is_accepted: bool
) -> None:
    found = planned([request("a", wanted)], {"b": entry("b", there)}, {"b": state})
    assert isinstance(found.answers[0], Accepted) is is_accepted
    assert found.put.keys() == ({"a"} if is_accepted else set())
    assert found.drop == ({"b"} if state is OVER else set())
    assert found.unclear.keys() == ({"b"} if state is UNCLEAR else set()), "a read of its pod may make room"
    assert refused(found) == ([] if is_accepted else [outside([*wanted][-1])])


def test_the_first_of_a_batch_chooses() -> None:
    found = planned([request("a", A), request("b", B), request("c", A)])
    assert [type(one) for one in found.answers] == [Accepted, Refused, Accepted]
    assert [one.order for one in found.put.values()] == [1, 2]
    assert [one.domain for one in found.put.values()] == [A, A]


def test_the_entry_of_a_version_is_for_its_domain_only() -> None:
    stands = entry("a", A, rv="20")
    assert planned([request("a", A)], {"a": stands}).answers == [Accepted(stands)]
    assert refused(planned([request("a", B)], {"a": stands})) == [outside("rack")]
    assert refused(planned([request("a", BLOCK)], {"a": stands})) == [outside("block")], "its node may be in rack b"
    found = planned([request("a", A), request("a", B)])
    assert [type(one) for one in found.answers] == [Accepted, Refused]


def test_a_pod_that_has_changed_chooses_again() -> None:
    found = planned([request("a", B)], {"a": entry("a", A)})
    assert found.put["a"].domain == B
    assert refused(planned([request("a", B)], {"a": entry("a", A), "b": entry("b", A)})) == [outside("rack")]
    assert planned([request("a", A, rv="9")], {"a": entry("a", A)}).answers == [StalePod()]


def test_what_cannot_be_read_keeps_all_others_out_until_it_is_over() -> None:
    unreadable: Any = {"unreadable": {"x": UnreadableEntry("?", "ns/x")}}
    assert refused(planned([request("a", A)], **unreadable)) == [UNREADABLE]
    assert isinstance(planned([request("a", A)], states={"x": OVER}, **unreadable).answers[0], Accepted)
    newer: Any = {"newer": {"x": NewerEntry(2, "ns/x", "5")}}
    assert refused(planned([request("a", A)], **newer)) == [NEWER]
    stands = {"b": entry("b", A, rv="20")}
    assert refused(planned([request("b", B)], stands, **newer)) == [outside("rack")]
    assert planned([request("b", A)], stands, **newer).answers == [Accepted(stands["b"])]


def test_entries_of_two_levels_name_one_domain() -> None:
    assert common_domain([]) is None
    assert common_domain([BLOCK, A]) == A
    assert agrees(BLOCK, A)
    assert agrees(A, BLOCK)
    assert not agrees(A, B)
