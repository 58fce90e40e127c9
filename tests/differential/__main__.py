"""The long run: `python -m differential --cases 1000000 --seed 1 --jobs 2`."""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from random import Random

from differential.compare import activation, case, run
from differential.grammar import Recipe
from differential.table import Cell, cells, low, show

Wish = tuple[Recipe, str]
_BATCH = 2_000  # expressions


@dataclass
class Tally:
    """What came of a batch."""

    expressions: int = 0
    cases: int = 0
    refused: int = 0
    not_lowered: Counter[str] = field(default_factory=Counter)
    table: Counter[Cell] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    blamed: list[str] = field(default_factory=list)
    recipes: dict[tuple[str, str], Recipe] = field(default_factory=dict)  # that made such a node

    def add(self, other: "Tally") -> None:
        self.expressions += other.expressions
        self.cases += other.cases
        self.refused += other.refused
        self.not_lowered += other.not_lowered
        self.table += other.table
        self.differences += other.differences
        self.blamed += other.blamed
        self.recipes |= other.recipes

    def wishes(self, random: Random, least: int) -> list[Wish]:
        """For cells that have few."""
        few = [cell for cell in low(self.table, least) if cell[:2] in self.recipes]
        few = sorted(few, key=self.table.__getitem__)[:_BATCH]
        chosen = random.choices(few, k=_BATCH) if few else []
        return [(self.recipes[kind, type_], outcome) for kind, type_, outcome in chosen]


def batch(seed: str, wishes: Sequence[Wish] = (), expressions: int = _BATCH) -> Tally:
    """Compare many; of those for which there is a wish, two in three follow it."""
    random, tally = Random(seed), Tally()
    for at in range(expressions):
        made = case(random, wishes[at] if wishes and at % 3 else None)
        result = run(made)
        if result.checked is None:
            tally.refused += 1
            continue
        tally.expressions += 1
        if result.why_not:
            tally.not_lowered[result.why_not] += 1
            continue
        tally.cases += len(result.outcomes)
        found = list(cells(result.checked, (outcome.error for outcome in result.outcomes)))
        tally.table.update(found)
        if made.recipe is not None:
            tally.recipes |= {cell[:2]: made.recipe for cell in found}
        tally.differences += result.differences
        tally.blamed += result.blamed
    activation.cache_clear()  # the engine frees what evaluations made when the activation goes
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(prog="differential")
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--least", type=int, default=1_000)
    options = parser.parse_args()
    total = Tally()
    with ProcessPoolExecutor(options.jobs) as pool:
        try:
            collect(total, pool, options)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
    report(total, options.least)
    return 1 if total.differences else 0


def collect(total: Tally, pool: ProcessPoolExecutor, options: argparse.Namespace) -> None:
    """Compare batch after batch until there are enough; an interrupt ends it with what there is."""
    started, number = time.monotonic(), 0
    running: set[Future[Tally]] = set()
    while total.cases < options.cases:
        while len(running) < 2 * options.jobs:
            seed = f"{options.seed}/{number}"
            running.add(pool.submit(batch, seed, total.wishes(Random(seed), options.least)))
            number += 1
        done = next(as_completed(running))
        running.remove(done)
        for difference in done.result().differences:
            print(f"\n{difference}", flush=True)
        total.add(done.result())
        rate = total.cases / (time.monotonic() - started)
        print(f"\r{total.cases} cases, {rate:.0f}/s, {len(total.differences)} differences", end="", flush=True)
    for left in running:
        left.cancel()


def report(total: Tally, least: int) -> None:
    lowered = total.expressions - total.not_lowered.total()
    print(f"\n\n{show(total.table)}\n")
    share = lowered / max(1, total.expressions)
    print(f"{total.expressions} expressions, lowered {share:.3%}; {total.refused} refused by the checker")
    for why, count in total.not_lowered.most_common():
        print(f"  not lowered, {count}: {why}")
    print(f"{total.cases} cases, {len(total.differences)} differences, {len(total.blamed)} of the engine's (see slots)")
    for difference in sorted(total.differences, key=len)[:50]:
        print(f"  {difference}")
    few = low(total.table, least)
    print(f"{len(few)} cells have fewer than {least}")
    for cell in few[:400]:
        print(f"  {' / '.join(part or 'value' for part in cell)}: {total.table[cell]}")


if __name__ == "__main__":
    sys.exit(main())
