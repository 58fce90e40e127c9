"""Figures of the sizing page are those of the benchmarks page."""

import re
from pathlib import Path

import pytest

_DOCS = Path(__file__).parents[3] / "docs"
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "MiB": 1.0}
_SAID = re.findall(r"([\d.]+) (us|ms|s|MiB)\s+\(`([a-z0-9-]+)`\)", (_DOCS / "guide/sizing.md").read_text())
_MEASURED = {
    name: float(value) * _UNITS[unit]
    for name, value, unit in re.findall(
        r"^\| ([a-z0-9-]+) \| ([\d.]+) \| (us|ms|s|MiB) \|", (_DOCS / "benchmarks.md").read_text(), re.MULTILINE
    )
}


def test_there_are_figures() -> None:
    assert len(_SAID) >= 11


@pytest.mark.parametrize(("value", "unit", "name"), _SAID)
def test_a_figure_is_what_was_measured(value: str, unit: str, name: str) -> None:
    assert float(value) * _UNITS[unit] == pytest.approx(_MEASURED[name], rel=0.05)
