"""The strategy that the guide has its reader write keeps the contract, and the chart mounts it where it says."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.cli.inputs.strategy_folder import FOLDER, VARIABLE, custom_strategies
from support.chart.chart import template
from support.docs.pages import CHECKOUT, Page
from support.strategies.contract import keeps_contract
from support.strategies.generated import scenes

if TYPE_CHECKING:
    from fairlead.strategies.contract import Use

_FILES = {
    block.title: block.text for block in Page(CHECKOUT / "docs/guide/write-a-strategy.md").blocks() if block.title
}
_SAMPLES: dict[tuple[str, str], list[dict[str, Any]]] = {
    ("spread", "filter"): [{"label": "app", "max": 2}, {"label": "app"}],
    ("spread", "score"): [{"label": "app"}],
    ("headroom", "score"): [{"of": "cpu"}, {"of": "example.com/gpu"}],
    ("emptier", "score"): [{"of": "cpu"}, {"of": "example.com/gpu"}],
}


@pytest.mark.parametrize(("name", "kind"), _SAMPLES)
def test_it_keeps_the_contract(name: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"{name}.py").write_text(_FILES[f"{name}.py"])
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    use: Use[Any] = getattr(custom_strategies()[name], kind)
    models = [use.params.model_validate(sample) for sample in _SAMPLES[name, kind]]
    generated = [scenes(params) for params in models]

    @settings(max_examples=150, derandomize=True, database=None, suppress_health_check=[*HealthCheck])
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        at = data.draw(st.sampled_from(range(len(models))))
        keeps_contract(use, models[at], data.draw(generated[at]))

    holds()


def test_the_image_has_two_lines() -> None:
    first, second = _FILES["Dockerfile"].splitlines()
    assert first.startswith("FROM ghcr.io/fairlead-dev/fairlead:")
    assert second == f"COPY spread.py {FOLDER}/"


def test_the_values_mount_a_config_map_where_strategies_are_loaded(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text(_FILES["values.yaml"])
    (pod,) = [
        one["spec"]["template"]["spec"] for one in template(tmp_path / "values.yaml") if one["kind"] == "Deployment"
    ]
    (mount,) = yaml.safe_load(_FILES["values.yaml"])["extraVolumeMounts"]
    assert mount["mountPath"] == str(FOLDER)
    assert mount in pod["containers"][0]["volumeMounts"]
    assert {"name": "strategies", "configMap": {"name": "my-strategies"}} in pod["volumes"]
