"""State of a group, by what its holder has published."""

from typing import Final

import pytest

from fairlead.groups.group import Group, group_hash
from fairlead.groups.group_state import GroupState, state_of
from fairlead.groups.turns import NO_TURNS, PreferredGroup, PublishedRest, PublishedTurn, Turns

A: Final = Group("sched", "ns", "a")
OWN: Final = group_hash(A)
OTHER: Final = group_hash(Group("sched", "ns", "b"))
NOW: Final = 1_800_000_000.0


def turn(group: str, until: float = NOW + 1) -> PublishedTurn:
    return PublishedTurn(group, NOW - 9, until, held_members=1, size=2, attempt=1)


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        (NO_TURNS, "Waiting"),
        (Turns(turn(OWN)), "Turn"),
        (Turns(turn(OWN, NOW)), "Waiting"),
        (Turns(turn(OTHER)), "Waiting"),
        (Turns(rests={OWN: PublishedRest(NOW + 1, 1)}), "Resting"),
        (Turns(rests={OWN: PublishedRest(NOW, 1)}), "Waiting"),
        (Turns(rests={OTHER: PublishedRest(NOW + 1, 1)}), "Waiting"),
        (Turns(turn(OTHER), {OWN: PublishedRest(NOW + 1, 1)}), "Resting"),
        (Turns(turn(OWN, NOW), {OWN: PublishedRest(NOW + 1, 1)}), "Resting"),
        (Turns(preferred=PreferredGroup(OWN, NOW + 1)), "Waiting"),
    ],
)
def test_the_state_of_a_group(turns: Turns, expected: GroupState) -> None:
    assert state_of(A, turns, NOW, is_placed=False) == expected
    assert state_of(A, turns, NOW, is_placed=True) == "Started"
