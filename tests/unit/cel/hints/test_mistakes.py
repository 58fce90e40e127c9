"""The corpus of mistakes: what people write, what they are told, and what they write then.

`tests/data/cel/mistakes.txt` has, for each mistake, the expression, the messages, and expressions that follow a hint.
Hints are copied without a thought: each is followed here, as far as it leads, and must lead to a rule that works.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from fairlead.cel.check import BOOL, NUMBER, STRING, Environment, ExpressionError, Want, check
from fairlead.cel.engine.environment import PROTECTION, RULE
from fairlead.cel.syntax.ast import Type
from fairlead.cel.syntax.diagnostics import Diagnostic
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.symbolic.terms import can_be, term_outcomes
from support.cel.results import results

_CORPUS = Path(__file__).parents[3] / "data" / "cel" / "mistakes.txt"
RULES = Environment(
    RULE,
    {"wants": Type("string"), "zones": Type("list", (Type("string"),)), "x": Type("string")},
    ("load", "rackPower", "load1"),
)
VARIABLES = {"wants": "pod.metadata.labels[?'wants'].orValue('')", "zones": "['a', 'b']", "x": "''"}
FORMS = {
    "'key' in map",
    "condition ? one : other",
    "variables.name",
    "['a', 'b']",
    "requested['cpu']",
    "request['cpu']",
    "labels.exists(key, value, ...)",
    "text.matches('^[a-z0-9-]+$')",
    "duration('90s')",
}
"""What a hint may show as an example of its kind, not as what to write here."""
WANTS = {"score: ": NUMBER, "annotation: ": STRING}
FOLLOWED_MAX = 6


class Mistake(NamedTuple):
    """An expression, the messages, and expressions that follow a hint."""

    text: str
    want: Want
    messages: tuple[str, ...]
    corrected: tuple[str, ...]


def _corpus() -> Iterator[Mistake]:
    for block in _CORPUS.read_text().split("\n\n"):
        if block.startswith("#"):
            continue
        text, *lines = block.strip("\n").split("\n")
        want = next((prefix for prefix in WANTS if text.startswith(prefix)), "")
        said = tuple(line.strip() for line in lines if not line.startswith("  > "))
        corrected = tuple(line[4:] for line in lines if line.startswith("  > "))
        yield Mistake(text.removeprefix(want), WANTS.get(want, BOOL), said, corrected)


MISTAKES = [*_corpus()]
EACH = pytest.mark.parametrize("mistake", MISTAKES, ids=[one.text for one in MISTAKES])


def _diagnostics(text: str, want: Want = BOOL) -> list[Diagnostic]:
    try:
        check(text, RULES, want)
    except ExpressionError as rejected:
        return rejected.diagnostics
    return []


def _messages(text: str, want: Want = BOOL) -> list[str]:
    return [str(one) for one in _diagnostics(text, want)]


@EACH
def test_a_mistake_has_its_message(mistake: Mistake) -> None:
    assert tuple(_messages(mistake.text, mistake.want)) == mistake.messages


@EACH
def test_the_checker_accepts_what_a_hint_shows(mistake: Mistake) -> None:
    assert [_messages(text, mistake.want) for text in mistake.corrected] == [[]] * len(mistake.corrected)
    for one in _diagnostics(mistake.text, mistake.want):
        if "write " not in one.hint and "needs quotes" not in one.hint:
            continue
        ways = (*mistake.corrected, one.rewritten, one.rewritten.replace("(", "").replace(")", ""))
        shown = [found for found in re.findall("`([^`]+)`", one.hint) if found not in FORMS]
        parts = [part for found in shown for part in found.split("...")]
        assert [part for part in parts if not any(part in text for text in ways)] == []


def _followed(mistake: Mistake) -> Iterator[tuple[str, list[Diagnostic]]]:
    """Yield what is left after each hint that is followed, the first of each expression."""
    text, found = mistake.text, _diagnostics(mistake.text, mistake.want)
    for _ in range(FOLLOWED_MAX):
        text = next((one.rewritten for one in found if one.rewritten), "")
        if not text:
            return
        found = _diagnostics(text, mistake.want)
        yield text, found
    raise AssertionError(f"{mistake.text}: hints lead on and on, to {text}")


@EACH
def test_a_hint_leads_on(mistake: Mistake) -> None:
    """Each hint leaves fewer faults or other ones, and none leads back to an expression that was there before."""
    seen = [(mistake.text, _messages(mistake.text, mistake.want))]
    for text, found in _followed(mistake):
        messages = [str(one) for one in found]
        assert text not in [before for before, _ in seen]
        assert messages not in [before for _, before in seen] or len(messages) < len(seen[-1][1])
        seen.append((text, messages))


@EACH
def test_a_hint_leads_to_a_rule_that_decides(mistake: Mistake) -> None:
    steps = [*_followed(mistake)]
    if not steps or steps[-1][1] or mistake.text.endswith("|| true"):
        return
    variables = {
        name: CompiledExpression(check(text, RULES, Want("a value", (), ""))) for name, text in VARIABLES.items()
    }
    compiled = CompiledExpression(check(steps[-1][0], RULES, mistake.want), variables)
    if not compiled.paths:
        return  # of literals alone: it was constant as it was written
    if mistake.want is BOOL:
        assert can_be(compiled, want=True), f"{steps[-1][0]} is never true"
        assert can_be(compiled, want=False), f"{steps[-1][0]} is always true"
    else:
        assert len(term_outcomes(compiled) or "ab") > 1, f"{steps[-1][0]} is constant"
    found = results(compiled)
    assert any(not isinstance(one, Exception) for one in found), f"{steps[-1][0]} always raises {found[0]}"


def test_the_corpus_is_read_whole() -> None:
    assert len(MISTAKES) == len({(one.text, one.want) for one in MISTAKES}) > 350
    assert sum(any(one.rewritten for one in _diagnostics(each.text, each.want)) for each in MISTAKES) > 250


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


def test_a_class_of_priority_is_not_taken_for_its_number() -> None:
    with pytest.raises(ExpressionError) as rejected:
        check("victim.spec.priorityClassName == 'high'", Environment(PROTECTION), BOOL)
    [one] = rejected.value.diagnostics
    assert one.hint == "compare `spec.priority` with the number of the class: kubectl get priorityclasses"
    assert one.rewritten == ""
