"""Tables of measured values, at the edges that a cluster can have."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cooperative import Steps, finish
from fairlead.policy.nodes.measured_table import (
    AHEAD_NS,
    NEVER,
    NO_TIME,
    MeasuredValues,
    Published,
    TableContent,
    TableKey,
)
from fairlead.policy.nodes.node_table import Nodes, RequestNodes
from fairlead.policy.nodes.polls import ConfigMapPoll, Poll, PrometheusPoll, Reading
from fairlead.policy.views.node_view import NodeView
from fairlead.strategies.facts import Unknown
from fairlead.strategies.reads import Reads
from support.policy import NOW, SECOND, node, on_node, policy

LOAD: Poll = PrometheusPoll("default", "load", "instance", None, 15)
AGES = {"load": 60, "young": 60, "steps": 60}
POLICY = policy(
    data=[
        {"name": "load", "prometheus": {"query": "load"}, "maxAge": "60s"},
        {"name": "young", "prometheus": {"query": "load"}, "maxAge": "60s", "default": 0.9},
        {"name": "steps", "prometheus": {"query": "load"}, "maxAge": "60s", "factor": 0.1, "round": 0.1},
    ],
    filters={"f": "data.load < 1.0"},
)
OLD, YOUNG = "2026-01-01T00:00:00Z", "2027-01-15T07:55:00Z"


def measured(*readings: tuple[int, Reading], created: str = OLD) -> Nodes:
    """Nodes a and b after these readings, each at its second."""
    nodes = Nodes()
    nodes.measure(POLICY.data)
    for name in "ab":
        nodes.put(node(name, created=created))
    for second, reading in readings:
        nodes.publish({LOAD: reading}, NOW + second * SECOND)
    return nodes


def value(nodes: Nodes, second: int, entry: str = "load", name: str = "a") -> float | str:
    view = nodes.view_of(name)
    assert view is not None
    found = nodes.with_measured(view, POLICY.data, NOW + second * SECOND).data(entry)
    return str(found).removeprefix(f"data {entry} ") if isinstance(found, Unknown) else found


def at(second: int, **values: float) -> tuple[int, Reading]:
    return second, Reading(values, NOW + second * SECOND)


ROWS: dict[str, tuple[Nodes, int, str, float | str]] = {
    "measured": (measured(at(0, a=0.4)), 0, "load", 0.4),
    "at its greatest age": (measured(at(0, a=0.4)), 60, "load", 0.4),
    "older": (measured(at(0, a=0.4)), 61, "load", "is stale"),
    "older, and never the default": (measured(at(0, a=0.4), created=YOUNG), 61, "young", "is stale"),
    "no longer named": (measured(at(0, a=0.4), at(30, b=0.1)), 60, "load", 0.4),
    "no longer named, and older": (measured(at(0, a=0.4), at(30, b=0.1), at(61, b=0.1)), 61, "load", "is stale"),
    "never measured": (measured(at(0, b=0.1)), 0, "load", "is missing"),
    "never measured and young": (measured(at(0, b=0.1), created=YOUNG), 299, "young", 0.9),
    "never measured and no longer young": (measured(at(0, b=0.1), created=YOUNG), 300, "young", "is missing"),
    "measured before the node was made": (measured(at(-400, a=0.4), created=YOUNG), 0, "load", "is missing"),
    "ahead by what clocks differ": (measured((0, Reading({"a": 0.4}, NOW + 300 * SECOND))), 0, "load", 0.4),
    "ahead by more": (measured((0, Reading({"a": 0.4}, NOW + 301 * SECOND))), 0, "load", "has a time in the future"),
    "until it is not": (measured((0, Reading({"a": 0.4}, NOW + 301 * SECOND))), 1, "load", 0.4),
    "of the year 9999": (measured((0, Reading({"a": 0.4}, 253_402_300_799 * SECOND))), 0, "load",
                         "has a time in the future"),
    "of the year 1": (measured((0, Reading({"a": 0.4}, -62_135_596_800 * SECOND)), created="0001-01-01T00:00:00Z"), 0,
                      "load", "is missing"),
    "without a time": (measured((0, Reading({"a": 0.4}, None))), 0, "load", "is stale"),
    "several": (measured(at(0, a=0.4), (15, Reading({}, NOW, several=frozenset("a")))), 15, "load",
                "has several values"),
    "several, and then one": (measured((0, Reading({}, NOW, several=frozenset("a"))), at(15, a=0.4)), 15, "load", 0.4),
    "no number, and no default for it": (measured((0, Reading({}, NOW, no_number=frozenset("a"))), created=YOUNG), 0,
                                         "young", "is not a number"),
    "rounded, half up": (measured(at(0, a=2.5)), 0, "steps", 0.3),
    "ahead, it ages from when it was heard": (measured((0, Reading({"a": 0.4}, NOW + 300 * SECOND))), 61, "load",
                                              "is stale"),
    "rounded to what one would write": (measured(at(0, a=71.0)), 0, "steps", 7.1),
}  # fmt: skip


@pytest.mark.parametrize(("nodes", "second", "entry", "want"), ROWS.values(), ids=ROWS)
def test_a_value_or_why_there_is_none(nodes: Nodes, second: int, entry: str, want: float | str) -> None:
    assert value(nodes, second, entry) == want


@pytest.mark.parametrize(
    ("values", "want"),
    [
        pytest.param([1e300], "is not a number", id="too large"),
        pytest.param([-1e300], "is not a number", id="too small"),
        pytest.param([1e300, 1.0], 1e18, id="no longer too large"),
        pytest.param([1.0, 1e300], "is not a number", id="too large by now"),
        pytest.param([1.7e290], 1.7e308, id="the largest"),
    ],
)
def test_a_value_that_is_infinite_by_its_factor_is_no_number(values: list[float], want: float | str) -> None:
    """As with annotations: no default, because what measures is broken."""
    entry = {"name": "load", "prometheus": {"query": "load"}, "default": 0.9, "factor": 1e18, "round": 1e9}
    read = policy(data=[entry], filters={"f": "data.load < 1.0"}).data
    nodes = Nodes()
    nodes.measure(read)
    nodes.put(node("a", created=YOUNG))
    for one in values:
        nodes.publish({LOAD: Reading({"a": one}, NOW)}, NOW)
    view = nodes.view_of("a")
    assert view is not None
    found = nodes.with_measured(view, read, NOW).data("load")
    assert (found.why if isinstance(found, Unknown) else found) == want


@pytest.mark.parametrize("created", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"])
def test_a_node_may_say_that_it_was_made_at_any_time(created: str) -> None:
    assert value(measured(created=created), 0) == "is missing"


@pytest.mark.parametrize("ahead_s", [0, 1, 300])
def test_pods_placed_after_a_value_was_heard_are_not_in_it_although_its_clock_is_ahead(ahead_s: int) -> None:
    nodes = measured((0, Reading({"a": 0.4}, NOW + ahead_s * SECOND)))
    entries = [on_node("before", NOW - SECOND), on_node("after", NOW + SECOND)]
    seen = nodes.with_measured(NodeView(node("a").node, entries=entries), POLICY.data, NOW + 2 * SECOND)
    assert seen.unmeasured("load", 0).request("cpu") == 1.0


def test_a_value_of_far_ahead_counts_from_when_the_clock_is_nearer() -> None:
    nodes = measured((0, Reading({"a": 0.4}, NOW + 310 * SECOND)))
    nodes.expire(NOW)
    assert value(nodes, 0) == "has a time in the future"
    head = nodes.head
    nodes.expire(NOW + 10 * SECOND)
    assert nodes.head > head
    entries = [on_node("before", NOW + 9 * SECOND), on_node("after", NOW + 11 * SECOND)]
    seen = nodes.with_measured(NodeView(node("a").node, entries=entries), POLICY.data, NOW + 12 * SECOND)
    assert seen.unmeasured("load", 0).request("cpu") == 1.0
    assert [value(nodes, second) for second in (70, 71)] == [0.4, "is stale"]


def test_a_value_that_was_ahead_and_is_measured_anew_is_told_although_it_is_the_same() -> None:
    nodes = measured((0, Reading({"a": 0.4}, NOW + 301 * SECOND)))
    nodes.expire(NOW)
    head = nodes.head
    nodes.publish({LOAD: at(1, a=0.4)[1]}, NOW + SECOND)
    assert nodes.head > head


@pytest.mark.parametrize(("label", "want"), [(None, "is missing"), ("type", 0.4)])
def test_a_value_that_is_looked_up_by_a_label_is_not_of_an_earlier_node(label: str | None, want: object) -> None:
    """A price is that of the instance type, however old the list is and however new the node."""
    source = {"name": "prices"} | ({"keyLabel": label} if label else {})
    read = policy(data=[{"name": "price", "configMap": source}], filters={"f": "data.price < 1.0"}).data
    nodes = Nodes()
    nodes.measure(read)
    nodes.put(node("a", created=YOUNG))
    nodes.publish({ConfigMapPoll("prices", "values.json", label): Reading({"a": 0.4}, NOW - 400 * SECOND)}, NOW)
    view = nodes.view_of("a")
    assert view is not None
    found = nodes.with_measured(view, read, NOW).data("price")
    assert (found.why if isinstance(found, Unknown) else found) == want


@pytest.mark.parametrize(("at", "want"), [(300, 0.4), (301, "has a time in the future"), (-(10**6), 0.4), (None, 0.4)])
def test_without_maxage_a_value_may_be_of_any_time_but_the_future(at: int | None, want: object) -> None:
    read = policy(data=[{"name": "price", "configMap": {"name": "prices"}}], filters={"f": "data.price < 1.0"}).data
    nodes = Nodes()
    nodes.measure(read)
    nodes.put(node("a"))
    moment = None if at is None else NOW + at * SECOND
    nodes.publish({ConfigMapPoll("prices", "values.json", None): Reading({"a": 0.4}, moment)}, NOW)
    view = nodes.view_of("a")
    assert view is not None
    found = nodes.with_measured(view, read, NOW).data("price")
    assert (found.why if isinstance(found, Unknown) else found) == want


def test_a_node_that_is_made_again_has_no_value_of_the_one_before() -> None:
    nodes = measured(at(0, a=0.4))
    nodes.remove("a")
    nodes.put(node("c"))
    nodes.put(node("a"))
    assert [value(nodes, 0, name=name) for name in "ac"] == ["is missing", "is missing"]


def test_a_publication_is_one_line_of_the_journal_for_each_table_of_which_a_value_differs() -> None:
    """Rounded to tenths of a tenth, 0.5 and 0.6 are the same."""
    nodes = measured(at(0, a=0.4, b=0.5))
    before = nodes.head
    nodes.publish({LOAD: at(15, a=0.4, b=0.6)[1]}, NOW + 15 * SECOND)
    lines = nodes.journal.entries[before - nodes.journal.start :]
    assert [line.mask for line in lines if isinstance(line, Published)] == [bytes([0, 1])]
    nodes.publish({LOAD: at(30, a=0.4, b=0.6)[1]}, NOW + 30 * SECOND)
    assert nodes.head == before + 1, "what has not changed is no line"


PRICE = ConfigMapPoll("prices", "values.json", None)
BY_TYPE = ConfigMapPoll("prices", "values.json", "type")


def document(default: float | None, key_label: str | None = None, **entry: Any) -> Any:
    """The only entry of a policy's data."""
    source = {"name": "prices"} | ({"keyLabel": key_label} if key_label else {})
    given = {"name": "price", "configMap": source} | ({} if default is None else {"default": default}) | entry
    return policy(data=[given], filters={"f": "data.price < 1.0"}).data


def found(nodes: Nodes, read: Any, view: NodeView) -> float | str:
    one = nodes.with_measured(view, read, NOW).data("price")
    return str(one) if isinstance(one, Unknown) else one


def test_what_a_document_no_longer_says_is_gone() -> None:
    """It is the whole state, and no sample that may lack a node."""
    nodes, read = Nodes(), document(None)
    nodes.measure(read)
    for name in "ab":
        nodes.put(node(name))
    nodes.publish({PRICE: Reading({"a": 0.4, "b": 0.5}, None)}, NOW)
    head = nodes.head
    nodes.publish({PRICE: Reading({"b": 0.5}, None)}, NOW)
    assert nodes.head == head + 1
    assert [found(nodes, read, node(name)) for name in "ab"] == ["data price is missing", 0.5]


def test_what_is_wrong_with_a_value_ends_when_nobody_names_the_node() -> None:
    for reading in (Reading({}, NOW, several=frozenset("a")), Reading({}, NOW, no_number=frozenset("a"))):
        nodes = measured((0, reading))
        assert value(nodes, 0) != "is missing"
        nodes.publish({LOAD: Reading({"b": 0.1}, NOW)}, NOW)
        assert value(nodes, 0) == "is missing"


STRANGERS: dict[str, tuple[Any, dict[str, str], float | str]] = {
    "its label": (document(None, "type"), {"type": "big"}, 0.4),
    "its label rather than the default": (document(9.0, "type"), {"type": "big"}, 0.4),
    "changed as on other nodes": (document(None, "type", factor=10.0, round=3.0), {"type": "big"}, 3.0),
    "a label that the document lacks": (document(None, "type"), {"type": "small"}, "data price is missing"),
    "the default for such a label": (document(9.0, "type"), {"type": "small"}, 9.0),
    "no label": (document(9.0, "type"), {}, 9.0),
    "no number": (document(9.0, "type"), {"type": "odd"}, "data price is not a number"),
    "too old": (document(9.0, "type", maxAge="5s"), {"type": "big"}, "data price is stale"),
    "by name": (document(None), {"type": "big"}, "data price is missing"),
    "by name with a default": (document(9.0), {"type": "big"}, 9.0),
}


@pytest.mark.parametrize(("read", "labels", "want"), STRANGERS.values(), ids=STRANGERS)
def test_a_node_of_a_simulation_looks_its_label_up(read: Any, labels: dict[str, str], want: float | str) -> None:
    home = Nodes()
    home.measure(read)
    of_types = {"big": 0.4, "odd": float("nan")}
    home.publish({poll: Reading({}, NOW - 9 * SECOND, by_label=of_types) for poll in (PRICE, BY_TYPE)}, NOW)
    nodes = RequestNodes(home)
    assert found(nodes, read, node("template", labels=labels)) == want


def test_only_what_a_poll_will_find_passes_a_simulation() -> None:
    nodes = RequestNodes(Nodes())
    read = [*document(None), *POLICY.data]
    data = nodes.with_measured(node("template"), read, NOW).data
    reasons = [data(name) for name in ("price", "load")]
    assert [isinstance(one, Unknown) and one.passes for one in reasons] == [False, True]


@pytest.mark.parametrize(("late_ns", "want"), [(999_999_999, "is missing"), (SECOND, 0.4)])
def test_a_value_of_the_second_in_which_a_node_was_made_may_be_of_the_one_before(late_ns: int, want: object) -> None:
    nodes = Nodes()
    nodes.measure(POLICY.data)
    nodes.put(node("a", created="2027-01-15T08:00:00Z"))
    nodes.publish({LOAD: Reading({"a": 0.4}, NOW + late_ns)}, NOW + SECOND)
    assert value(nodes, 1) == want


# publications


def _some(steps: Steps[None], count: int) -> None:
    """Let a publication go on by some pauses, which do not end it."""
    for _ in range(count):
        next(steps)


def _length(nodes: Nodes, readings: Mapping[Poll, Reading]) -> int:
    """Return the number of pauses of a publication that is given up in the end."""
    steps = nodes.publication(readings, NOW)
    return len([*zip(range(10_000), steps, strict=False)])


HEAT: Poll = PrometheusPoll("default", "heat", "instance", None, 15)
TWO = policy(
    data=[
        {"name": "load", "prometheus": {"query": "load"}},
        {"name": "double", "prometheus": {"query": "load"}, "factor": 2.0},
        {"name": "heat", "prometheus": {"query": "heat"}},
    ],
    filters={"f": "data.load < 1.0"},
).data


def test_a_publication_is_seen_in_one_step_of_all_its_polls() -> None:
    nodes = Nodes()
    nodes.measure(TWO)
    nodes.put(node("a"))

    def seen() -> list[float | None]:
        data = nodes.with_measured(node("a"), TWO, NOW).data
        return [data.get(name) for name in ("load", "double", "heat")]

    steps, views = (
        nodes.publication({LOAD: Reading({"a": 1.0}, NOW), HEAT: Reading({"a": 70.0}, NOW)}, NOW),
        list[Any](),
    )
    for _ in steps:
        views.append(seen())
    assert len(views) > 3
    assert {*map(tuple, views)} == {(None, None, None)}
    assert seen() == [1.0, 2.0, 70.0]


def test_a_publication_pauses_after_so_many_nodes_of_each_table() -> None:
    """So that calls are answered between any two of its stretches, whatever the number of tables and nodes."""
    nodes = Nodes()
    data = [{"name": f"e{at}", "prometheus": {"query": "load"}, "factor": 1.0 + at} for at in range(16)]
    nodes.measure(policy(data=data, filters={"f": "true"}).data)
    for at in range(3000):
        nodes.put(node(f"n{at}"))
    reading = Reading({f"n{at}": 0.5 for at in range(3000)}, {f"n{at}": NOW - at for at in range(3000)})
    taken, changed = list[int](), TableKey.changed

    def counting(key: TableKey, measured: float) -> float:
        taken[-1] += 1
        return changed(key, measured)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(TableKey, "changed", counting)
        taken.append(0)
        for _ in nodes.publication({LOAD: reading}, NOW):
            taken.append(0)
    assert sum(taken) == 16 * 3000
    assert max(taken) <= 1000


@pytest.mark.parametrize("pauses", range(4))
def test_a_node_that_comes_meanwhile_has_no_value_of_the_one_before_in_its_slot(pauses: int) -> None:
    nodes = measured()
    reading = Reading({"a": 0.4, "b": 0.5}, NOW)
    assert pauses < _length(nodes, {LOAD: reading})
    steps = nodes.publication({LOAD: reading}, NOW)
    _some(steps, pauses)
    nodes.remove("a")
    nodes.put(node("c", created=OLD))
    finish(steps)
    assert [value(nodes, 0, name=name) for name in "cb"] == ["is missing", 0.5]
    assert nodes.take_joined() == {"b", "c"}


def test_nodes_that_join_are_given_what_was_read_and_no_others() -> None:
    nodes = measured(at(0, a=0.4, b=0.5))
    nodes.take_joined()
    nodes.put(node("c"))
    later = Reading({"a": 7.0, "b": 7.0, "c": 0.6}, NOW)
    finish(nodes.publication({LOAD: later}, NOW, nodes.take_joined()))
    assert [value(nodes, 0, name=name) for name in "abc"] == [0.4, 0.5, 0.6]
    assert not nodes.has_joined


def test_a_new_entry_of_a_known_poll_is_given_all_of_what_was_read() -> None:
    nodes = measured(at(0, a=0.4))
    nodes.take_joined()
    nodes.measure(TWO)
    finish(nodes.publication({LOAD: Reading({"a": 0.4}, NOW)}, NOW, ()))
    assert nodes.with_measured(node("a"), TWO, NOW).data("double") == 0.8


def test_a_publication_that_is_given_up_leaves_nothing() -> None:
    nodes = measured(at(0, a=0.4))
    steps = nodes.publication({LOAD: Reading({"a": 7.0}, NOW)}, NOW)
    _some(steps, 2)
    steps.close()
    assert value(nodes, 0) == 0.4
    nodes.publish({}, NOW)
    assert value(nodes, 0) == 0.4


# what nothing asks for any more


def _entry(**fields: Any) -> Any:
    return policy(data=[{"name": "load", "prometheus": {"query": "load"}} | fields], filters={"f": "true"}).data


def test_ages_defaults_and_lags_that_nothing_asks_for_any_more_go() -> None:
    nodes = Nodes()
    nodes.put(node("a"))
    reads = Reads(unmeasured=frozenset({("load", 10)}))
    for second in range(100, 2100):
        before = _entry(maxAge=f"{second}s", default=1.0, defaultFor=f"{second}s")
        nodes.measurements.keep([(before, reads)])
        after = _entry(maxAge=f"{second + 1}s", default=1.0, defaultFor=f"{second + 1}s")
        nodes.measure(after)
        nodes.sources(after, Reads(unmeasured=frozenset({("load", second % 60)})))
    (table,) = nodes.measurements.tables.values()
    assert table.ages == {2099 * SECOND, 2100 * SECOND}
    assert table.defaults == table.ages
    assert table.lags <= {10, 2099 % 60}


def test_tables_that_nothing_asks_for_any_more_go_although_their_poll_is_wanted() -> None:
    nodes = Nodes()
    nodes.measure([*_entry(factor=2.0), *_entry(factor=3.0)])
    nodes.measurements.keep([(_entry(factor=3.0), Reads())])
    assert [key.factor for key in nodes.measurements.tables] == [3.0]


_times = st.integers(0, 60)


@given(
    st.sets(_times, max_size=5),
    st.lists(_times | st.just(NO_TIME), max_size=8),
    st.sets(_times, max_size=4),
    _times,
    _times,
)
def test_what_is_due_is_found_without_a_look_at_each_age_of_each_value(
    ages: set[int], times: list[int], defaults: set[int], since: int, passed: int
) -> None:
    """With what AHEAD_NS allows out of reach."""
    now, ahead = since + passed, AHEAD_NS
    times = [at if at == NO_TIME else min(at, now) + ahead for at in times]
    since, now = since + ahead, now + ahead
    created = [ahead + at % 7 for at in range(len(times))]
    content = TableContent(checked=since)
    content.values.extend(0.5 if at != NO_TIME else float("nan") for at in times)
    content.times.extend(times)
    table = MeasuredValues(TableKey(LOAD, 1.0, None), content, ages=ages, defaults=defaults)
    ends = [
        [at - ahead, *(at + age + 1 for age in ages)] if at != NO_TIME else [made + limit for limit in defaults]
        for at, made in zip(times, created, strict=True)
    ]
    assert [*table.expired(created, now)] == [int(any(since < end <= now for end in each)) for each in ends]
    assert table.content.expires == min([end for each in ends for end in each if end > now], default=NEVER)
