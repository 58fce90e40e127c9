"""Alerts and the dashboard with a real Prometheus that sees several clusters and a `fairlead serve` in each."""

import json
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import urllib3
from generate import chart
from generate.metrics import registered

from fairlead.metrics import PROCESS, Gauges, Histogram, OwnMetric
from support.chart.alerts import CASES, NAMESPACE, SERVE, alerts
from testbed import packages, prometheus

MINUTES = 60
_PROMTOOL = packages.Need("a test of alerts", {"promtool": "prometheus"})
_SERIES = re.compile(r"(\w+)\{(.*)\}")
_PANELS: list[Any] = json.loads((chart.CHART / "files/dashboard.json").read_text())["panels"]
QUERIES = {f"{one['title']} {query['refId']}": query["expr"] for one in _PANELS for query in one.get("targets", ())}
DASHBOARD = ("north", "south")
"""Clusters in which everything is counted."""


def _values(written: str) -> list[float | None]:
    """Values of the notation that promtool's tests have, one a minute."""
    found: list[float | None] = []
    for part in written.split():
        if missing := re.fullmatch(r"_x(\d+)", part):
            found += [None] * int(missing[1])
        elif match := re.fullmatch(r"(\d+)(?:\+(\d+))?x(\d+)", part):
            start, step, count = float(match[1]), float(match[2] or 0), int(match[3])
            found += [start + step * index for index in range(count + 1)]
        else:
            raise AssertionError(part)
    return found


def _samples(series: Mapping[str, str], cluster: str, start: int) -> Iterator[tuple[str, str]]:
    """Lines of a cluster's series in the text format, each with the name of its metric."""
    for name, written in series.items():
        metric, labels = _SERIES.fullmatch(name).groups()  # type: ignore[union-attr]
        shift = start if metric.endswith("_timestamp_seconds") else 0
        for minute, value in enumerate(_values(written)[: MINUTES + 1]):
            if value is not None:
                # the format has no blanks between labels
                written_labels = f'cluster="{cluster}",{labels.replace(", ", ",")}'
                yield metric, f"{metric}{{{written_labels}}} {value + shift} {start + 60 * minute}"


def _everything() -> dict[str, str]:
    """Series of all that a replica counts, each of which grows."""
    found = {}
    at = f'namespace="{NAMESPACE}", pod="a"'
    for one in registered():
        own = ("exported_namespace" if label == "namespace" else label for label in one.labels)  # as a scrape does
        labels = ", ".join([at, *(f'{label}="some"' for label in own)])
        for name, more in _names(one):
            found[f"{name}{{{labels}{more}}}"] = "1x60" if name == "fairlead_policy_condition" else "1+3x60"
    for each in PROCESS:
        for family in each.collect():
            for sample in family.samples:
                labels = ", ".join([at, *(f'{label}="0"' for label in sample.labels)])
                found[f"{sample.name}{{{labels}}}"] = "1+3x60"
    return found


def _names(one: OwnMetric) -> list[tuple[str, str]]:
    if isinstance(one, Histogram):
        buckets = [(f"{one.name}_bucket", f', le="{limit}"') for limit in ("0.1", "+Inf")]
        return [*buckets, (f"{one.name}_sum", ""), (f"{one.name}_count", "")]
    return [(one.name if isinstance(one, Gauges) and not one.grows else f"{one.name}_total", "")]


@pytest.fixture(scope="module")
def server(prometheus_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """The URL of one that has an hour of the series of each case, and when that hour began."""
    packages.ensure(_PROMTOOL)
    folder = tmp_path_factory.mktemp("clusters")
    start = int(time.time()) - 60 * MINUTES
    lines: dict[str, list[str]] = {}
    clusters = {f"{name} fires": {**case.fires, **SERVE} for name, case in CASES.items()}
    clusters |= {f"{name} quiet": {**case.quiet, **SERVE} for name, case in CASES.items()}
    clusters |= dict.fromkeys(DASHBOARD, _everything())
    for cluster, series in clusters.items():
        for metric, line in _samples(series, cluster, start):
            lines.setdefault(metric, []).append(line)
    text = "".join(f"# TYPE {metric} unknown\n" + "\n".join(each) + "\n" for metric, each in sorted(lines.items()))
    (folder / "series.txt").write_text(f"{text}# EOF\n")
    command = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "series.txt", "data"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with prometheus.running(folder, []) as running:
        yield f"http://127.0.0.1:{running.port}", start


def _asked(server: tuple[str, int], query: str, minute: int) -> list[dict[str, str]]:
    """The labels of the series of a query's result."""
    url, start = server
    fields = urlencode({"query": query, "time": start + 60 * minute})
    answer = urllib3.request("GET", f"{url}/api/v1/query?{fields}").json()
    assert answer["status"] == "success", answer
    return [one["metric"] for one in answer["data"]["result"]]


@pytest.mark.parametrize("alert", CASES)
def test_an_alert_is_for_its_own_cluster_and_for_no_other(alert: str, server: tuple[str, int]) -> None:
    found = _asked(server, alerts()[alert]["expr"], min(CASES[alert].minutes, MINUTES - 1))
    clusters = [one["cluster"] for one in found if one["cluster"] in (f"{alert} fires", f"{alert} quiet")]
    assert clusters == [f"{alert} fires"]
    assert {one["namespace"] for one in found} == {NAMESPACE}


def test_a_serve_beside_the_operator_is_no_replica_that_disagrees(server: tuple[str, int]) -> None:
    found = _asked(server, alerts()["FairleadReplicasDisagree"]["expr"], 30)
    assert [one["cluster"] for one in found] == ["FairleadReplicasDisagree fires"]


@pytest.mark.parametrize("query", QUERIES)
def test_each_query_of_the_dashboard_has_series_of_the_clusters_that_are_chosen(
    query: str, server: tuple[str, int]
) -> None:
    asked = QUERIES[query].replace("$__rate_interval", "5m").replace("$namespace", ".*")
    for chosen, wanted in (("north", {"north"}), ("|".join(DASHBOARD), {*DASHBOARD})):
        found = _asked(server, asked.replace("$cluster", chosen), 30)
        assert {one["cluster"] for one in found} == wanted
