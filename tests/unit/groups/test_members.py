"""Index of groups: what is known of each."""

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.groups.group import Group, Membership, group_hash
from fairlead.groups.members import GroupChange, GroupIndex

A: Final = Group("sched", "ns", "a")
B: Final = Group("sched", "ns", "b")


def member(group: Group, size: int = 2) -> Membership:
    return Membership(group, size, 30, "policy", "gang")


def state(index: GroupIndex, group: Group) -> tuple[int, int, bool, bool]:
    return index.known(group), index.size(group), index.is_complete(group), index.is_placed(group)


def test_nothing_is_known_of_a_group_at_first() -> None:
    index = GroupIndex()
    assert (state(index, A), index.placed_pod(A), index.group_of("u")) == ((0, 0, False, False), None, None)


def test_the_last_known_member_completes_a_group_once() -> None:
    index = GroupIndex()
    assert index.put_known("0", member(A)) == (GroupChange(A),)
    assert index.put_known("1", member(A)) == (GroupChange(A, completed=True),)
    assert index.put_known("2", member(A)) == (GroupChange(A),)
    assert state(index, A) == (3, 2, True, False)


def test_what_is_put_again_is_no_change() -> None:
    index = GroupIndex()
    index.put_known("0", member(A, 1), 3, 4)
    index.put_placed("1", A)
    assert index.put_known("0", member(A, 1), 3, 4) == ()
    assert index.put_placed("1", A) == ()


def test_a_member_that_says_less_completes_a_group() -> None:
    index = GroupIndex()
    index.put_known("0", member(A, 3))
    index.put_known("1", member(A, 2))
    assert index.put_known("0", member(A, 2)) == (GroupChange(A, completed=True),)


def test_a_member_that_goes_may_complete_a_group() -> None:
    index = GroupIndex()
    for uid, size in (("0", 2), ("1", 2), ("2", 4)):
        index.put_known(uid, member(A, size))
    assert index.remove("2") == (GroupChange(A, completed=True),)
    assert index.remove("1") == (GroupChange(A),)
    assert index.remove("1") == ()


def test_a_pod_that_changes_its_group_changes_both() -> None:
    index = GroupIndex()
    index.put_known("0", member(A, 1))
    assert index.put_known("0", member(B, 1)) == (GroupChange(A), GroupChange(B, completed=True))
    assert (state(index, A), state(index, B), index.group_of("0")) == ((0, 0, False, False), (1, 1, True, False), B)


def test_a_member_that_is_placed_is_known_no_more() -> None:
    index = GroupIndex()
    index.put_known("0", member(A, 1))
    assert index.put_placed("0", A) == (GroupChange(A), GroupChange(A, placed=True))
    assert (state(index, A), index.group_of("0"), index.placed_pod(A)) == ((0, 0, False, True), None, "0")


def test_a_group_has_started_until_its_last_placed_pod_is_gone() -> None:
    index = GroupIndex()
    for uid in ("0", "1", "2"):
        index.put_placed(uid, A)
    for uid in ("0", "2", "1"):
        assert index.is_placed(A)
        assert index.placed_pod(A) is not None
        assert index.remove(uid) == (GroupChange(A),)
    assert (index.is_placed(A), index.placed_pod(A)) == (False, None)


def test_another_placed_pod_is_named_when_one_is_gone() -> None:
    index = GroupIndex()
    for uid in ("0", "1"):
        index.put_placed(uid, A)
    index.remove("1")
    assert index.placed_pod(A) == "0"


@pytest.mark.parametrize("placed", [True, False])
def test_a_pod_that_is_in_no_group_is_not_kept(placed: bool) -> None:
    index = GroupIndex()
    assert (index.put_placed("0", None) if placed else index.put_known("0", None)) == ()
    index.put_known("0", member(A, 1))
    assert (index.put_placed("0", None) if placed else index.put_known("0", None)) == (GroupChange(A),)
    assert [*index.groups()] == []


@pytest.mark.parametrize(
    ("members", "first"),
    [
        ({A: [(0, 5)], B: [(0, 4)]}, B),
        ({A: [(0, 5)], B: [(1, 9)]}, B),
        ({A: [(0, 1), (0, 9)], B: [(0, 2)]}, A),
        ({A: [(2, 9), (0, 1)], B: [(2, 2)]}, A),
        ({A: [(-5, 1)], B: [(-9, 0)]}, A),
        ({B: [(0, 1)], A: [(0, 1)]}, A),
    ],
    ids=["older", "priority first", "oldest member", "highest and oldest of any member", "negative", "name"],
)
def test_groups_are_sorted_by_priority_and_then_by_age(
    members: dict[Group, list[tuple[int, int]]], first: Group
) -> None:
    index = GroupIndex()
    for group, pods in members.items():
        for number, (priority, created) in enumerate(pods):
            index.put_known(f"{group.value}{number}", member(group), priority, created)
    assert min(index.groups(), key=index.rank) == first


def test_a_rank_changes_with_the_members() -> None:
    index = GroupIndex()
    index.put_known("0", member(A), 5, 10)
    ranks = [index.rank(A)[:2]]
    index.put_known("1", member(A), 7, 5)
    ranks.append(index.rank(A)[:2])
    index.remove("1")
    ranks.append(index.rank(A)[:2])
    assert ranks == [(-5, 10), (-7, 5), (-5, 10)]


UIDS: Final = st.sampled_from("012345")
STEPS: Final = st.lists(
    st.one_of(
        st.tuples(st.just("known"), UIDS, st.sampled_from([A, B]), st.integers(1, 4)),
        st.tuples(st.just("placed"), UIDS, st.sampled_from([A, B, None]), st.just(0)),
        st.tuples(st.just("gone"), UIDS, st.none(), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_whatever_is_heard_each_answer_is_that_of_a_count(steps: list[tuple[str, str, Group | None, int]]) -> None:
    index = GroupIndex()
    known: dict[str, tuple[Group, int]] = {}
    placed: dict[str, Group] = {}
    for step, uid, group, size in steps:
        known.pop(uid, None), placed.pop(uid, None)
        before = {one: index.is_complete(one) for one in (A, B)}
        if group is None:
            changes = index.put_placed(uid, None) if step == "placed" else index.remove(uid)
        elif step == "known":
            known[uid] = group, size
            changes = index.put_known(uid, member(group, size), size, len(known))
        else:
            placed[uid] = group
            changes = index.put_placed(uid, group)
        for one in (A, B):
            sizes = [size for of, size in known.values() if of == one]
            expected = len(sizes), max(sizes, default=0), len(sizes) >= max(sizes, default=1), one in placed.values()
            assert state(index, one) == expected
            assert (index.placed_pod(one) in [uid for uid, of in placed.items() if of == one]) == index.is_placed(one)
            assert any(change.completed for change in changes if change.group == one) == (
                index.is_complete(one) and not before[one]
            )
    for uid in "012345":
        index.remove(uid)
    assert [vars(index)[name] for name in vars(index)] == [{}] * 4, "nothing is kept"


def test_pods_of_a_group_share_it() -> None:
    index = GroupIndex()
    for uid in ("0", "1", "2"):
        index.put_placed(uid, Group("sched", "ns", "a"))
    assert len({id(one) for one in index._placed_uids.values()}) == 1


def test_the_hash_is_of_namespace_and_value() -> None:
    hashes = {group_hash(Group("sched", *rest)) for rest in (("a", "b/c"), ("a", "b"), ("b", "a"))}
    assert len(hashes) == 3
    assert group_hash(Group("one", "a", "b")) == group_hash(Group("other", "a", "b"))
    assert group_hash(A) == "09ac74bb56f19d2c7ed9313d323ae561"
