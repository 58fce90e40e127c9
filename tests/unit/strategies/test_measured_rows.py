"""Worked examples of the strategies of measured load, through the custom resource and a suite."""

from pathlib import Path

import pytest
import yaml

from support.suites import running

_SUITE = Path(__file__).parents[2] / "data" / "measured" / "rows.test.yaml"
_NUMBERS = 10
"""Cases that expect a score."""


def test_the_numbers_hold(capsys: pytest.CaptureFixture[str]) -> None:
    code = running.run(_SUITE)
    assert code == 0, capsys.readouterr().out


def test_a_number_that_is_off_by_a_thousandth_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is compared is not rounded away."""
    suite = yaml.safe_load(_SUITE.read_text())
    suite["policies"] = ["rows.yaml"]
    (tmp_path / "rows.yaml").write_text(_SUITE.with_name("rows.yaml").read_text())
    for case in suite["cases"]:
        scores = case["expect"].get("scores", {})
        case["expect"]["scores"] = {name: score + 0.02 for name, score in scores.items()}
    path = tmp_path / "off.test.yaml"
    path.write_text(yaml.safe_dump(suite))
    code, found = running.report(capsys, path)
    assert code == 1
    assert found["summary"]["failed"] == _NUMBERS
