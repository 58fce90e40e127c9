"""Rows for pods: pods of one owner with the same result share a row."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

from fairlead.policy.views.pod_view import PodView

T = TypeVar("T")
NAMES_MAX: Final = 3


def alike(pairs: Iterable[tuple[PodView, T]]) -> Iterator[tuple[str, T]]:
    """Yield names of pods with their results; of pods with the same owner and result, the first stands for all."""
    found: dict[tuple[Any, ...], tuple[PodView, T, int]] = {}
    for pod, said in pairs:
        key = (_owner(pod), said)
        first = found.get(key)
        found[key] = (pod, said, 1) if first is None else (first[0], first[1], first[2] + 1)
    for pod, said, count in found.values():
        more = f" and {count - 1:,} alike" if count > 1 else ""
        yield f"{pod.namespace}/{pod.name}{more}", said


def score_text(value: float) -> str:
    """Return a score with four digits, without an exponent."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def some(names: Sequence[str], most: int = NAMES_MAX) -> str:
    """Return a few names and the number of the others."""
    if len(names) <= most + 1:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most:,} more"


def _owner(pod: PodView) -> tuple[str, str]:
    owner = next((one for one in pod.pod.metadata.ownerReferences if one.controller), None)
    return (pod.namespace, pod.name) if owner is None else (pod.namespace, f"{owner.kind}/{owner.name}")
