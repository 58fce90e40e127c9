"""Values of the chart from the file of an option."""

from pathlib import Path

import pytest

from fairlead.cli.console.exits import CommandError
from fairlead.cli.inputs.chart_values import read_values
from fairlead.render.operator_settings import OperatorSettings


@pytest.mark.parametrize("title", ["USER-SUPPLIED VALUES:", "COMPUTED VALUES:"])
def test_values_as_helm_prints_them(title: str, tmp_path: Path) -> None:
    """`helm get values` writes a title above them unless it is told the format, and `null` if there are none."""
    (file := tmp_path / "values.yaml").write_text(f"{title}\nunlistedSchedulers: Deny\n")
    assert read_values(file).settings.unlisted_schedulers == "Deny"
    file.write_text(f"{title}\nnull\n")
    assert read_values(file).settings == OperatorSettings()
    file.write_text(f"{title}\ntls: {{}}\ntls: {{}}\n")
    with pytest.raises(CommandError, match="line 3: 'tls' is already set in line 2"):
        read_values(file)


def test_values_of_all_schedulers_are_merged_with_the_charts_as_helm_does(tmp_path: Path) -> None:
    (file := tmp_path / "values.yaml").write_text(
        "schedulerDefaults:\n"
        "  placement: {nodeSelector: {pool: system}}\n"
        "  resources: {requests: {cpu: 1, memory: null}}\n"
        "global: {imageRegistry: mirror.example, imagePullSecrets: [{name: mirror}]}\n"
        "schedulers: [{name: a, imagePullSecrets: [own]}, {name: b}]\n"
        "ports: {webhook: 18443, admission: 10250}\n"
    )
    values = read_values(file)
    a, b, other = (values.settings.scheduler(name) for name in ("a", "b", "other"))
    assert other.placement.node_selector == {"kubernetes.io/os": "linux", "pool": "system"}
    assert other.resources.requests == {"cpu": "1"}
    assert {one.image.repository for one in (a, b, other)} == {"mirror.example/kube-scheduler"}
    assert (a.image_pull_secrets, b.image_pull_secrets) == (("own", "mirror"), ("mirror",))
    assert values.port == 18443


def test_a_repository_that_is_set_stays_where_a_parent_chart_has_a_registry(tmp_path: Path) -> None:
    (file := tmp_path / "values.yaml").write_text(
        "schedulerDefaults: {image: {repository: own.example/kube-scheduler}}\n"
        "global: {imageRegistry: mirror.example}\n"
    )
    assert read_values(file).settings.scheduler("a").image.repository == "own.example/kube-scheduler"


@pytest.mark.parametrize("text", ["global: {registry: a}", "ports: {metric: 1}", "global: [a]", "ports: a"])
def test_what_these_do_not_have_is_refused(text: str, tmp_path: Path) -> None:
    (file := tmp_path / "values.yaml").write_text(text)
    with pytest.raises(CommandError, match=r"values.yaml: (global|ports)"):
        read_values(file)
