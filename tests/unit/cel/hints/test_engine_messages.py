"""The engine's sentences that hints depend on: an update of the engine that changes one fails here, and only here.

`test_every_pattern_is_pinned` holds the table complete.
"""

import re

import pytest

from fairlead.cel.engine.environment import RULE, environment
from fairlead.cel.hints import engine_messages
from fairlead.cel.hints.engine_messages import read_types, show_type
from fairlead.cel.syntax.ast import DYN, Type

# pattern, an expression that provokes the message, what the engine says, what the pattern reads from it
PINNED: dict[str, list[tuple[str, str, tuple[str, ...]]]] = {
    "UNDECLARED": [
        ("pods.foo(1)", "1:9: undeclared reference to 'foo' (in container '')", ("foo",)),
        ("nod.metadata == 1", "1:4: undeclared reference to 'nod.metadata' (in container '')", ("nod.metadata",)),
        (".Values.x", "1:8: undeclared reference to '.Values.x' (in container '')", ("Values.x",)),
    ],
    "UNDEFINED_FIELD": [
        ("pod.foo == 1", "1:4: undefined field 'foo' not found in struct 'kubernetes.Pod'", ("foo", "kubernetes.Pod")),
    ],
    "NO_OVERLOAD": [
        (
            "free.cpu >= 2",
            "1:10: found no matching overload for '_>=_' applied to '(double, int)'",
            ("_>=_", "double, int"),
        ),
        (
            "pods[?'a'] == now",
            "1:5: found no matching overload for '_[?_]' applied to '(list(kubernetes.PlacedPod), string)'",
            ("_[?_]", "list(kubernetes.PlacedPod), string"),
        ),
        (
            "now.contains(null)",
            ("1:13: found no matching overload for 'contains' applied to '(google.protobuf.Timestamp, null_type)'"),
            ("contains", "google.protobuf.Timestamp, null_type"),
        ),
    ],
    "NO_FIELDS": [
        (
            "pods.x",
            "1:5: expression of type 'list(kubernetes.PlacedPod)' cannot be the operand of a select operation",
            ("list(kubernetes.PlacedPod)",),
        ),
    ],
    "RESERVED": [("namespace.metadata", "1:1: reserved identifier: namespace", ("namespace",))],
    "NO_FIELD_IN_HAS": [("has(pod)", "1:5: has() argument must be a field selection", ())],
    "LITERAL": [
        ("99999999999999999999 > 1", "1:1: invalid int literal", ("int",)),
        ("99999999999999999999u > 1u", "1:1: invalid uint literal", ("uint",)),
    ],
    "MACRO_VARIABLE": [
        ("pods.exists('p', true)", "1:13: exists() variable name must be a simple identifier", ("exists",)),
        ("pods.map(1, true)", "1:10: map() variable name must be a simple identifier", ("map",)),
    ],
}
SYNTAX = {
    "free.cpu >": "1:11: Syntax error: mismatched input '<EOF>' expecting {",
    "size([1]": "1:9: Syntax error: missing ')' at '<EOF>'",
    "true ? 1": "1:9: Syntax error: mismatched input '<EOF>' expecting ':'",
    "'abc": "1:1: Syntax error: token recognition error at: ''abc'",
}


def _error(text: str) -> str:
    with pytest.raises(RuntimeError) as raised:
        environment(RULE, {}).compile(text)
    return str(raised.value)


@pytest.mark.parametrize(
    ("name", "text", "sentence", "read"),
    [(name, *row) for name, rows in PINNED.items() for row in rows],
    ids=[row[0] for rows in PINNED.values() for row in rows],
)
def test_a_sentence_of_the_checker_is_pinned(name: str, text: str, sentence: str, read: tuple[str, ...]) -> None:
    pattern = vars(engine_messages)[name]
    line, column, message = sentence.split(":", 2)
    [found] = [one for one in engine_messages.engine_messages(_error(text), text) if pattern.match(one.text)]
    assert (found.at, found.text) == (int(column) - 1, message.strip())
    assert line == "1"
    assert pattern.match(found.text).groups() == read


def test_every_pattern_is_pinned() -> None:
    patterns = {name for name, value in vars(engine_messages).items() if isinstance(value, re.Pattern)}
    assert patterns - {"_ERROR"} == PINNED.keys()


@pytest.mark.parametrize(("text", "sentence"), SYNTAX.items())
def test_a_sentence_of_the_parser_is_pinned(text: str, sentence: str) -> None:
    assert sentence in _error(text)


def test_what_follows_from_another_error_is_marked() -> None:
    assert "*error*" in _error("node['metadata'].name == 'b'")
    assert len(engine_messages.engine_messages(_error("node['metadata'].name == 'b'"), "")) == 1


def test_an_expression_that_is_nested_too_deep_is_told_apart() -> None:
    assert engine_messages.TOO_DEEP in _error("(" * 40 + "true" + ")" * 40)


@pytest.mark.parametrize(
    ("text", "types", "as_users_know_it"),
    [
        ("string, map(string, double)", [Type("string"), Type("map", (Type("string"), Type("double")))], "string"),
        ("optional_type(list(kubernetes.PlacedPod))", None, "optional(list(pod on the node))"),
        ("list(T%1)", [Type("list", (DYN,))], "list"),
        ("google.protobuf.Duration, kubernetes.Quantity", [Type("duration"), Type("Quantity")], "duration"),
        ("kubernetes.Quantity", None, "quantity"),
        ("null_type", [Type("null")], "null"),
        ("optional_type(T%0(T%1))", None, "optional"),
        ("", [], ""),
    ],
)
def test_types_are_read_from_a_sentence(text: str, types: list[Type] | None, as_users_know_it: str) -> None:
    found = read_types(text)
    assert types is None or found == types
    assert "".join(map(show_type, found[:1])) == as_users_know_it
