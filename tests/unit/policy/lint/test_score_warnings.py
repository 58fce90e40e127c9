"""Warnings about scores that compile."""

import re
from typing import Any

import pytest

from support.policy.compile_warnings import LABELS, reasons_of, warnings_of_score

SCORES: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "a number": ("50.0", {}, ["HasNoEffect"]),
    "nothing": ("0", {"weight": 5}, ["HasNoEffect"]),
    "nothing, in other words": ("node.spec.unschedulable ? 0.0 : 1.0 - 1.0", {}, ["HasNoEffect"]),
    "one number in both cases": ("node.spec.unschedulable ? 7 : 7", {}, ["HasNoEffect"]),
    "what is the pod's": ("pod.spec.priority", {}, ["HasNoEffect"]),
    "what the pod asks for": ("request['cpu']", {}, ["HasNoEffect"]),
    "the time": ("now.getHours()", {}, ["HasNoEffect"]),
    "more than 100": ("node.spec.unschedulable ? 1000 : 0", {}, ["ScoreOutOfRange"]),
    "less than 0": ("node.spec.unschedulable ? -100.0 : 0.0", {}, ["ScoreOutOfRange"]),
    "pods": ("-pods.size()", {"normalize": "Rank"}, ["EventuallyConsistent"]),
    "fewer pods, below 0": ("-pods.size()", {}, ["ScoreOutOfRange", "EventuallyConsistent"]),
    "less of what is left, below 0": (
        "-free[?'example.com/gpu'].orValue(0.0)",
        {"normalize": "None"},
        ["ScoreOutOfRange", "EventuallyConsistent"],
    ),
    "fewer pods, through a variable": ("-variables.count", {}, ["ScoreOutOfRange", "EventuallyConsistent"]),
    # What the range of a score shows.
    "bytes": ("free['memory']", {}, ["ScoreOutOfRange", "EventuallyConsistent"]),
    "bytes that a node has": ("allocatable['ephemeral-storage']", {}, ["ScoreOutOfRange"]),
    "bytes that would be left": ("free.memory - request.memory", {}, ["ScoreOutOfRange", "EventuallyConsistent"]),
    "kibibytes": ("free['memory'] / 1024.0", {}, ["ScoreOutOfRange", "EventuallyConsistent"]),
    "bytes beside cores": ("free['cpu'] + free['memory']", {}, ["ScoreOutOfRange", "EventuallyConsistent"]),
    "bytes, with a default": ("free[?'hugepages-2Mi'].orValue(0.0)", {}, ["ScoreOutOfRange", "EventuallyConsistent"]),
    "bytes of the node's status": (
        "quantity(node.status.allocatable['memory']).asApproximateFloat()",
        {},
        ["ScoreOutOfRange"],
    ),
    "a fraction of 1": ("free['memory'] / allocatable['memory']", {}, ["ScoreOutOfRange", "EventuallyConsistent"]),
    "the rest of 1": ("1.0 - requested['cpu'] / allocatable['cpu']", {}, ["ScoreOutOfRange", "EventuallyConsistent"]),
    "the mean of two fractions": (
        "(free['cpu'] / allocatable['cpu'] + free['memory'] / allocatable['memory']) / 2.0",
        {},
        ["ScoreOutOfRange", "EventuallyConsistent"],
    ),
    "one or nothing": ("node.spec.unschedulable ? 0 : 1", {}, ["ScoreOutOfRange"]),
    "a share below 0": ("-requested['cpu'] / allocatable['cpu']", {}, ["ScoreOutOfRange", "EventuallyConsistent"]),
    "a share taken from 100": (
        "100.0 - requested['cpu'] / allocatable['cpu']",
        {},
        ["ScoreOutOfRange", "EventuallyConsistent"],
    ),
    "a share added to 50": ("50.0 + free['cpu'] / allocatable['cpu']", {}, ["ScoreOutOfRange", "EventuallyConsistent"]),
    "a percentage of whole numbers": ("100 - pods.size() / 110 * 100", {}, ["EventuallyConsistent", "WrongUnit"]),
    "a percentage of whole numbers, multiplied first": ("100 - 100 * pods.size() / 110", {}, ["EventuallyConsistent"]),
    "99 or 100": ("node.spec.unschedulable ? 99 : 100", {}, ["ScoreOutOfRange"]),
    "never below 100": (
        "200.0 - 100.0 * free['cpu'] / allocatable['cpu']",
        {},
        ["ScoreOutOfRange", "EventuallyConsistent"],
    ),
    # Nothing is said of these.
    "a share taken from 100, stretched": (
        "100.0 - requested['cpu'] / allocatable['cpu']",
        {"normalize": "MinMax"},
        ["EventuallyConsistent"],
    ),
    "90 or 100": ("node.spec.unschedulable ? 90 : 100", {}, []),
    "bytes, stretched": ("free['memory']", {"normalize": "MinMax"}, ["EventuallyConsistent"]),
    "a fraction, stretched": ("free['cpu'] / allocatable['cpu']", {"normalize": "MinMax"}, ["EventuallyConsistent"]),
    "bytes, kept within bounds": ("math.least(100.0, free['memory'])", {}, ["EventuallyConsistent"]),
    "cores": ("free['cpu']", {}, ["EventuallyConsistent"]),
    "a measured fraction, of which nothing is known": ("data.load", {}, []),
    "a fraction of a measured value": ("1.0 - data.load / 100.0", {}, []),
    "the memory of as many pods": ("free['memory'] / request['memory']", {}, ["EventuallyConsistent"]),
    "what may be above 0, turned round": ("-(requested['cpu'] - 3.0)", {}, ["EventuallyConsistent"]),
    "a default below 0, turned round": ("-free[?'example.com/gpu'].orValue(-1.0)", {}, ["EventuallyConsistent"]),
    "more than 100, stretched": ("node.spec.unschedulable ? 1000 : 0", {"normalize": "MinMax"}, []),
    "0 or 100": ("node.spec.unschedulable ? 0 : 100", {}, []),
    "labels of nodes": (f"'a' in {LABELS} ? 100 : 0", {}, []),
    "what a node has": ("allocatable['cpu']", {}, []),
    "what is left, turned round and stretched": ("-free['cpu']", {"normalize": "MinMax"}, ["EventuallyConsistent"]),
    "a percentage": ("100.0 * free['cpu'] / allocatable['cpu']", {}, ["EventuallyConsistent"]),
    "a share in percent": ("free['memory'] / allocatable['memory'] * 100.0", {}, ["EventuallyConsistent"]),
    "the share that is not requested": (
        "100.0 - 100.0 * (requested['memory'] / allocatable['memory'])",
        {},
        ["EventuallyConsistent"],
    ),
    "gibibytes": ("allocatable['memory'] / 1073741824.0", {}, []),
    "fewer pods": ("100 - pods.size()", {}, ["EventuallyConsistent"]),
    "what is kept within bounds": (
        "math.greatest(0.0, math.least(100.0, free['cpu'] - 5.0, 200.0))",
        {},
        ["EventuallyConsistent"],
    ),
    "a value from outside": ("-data.load", {}, []),
}


@pytest.mark.parametrize(("expression", "more", "want"), SCORES.values(), ids=SCORES)
def test_of_a_score_it_is_said(expression: str, more: dict[str, Any], want: list[str]) -> None:
    assert reasons_of(warnings_of_score(expression, **more)) == want


@pytest.mark.parametrize(("expression", "more", "want"), SCORES.values(), ids=SCORES)
def test_a_score_that_follows_its_hint_is_within_its_range(
    expression: str, more: dict[str, Any], want: list[str]
) -> None:
    shown = [re.search("`([^`]+)`", one.hint) for one in warnings_of_score(expression, **more) if one.reason == want[0]]
    for found in filter(None, shown):
        assert "ScoreOutOfRange" not in reasons_of(warnings_of_score(found[1]))
