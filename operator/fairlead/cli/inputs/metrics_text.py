"""Metrics of a replica, read from the text that it writes. Pure.

prometheus-client reads the text of any program, and takes longer to load than this takes to read.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

Samples = Mapping[str, Sequence[tuple[Mapping[str, str], float]]]
"""Labels and values of the samples of each metric."""
_VALUE: Final = r'"((?:[^"\\]|\\.)*+)"'
_SAMPLE: Final = re.compile(rf"(\w+)(?:\{{((?:\w+={_VALUE},?)*+)\}})? (\S+)")
_LABEL: Final = re.compile(rf"\b(\w++)={_VALUE}")
_ESCAPED: Final = re.compile(r"\\(.)")


def parse_metrics(text: str) -> Samples:
    """Return the samples; none of a text that is not that of a replica."""
    made: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    for line in text.split("\n"):
        if not line or line.startswith("#"):
            continue
        sample = _SAMPLE.fullmatch(line)
        if sample is None:
            return {}
        labels = {label[1]: _ESCAPED.sub(_unescaped, label[2]) for label in _LABEL.finditer(sample[2] or "")}
        try:
            made.setdefault(sample[1], []).append((labels, float(sample[4])))
        except ValueError:
            return {}
    return made


def _unescaped(escape: re.Match[str]) -> str:
    return "\n" if escape[1] == "n" else escape[1]
