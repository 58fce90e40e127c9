"""Groups that have waited for long."""

import pytest

from fairlead.groups.group import Group, Membership
from fairlead.groups.members import GroupIndex
from fairlead.groups.waiting import LONG_S, waiting_groups
from fairlead.replica_state import WaitingGroups

NOW = 1_800_000_000
Member = tuple[str, int, str]
"""Value, seconds since it was created, and policy."""


@pytest.mark.parametrize(
    ("members", "placed", "expected"),
    [
        ([], "", {}),
        ([("a", LONG_S - 1, "p"), ("a", LONG_S - 1, "p")], "", {}),
        ([("a", LONG_S, "p")], "", {"p": WaitingGroups(incomplete=1, longest="ml/a")}),
        ([("a", LONG_S, "p"), ("a", 0, "p")], "", {"p": WaitingGroups(complete=1, longest="ml/a")}),
        ([("a", LONG_S, "p"), ("a", 0, "p")], "a", {}),
        (
            [("a", LONG_S, "p"), ("b", LONG_S + 1, "p"), ("b", 0, "p"), ("c", LONG_S + 2, "q")],
            "",
            {
                "p": WaitingGroups(complete=1, incomplete=1, longest="ml/b"),
                "q": WaitingGroups(incomplete=1, longest="ml/c"),
            },
        ),
        (
            [("a", LONG_S, "p"), ("a", LONG_S, "q")],
            "",
            {name: WaitingGroups(complete=1, longest="ml/a") for name in ("p", "q")},
        ),
    ],
)
def test_groups_that_have_waited_for_long(
    members: list[Member], placed: str, expected: dict[str, WaitingGroups]
) -> None:
    index = GroupIndex()
    for at, (value, age_s, policy) in enumerate(members):
        index.put_known(str(at), Membership(Group("s", "ml", value), 2, 30, policy, "g"), created=NOW - age_s)
    if placed:
        index.put_placed(("ml", "runs"), (Group("s", "ml", placed),))
    assert waiting_groups(index, NOW) == expected
