"""Warnings about rules that decide by measured values: each with a rule that deserves it, and with its fix."""

from collections.abc import Mapping
from typing import Any, Final

import pytest
from generate.crds import installed_policy

from fairlead.api.parse import parse_policy
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from fairlead.policy.lint.codes import LintCode
from fairlead.policy.lint.measured_checks import NO_DAEMONS
from fairlead.policy.lint.policy_checks import warnings
from fairlead.strategies.registry import installed

_MODEL: Final = installed_policy()
_RULES: Final = CompileOptions({strategy.name: strategy for strategy in installed()})

BATCH: Final = {"podSelector": {"matchLabels": {"class": "batch"}}}
NEW: Final = "spec.filters[0].{}: new nodes are rejected until they are measured: load has no default"
BURSTS: Final = (
    "spec.filters[0].telemetry: when a value falls below a threshold, pods arrive in a burst, before the value shows"
    " their load; put hotSpot: {windows: [{within: 1m, limit: 5}]} beside it"
)
RANGE: Final = (
    "spec.scores[0].telemetry: with normalize MinMax even a difference of 0.1 counts in full, if there is no greater"
    " one"
)
DAEMONS: Final = (
    "spec.filters[0].{}: a filter by load also keeps pods of DaemonSets off their nodes, and these can run nowhere"
    f' else; add a condition to match.conditions: expression: "{NO_DAEMONS}"'
)

PROMETHEUS: Final = {"name": "load", "prometheus": {"query": "x"}}
METRICS: Final = {"name": "load", "nodeMetrics": {"resource": "cpu", "as": "Ratio"}}
TIMED: Final = {"name": "load", "nodeAnnotation": {"key": "a", "timeKey": "b"}}
UNTIMED: Final = {"name": "load", "nodeAnnotation": {"key": "a"}}
LABEL: Final = {"name": "load", "nodeLabel": {"key": "a"}}
DOCUMENT: Final = {"name": "load", "configMap": {"name": "prices"}}

HOT: Final = {"name": "hot", "telemetry": {"rules": [{"value": "load", "operator": "GreaterThan", "target": 80}]}}
SAFE: Final = {"name": "hot", "safe": {"resources": [{"name": "cpu", "mean": "load"}]}}
SPREAD: Final = {"name": "spread", "hotSpot": {"windows": [{"within": "1m", "limit": 5}]}}
_TELEMETRY: Final = {"value": "load", "prefer": "Lowest"}
COOL: Final = {"name": "cool", "telemetry": _TELEMETRY}


def cel(expression: str) -> dict[str, str]:
    return {"name": "hot", "expression": expression}


def spec(
    entry: Mapping[str, Any], *filters: Mapping[str, Any], match: Mapping[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    return {"match": BATCH if match is None else match, "data": [entry], "filters": [*filters], **more}


def with_default(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {**entry, "default": 0.5}


_RANGE: Final = {"from": 0, "to": 1}
_TWO: Final = [
    PROMETHEUS,
    {"name": "next", "prometheus": {"query": "y"}},
]
_FORECAST: Final = {"name": "hot", "safe": {"resources": [{"name": "cpu", "mean": "load", "forecast": "next"}]}}

CASES: Final[dict[str, tuple[dict[str, Any], list[str]]]] = {
    "new nodes, safe": (spec(METRICS, SAFE), [NEW.format("safe")]),
    "new nodes, default": (spec(with_default(METRICS), SAFE), []),
    "new nodes, passed": (spec(METRICS, {**SAFE, "onError": "Pass"}), []),
    "new nodes, expression": (spec(PROMETHEUS, cel("data.load < 0.9")), [NEW.format("expression")]),
    "new nodes, expression with its own default": (spec(PROMETHEUS, cel("data[?'load'].orValue(0.0) < 0.9")), []),
    "new nodes, expression that asks first": (spec(PROMETHEUS, cel("!has(data.load) || data.load < 0.9")), []),
    "new nodes, telemetry": (spec(PROMETHEUS, HOT, SPREAD), [NEW.format("telemetry")]),
    "new nodes, an annotation comes with the node": (spec(TIMED, SAFE), []),
    "new nodes, a forecast may be missing": (
        {"match": BATCH, "data": [with_default(PROMETHEUS), _TWO[1]], "filters": [_FORECAST]},
        [],
    ),
    "new nodes, the mean may not": (
        {"match": BATCH, "data": _TWO, "filters": [_FORECAST]},
        [NEW.format("safe")],
    ),
    "bursts": (spec(TIMED, HOT), [BURSTS]),
    "bursts, hotSpot filter": (spec(TIMED, HOT, SPREAD), []),
    "bursts, hotSpot score": (spec(TIMED, HOT, scores=[{"name": "s", "hotSpot": {}}]), []),
    "bursts, not measured": (spec(LABEL, HOT), []),
    "small differences": (spec(TIMED, scores=[COOL]), [RANGE]),
    "small differences, said so": (spec(TIMED, scores=[{**COOL, "normalize": "MinMax"}]), [RANGE]),
    "small differences, range": (
        spec(TIMED, scores=[{"name": "cool", "telemetry": {**_TELEMETRY, "range": _RANGE}}]),
        [],
    ),
    "small differences, as they are": (spec(TIMED, scores=[{**COOL, "normalize": "None"}]), []),
    "small differences, a price": (spec(DOCUMENT, scores=[COOL]), []),
    "daemons": (spec(TIMED, SAFE, match={}), [DAEMONS.format("safe")]),
    "daemons, expression": (spec(TIMED, cel("data.load < 0.9"), match={}), [DAEMONS.format("expression")]),
    "daemons, safe without times": (spec(UNTIMED, SAFE, match={}), [DAEMONS.format("safe")]),
    "daemons, by namespace": (spec(TIMED, SAFE, match={"namespaces": ["a"]}), [DAEMONS.format("safe")]),
    "daemons, left out": (
        spec(TIMED, SAFE, match={"conditions": [{"name": "no-daemon", "expression": NO_DAEMONS}]}),
        [],
    ),
    "daemons, a condition about something else": (
        spec(TIMED, SAFE, match={"conditions": [{"name": "day", "expression": "now.getHours() > 6"}]}),
        [DAEMONS.format("safe")],
    ),
    "daemons, a label is no load": (spec(LABEL, cel("data.load < 0.9"), match={}), []),
    "daemons, a score keeps none off": (spec(TIMED, match={}, scores=[COOL, {"name": "s", "hotSpot": {}}]), [RANGE]),
}


def said(given: Mapping[str, Any]) -> list[str]:
    obj = {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "SchedulerExtenderPolicy",
        "metadata": {"name": "some"},
        "spec": given,
    }
    policy = parse_policy(obj, _MODEL)
    found = [one for one in warnings(compile_policy(policy, _RULES), policy) if one.reason is LintCode.MEASURED_VALUES]
    assert {one.severity for one in found} <= {"warning"}
    fields = ["".join(f"[{at}]" if isinstance(at, int) else f".{at}" for at in one.path)[1:] for one in found]
    return [f"{field}: {one.message}; {one.hint}" for field, one in zip(fields, found, strict=True)]


@pytest.mark.parametrize("name", CASES)
def test_measured_values_are_warned_of(name: str) -> None:
    given, want = CASES[name]
    found = said(given)
    assert [one.startswith(start) for one, start in zip(found, want, strict=True)] == [True] * len(want), found


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("new nodes, safe", "give default and defaultFor there, or set onError: Pass"),
        ("small differences", "give range: {from: LOW, to: HIGH}, which takes its place, and leave normalize out"),
    ],
)
def test_the_fix_is_in_the_message(name: str, fix: str) -> None:
    [one] = said(CASES[name][0])
    assert one.endswith(f"; {fix}")
