"""Documents with values of nodes: what is read, what is refused with which fix, and which node gets which value."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cel.values.structs import from_json
from fairlead.cooperative import finish
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.nodes.polls import ConfigMapPoll, PollError, Reading
from fairlead.policy.views.node_view import NodeView
from fairlead.webhook.data_sources.config_map_values import (
    BYTES_MAX,
    VALUES_MAX,
    ValuesDocument,
    document_reading,
    read_document,
)

SECOND = 1_000_000_000
AT_NS = 1_769_846_400 * SECOND
TYPE = "node.kubernetes.io/instance-type"
BY_NAME, BY_TYPE = ConfigMapPoll("prices", "values.json", None), ConfigMapPoll("prices", "values.json", TYPE)
_EXAMPLE = '{"at": "2026-01-31T08:00:00Z", "values": {"node-1": 0.4}}'
_WRITE = f"write a document such as {_EXAMPLE}"

_READ: dict[str, tuple[str, ValuesDocument]] = {
    "the example of the messages": (_EXAMPLE, ValuesDocument(AT_NS, {"node-1": 0.4}, frozenset())),
    "without a time": ('{"values": {"a": 1}}', ValuesDocument(None, {"a": 1.0}, frozenset())),
    "without values": ('{"values": {}}', ValuesDocument(None, {}, frozenset())),
    "a time with a zone": (
        '{"at": "2026-01-31T10:00:00.5+02:00", "values": {}}',
        ValuesDocument(AT_NS + SECOND // 2, {}, frozenset()),
    ),
    "numbers of any form": (
        '{"values": {"a": -1.5, "b": 0, "c": 1e3, "d": 12345678901234567890123}}',
        ValuesDocument(None, {"a": -1.5, "b": 0.0, "c": 1000.0, "d": 1.2345678901234568e22}, frozenset()),
    ),
    "what is no finite number": (
        '{"values": {"a": "0.4", "b": null, "c": true, "d": [1], "e": {"f": 1}, "g": 1e999, "h": 1}}',
        ValuesDocument(None, {"h": 1.0}, frozenset("abcdeg")),
    ),
    "a name twice, of which the last counts": (
        '{"values": {"a": 1, "a": 2}}',
        ValuesDocument(None, {"a": 2.0}, frozenset()),
    ),
}


@pytest.mark.parametrize(("text", "document"), _READ.values(), ids=_READ)
def test_a_document_is_read(text: str, document: ValuesDocument) -> None:
    assert read_document(text) == document


_REFUSED: dict[str, tuple[str, str]] = {
    "nothing": ("", f"is not a JSON object (Input data was truncated): {_WRITE}"),
    "yaml": ("values:\n  a: 1", f"is not a JSON object (JSON is malformed: invalid character (byte 0)): {_WRITE}"),
    "a list": ("[]", f"is not a JSON object (Expected `object`, got `array`): {_WRITE}"),
    "cut off": (_EXAMPLE[:-2], f"is not a JSON object (Input data was truncated): {_WRITE}"),
    "not a number of JSON": ('{"values": {"a": NaN}}', "is not a JSON object (JSON is malformed: invalid character"),
    "deeper than anything": ('{"values": ' + "[" * 1_000_000, "is not a JSON object (it is nested too deeply)"),
    "values without their field": ('{"node-1": 0.4}', 'has the unknown field "node-1": write "at" and "values" only'),
    "a field of another name": (
        '{"time": "2026-01-31T08:00:00Z", "values": {}}',
        f'has the unknown field "time": write "at" and "values" only, as in {_EXAMPLE}',
    ),
    "no values": ('{"at": "2026-01-31T08:00:00Z"}', f'has no "values": {_WRITE}'),
    "a list of values": ('{"values": [0.4]}', f'"values" is not a map from names to numbers: {_WRITE}'),
    "a day": (
        '{"at": "2026-01-31", "values": {}}',
        f'has an unreadable "at": write the time of the values in RFC 3339, as in {_EXAMPLE}',
    ),
    "a number for a time": ('{"at": 1769846400, "values": {}}', 'has an unreadable "at": '),
    "null for a time": ('{"at": null, "values": {}}', 'has an unreadable "at": '),
    "a day that does not exist": ('{"at": "2026-02-30T08:00:00Z", "values": {}}', 'has an unreadable "at": '),
}


@pytest.mark.parametrize(("text", "said"), _REFUSED.values(), ids=_REFUSED)
def test_what_is_no_document_is_refused_with_the_fix(text: str, said: str) -> None:
    with pytest.raises(PollError) as error:
        read_document(text)
    assert str(error.value).startswith(said)


def _filled(size: int) -> str:
    text = '{"values": {}}'
    return text[:-1] + " " * (size - len(text)) + "}"


def test_a_document_is_at_most_one_mebibyte() -> None:
    assert read_document(_filled(BYTES_MAX)) == ValuesDocument(None, {}, frozenset())
    with pytest.raises(PollError, match=r"^is larger than 1 MiB: leave out nodes that no longer exist, or look"):
        read_document(_filled(BYTES_MAX + 1))


def test_its_size_is_counted_in_bytes() -> None:
    with pytest.raises(PollError, match=r"^is larger than 1 MiB"):
        read_document(json.dumps({"values": {"ä" * (BYTES_MAX // 2): 1}}, ensure_ascii=False))


def test_a_document_has_at_most_20000_values() -> None:
    values = {f"n{number}": number for number in range(VALUES_MAX)}
    assert len(read_document(json.dumps({"values": values})).values) == VALUES_MAX
    with pytest.raises(PollError, match=r"^has 20001 values, and at most 20000 are read: leave out nodes"):
        read_document(json.dumps({"values": values | {"one": 1}}))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.text(max_size=5), _JSON, max_size=9))
def test_each_value_is_its_number_or_none(values: dict[str, Any]) -> None:
    found = read_document(json.dumps({"values": values}))
    assert found.values.keys() | found.no_number == values.keys()
    for name, value in values.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        assert found.values.get(name) == (float(value) if is_number else None)
        assert (name in found.no_number) is not is_number


@given(st.text(max_size=40) | st.text(alphabet='{}[]":,at valuse01.-e\\', max_size=40))
def test_any_text_is_a_document_or_refused(text: str) -> None:
    try:
        found = read_document(text)
    except PollError:
        return
    assert found.values.keys().isdisjoint(found.no_number)


def nodes(**types: str) -> Nodes:
    made = Nodes()
    for name, kind in types.items():
        labels = {TYPE: kind} if kind else {}
        made.put(NodeView(from_json("Node", {"metadata": {"name": name, "labels": labels}})))
    return made


def read(document: ValuesDocument, poll: ConfigMapPoll, of: Nodes) -> Reading:
    return finish(document_reading(document, poll, of))


DOCUMENT = ValuesDocument(AT_NS, {"a": 1.0, "large": 2.0}, frozenset({"b", "odd"}))


def test_by_name_nodes_that_come_later_have_their_values_too() -> None:
    assert read(DOCUMENT, BY_NAME, nodes(a="")) == Reading(DOCUMENT.values, AT_NS, no_number=DOCUMENT.no_number)


def test_by_label_each_node_has_the_value_of_its_label() -> None:
    of = nodes(a="large", x="large", y="small", z="", o="odd", b="b")
    of.remove("x")
    found = read(DOCUMENT, BY_TYPE, of)
    assert found._replace(by_label={}) == Reading({"a": 2.0}, AT_NS, no_number=frozenset({"o", "b"}), by_label={})
    assert {key: value for key, value in found.by_label.items() if value == value} == {"a": 1.0, "large": 2.0}
    assert found.by_label.keys() == {"a", "large", "odd", "b"}


@pytest.mark.parametrize("poll", [BY_NAME, BY_TYPE])
def test_without_a_time_values_have_none(poll: ConfigMapPoll) -> None:
    assert read(DOCUMENT._replace(at=None), poll, nodes(a="large")).times is None


_LONG = "x" * 63
_NO_NAME = "is the name of a node; to look up a label of the nodes, give keyLabel"
_NO_LABEL = f"is a value of the label; the nodes have: kubectl get nodes -L {TYPE}"
_OTHERS = ValuesDocument(None, {"m5.large": 1.0}, frozenset({"m5.huge"}))
_NOTES: dict[str, tuple[ValuesDocument, ConfigMapPoll, Nodes, str]] = {
    "a name": (DOCUMENT, BY_NAME, nodes(a=""), ""),
    "a name whose value is not a number": (DOCUMENT, BY_NAME, nodes(b=""), ""),
    "no name": (
        _OTHERS,
        BY_NAME,
        nodes(a="m5.large"),
        f'no key of the document, such as "m5.huge", {_NO_NAME}',
    ),
    "a label": (DOCUMENT, BY_TYPE, nodes(a="large"), ""),
    "a label whose value is not a number": (DOCUMENT, BY_TYPE, nodes(a="odd"), ""),
    "no label": (
        _OTHERS,
        BY_TYPE,
        nodes(a="a", b=""),
        f'no key of the document, such as "m5.huge", {_NO_LABEL}',
    ),
    "no values": (ValuesDocument(None, {}, frozenset()), BY_NAME, nodes(a=""), "the document has no values"),
    "no nodes yet": (_OTHERS, BY_NAME, nodes(), ""),
    "no nodes yet, by label": (_OTHERS, BY_TYPE, nodes(), ""),
    "a long name": (
        ValuesDocument(None, {_LONG * 9: 1.0}, frozenset()),
        BY_NAME,
        nodes(a=""),
        f'no key of the document, such as "{_LONG}", {_NO_NAME}',
    ),
}


@pytest.mark.parametrize(("document", "poll", "of", "note"), _NOTES.values(), ids=_NOTES)
def test_that_no_value_finds_a_node_is_noted(
    document: ValuesDocument, poll: ConfigMapPoll, of: Nodes, note: str
) -> None:
    assert read(document, poll, of).note == note


def test_many_nodes_are_looked_up_in_pieces() -> None:
    of = nodes(**{f"n{number}": "large" for number in range(1200)})
    assert len(list(document_reading(DOCUMENT, BY_TYPE, of))) == 3
