"""Alerts and the dashboard ask for what is counted."""

import json
import re
from typing import Any

import pytest
import yaml
from generate import chart
from generate.metrics import registered

from fairlead.groups.member_calls import AttemptResult
from fairlead.metrics import PROCESS, Gauges, Histogram, OwnMetric

_FILES = chart.CHART / "files"
_NAME = re.compile(r"\b(fairlead_[a-z_]+)(?:\{([^}]*)\})?")
_FROM_SCRAPES = {"cluster", "exported_namespace", "namespace", "pod", "le"}
"""Prometheus renames a label namespace of our own, because a target has one."""


def expressions() -> dict[str, str]:
    """By where they stand."""
    rules = yaml.safe_load((_FILES / "rules.yaml").read_text())["groups"]
    found = {rule["alert"]: rule["expr"] for group in rules for rule in group["rules"]}
    dashboard = json.loads((_FILES / "dashboard.json").read_text())
    found |= {
        f"{one['title']} {target['refId']}": target["expr"]
        for one in dashboard["panels"]
        for target in one.get("targets", ())
    }
    return found


@pytest.fixture(scope="module")
def exposed() -> dict[str, set[str]]:
    """Labels by name, of what a replica that may lead counts, and of its process."""
    own = {name: {*one.labels} for one in registered() for name in _names(one)}
    of_process = {one.name: {*one.labels} for each in PROCESS for family in each.collect() for one in family.samples}
    return own | of_process


def _names(one: OwnMetric) -> list[str]:
    if isinstance(one, Histogram):
        return [f"{one.name}_{part}" for part in ("bucket", "sum", "count")]
    return [one.name if isinstance(one, Gauges) and not one.grows else f"{one.name}_total"]


@pytest.mark.parametrize("where", expressions())
def test_what_is_asked_for_is_counted(where: str, exposed: dict[str, set[str]]) -> None:
    expression = expressions()[where]
    asked = _NAME.findall(expression)
    assert asked
    labels: set[str] = set()
    for name, matchers in asked:
        assert name in exposed, f"{where}: {name}"
        labels |= exposed[name]
        assert {*re.findall(r"(\w+)(?:=|!)", matchers)} <= exposed[name] | _FROM_SCRAPES
    grouped = {one.strip() for group in re.findall(r"(?:by|on) \(([^)]*)\)", expression) for one in group.split(",")}
    assert grouped <= labels | _FROM_SCRAPES


def test_what_an_alert_says_is_of_its_labels() -> None:
    rules: list[dict[str, Any]] = yaml.safe_load((_FILES / "rules.yaml").read_text())["groups"][0]["rules"]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        text = " ".join(rule["annotations"].values())
        kept = " ".join(re.findall(r"(?:by|on) \(([^)]*)\)", rule["expr"]))
        for label in re.findall(r"\$labels\.(\w+)", text):
            if "by (" in rule["expr"]:
                assert label in kept, rule["alert"]
        assert rule["labels"]["severity"] in ("critical", "warning", "info")


def test_each_panel_of_the_dashboard_is_in_a_row_and_names_the_cluster_of_each_series() -> None:
    panels = json.loads((_FILES / "dashboard.json").read_text())["panels"]
    assert panels[0]["type"] == "row"
    assert len([one for one in panels if one["type"] == "row"]) > 4
    for one in panels:
        for target in one.get("targets", ()):
            assert target["legendFormat"].startswith("{{cluster}} ")
            assert len(re.findall(r'\{cluster=~"\$cluster", namespace=~"\$namespace"[,}]', target["expr"])) == 1


@pytest.mark.parametrize("alert", [one for one in expressions() if one.startswith("Fairlead")])
def test_an_alert_is_of_one_namespace_and_one_cluster(alert: str) -> None:
    expression = expressions()[alert]
    by = re.findall(r"(?:by|on) \(([^)]*)\)", expression)
    assert all(one.startswith("cluster, namespace") for one in by), expression
    assert by or not re.search(r"\b(sum|max|min|count|group)\b", expression)
    selected = [one for one in _NAME.findall(expression) if 'namespace="$(namespace)"' in one[1]]
    assert selected


def test_attempts_that_fail_are_those_after_which_a_group_rests() -> None:
    (started,) = re.findall(r'result!~"([^"]*)"', expressions()["FairleadGroupsFail"])
    assert {one for one in AttemptResult if not re.fullmatch(started, one.value)} == {
        one for one in AttemptResult if one.is_failure
    }


def test_the_dashboard_shows_each_thing_once() -> None:
    dashboard = json.loads((_FILES / "dashboard.json").read_text())
    places = [(one["gridPos"]["x"], one["gridPos"]["y"]) for one in dashboard["panels"]]
    assert len({*places}) == len(places) == len({one["id"] for one in dashboard["panels"]})


def test_everything_that_is_counted_is_shown(exposed: dict[str, set[str]]) -> None:
    shown = {name for text in expressions().values() for name, _ in _NAME.findall(text)}
    assert {
        name for name in exposed if name.startswith("fairlead_") and not name.endswith(("_sum", "_count", "_bucket"))
    } - shown == set()
