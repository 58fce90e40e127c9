"""The page of the reference about strategies: it has all of them, with their reasons, and its examples hold."""

from pathlib import Path

import pytest

from fairlead.strategies.builtin import hot_spot, safe, telemetry
from fairlead.strategies.devices import choice
from fairlead.strategies.registry import installed
from support.docs.pages import Page, Place

_PAGE = Page(Path(__file__).parents[3] / "docs/reference/strategies.md")
_REASONS = (
    telemetry.TOO_HIGH.format(name="NAME"),
    telemetry.TOO_LOW.format(name="NAME"),
    telemetry.FORBIDDEN.format(name="NAME"),
    safe.OVERLOAD_RISK.format(name="NAME"),
    hot_spot.TOO_MANY,
    *choice.REASONS,
)


def test_each_strategy_has_a_section() -> None:
    sections = [line.removeprefix("## ") for line in _PAGE.text.splitlines() if line.startswith("## ")]
    assert sorted(sections[:-1]) == [one.name for one in installed()]


@pytest.mark.parametrize("reason", _REASONS)
def test_it_says_each_reason(reason: str) -> None:
    assert f"`{reason}`" in _PAGE.text


def test_its_examples_score_what_it_says(tmp_path: Path) -> None:
    Place(tmp_path).follow(_PAGE)
