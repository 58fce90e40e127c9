"""Chart of scores over time, as SVG: a line for each kind of nodes. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from bench.svg import LINE, STEPS, TEXT, WIDTH, begin

_LEFT: Final = 60
_RIGHT: Final = 130
_TOP: Final = 16
_HEIGHT: Final = 240
_AXIS: Final = 48
_SPANS: Final = 6
"""Number of steps of the time."""
_COLORS: Final = ("#e03131", "#f08c00", "#2f9e44", "#5c7cfa", "#ae3ec9")
_APART: Final = 15.0
"""Least distance of the names of two lines."""

Line = Sequence[tuple[float, float]]
"""Points of time and score, in their order."""


def chart(title: str, unit: str, lines: Mapping[str, Line]) -> str:
    """Return the chart of scores from 0 to 100; the time is in that unit, and begins with the first point."""
    first = min(line[0][0] for line in lines.values())
    last = max(line[-1][0] for line in lines.values())
    bottom = _TOP + _HEIGHT

    def place(at: float) -> float:
        return round(_LEFT + (at - first) / ((last - first) or 1.0) * (WIDTH - _LEFT - _RIGHT), 1)

    parts = begin(title, bottom + _AXIS)
    for step in STEPS:
        y = _height(step)
        parts.append(f'<line x1="{_LEFT}" y1="{y}" x2="{WIDTH - _RIGHT}" y2="{y}" stroke="{LINE}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4}" fill="{TEXT}" text-anchor="end">{step}</text>')
    for step in range(_SPANS + 1):
        at = first + (last - first) * step / _SPANS
        parts.append(f'<text x="{place(at)}" y="{bottom + 18}" fill="{TEXT}" text-anchor="middle">{at:.0f}</text>')
    middle = place((first + last) / 2)
    parts.append(f'<text x="{middle}" y="{bottom + 40}" fill="{TEXT}" text-anchor="middle">{unit}</text>')
    names = _apart({name: _height(line[-1][1]) for name, line in lines.items()})
    for (name, line), color in zip(lines.items(), _COLORS, strict=False):
        points = " ".join(f"{place(at)},{_height(score)}" for at, score in line)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts.append(f'<text x="{WIDTH - _RIGHT + 8}" y="{names[name] + 4}" fill="{color}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _height(score: float) -> float:
    return round(_TOP + (100.0 - score) / 100.0 * _HEIGHT, 1)


def _apart(wanted: Mapping[str, float]) -> dict[str, float]:
    """Return heights of the names that do not cover each other."""
    found, above = dict[str, float](), float("-inf")
    for name, y in sorted(wanted.items(), key=lambda one: one[1]):
        above = found[name] = round(max(y, above + _APART), 1)
    return found
