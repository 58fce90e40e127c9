"""Chart of the load of nodes, as SVG: a row for each rule, a dot for each node."""

from collections.abc import Mapping
from statistics import fmean
from typing import Final

from bench.svg import LINE, STEPS, TEXT, WIDTH, begin

_LEFT: Final = 110
_RIGHT: Final = 20
_TOP: Final = 16
_ROW: Final = 56
_AXIS: Final = 44
_DOT: Final = "#5c7cfa"
_MEAN: Final = "#f08c00"
_LABELS: Final = {"none": "no rule", "hotSpot": "and hotSpot"}
"""The row of `hotSpot` is below that of `telemetry`, beside which it is measured."""
_LANES: Final = 5
"""Dots of neighbours lie beside each other, so that each is seen."""


def chart(loads: Mapping[str, Mapping[str, float]]) -> str:
    """Return the chart of the load of each node, from 0 to 1, by rule."""
    bottom = _TOP + _ROW * len(loads)
    parts = begin("Load of each node with each rule", bottom + _AXIS)
    for step in STEPS:
        x = _x(step / 100)
        parts.append(f'<line x1="{x}" y1="{_TOP}" x2="{x}" y2="{bottom}" stroke="{LINE}"/>')
        parts.append(f'<text x="{x}" y="{bottom + 18}" fill="{TEXT}" text-anchor="middle">{step} %</text>')
    middle = _x(0.5)
    parts.append(
        f'<text x="{middle}" y="{bottom + 38}" fill="{TEXT}" text-anchor="middle">mean load of a node;'
        " the line is the mean of all</text>"
    )
    for row, (name, nodes) in enumerate(loads.items()):
        y = _TOP + _ROW * row + _ROW // 2
        label = _LABELS.get(name, name)
        parts.append(f'<text x="{_LEFT - 12}" y="{y + 5}" fill="{TEXT}" text-anchor="end">{label}</text>')
        for at, load in enumerate(sorted(nodes.values())):
            lane = 8 * (at % _LANES - _LANES // 2)
            parts.append(f'<circle cx="{_x(load)}" cy="{y + lane}" r="4" fill="{_DOT}" fill-opacity="0.75"/>')
        x = _x(fmean(nodes.values()))
        parts.append(f'<line x1="{x}" y1="{y - 24}" x2="{x}" y2="{y + 24}" stroke="{_MEAN}" stroke-width="2"/>')
    return "\n".join([*parts, "</svg>", ""])


def _x(load: float) -> float:
    return round(_LEFT + load * (WIDTH - _LEFT - _RIGHT), 1)
