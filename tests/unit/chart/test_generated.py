"""What of the chart is made from models and data is as they say."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from generate import access, chart, kubernetes_versions
from generate.chart_values import Values
from release.project import semver

from fairlead import __version__
from fairlead.api.parse import parse_params
from fairlead.render.operator_settings import OperatorSettings
from fairlead.webhook.admission.admission_server import PATH

_FREE = {"profile", "affinity", "podSecurityContext", "securityContext", "strategy"}
_CHART: dict[str, Any] = yaml.safe_load((chart.CHART / "Chart.yaml").read_text())


@pytest.mark.parametrize("file", [*chart.files(), *access.files()], ids=lambda file: str(file.relative_to(chart.CHART)))
def test_a_file_is_what_it_is_made_from(file: Path) -> None:
    made = {**chart.files(), **access.files()}
    assert file.read_text() == made[file], "run `make crds`"


@pytest.mark.parametrize("file", kubernetes_versions.files(), ids=lambda file: file.name)
def test_versions_of_kubernetes_are_those_that_tests_run_on(file: Path) -> None:
    assert file.read_text() == kubernetes_versions.files()[file], "run `make crds`"


def test_the_values_are_the_defaults_of_the_models() -> None:
    written = yaml.safe_load((chart.CHART / "values.yaml").read_text())
    assert parse_params(written, Values) == Values()


def test_what_the_operator_reads_can_be_said_as_values() -> None:
    assert OperatorSettings.model_fields.keys() <= Values.model_fields.keys()


def test_nothing_is_taken_that_is_not_listed() -> None:
    """But in what Kubernetes knows, and in maps whose keys people choose."""
    free = {path for path, node in _objects(chart.schema(), "") if node["additionalProperties"] is True}
    assert {path.rpartition(".")[2].removesuffix("[]") for path in free} - _FREE == {
        *("tolerations", "topologySpreadConstraints", "extraEnv", "extraVolumes", "extraVolumeMounts"),
        *("webhookFrom", "metricsFrom", "relabelings", "metricRelabelings"),
        *("authorization", "tlsConfig"),
    }
    for path, node in _objects(chart.schema(), ""):
        said = [key for key in ("properties", "patternProperties") if key in node]
        assert (len(said), node["additionalProperties"]) in ((1, False), (0, True)), path


def test_no_value_is_left_unchecked() -> None:
    untyped = [path for path, node in _nodes(chart.schema(), "") if not {"type", "enum"} & node.keys()]
    assert untyped == []


def test_a_part_that_may_be_left_out_is_listed_with_its_fields() -> None:
    rows = dict(re.findall(r"^\| `([^`]*)` \| (.*?) \|", chart.table(), re.MULTILINE))
    assert [rows[f"prometheus[].{name}"] for name in ("url", "ca", "ca.key", "timeout")] == [
        *("required", "`null`", "required", '`"5s"`'),
    ]


def test_the_schema_has_no_pattern_that_helm_cannot_read() -> None:
    patterns = re.findall(r'"pattern": ("(?:[^"\\]|\\.)*")', json.dumps(chart.schema()))
    assert len(patterns) > 10
    assert [one for one in patterns if "(?" in one or "\\\\Z" in one] == []


def test_the_api_server_asks_where_the_operator_answers() -> None:
    assert f"      path: {PATH}\n" in (chart.CHART / "templates" / "admission.yaml").read_text()


def test_the_chart_is_of_this_version() -> None:
    assert _CHART["appVersion"] == semver(__version__)
    image = Values().image
    assert (
        f"{image.registry}/{image.repository}:{semver(__version__)}" in _CHART["annotations"]["artifacthub.io/images"]
    )


def _objects(node: dict[str, Any], path: str) -> list[tuple[str, dict[str, Any]]]:
    return [(where, one) for where, one in _nodes(node, path) if one.get("type") == "object"]


def _nodes(node: dict[str, Any], path: str) -> list[tuple[str, dict[str, Any]]]:
    found = [(path, node)]
    for name, one in node.get("properties", {}).items():
        found += _nodes(one, f"{path}.{name}")
    if "items" in node:
        found += _nodes(node["items"], f"{path}[]")
    return found
