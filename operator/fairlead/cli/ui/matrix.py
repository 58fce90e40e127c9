"""Matrix of pods and nodes: nodes that no shown pod can tell apart share a column, pods of a workload a row. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fairlead.cli.ui.shown_pods import ShownPod, ShownPods, WorkloadKey, filters_in_shadow
from fairlead.simulation.explain_pod import Verdict, verdicts_of
from fairlead.simulation.results import NodeResult

COLUMNS_MAX: Final = 32
ROWS_MAX: Final = 60
_PLACED_MAX: Final = 8
_FEW: Final = 12
"""So few pods are all shown, also those with a node that no rule in shadow touches."""
GLYPHS: Final[Mapping[Verdict, str]] = {
    "Preferred": "●",
    "Possible": "○",
    "Unknown": "?",
    "Unanswered": "!",
    "Rejected": "✕",
    "Unfit": "–",  # noqa: RUF001 - as the legend says
}
WORDS: Final[Mapping[Verdict, str]] = {
    "Preferred": "preferred",
    "Possible": "possible",
    "Unknown": "not known: a rule is not evaluated",
    "Unanswered": "the scheduler's call is not answered",
    "Rejected": "rejected by a rule",
    "Unfit": "does not fit",
}
LOST: Final = "◐"
THERE: Final = "◆"
_LEFT: Final = ("Preferred", "Possible")


@dataclass(frozen=True, slots=True)
class Cell:
    """A pod on a node."""

    verdict: Verdict
    why: str = ""
    in_shadow: str = ""
    """Rules in shadow that would reject the node, with their reasons; "" if none would, or it is not possible now."""
    is_there: bool = False

    @property
    def glyph(self) -> str:
        """The sign that stands for it."""
        return THERE if self.is_there else LOST if self.in_shadow else GLYPHS[self.verdict]

    @property
    def text(self) -> str:
        """The same in words."""
        parts = ["is there"] if self.is_there else []
        parts += [WORDS[self.verdict], self.why]
        parts += [f"in shadow: {self.in_shadow}"] if self.in_shadow else []
        return ", ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class NodeColumn:
    """Nodes that no shown pod can tell apart."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """Pods of a workload with the same cells."""

    pod: str
    workload: WorkloadKey
    count: int
    waits: bool
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Matrix:
    """The rows and columns that are shown, and how many are not."""

    nodes: int
    columns: Sequence[NodeColumn]
    rows: Sequence[MatrixRow]
    more_columns: int = 0
    more_rows: int = 0

    @property
    def glyphs(self) -> list[str]:
        """The signs that occur, for the legend."""
        used = {cell.glyph for row in self.rows for cell in row.cells}
        return [glyph for glyph in (*GLYPHS.values(), LOST, THERE) if glyph in used]


def matrix_of(shown: ShownPods) -> Matrix:
    """Return the matrix of the pods that wait, and of those with a node that a rule in shadow would take from them."""
    shadow = filters_in_shadow(shown.policies)
    groups = _alike(_chosen(shown.pods, shadow))
    names = shown.simulation.names
    cells = _Cells(shadow)
    of_groups = [cells.of(group[0]) for group in groups[:ROWS_MAX]]
    columns: dict[tuple[int, ...], list[int]] = {}
    for at, key in enumerate(zip(*of_groups, strict=True)):
        columns.setdefault(key, []).append(at)
    order = sorted(columns.items(), key=lambda entry: (-cells.count_left(entry[0]), -len(entry[1]), entry[1][0]))
    keys = [key for key, _ in order[:COLUMNS_MAX]]
    rows = [
        MatrixRow(
            group[0].name,
            group[0].workload,
            len(group),
            group[0].waits_because is not None,
            [cells.kinds[key[at]] for key in keys],
        )
        for at, group in enumerate(groups[:ROWS_MAX])
    ]
    return Matrix(
        len(names),
        [NodeColumn(names[ats[0]], len(ats)) for _, ats in order[:COLUMNS_MAX]],
        rows,
        max(0, len(order) - COLUMNS_MAX),
        max(0, len(groups) - ROWS_MAX),
    )


def _chosen(pods: Sequence[ShownPod], shadow: frozenset[tuple[str, str]]) -> list[ShownPod]:
    waiting = [pod for pod in pods if pod.waits_because is not None]
    placed = [pod for pod in pods if pod.waits_because is None]
    if len(pods) > _FEW:
        placed = [pod for pod in placed if _loses_its_node(pod, shadow)]
    return [*waiting, *placed[:_PLACED_MAX]]


def _loses_its_node(pod: ShownPod, shadow: frozenset[tuple[str, str]]) -> bool:
    then = None if pod.as_enforced is None else pod.as_enforced.node(pod.context.node)
    return then is not None and any((each.policy, each.rule) in shadow for each in then.rejections)


def _alike(pods: Iterable[ShownPod]) -> list[list[ShownPod]]:
    """Return the pods of a workload with the same verdicts together: those that wait first, the worst of them first."""
    groups: dict[tuple[WorkloadKey, int, str], list[ShownPod]] = {}
    for pod in pods:
        groups.setdefault((pod.workload, id(pod.judged.verdicts), pod.context.node), []).append(pod)
    return sorted(
        groups.values(),
        key=lambda group: (group[0].waits_because is None, not group[0].is_stuck, -len(group), group[0].name),
    )


class _Cells:
    """The kinds of cells that occur. Nodes are compared by the numbers of kinds, never by points."""

    def __init__(self, shadow: frozenset[tuple[str, str]]) -> None:
        self.kinds: list[Cell] = []
        self._shadow = shadow
        self._numbers: dict[Cell, int] = {}

    def of(self, pod: ShownPod) -> list[int]:
        """Return the number of the kind on each node."""
        judged, then = pod.judged, pod.as_enforced
        verdict_of, home = verdicts_of(judged), pod.context.node
        # Rejections and failures to fit are few objects that nodes share, and live as long as the results.
        known: dict[tuple[Verdict, int, int, int], int] = {}
        others: Sequence[NodeResult] = judged.nodes if then is None else then.nodes
        numbers = []
        for node, will in zip(judged.nodes, others, strict=True):
            verdict = verdict_of(node)
            if node.name == home:
                numbers.append(self._number(self._cell(verdict, node, will, is_there=True)))
                continue
            key = verdict, id(node.rejections), id(node.unfit), id(will.rejections)
            number = known.get(key)
            if number is None:
                number = known[key] = self._number(self._cell(verdict, node, will))
            numbers.append(number)
        return numbers

    def count_left(self, key: Sequence[int]) -> int:
        """Return for how many rows a column is possible."""
        return sum(1 for number in key if self.kinds[number].verdict in _LEFT)

    def _number(self, cell: Cell) -> int:
        number = self._numbers.get(cell)
        if number is None:
            number = self._numbers[cell] = len(self.kinds)
            self.kinds.append(cell)
        return number

    def _cell(self, verdict: Verdict, node: NodeResult, will: NodeResult, *, is_there: bool = False) -> Cell:
        if verdict == "Unanswered":
            why = ""
        elif node.rejections:
            why = "; ".join(dict.fromkeys(f"{each.policy}/{each.rule}: {each.reason}" for each in node.rejections))
        else:
            why = "; ".join(dict.fromkeys(each.reason for each in node.unfit))
        lost = ""
        if verdict in _LEFT:
            by = (each for each in will.rejections if (each.policy, each.rule) in self._shadow)
            lost = "; ".join(dict.fromkeys(f"{each.policy}/{each.rule}: {each.reason}" for each in by))
        return Cell(verdict, why, lost, is_there)
