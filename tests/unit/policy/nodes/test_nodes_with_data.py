"""Views with measured data are shared, and end with whatever they were made of."""

from collections.abc import Callable

import pytest

from fairlead.api.data import DataEntry
from fairlead.api.parse import parse_policy
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.nodes.polls import Reading, poll_of
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.policy_data import Data
from fairlead.strategies.reads import NodeChange
from fairlead.strategies.registry import policy_with
from support.policy import INSTALLED, NOW, SECOND, node, obj


def _entries(**more: float) -> list[DataEntry]:
    load = {"name": "load", "prometheus": {"query": "load"}, "maxAge": "20s", **more}
    written = obj("p", data=[load], filters={"any": "true"})
    return list(parse_policy(written, policy_with(INSTALLED.values())).spec.data or ())


ENTRIES = _entries()
POLLS = [poll for entry in ENTRIES if (poll := poll_of(entry)) is not None]


def _measure(nodes: Nodes, load: float, now: int) -> None:
    nodes.publish({poll: Reading({"n": load}, now) for poll in POLLS}, now)


def _steady() -> tuple[Nodes, Callable[[int, int], NodeView | None]]:
    nodes = Nodes()
    nodes.put(node("n"))
    view = nodes.seen_by("p", ENTRIES)
    _measure(nodes, 0.5, NOW)
    nodes.expire(NOW)
    return nodes, view


def test_rules_share_a_view_while_nothing_changes() -> None:
    nodes, view = _steady()
    seen = view(0, NOW)
    assert seen is not None
    assert seen.data("load") == 0.5
    assert nodes.seen_by("p", ENTRIES)(0, NOW + 19 * SECOND) is seen


def _published(nodes: Nodes) -> int:
    _measure(nodes, 0.7, NOW + SECOND)
    return NOW + SECOND


def _published_the_same(nodes: Nodes) -> int:
    _measure(nodes, 0.5, NOW + SECOND)
    return NOW + SECOND


def _replaced(nodes: Nodes) -> int:
    nodes.put(node("n", labels={"gpu": "a"}), NodeChange())
    return NOW


def _came_again(nodes: Nodes) -> int:
    nodes.remove("n")
    nodes.put(node("n"))
    return NOW


def _annotated(nodes: Nodes) -> int:
    nodes.put_data("p", 0, Data({"watts": 1.0}), frozenset({"watts"}))
    return NOW


def _listed_anew(nodes: Nodes) -> int:
    nodes.put(nodes.views[0])  # type: ignore[arg-type]
    return NOW


@pytest.mark.parametrize("change", [_listed_anew, _published, _published_the_same, _replaced, _came_again, _annotated])
@pytest.mark.parametrize("expires", [True, False])
def test_a_change_ends_a_view(change: Callable[[Nodes], int], expires: bool) -> None:
    nodes, view = _steady()
    before = view(0, NOW)
    now = change(nodes)
    if expires:
        nodes.expire(now)
    after = view(0, now)
    assert after is not None
    assert after is not before
    assert after.data == nodes.with_measured(after.with_data(nodes.data_of("p", 0) or Data()), ENTRIES, now).data
    assert after.node is nodes.views[0].node  # type: ignore[union-attr]


def test_a_view_ends_when_its_value_becomes_stale_though_nothing_was_noted() -> None:
    _, view = _steady()
    view(0, NOW)
    late = view(0, NOW + 20 * SECOND + 1)
    assert late is not None
    assert str(late.data("load")) == "data load is stale"


def test_a_view_counts_only_from_when_it_was_checked() -> None:
    nodes, view = _steady()
    view(0, NOW)
    nodes.expire(NOW + 20 * SECOND + 1)
    stale, before = view(0, NOW + 21 * SECOND), view(0, NOW + SECOND)
    assert stale is not None
    assert before is not None
    assert str(stale.data("load")) == "data load is stale"
    assert before.data("load") == 0.5


def test_policies_and_other_entries_have_views_of_their_own() -> None:
    nodes, view = _steady()
    doubled = nodes.seen_by("p", _entries(factor=2.0))
    _measure(nodes, 0.5, NOW)
    nodes.expire(NOW)
    first, second, third = view(0, NOW), doubled(0, NOW), nodes.seen_by("q", ENTRIES)(0, NOW)
    assert first is not None
    assert second is not None
    assert (first.data("load"), second.data("load")) == (0.5, 1.0)
    assert third is not first


def test_a_table_that_was_dropped_and_made_again_is_not_the_one_before() -> None:
    nodes, old = _steady()
    nodes.measurements.keep([])
    new = nodes.seen_by("p", ENTRIES)
    _measure(nodes, 0.9, NOW)
    nodes.expire(NOW)
    before, after = old(0, NOW), new(0, NOW)
    assert before is not None
    assert after is not None
    assert (before.data("load"), after.data("load")) == (0.5, 0.9)


def test_views_that_no_rule_uses_are_freed() -> None:
    nodes, view = _steady()
    assert len(nodes._with_data) == 1
    del view
    assert len(nodes._with_data) == 0
