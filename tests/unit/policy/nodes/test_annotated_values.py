"""Values of data on nodes: how they are read, and when they become stale."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.data import DataEntry
from fairlead.policy.nodes.annotated_values import differing, moment, reader, with_data
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.policy_data import Data
from fairlead.strategies.facts import Unknown
from support.policy import NOW, SECOND, Evaluation, node, on_node, pod, policy

Fields = dict[str, Any]

AT = str(NOW // SECOND)
ANNOTATION: Fields = {"nodeAnnotation": {"key": "v"}}
TIMED: Fields = {"nodeAnnotation": {"key": "v", "timeKey": "t"}, "maxAge": "60s"}
COMMA: Fields = {"nodeAnnotation": {"key": "v", "format": "ValueCommaTime"}, "maxAge": "60s"}
QUANTITY: Fields = {"nodeAnnotation": {"key": "v", "format": "Quantity"}}
LABEL: Fields = {"nodeLabel": {"key": "v"}}

READ: dict[str, tuple[dict[str, Any], dict[str, str], float | str]] = {
    "a number": (ANNOTATION, {"v": "0.5"}, 0.5),
    "with a sign and an exponent": (ANNOTATION, {"v": "-1.5E3"}, -1500.0),
    "with blanks around it": (ANNOTATION, {"v": " 7\n"}, 7.0),
    "with a factor": (ANNOTATION | {"factor": 0.001}, {"v": "250"}, 0.25),
    "nothing there": (ANNOTATION, {}, "data d is missing"),
    "nothing there and a default": (ANNOTATION | {"default": 3.0}, {}, 3.0),
    "the default is not multiplied": (ANNOTATION | {"default": 3.0, "factor": 10.0}, {}, 3.0),
    "an empty text": (ANNOTATION, {"v": ""}, "data d is not a number"),
    "no number": (ANNOTATION, {"v": "high"}, "data d is not a number"),
    "no number, and no default for it": (ANNOTATION | {"default": 1.0}, {"v": "high"}, "data d is not a number"),
    "NaN, and no default for it": (ANNOTATION | {"default": 1.0}, {"v": "NaN"}, "data d is not a number"),
    "NaN": (ANNOTATION, {"v": "NaN"}, "data d is not a number"),
    "infinity": (ANNOTATION, {"v": "-inf"}, "data d is not a number"),
    "an exponent beyond all numbers": (ANNOTATION, {"v": "1e999"}, "data d is not a number"),
    "a factor that makes it so": (ANNOTATION | {"factor": 1e18}, {"v": "1e300"}, "data d is not a number"),
    "as programmers write it": (ANNOTATION, {"v": "1_000"}, "data d is not a number"),
    "in digits of another script": (ANNOTATION, {"v": "٣"}, "data d is not a number"),
    "with a comma": (ANNOTATION, {"v": "0,5"}, "data d is not a number"),
    "250 KiB of digits": (ANNOTATION, {"v": "9" * 250_000}, "data d is not a number"),
    "a quantity": (QUANTITY, {"v": "250m"}, 0.25),
    "a large quantity": (QUANTITY, {"v": "2Gi"}, 2.0 * 2**30),
    "a quantity that overflows": (QUANTITY, {"v": "1e999"}, "data d is not a number"),
    "no quantity": (QUANTITY, {"v": "1Zi"}, "data d is not a number"),
    "250 KiB of a quantity": (QUANTITY, {"v": "9" * 250_000 + "Gi"}, "data d is not a number"),
    "a label": (LABEL, {"v": "300"}, 300.0),
    "a label as quantity": ({"nodeLabel": {"key": "v", "format": "Quantity"}}, {"v": "4k"}, 4000.0),
    "fresh": (TIMED, {"v": "1", "t": AT}, 1.0),
    "written in RFC 3339": (TIMED, {"v": "1", "t": "2027-01-15T07:59:30Z"}, 1.0),
    "and with an offset": (TIMED, {"v": "1", "t": "2027-01-15T08:59:30.123456789+01:00"}, 1.0),
    "stale": (TIMED, {"v": "1", "t": "2027-01-15T07:58:59Z"}, "data d is stale"),
    "never a default for a stale one": (
        TIMED | {"default": 9.0},
        {"v": "1", "t": "2026-06-01T00:00:00Z"},
        "data d is stale",
    ),
    "by a clock that is ahead": (TIMED, {"v": "1", "t": "2027-01-15T08:05:00Z"}, 1.0),
    "from the future": (TIMED, {"v": "1", "t": "2027-01-15T08:05:01Z"}, "data d has a time in the future"),
    "from the future, and of any age otherwise": (
        {"nodeAnnotation": {"key": "v", "timeKey": "t"}},
        {"v": "1", "t": "2027-01-15T08:05:01Z"},
        "data d has a time in the future",
    ),
    "of any age": ({"nodeAnnotation": {"key": "v", "timeKey": "t"}}, {"v": "1", "t": "2026-06-01T00:00:00Z"}, 1.0),
    "rounded": (ANNOTATION | {"factor": 0.1, "round": 0.5}, {"v": "7.4"}, 0.5),
    "rounded, half up": (ANNOTATION | {"round": 0.5}, {"v": "0.75"}, 1.0),
    "without a time": (TIMED | {"default": 9.0}, {"v": "1"}, "data d is stale"),
    "with a time that is none": (TIMED, {"v": "1", "t": "yesterday"}, "data d is stale"),
    "a time without a value": (TIMED | {"default": 9.0}, {"t": "0"}, 9.0),
    "value comma time": (COMMA, {"v": f"0.25,{AT}"}, 0.25),
    "value comma old time": (COMMA, {"v": "0.25,2026-06-01T00:00:00Z"}, "data d is stale"),
    "value comma nothing": (COMMA, {"v": "0.25,"}, "data d is stale"),
    "comma time": (COMMA, {"v": f",{AT}"}, "data d is not a number"),
}


def entry(name: str = "d", **fields: Any) -> DataEntry:
    return DataEntry.model_validate({"name": name} | fields)


@pytest.mark.parametrize("name", READ)
def test_a_value_is_read_or_said_to_be_missing_or_stale(name: str) -> None:
    fields, held, want = READ[name]
    where: dict[str, Any] = {"labels": held} if "nodeLabel" in fields else {"annotations": held}
    found = with_data(node(**where), [entry(**fields)], NOW, Nodes()).data("d")
    assert (str(found) if isinstance(found, Unknown) else found) == want


@pytest.mark.parametrize("max_age", ["60s", None])
@pytest.mark.parametrize("ahead_s", [0, 1, 300])
def test_pods_placed_after_a_value_was_read_are_not_in_it_although_its_clock_is_ahead(
    ahead_s: int, max_age: str | None
) -> None:
    one = node(annotations={"v": "1", "t": str(NOW // SECOND + ahead_s)}).node
    fields: Fields = {"nodeAnnotation": {"key": "v", "timeKey": "t"}} | ({"maxAge": max_age} if max_age else {})
    entries = [on_node("before", NOW - SECOND), on_node("after", NOW + SECOND)]
    seen = with_data(NodeView(one, entries=entries), [entry(**fields)], NOW, Nodes())
    assert seen.unmeasured("d", 0).request("cpu") == 1.0


@pytest.mark.parametrize(("age_s", "want"), [(9, 1.0), (10, 1.0), (11, "data d is missing")])
def test_a_value_of_an_earlier_node_is_none(age_s: int, want: object) -> None:
    view = node(annotations={"v": "1", "t": str(NOW // SECOND - age_s)}, created="2027-01-15T07:59:50Z")
    found = with_data(view, [entry(**TIMED)], NOW, Nodes()).data("d")
    assert (str(found) if isinstance(found, Unknown) else found) == want


def test_a_node_without_labels_annotations_and_status_has_no_data() -> None:
    assert isinstance(with_data(node(), [entry(**LABEL)], NOW, Nodes()).data("d"), Unknown)


MOMENTS = {
    "Unix seconds": ("1800000000", NOW),
    "with a fraction": ("1800000000.5", NOW + SECOND // 2),
    "RFC 3339": ("2027-01-15T08:00:00Z", NOW),
    "in small letters": ("2027-01-15t08:00:00z", NOW),
    "with an offset": ("2027-01-15T10:00:00+02:00", NOW),
    "the first moment there is": ("0001-01-01T00:00:00+14:00", -62135647200 * SECOND),
    "the last one": ("9999-12-31T23:59:59-14:00", 253402351199 * SECOND),
    "without a zone": ("2027-01-15T08:00:00", None),
    "a date": ("2027-01-15", None),
    "a week": ("2027-W02-5T08:00:00Z", None),
    "no such day": ("2027-02-30T08:00:00Z", None),
    "milliseconds": ("1800000000000", None),
    "other digits": ("١٨٠٠٠٠٠٠٠٠", None),
    "nothing": ("", None),
    "very long": ("1" * 1_000_000, None),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_a_time_is_read(name: str) -> None:
    text, want = MOMENTS[name]
    assert moment(text) == want


@given(st.text(max_size=40))
def test_no_text_raises(text: str) -> None:
    for fields in [TIMED, COMMA, QUANTITY]:
        one = entry(**fields)
        found = with_data(node(annotations={"v": text, "t": text}), [one], NOW, Nodes()).data("d")
        assert isinstance(found, Unknown | float)


@given(age=st.integers(-100, 100), later=st.integers(0, 200))
def test_until_is_the_moment_of_the_next_change(age: int, later: int) -> None:
    read = reader([entry(**TIMED), entry("other", **COMMA)])
    one = node(annotations={"v": "1", "t": str(NOW // SECOND - age)}).node
    data, until = read(one, NOW)
    after, _ = read(one, NOW + later * SECOND)
    if until is None or NOW + later * SECOND < until:
        assert not differing(data, after)
    else:
        assert differing(data, after) == {"d"}
        assert not differing(data, read(one, until - 1)[0])


def test_data_differ_where_a_rule_could_see_it() -> None:
    missing, stale = Unknown("data a", "is missing"), Unknown("data a", "is stale")
    assert differing(Data({"a": 1.0}), Data({"a": 1.0})) == frozenset()
    assert differing(Data({"a": 1.0}), Data({"a": 2.0, "b": 0.0})) == {"a", "b"}
    assert differing(Data({}, {"a": missing}), Data({}, {"a": stale})) == {"a"}
    assert differing(None, Data({"a": 1.0})) == {"a"}


def test_an_entry_that_grows_stale_touches_only_the_rules_that_read_it() -> None:
    data = [{"name": "load", **TIMED}, {"name": "watts", **LABEL}]
    cluster = Evaluation(
        [policy(data=data, filters={"cool": "data.load < 1.0", "rich": "data.watts > 1.0", "any": "true"})],
        [node(f"n{at}", annotations={"v": "0", "t": str(NOW // SECOND + at)}, labels={"v": "5"}) for at in range(3)],
    )
    assert cluster.reasons(pod()) == {}
    before = dict(cluster.evaluator.tally.evaluations)
    assert cluster.reasons(pod(), NOW + 61 * SECOND) == {"n0": "p/cool: data load is stale"}
    evaluated = {
        rule: count - before[policy_, rule] for (policy_, rule), count in cluster.evaluator.tally.evaluations.items()
    }
    assert evaluated == {"cool": 1, "rich": 0, "any": 0}


def test_a_policy_sees_its_own_data_only() -> None:
    data = [[{"name": "x", "nodeLabel": {"key": key}}] for key in "ab"]
    made = [policy(f"p{at}", data=one, filters={"f": "data.x == 1.0"}) for at, one in enumerate(data)]
    assert Evaluation(made, [node(labels={"a": "1", "b": "2"})]).reasons(pod()) == {"n": "p1/f: f"}
