"""Sources of values that attack: the calls of a scheduler that has nothing to do with them are answered."""

from collections.abc import Iterator

import pytest
import yaml

from fairlead.cel.functions.quantity import to_float
from support.chart.chart import CHART
from support.hostile_sources.drill import ATTACKS, Drill, drill

CALLS = 30
"""Of one attack at least: six seconds of calls."""
LIMIT = to_float(yaml.safe_load((CHART / "values.yaml").read_text())["resources"]["limits"]["memory"]) or 0.0
"""Memory that the chart gives a replica, in bytes."""


@pytest.fixture(scope="module")
def running() -> Iterator[Drill]:
    with drill() as made:
        yield made


@pytest.mark.parametrize("name", ATTACKS)
def test_no_call_of_others_is_lost_and_the_memory_suffices(running: Drill, name: str) -> None:
    with running.under(ATTACKS[name]) as is_carried_out:
        found = running.calls(CALLS, is_carried_out)
    assert found.lost == ()
    assert found.rss < LIMIT, f"{found.rss >> 20} MiB"
