"""Alerts fire when they should, by promtool and the rules that the chart renders."""

import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from generate import chart

from support.chart.alerts import CASES, NAMESPACE, RENDERED, SERVE, alerts, rendered
from testbed import packages

_PROMTOOL = packages.Need("a test of alerts", {"promtool": "prometheus"})


def test_each_alert_is_tried() -> None:
    assert alerts().keys() == CASES.keys()
    assert "$(" not in RENDERED.read_text()


@pytest.fixture(scope="module")
def promtool() -> str:
    """The program, installed where it is missing."""
    packages.ensure(_PROMTOOL)
    return "promtool"


def _series(series: Mapping[str, str], cluster: str = "") -> Sequence[Mapping[str, str]]:
    label = f'{{cluster="{cluster}", ' if cluster else "{"
    return [{"series": name.replace("{", label, 1), "values": values} for name, values in series.items()]


def _run(promtool: str, folder: Path, tests: list[Any]) -> None:
    bare = [{key: value for key, value in one.items() if key != "annotations"} for one in alerts().values()]
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "fairlead", "rules": bare}]}))
    document = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}
    (folder / "tests.yaml").write_text(yaml.safe_dump(document))
    done = subprocess.run(
        [promtool, "test", "rules", "tests.yaml"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _test(name: str, series: Sequence[Mapping[str, str]], *expected: Mapping[str, str]) -> Any:
    fired = [{"exp_labels": {**one, **alerts()[name]["labels"]}} for one in expected]
    asked = {"eval_time": f"{CASES[name].minutes}m", "alertname": name, "exp_alerts": fired}
    return {"name": name, "interval": "1m", "input_series": series, "alert_rule_test": [asked]}


def test_each_fires_when_it_should_and_no_other_time(promtool: str, tmp_path: Path) -> None:
    tests = []
    for name, case in CASES.items():
        tests.append(_test(name, _series({**case.fires, **SERVE}), {"namespace": NAMESPACE, **case.labels}))
        tests.append(_test(name, _series({**case.quiet, **SERVE})))
    tests.append(_test("FairleadAway", [], {"namespace": NAMESPACE}))
    _run(promtool, tmp_path, tests)


def test_each_fires_for_its_own_cluster_alone(promtool: str, tmp_path: Path) -> None:
    tests = []
    for name, case in CASES.items():
        both = [*_series({**case.fires, **SERVE}, "north"), *_series({**case.quiet, **SERVE}, "south")]
        tests.append(_test(name, both, {"cluster": "north", "namespace": NAMESPACE, **case.labels}))
    _run(promtool, tmp_path, tests)


def test_the_rules_are_what_prometheus_reads(promtool: str, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": rendered()}))
    command = [promtool, "check", "rules", "--lint=all", "--lint-fatal", "rules.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "28 rules found" in done.stdout) == (0, True), done.stdout + done.stderr


def test_each_points_to_its_section_of_the_troubleshooting_page() -> None:
    page = (chart.CHART.parents[1] / "docs/guide/troubleshooting.md").read_text()
    sections = {
        re.sub(r"[^a-z0-9 -]", "", one.lower()).replace(" ", "-")
        for one in re.findall(r"^#+ (.*)$", page, re.MULTILINE)
    }
    for name, rule in alerts().items():
        assert rule["annotations"]["runbook_url"].rpartition("#")[2] in sections, name
