"""Verdicts of strategies, and things that are none, as explain and test see them."""

from typing import Any

import pytest

from fairlead.policy.compile.expression_rules import verdict_of
from fairlead.policy.views.faults import InternalRuleError
from fairlead.strategies.contract import PASS, Filter, Reads, Reject, Score, Timed, Unknown, graver
from support.policy import NOW, node, pod

UNKNOWN = Unknown("node", "is not known")


@pytest.mark.parametrize("found", [1.0, 7, Timed(2.0, 5), UNKNOWN])
def test_a_score_is_a_number_or_unknown(found: Any) -> None:
    rule = Score(reads=Reads(), for_pod=lambda _: lambda *_: found)
    assert verdict_of(rule, pod(), "r", node(), NOW) == found


@pytest.mark.parametrize("found", [PASS, Reject("full"), UNKNOWN])
def test_a_filter_passes_rejects_or_does_not_know(found: Any) -> None:
    rule = Filter(reads=Reads(), for_pod=lambda _: lambda *_: found, reasons=())
    assert verdict_of(rule, pod(), "r", node(), NOW) == found


@pytest.mark.parametrize("found", ["7", None, [1.0], float("nan"), float("-inf"), PASS])
def test_a_score_that_is_no_number_is_a_fault_of_the_strategy(found: Any) -> None:
    rule = Score(reads=Reads(), for_pod=lambda _: lambda *_: found)
    assert isinstance(verdict_of(rule, pod(), "r", node(), NOW), InternalRuleError)


@pytest.mark.parametrize("found", ["full", None, True, 1.0])
def test_a_filter_that_returns_no_verdict_is_at_fault(found: Any) -> None:
    rule = Filter(reads=Reads(), for_pod=lambda _: lambda *_: found, reasons=())
    assert isinstance(verdict_of(rule, pod(), "r", node(), NOW), InternalRuleError)


@pytest.mark.parametrize(
    ("before", "found", "is_found"),
    [
        (None, UNKNOWN, True),
        (UNKNOWN, Unknown("other", "is missing"), False),
        (UNKNOWN, Unknown("other", "is missing", passes=True), False),
        (Unknown("other", "is missing", passes=True), UNKNOWN, True),
    ],
)
def test_of_two_reasons_that_which_no_simulation_passes_decides(
    before: Unknown | None, found: Unknown, is_found: bool
) -> None:
    assert (graver(before, found) is found) == is_found
