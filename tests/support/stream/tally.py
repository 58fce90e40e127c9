"""Outcome of the pods of a stream while something happened: pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

CUT_OFF = HTTPStatus.INTERNAL_SERVER_ERROR
"""From here on: mostly whoever asked has gone, as a scheduler does that ends; the pod may be bound or not."""
MANY = 3
"""So many attempts of one pod do not fail while all is well."""
SLOW_S = 1.0
"""Longer than any pod takes while nothing is wrong; the time between two attempts is longer."""


@dataclass(slots=True, kw_only=True)
class StreamedPod:
    """One, and all that is known of it. Times are of one clock that never goes back."""

    name: str
    scheduler: str = ""
    pool: str = ""
    """Of the nodes that it has to come to."""
    created: float
    bound: float | None = None
    node_pool: str = ""
    codes: list[int] = field(default_factory=list)
    """What the API server answered to those who wanted to bind it."""
    refusals: list[str] = field(default_factory=list)
    """Of these, whom it refused, and when."""
    failed: int = 0
    """How many attempts to place it came to nothing."""

    @property
    def bindings(self) -> int:
        """Return the number of times it was bound."""
        return self.codes.count(HTTPStatus.CREATED)

    @property
    def is_told(self) -> bool:
        """Return whether the audit log says how it may have come to its node."""
        return bool(self.bindings) or any(code >= CUT_OFF for code in self.codes)

    @property
    def took_s(self) -> float:
        """From its creation to its node; for ever, while it has none."""
        return float("inf") if self.bound is None else self.bound - self.created


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Of the table: one fault."""

    what: str
    lasted_s: float
    created: int
    bound: int
    lost: Sequence[str]
    """Without a node, though they were to have one."""
    twice: Sequence[str]
    """Bound more than once."""
    unsaid: Sequence[str]
    """On a node, and the audit log does not say how."""
    misplaced: Sequence[str]
    cut_off: int
    """Bindings whose end nobody waited for."""
    refused: Sequence[str]
    """Bindings that the API server refused."""
    failed: int
    """Attempts that came to nothing."""
    most: int
    """Of these, of one pod."""
    p50_s: float
    p99_s: float
    worst_s: float
    normal_s: float
    """From the fault's begin to the last pod that was slow."""


def tally(what: str, pods: Sequence[StreamedPod], begun: float, ended: float, *, due: float | None = None) -> Row:
    """Count. `due`: who was created later need not have a node."""
    placed = [pod for pod in pods if pod.bound is not None]
    took = sorted(pod.took_s for pod in placed) or [0.0]
    slow = [pod.created for pod in placed if pod.took_s > SLOW_S]
    return Row(
        what=what,
        lasted_s=ended - begun,
        created=len(pods),
        bound=len(placed),
        lost=[pod.name for pod in pods if pod.bound is None and (due is None or pod.created <= due)],
        twice=[pod.name for pod in pods if pod.bindings > 1],
        unsaid=[pod.name for pod in placed if not pod.is_told],
        misplaced=[pod.name for pod in placed if pod.node_pool != pod.pool],
        cut_off=sum(code >= CUT_OFF for pod in pods for code in pod.codes),
        refused=[said for pod in pods for said in pod.refusals],
        failed=sum(pod.failed for pod in pods),
        most=max((pod.failed for pod in pods), default=0),
        p50_s=took[len(took) // 2],
        p99_s=took[min(len(took) * 99 // 100, len(took) - 1)],
        worst_s=took[-1],
        normal_s=max(0.0, max(slow) - begun) if slow else 0.0,
    )


def wrong(row: Row, *, provoked: bool, lasts: bool = False) -> list[str]:
    """Return what must not be.

    `provoked`: attempts may fail, fewer than three of a pod. `lasts`: the fault goes on to its end, and attempts may
    fail as long as that. All is well within a minute of the fault's end.
    """
    names = {"lost": row.lost, "bound twice": row.twice, "bound by nobody": row.unsaid}
    names |= {"not where the policy says": row.misplaced}
    found = [f"{len(pods)} {what}, such as {pods[0]}" for what, pods in names.items() if pods]
    if row.failed and not (provoked or lasts):
        found.append(f"{row.failed} attempts failed")
    if row.refused and not (provoked or lasts):
        found.append(f"{len(row.refused)} bindings were refused: {', '.join(row.refused[:5])}")
    if row.most >= MANY and not lasts:
        found.append(f"{row.most} attempts of one pod failed")
    if row.normal_s >= 60 + row.lasted_s:
        found.append(f"slow for {row.normal_s:.0f} s")
    return found


def table(rows: Sequence[Row]) -> str:
    """For people."""
    head = "fault|s|created|bound|lost|twice|unsaid|misplaced|cut off|refused|failed|most"
    head += "|p50 ms|p99 ms|worst ms|normal after s"
    lines = [head.split("|")]
    for row in rows:
        counts = row.created, row.bound, len(row.lost), len(row.twice), len(row.unsaid), len(row.misplaced)
        times = (f"{1000 * each:.0f}" for each in (row.p50_s, row.p99_s, row.worst_s))
        more = row.cut_off, len(row.refused), row.failed, row.most, *times, f"{row.normal_s:.1f}"
        lines.append([row.what, f"{row.lasted_s:.0f}", *map(str, (*counts, *more))])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )
