"""Who has to leave when somebody comes."""

import pytest

from fairlead.webhook.https.connection_limits import ConnectionsByAddress


def crowd(*there: str, most: int = 6, each: int = 3) -> ConnectionsByAddress[str]:
    """Each is called by its address and a number: `a1`."""
    found = ConnectionsByAddress[str](most, each)
    for one in there:
        assert found.add(one, one[0]) is None
    return found


@pytest.mark.parametrize(
    ("there", "comes", "leaves", "full"),
    [
        ("", "a1", None, False),
        ("a1 a2", "a3", None, False),
        ("a1 a2 a3", "a4", "a1", True),
        ("a1 a2 a3", "b1", None, False),
        ("b1 a1 a2 a3 c1 c2", "b2", "a1", False),
        ("b1 a1 a2 a3 c1 c2", "d1", "a1", False),
        ("a1 a2 b1 b2 c1 c2", "a3", "a1", True),
        ("a1 b1 c1 d1 e1 f1", "g1", "a1", False),
        ("a1 b1 c1 d1 e1 f1", "b2", "b1", True),
    ],
)
def test_the_oldest_of_where_most_are_from_leaves(there: str, comes: str, leaves: str | None, full: bool) -> None:
    found = crowd(*there.split())
    assert found.is_full_for(comes[0]) is full
    assert found.add(comes, comes[0]) == leaves
    assert {*found} == {*there.split(), comes} - {leaves}


def test_who_has_left_is_forgotten() -> None:
    found = crowd("a1", "a2", "a3")
    assert found.remove("a2")
    assert not found.remove("a2")
    assert found.add("a4", "a") is None
    for one in ("a1", "a3", "a4"):
        found.remove(one)
    assert (len(found), found._of) == (0, {})


def test_however_many_come_there_are_never_more() -> None:
    found = ConnectionsByAddress[int](50, 20)
    for number in range(10_000):
        found.add(number, str(number % 7 if number % 2 else 0))
        assert len(found) <= 50
    assert found.add(-1, "new") is not None
    assert -1 in [*found]
