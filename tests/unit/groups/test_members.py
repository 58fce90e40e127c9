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
    changes = [(index.put_known("0", member(A, 1), 3, 4), index.put_placed(("ns", "1"), (A,))) for _ in range(2)]
    assert changes[1] == ((), ())


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


def test_a_placed_pod_and_an_unplaced_one_are_told_apart() -> None:
    index = GroupIndex()
    index.put_known("0", member(A, 1))
    assert index.put_placed(("ns", "p"), (A,)) == (GroupChange(A, placed=True),)
    assert (state(index, A), index.group_of("0"), index.placed_pod(A)) == ((1, 1, True, True), A, ("ns", "p"))
    assert index.remove("0") == (GroupChange(A),)
    assert (state(index, A), index.group_of("0")) == ((0, 0, False, True), None)


def test_a_group_has_started_until_its_last_placed_pod_is_gone() -> None:
    index = GroupIndex()
    pods = [("ns", name) for name in "012"]
    for key in pods:
        index.put_placed(key, (A,))
    for key in (pods[0], pods[2], pods[1]):
        assert index.is_placed(A)
        assert index.placed_pod(A) is not None
        assert index.remove_placed(key) == (GroupChange(A),)
    assert (index.is_placed(A), index.placed_pod(A)) == (False, None)


def test_another_placed_pod_is_named_when_one_is_gone() -> None:
    index = GroupIndex()
    for name in "01":
        index.put_placed(("ns", name), (A,))
    index.remove_placed(("ns", "1"))
    assert index.placed_pod(A) == ("ns", "0")


def test_a_placed_pod_may_be_in_a_group_of_each_scheduler() -> None:
    index = GroupIndex()
    other = Group("other", A.namespace, "x")
    assert index.put_placed(("ns", "0"), (A, other)) == (GroupChange(A, placed=True), GroupChange(other, placed=True))
    assert index.put_placed(("ns", "0"), (A, other)) == ()
    assert (index.is_placed(A), index.is_placed(other)) == (True, True)
    assert index.put_placed(("ns", "0"), (other,)) == (
        GroupChange(A),
        GroupChange(other),
        GroupChange(other, placed=True),
    )
    assert (index.is_placed(A), index.is_placed(other)) == (False, True)


def test_a_pod_that_is_in_no_group_is_not_kept() -> None:
    index = GroupIndex()
    assert (index.put_placed(("ns", "0"), ()), index.put_known("0", None)) == ((), ())
    index.put_known("0", member(A, 1))
    index.put_placed(("ns", "0"), (A,))
    assert (index.put_placed(("ns", "0"), ()), index.put_known("0", None)) == ((GroupChange(A),), (GroupChange(A),))
    assert [*index.groups()] == []
    assert index.placed_pod(A) is None


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
    placed: dict[tuple[str, str], Group] = {}
    for step, uid, group, size in steps:
        key = "ns", uid
        before = {one: index.is_complete(one) for one in (A, B)}
        if step == "placed":
            placed.pop(key, None)
            if group is not None:
                placed[key] = group
            changes = index.put_placed(key, () if group is None else (group,))
        elif group is not None:
            known[uid] = group, size
            changes = index.put_known(uid, member(group, size), size, len(known))
        else:
            known.pop(uid, None), placed.pop(key, None)
            changes = (*index.remove(uid), *index.remove_placed(key))
        for one in (A, B):
            sizes = [size for of, size in known.values() if of == one]
            expected = len(sizes), max(sizes, default=0), len(sizes) >= max(sizes, default=1), one in placed.values()
            assert state(index, one) == expected
            assert (index.placed_pod(one) in [at for at, of in placed.items() if of == one]) == index.is_placed(one)
            assert any(change.completed for change in changes if change.group == one) == (
                index.is_complete(one) and not before[one]
            )
    for uid in "012345":
        index.remove(uid)
        index.remove_placed(("ns", uid))
    assert [vars(index)[name] for name in vars(index)] == [{}] * 4, "nothing is kept"


def test_pods_of_a_group_share_it() -> None:
    index = GroupIndex()
    for name in "012":
        index.put_placed(("ns", name), (Group("sched", "ns", "a"),))
    assert len({id(one) for one in index._of_placed.values()}) == 1


def test_the_hash_is_of_namespace_and_value() -> None:
    hashes = {group_hash(Group("sched", *rest)) for rest in (("a", "b/c"), ("a", "b"), ("b", "a"))}
    assert len(hashes) == 3
    assert group_hash(Group("one", "a", "b")) == group_hash(Group("other", "a", "b"))
    assert group_hash(A) == "09ac74bb56f19d2c7ed9313d323ae561"
