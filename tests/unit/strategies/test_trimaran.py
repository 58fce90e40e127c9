"""Trimaran's own tables: what its tests give in, and what they expect, for the rules that import writes."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from fairlead.strategies.builtin import load_risk, low_risk, target_load
from fairlead.strategies.builtin.incomplete_beta import incomplete_beta
from fairlead.strategies.builtin.load_risk import LoadRisk
from fairlead.strategies.builtin.low_risk import LowRisk
from fairlead.strategies.builtin.target_load import TargetLoad
from fairlead.strategies.contract import Predicted
from support.strategies.facts import Pod
from support.strategies.load import MEASURED_AT, SECOND, asking, measured

FACTS: Final = json.loads((Path(__file__).parents[2] / "data/trimaran.json").read_text())
NOW: Final = MEASURED_AT + SECOND
CPU: Final = {"name": "cpu", "mean": "mean", "deviation": "deviation"}
RATIO: Final = CPU | {"measure": "UsedRatio"}


def rows(table: str) -> list[dict[str, Any]]:
    columns = FACTS[table]["columns"]
    return [dict(zip(columns, row, strict=True)) for row in FACTS[table]["rows"]]


def low_risk_of(row: dict[str, Any], pod: Pod, weight: int) -> Any:
    node = measured(
        row["allocatable"],
        requested=row["requested"],
        limits=row["limits"],
        mean=row["mean"],
        deviation=row["deviation"],
    )
    resource = RATIO | {"limitWeightPercent": weight}
    return low_risk.compile_low_risk(LowRisk.model_validate({"resources": [resource]})).for_pod(pod)(node, NOW)


@pytest.mark.parametrize("row", rows("lowRisk"))
def test_low_risk_over_commitment(row: dict[str, Any]) -> None:
    pod = asking(row["podRequest"], row["podLimit"])
    assert low_risk_of(row, pod, 50) == pytest.approx(100 * (1 - row["risk"]))


@pytest.mark.parametrize(("weight", "score"), [(100, "scoreByLimits"), (50, "scoreByBoth")])
def test_a_pod_is_placed_where_trimaran_places_it(weight: int, score: str) -> None:
    facts = FACTS["lowRiskChoice"]
    pod = asking(facts["podRequest"], facts["podLimit"])
    found = {row["node"]: low_risk_of(row, pod, weight) for row in rows("lowRiskChoice")}
    assert found == {row["node"]: pytest.approx(row[score], abs=0.01) for row in rows("lowRiskChoice")}
    assert max(found, key=found.__getitem__) == facts["chosen"]


@pytest.mark.parametrize("row", rows("loadRisk"))
def test_load_variation_risk_balancing(row: dict[str, Any]) -> None:
    params = {"margin": row["margin"], "sensitivity": row["sensitivity"]}
    rule = LoadRisk.model_validate({"resources": [CPU | {"measure": "Used"}], **params})
    node = measured(row["capacity"], mean=float(row["mean"]), deviation=float(row["deviation"]))
    found: Any = load_risk.compile_load_risk(rule).for_pod(asking(row["request"]))(node, NOW)
    assert round(found) == row["score"]


@pytest.mark.parametrize("row", rows("targetLoad"))
def test_target_load_packing(row: dict[str, Any]) -> None:
    rule = TargetLoad.model_validate({"value": "mean", "measure": "UsedRatio"})
    pod = Pod(expected={"cpu": Predicted(float(row["podLimit"]), 0.0, 0)})
    node = measured(1.0, mean=float(row["load"]))
    found: Any = target_load.compile_target_load(rule).for_pod(pod)(node, NOW)
    assert round(found) == row["score"]


@pytest.mark.parametrize("row", rows("beta"))
def test_the_distribution(row: dict[str, Any]) -> None:
    assert incomplete_beta(row["x"], row["alpha"], row["beta"]) == pytest.approx(row["probability"], abs=1e-6)
