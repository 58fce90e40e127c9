"""Rules of `safe`, and the numbers of a rule."""

from typing import Any

from fairlead.strategies.builtin import safe
from fairlead.strategies.builtin.safe import SafeFilter, SafeScore
from fairlead.strategies.contract import Reject
from support.strategies.facts import Node, Notes, Pod
from support.strategies.load import MEASURED_AT, SECOND

NOW = MEASURED_AT + SECOND
CPU = {"name": "cpu", "mean": "mean", "deviation": "deviation", "measure": "Used"}
NO_DEVIATION = {"name": "cpu", "mean": "mean", "measure": "Used"}
REFUSED = Reject("overload risk on cpu")
Given = dict[str, Any]


def a_filter(*resources: Given, **params: Any) -> Any:
    """Return a filter, of the CPU unless resources are given."""
    return safe.compile_safe_filter(SafeFilter.model_validate({"resources": resources or (CPU,), **params}))


def a_score(*resources: Given, **params: Any) -> Any:
    """Return a score, of the CPU unless resources are given."""
    return safe.compile_safe_score(SafeScore.model_validate({"resources": resources or (CPU,), **params}))


def numbers(rule: Any, node: Node, pod: Pod) -> dict[str, Any]:
    """Return what a trace shows of the CPU."""
    notes = Notes()
    rule.for_pod(pod)(node, NOW, notes)
    return notes.items["cpu"]
