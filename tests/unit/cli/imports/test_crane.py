"""Policies for the DynamicSchedulerPolicy of crane-scheduler, in the order that crane gives to nodes."""

from fractions import Fraction
from typing import Any, Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fairlead.cli.imports.crane import whole_weights
from fairlead.yaml_output import to_yaml
from support.cli.imported import check, imported

HEAD: Final = "apiVersion: scheduler.policy.crane.io/v1alpha1\nkind: DynamicSchedulerPolicy\n"
FULL: Final = f"""{HEAD}
spec:
  syncPolicy:
  - {{name: cpu_short, period: 3m}}
  - {{name: cpu_long, period: 15m}}
  - {{name: mem_day, period: 3h}}
  predicate:
  - {{name: cpu_short, maxLimitPecent: 0.6}}
  - {{name: cpu_long, maxLimitPecent: 0.7}}
  priority:
  - {{name: cpu_short, weight: 0.2}}
  - {{name: cpu_long, weight: 0.3}}
  - {{name: mem_day, weight: 0.5}}
  hotValue:
  - {{timeRange: 10m, count: 6}}
  - {{timeRange: 90s, count: 2}}
"""


def crane(spec: str) -> str:
    return f"{HEAD}spec: {spec}\n"


def annotation(name: str, key: str, age: str) -> dict[str, Any]:
    return {"name": name, "nodeAnnotation": {"key": key, "format": "ValueCommaTime"}, "maxAge": age}


def score(name: str, value: str, weight: int) -> dict[str, Any]:
    telemetry = {"value": value, "prefer": "Lowest", "range": {"from": 0, "to": 1}}
    return {"name": name, "weight": weight, "telemetry": telemetry}


def test_weights_of_the_same_metric_add_up() -> None:
    priorities = "{name: a, weight: 0.1}, {name: b, weight: 0.3}, {name: a, weight: 0.2}"
    periods = "{name: a, period: 1m}, {name: b, period: 1m}"
    found = imported(crane(f"{{syncPolicy: [{periods}], priority: [{priorities}]}}"))
    assert found.spec["scores"] == [score("a", "a", 3), score("b", "b", 3)]


def test_the_first_period_counts() -> None:
    periods = "{name: a, period: 0s}, {name: a, period: 2m}, {name: a, period: 9m}"
    found = imported(crane(f"{{syncPolicy: [{periods}], priority: [{{name: a, weight: 1}}]}}"))
    assert found.spec["data"] == [annotation("a", "a", "7m")]


SCHEDULER: Final = (
    "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"
    "profiles: [{schedulerName: loaded, plugins: {score: {enabled: [{name: Dynamic, weight: 3}]}}}]\n"
)


@pytest.mark.parametrize("texts", [(FULL, SCHEDULER), (SCHEDULER, FULL)])
def test_the_scheduler_is_that_of_the_configuration_beside_it(texts: tuple[str, str]) -> None:
    found = imported(*texts)
    assert found.spec["schedulerName"] == "loaded"
    assert "Dynamic of crane has its rules in a file of its own, which is imported with it." in found.comments
    check(found.policy)


def test_two_schedulers_are_not_guessed_between() -> None:
    found = imported(FULL, SCHEDULER, SCHEDULER.replace("loaded", "other"))
    assert "schedulerName" not in found.spec
    assert "add it as schedulerName" in found.comments


def test_a_configuration_without_the_policy_says_where_it_is() -> None:
    args = "pluginConfig: [{name: Dynamic, args: {policyConfigPath: /etc/policy.yaml}}], plugins"
    found = imported(SCHEDULER.replace("plugins", args))
    assert found.policies == []
    assert "has its rules in a file of its own (/etc/policy.yaml): import that too." in found.comments


def test_the_name_and_the_version_of_the_policy() -> None:
    text = FULL.replace("scheduler.policy", "policy").replace("\nspec:", "\nmetadata: {name: My_Load}\nspec:", 1)
    found = imported(text)
    assert found.policy["metadata"] == {"name": "my-load"}
    assert found.spec == imported(FULL).spec


WRONG: dict[str, tuple[str, str]] = {
    "a period": (
        "{syncPolicy: [{name: a, period: 3 minutes}]}",
        "spec.syncPolicy[0].period: '3 minutes' is not a duration; write one such as 90s, 5m or 1h30m",
    ),
    "a period before it began": (
        "{syncPolicy: [{name: a, period: -3m}]}",
        "spec.syncPolicy[0].period: '-3m' is not a duration; write one such as 90s, 5m or 1h30m",
    ),
    "a window": (
        "{syncPolicy: [{name: a, period: 3m}], priority: [{name: a, weight: 1}], hotValue: [{timeRange: x, count: 1}]}",
        "spec.hotValue[0].timeRange: 'x' is not a duration; write one such as 90s, 5m or 1h30m",
    ),
    "a count": (
        "{syncPolicy: [{name: a, period: 3m}], priority: [{name: a, weight: 1}], hotValue: [{timeRange: 1m}]}",
        "spec.hotValue[0].count: must be at least 1, not 0; crane divides by it",
    ),
    "a weight": ("{priority: [{name: a, weight: -1}]}", "spec.priority[0].weight: must be at least 0.0, not -1"),
    "a limit": (
        "{predicate: [{name: a, maxLimitPecent: high}]}",
        "spec.predicate[0].maxLimitPecent: must be a number, not 'high'",
    ),
    "a metric": ("{priority: [{name: 'a b', weight: 1}]}", "spec.priority[0].name: 'a b' is not possible here"),
    "no spec": ("null", "spec: is missing"),
    "more metrics than a policy has": (
        "{syncPolicy: ["
        + ", ".join(f"{{name: m{at}, period: 1m}}" for at in range(17))
        + "], priority: ["
        + ", ".join(f"{{name: m{at}, weight: 1}}" for at in range(17))
        + "]}",
        "spec: reads more than 16 metrics",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_name_the_field_and_the_fix(case: str) -> None:
    spec, want = WRONG[case]
    [fault] = imported(crane(spec)).faults
    assert want in fault


WEIGHTS: dict[str, tuple[list[float], list[int], bool]] = {
    "crane's own": ([0.2, 0.3, 0.5, 0.2, 0.3, 0.5], [2, 3, 5, 2, 3, 5], True),
    "one": ([0.7], [5], True),
    "equal": ([1.0, 1.0], [3, 3], True),
    "thirds": ([0.33, 0.33, 0.34], [33, 33, 34], True),
    "too fine": ([0.1234, 0.8766], [12, 88], False),
    "too far apart": ([1e-12, 1.0], [1, 100], False),
    "beyond one": ([20.0, 30.0], [2, 3], True),
}


@pytest.mark.parametrize("case", WEIGHTS)
def test_weights_become_whole(case: str) -> None:
    weights, want, is_exact = WEIGHTS[case]
    assert whole_weights([Fraction(str(one)) for one in weights]) == (want, is_exact)


_METRICS: Final = ["a", "b", "c", "d"]
_NODES = st.fixed_dictionaries(
    {
        "usage": st.fixed_dictionaries({name: st.integers(0, 100).map(lambda share: share / 100) for name in _METRICS}),
        "placed": st.lists(st.integers(0, 4), min_size=2, max_size=2),
    }
)


@given(
    weights=st.dictionaries(st.sampled_from(_METRICS), st.integers(1, 20).map(lambda one: one / 20), min_size=1),
    written=st.sets(st.sampled_from(_METRICS), min_size=1),
    counts=st.lists(st.integers(1, 6), min_size=2, max_size=2),
    nodes=st.lists(_NODES, min_size=2, max_size=4),
)
def test_nodes_come_in_the_order_of_crane(
    weights: dict[str, float], written: set[str], counts: list[int], nodes: list[dict[str, Any]]
) -> None:
    """The total is crane's, multiplied and shifted, as long as crane does not cut it off at 0 or to whole points."""
    assume(written & {*weights})
    spec = {
        "syncPolicy": [{"name": name, "period": "1m"} for name in sorted(written)],
        "priority": [{"name": name, "weight": weight} for name, weight in weights.items()],
        "hotValue": [{"timeRange": f"{at}m", "count": count} for at, count in enumerate(counts, 1)],
    }
    found = imported(to_yaml({"apiVersion": HEAD.split()[1], "kind": "DynamicSchedulerPolicy", "spec": spec}))
    assert found.faults == ()
    check(found.policy)
    whole, is_exact = whole_weights([Fraction(str(one)) for one in weights.values()])
    assume(is_exact)
    total = sum(whole)
    for node in nodes:
        usage, placed = node["usage"], node["placed"]
        left = sum((1 - usage[name]) * weight * 100 for name, weight in weights.items() if name in written)
        hot = sum(count / per for count, per in zip(placed, counts, strict=True))
        if 10 * hot > 100:
            continue
        want = total * (left / sum(weights.values()) - 10 * hot + 100)
        assert points(found.spec, usage, placed) == pytest.approx(want)


def points(spec: dict[str, Any], usage: dict[str, float], placed: list[int]) -> float:
    """Return the total of a node by the formulas of telemetry and hotSpot."""
    keys = {one["name"]: one["nodeAnnotation"]["key"] for one in spec["data"]}
    sum_ = 0.0
    for one in spec["scores"]:
        if "telemetry" in one:
            params = one["telemetry"]
            low, high = params["range"]["from"], params["range"]["to"]
            assert params["prefer"] == "Lowest"
            share = (usage[keys[params["value"]]] - low) / (high - low)
            sum_ += one["weight"] * 100 * (1 - min(max(share, 0), 1))
        else:
            windows = one["hotSpot"]["windows"]
            lost = sum(window["points"] * n / window["count"] for window, n in zip(windows, placed, strict=True))
            sum_ += one["weight"] * min(max(100 - lost, 0), 100)
    return sum_
