"""Report of a soak: a table for people, and data for programs."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from support.soak.judgement import Finding
from support.stream import Row


def as_table(findings: Sequence[Finding], windows: Sequence[Row]) -> str:
    """Return what was found, and the pods of each window."""
    lines: list[tuple[str, ...]] = [("", "first", "last", "", "of first", "bound", "")]
    lines += [
        (
            one.what,
            _number(one.first),
            _number(one.last),
            one.unit,
            f"{one.ratio:.3f}" if one.unit and one.first else "",
            one.limit,
            "ok" if one.is_kept else "WRONG",
        )
        for one in findings
    ]
    pods: list[tuple[str, ...]] = [("pods of", "created", "lost", "twice", "misplaced", "p50 ms", "p99 ms", "worst ms")]
    pods += [
        (
            row.what,
            *map(str, (row.created, len(row.lost), len(row.twice), len(row.misplaced))),
            *(f"{1000 * each:.0f}" for each in (row.p50_s, row.p99_s, row.worst_s)),
        )
        for row in windows
    ]
    return f"{_columns(lines)}\n\n{_columns(pods)}"


def as_json(
    about: Mapping[str, Any], findings: Sequence[Finding], windows: Sequence[Row], happened: Sequence[object]
) -> dict[str, Any]:
    """Return the same as data."""
    return {
        **about,
        "ok": all(one.is_kept for one in findings),
        "findings": [
            {
                "what": one.what,
                "first": _json(one.first),
                "last": _json(one.last),
                "unit": one.unit,
                "bound": one.limit,
                "ok": one.is_kept,
            }
            for one in findings
        ],
        "windows": [
            {
                "what": row.what,
                "created": row.created,
                "lost": [*row.lost],
                "twice": [*row.twice],
                "misplaced": [*row.misplaced],
                "p50_s": row.p50_s,
                "p99_s": row.p99_s,
                "worst_s": row.worst_s,
            }
            for row in windows
        ],
        "happened": [*happened],
    }


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.4g}" if value != int(value) else f"{value:.0f}"


def _json(value: float) -> float | None:
    return None if math.isnan(value) else value


def _columns(lines: Sequence[tuple[str, ...]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
