"""The corpus of mistakes: what people write, what they are told, and what they write then.

`tests/data/cel/mistakes.txt` has, for each mistake, the expression, the message, and expressions that follow its hint.
Hints are copied without a thought: what they show in backquotes must stand in an expression that the checker accepts.
"""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from fairlead.cel.check import BOOL, NUMBER, STRING, Environment, ExpressionError, Want, check
from fairlead.cel.engine.environment import RULE
from fairlead.cel.syntax.ast import Type

_CORPUS = Path(__file__).parents[3] / "data" / "cel" / "mistakes.txt"
RULES = Environment(
    RULE,
    {"wants": Type("string"), "zones": Type("list", (Type("string"),)), "x": Type("string")},
    ("load", "rackPower", "load1"),
)
PLACEHOLDERS = {
    "'key' in map",
    "'key' in node.metadata.labels",
    "map[?key].orValue(default)",
    "condition ? one : other",
    "variables.name",
    "['a', 'b']",
}


class Mistake(NamedTuple):
    """An expression, the message, and expressions that follow the hint."""

    text: str
    message: str
    corrected: tuple[str, ...]


def _corpus() -> list[Mistake]:
    blocks = _CORPUS.read_text().split("\n\n")
    lines = [block.strip("\n").split("\n") for block in blocks if not block.startswith("#")]
    return [Mistake(text, said.strip(), tuple(one[4:] for one in rest)) for text, said, *rest in lines]


MISTAKES = _corpus()


def _messages(text: str, want: Want = BOOL) -> list[str]:
    try:
        check(text, RULES, want)
    except ExpressionError as rejected:
        return [str(one) for one in rejected.diagnostics]
    return []


@pytest.mark.parametrize("mistake", MISTAKES, ids=[one.text for one in MISTAKES])
def test_a_mistake_has_one_message(mistake: Mistake) -> None:
    assert _messages(mistake.text) == [mistake.message]


@pytest.mark.parametrize("mistake", MISTAKES, ids=[one.text for one in MISTAKES])
def test_the_checker_accepts_what_a_hint_shows(mistake: Mistake) -> None:
    assert [_messages(text) for text in mistake.corrected] == [[]] * len(mistake.corrected)
    hint = mistake.message.partition("; ")[2]
    if hint.startswith(("did you mean", "expected")) or "`has(...)` for a field" in hint:
        return
    shown = [found for found in re.findall("`([^`]+)`", hint) if found not in PLACEHOLDERS]
    parts = [part for found in shown for part in found.split("...")]
    assert [part for part in parts if not any(part in text for text in mistake.corrected)] == []


def test_the_corpus_is_read_whole() -> None:
    assert len(MISTAKES) == len({one.text for one in MISTAKES}) > 180
    assert sum(bool(one.corrected) for one in MISTAKES) > 150


RESULTS: dict[str, tuple[str, Want, str, str]] = {
    "a truth for a score": ("node.spec.unschedulable", NUMBER, "a bool", "node.spec.unschedulable ? 100.0 : 0.0"),
    "a comparison for a score": ("free.cpu > 1.0", NUMBER, "a bool", "free.cpu > 1.0 ? 100.0 : 0.0"),
    "a text for a score": (
        "node.metadata.labels['a']",
        NUMBER,
        "a string",
        "double(node.metadata.labels['a'])",
    ),
    "a list for a score": ("pods", NUMBER, "a list(pod on the node)", "pods.size()"),
    "a quantity for a score": ("quantity('1')", NUMBER, "a quantity", "quantity('1').asApproximateFloat()"),
    "a duration for a score": ("now - now", NUMBER, "a duration", "(now - now).getSeconds()"),
    "all amounts for a score": ("free", NUMBER, "a map(string, double)", "free['cpu']"),
    "an optional for a filter": (
        "node.metadata.labels[?'a']",
        BOOL,
        "an optional(string)",
        "node.metadata.labels[?'a'].hasValue()",
    ),
    "an amount for a filter": ("free.cpu - 1.0", BOOL, "a double", "free.cpu - 1.0 > 0.0"),
    "a list for a filter": ("node.spec.taints", BOOL, "a list(Taint)", "node.spec.taints.size() > 0"),
    "a number for an annotation": ("1 + 2", STRING, "an int", "string(1 + 2)"),
    "an optional for an annotation": (
        "node.metadata.labels[?'a']",
        STRING,
        "an optional(string)",
        "node.metadata.labels[?'a'].orValue('')",
    ),
    "a list for an annotation": ("variables.zones", STRING, "a list(string)", "variables.zones.join(',')"),
}


@pytest.mark.parametrize(("text", "want", "given", "corrected"), RESULTS.values(), ids=RESULTS)
def test_a_result_of_the_wrong_type_has_a_hint_that_fits(text: str, want: Want, given: str, corrected: str) -> None:
    assert _messages(text, want) == [f"1:1: expected {want.what}, got {given}; write `{corrected}`"]
    assert _messages(corrected, want) == []


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("pods", STRING),
        ("node.metadata.labels", NUMBER),
        ("pod", BOOL),
        ("optional.of(pod)", NUMBER),
        ("optional.none()", BOOL),
        ("(pod ? 1 : 2) > 0", BOOL),
        ("true ? 'a' : 1", BOOL),
        ("pods['a']", BOOL),
        ("now.nothing", BOOL),
        ("duration('1s') * 2", BOOL),
        ("optional.of(1) + optional.none()", NUMBER),
        ("[] + 1", BOOL),
        ("1 == null", BOOL),
        ("pod.spec.priority in 'a,b'", BOOL),
        ("kubernetes.Nothing{}", BOOL),
    ],
)
def test_a_type_without_a_hint_of_its_own_has_a_message(text: str, want: Want) -> None:
    messages = _messages(text, want)
    assert messages
    assert not any("``" in one for one in messages)


def test_a_message_names_a_place_wherever_a_text_is_cut() -> None:
    for mistake in MISTAKES:
        for end in range(1, len(mistake.text), 2):
            for text in (mistake.text[:end], mistake.text[end:]):
                assert all(re.match(r"1:[1-9]\d*: \S", one) for one in _messages(text)), text
