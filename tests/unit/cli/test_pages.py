"""Pages of the reference that are written from the code: `make crds`."""

import re
from types import ModuleType
from typing import get_args

import pytest
from generate import commands, conditions, metrics
from generate.crds import FILE

from fairlead.cli.console import exits
from fairlead.cli.main import main
from fairlead.control.status.conditions import Reason
from fairlead.control.status.reasons import REASONS
from support.chart.chart import CHART


@pytest.mark.parametrize("writer", [commands, conditions, metrics])
def test_the_page_is_up_to_date(writer: ModuleType) -> None:
    assert writer.page() == writer.PAGE.read_text(), "run `make crds`"


def test_each_reason_has_a_meaning_and_those_that_wait_for_somebody_have_a_cure() -> None:
    assert [*REASONS] == [*get_args(Reason)]
    well = {"Accepted", "Compiled", "Programmed", "DataReady", "Exact", "Ready"}
    assert {reason for reason, one in REASONS.items() if not one.hint} == well


def test_every_metric_that_the_chart_asks_for_is_on_the_page() -> None:
    page = metrics.page()
    asked = {
        name
        for file in ("rules.yaml", "dashboard.json")
        for name in re.findall(r"\bfairlead_[a-z_]+", (CHART / "files" / file).read_text())
    }
    assert asked
    assert {re.sub(r"_(bucket|sum|count)$", "", one) for one in asked} - {*re.findall(r"`(\w+)`", page)} == set()


def test_every_exit_code_has_a_meaning() -> None:
    codes = {value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}
    assert codes == {*exits.MEANINGS}


def test_the_crd_that_is_printed_is_the_one_that_is_checked_in(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crd"]) == 0
    assert capsys.readouterr().out == FILE.read_text()
