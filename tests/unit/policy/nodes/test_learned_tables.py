"""Tables of learned outcomes: which nodes a publication changes."""

import pytest

from fairlead.cooperative import finish
from fairlead.learned.pair import NOTHING, OutcomeSums, node_key, text_of
from fairlead.learned.pairs import Pairs
from fairlead.policy.nodes import learned_tables
from fairlead.policy.nodes.learned_tables import LearnedTable, TableOfRule
from fairlead.policy.nodes.measured_table import Published
from fairlead.policy.nodes.node_table import Nodes
from support.policy import node

RULE = TableOfRule("u-p", "works", "m")
ONE = OutcomeSums(0.5, 1.0, 1_800_000_000)


def pairs(**sums: OutcomeSums) -> Pairs:
    """Pairs of one type with the nodes of these UIDs."""
    return {("ml/train", node_key(uid)): one for uid, one in sums.items()}


def changed(nodes: Nodes, number: int, found: Pairs | None) -> list[str]:
    """Return the names of the nodes that a publication changes, as the journal has it."""
    head = nodes.head
    nodes.put_learned(RULE, number, found)
    if nodes.head == head:
        return []
    entry, *more = nodes.since(head) or [None]
    assert isinstance(entry, Published)
    assert not more
    return sorted(name for name, slot in nodes.slots.items() if slot < len(entry.mask) and entry.mask[slot])


def cluster(**uids: str) -> Nodes:
    nodes = Nodes()
    for name, uid in uids.items():
        nodes.put(node(name, uid=uid))
    nodes.learned.keep([RULE])
    return nodes


def test_a_publication_changes_the_nodes_whose_sums_differ() -> None:
    nodes = cluster(a="u", b="v", c="w")
    assert changed(nodes, 0, pairs(u=ONE, v=ONE, elsewhere=ONE)) == ["a", "b"]
    assert changed(nodes, 0, pairs(u=ONE, v=ONE, elsewhere=ONE)) == []
    assert changed(nodes, 0, pairs(u=OutcomeSums(0.25, 1.0, ONE.at), v=ONE)) == ["a"]
    assert changed(nodes, 0, pairs(u=OutcomeSums(0.25, 1.5, ONE.at), v=ONE)) == ["a"]
    assert changed(nodes, 0, pairs(u=OutcomeSums(0.25, 1.5, ONE.at + 1), v=ONE)) == ["a"]
    assert changed(nodes, 1, pairs(w=ONE)) == ["c"]
    assert changed(nodes, 0, pairs(v=ONE)) == ["a"]
    assert nodes.learned.tables[RULE].pairs == 2


def test_other_ids_of_the_same_outcomes_change_nothing() -> None:
    nodes = cluster(a="u")
    changed(nodes, 0, pairs(u=OutcomeSums(0.5, 1.0, ONE.at, "", (0, ""), text_of([(ONE.at, "id")]))))
    assert changed(nodes, 0, pairs(u=OutcomeSums(0.5, 1.0, ONE.at, "", (ONE.at, "id")))) == []


def test_nodes_that_come_and_go_between_publications() -> None:
    nodes = cluster(a="u", b="v")
    assert changed(nodes, 0, pairs(u=ONE, w=ONE)) == ["a"]
    nodes.put(node("c", uid="w"))
    assert changed(nodes, 0, {}) == ["a", "c"]
    nodes.remove("a")
    nodes.put(node("d", uid="x"))
    assert changed(nodes, 0, pairs(u=ONE, v=ONE)) == ["b"]


def test_nodes_that_come_and_go_while_their_keys_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned_tables, "_KEYS", 2)
    nodes = cluster(a="u", b="v", c="w", d="x", e="y")
    steps = nodes.keep_keys()
    next(steps)
    nodes.remove("a")
    nodes.put(node("b", uid="new"))  # a node of the same name
    nodes.remove("d")
    nodes.put(node("f", uid="z"))  # in the place of d, whose key was not computed
    nodes.put(node("g", uid="u"))  # as a was, in another place
    nodes.put(node("h", uid="t"))
    finish(steps)
    nodes.put(node("i", uid="s"))
    every = pairs(**dict.fromkeys("stuvwxyz", ONE))
    assert changed(nodes, 0, every) == ["c", "e", "f", "g", "h", "i"]
    assert changed(nodes, 0, pairs(new=ONE, **dict.fromkeys("stuwyz", ONE))) == ["b"]
    assert changed(nodes, 0, {}) == ["b", "c", "e", "f", "g", "h", "i"]


def test_nodes_of_a_file_may_share_a_uid() -> None:
    nodes = cluster(a="", b="", c="u")
    assert changed(nodes, 0, {("ml/train", node_key("")): ONE}) == ["a", "b"]


def test_what_cannot_be_read_changes_all_nodes_and_so_does_what_can_be_again() -> None:
    nodes = cluster(a="u", b="v")
    assert changed(nodes, 0, None) == ["a", "b"]
    assert changed(nodes, 1, None) == []
    assert changed(nodes, 1, pairs(u=ONE)) == ["a"]
    assert changed(nodes, 0, {}) == ["a", "b"]


def test_a_pair_that_is_gone_is_unknown_again() -> None:
    table, (view,) = LearnedTable(), cluster(a="u").views
    assert view is not None
    table.put(0, pairs(u=ONE))
    found = [table.learned("ml/train", view)]
    table.put(0, {})
    found.append(table.learned("ml/train", view))
    assert [one.sums for one in found if not hasattr(one, "why")] == [ONE, NOTHING]
