"""What came of many cases, and what to ask for next: what there is least of."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from differential.cases import Wish, case
from differential.compare import run
from differential.recipes import makers
from differential.table import OK, OUTCOMES, Cell, cells, low
from differential.world import activation

BATCH = 2_000  # expressions


@dataclass
class Tally:
    """What came of a batch, or of all."""

    expressions: int = 0
    cases: int = 0
    refused: int = 0
    not_lowered: Counter[str] = field(default_factory=Counter)
    table: Counter[Cell] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    known: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Tally") -> None:
        self.expressions += other.expressions
        self.cases += other.cases
        self.refused += other.refused
        self.not_lowered += other.not_lowered
        self.table += other.table
        self.differences += other.differences
        self.known += other.known


def wishes(random: Random, table: Counter[Cell], least: int) -> list[Wish]:
    """For cells that have few: the fewer, the more often. Several of an expression, which all end alike."""
    lacking: dict[str, dict[tuple[str, str], int]] = defaultdict(dict)
    for kind, type_, outcome in low(table, least):
        if (kind, type_) in makers():
            lacking[outcome][kind, type_] = least - table[kind, type_, outcome]
    if not lacking:
        return []
    weights = [sum(rows.values()) for rows in lacking.values()]
    made = []
    for outcome in random.choices([*lacking], weights, k=BATCH):
        rows = lacking[outcome]
        together = random.randint(1, 3) if outcome == OK else random.randint(2, 4)
        chosen = random.choices([*rows], [*rows.values()], k=together)
        made.append(Wish(tuple(random.choice(makers()[row]) for row in chosen), outcome))
    return made


def some_wish(random: Random) -> Wish:
    """For kinds of nodes by chance; half of them end with a value."""
    rows = random.choices([*makers()], k=random.randint(1, 3))
    outcome = OK if random.random() < 0.5 else random.choice(OUTCOMES[1:-1])
    return Wish(tuple(random.choice(makers()[row]) for row in rows), outcome)


def batch(seed: str, wanted: Sequence[Wish] = (), expressions: int = BATCH) -> Tally:
    """Compare many; of those for which there is a wish, three in four follow it."""
    random, tally = Random(seed), Tally()
    for at in range(expressions):
        result = run(case(random, wanted[at] if wanted and at % 4 else None))
        if result.checked is None:
            tally.refused += 1
            continue
        tally.expressions += 1
        if result.why_not:
            tally.not_lowered[result.why_not] += 1
            continue
        tally.cases += len(result.outcomes)
        tally.table.update(cells(result.checked, (outcome.error for outcome in result.outcomes)))
        tally.differences += result.differences
        tally.known.update(set(result.known))
    activation.cache_clear()  # the engine frees what evaluations made when the activation goes
    return tally
