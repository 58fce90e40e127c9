"""The long run: `python -m differential --cases 1000000 --seed 1 --jobs 2`."""

import argparse
import os
import sys
import time
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from random import Random

from differential.table import low, show
from differential.tally import Tally, batch, wishes


def main() -> int:
    parser = argparse.ArgumentParser(prog="differential")
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--least", type=int, default=1_000)
    options = parser.parse_args()
    total, started = Tally(), time.monotonic()
    with ProcessPoolExecutor(options.jobs) as pool:
        try:
            collect(total, pool, options)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
    report(total, options.least)
    print(f"seed {options.seed}, {time.monotonic() - started:.0f} s")
    return 1 if total.differences else 0


def collect(total: Tally, pool: ProcessPoolExecutor, options: argparse.Namespace) -> None:
    """Compare batch after batch until there are enough; an interrupt ends it with what there is."""
    started, number = time.monotonic(), 0
    running: set[Future[Tally]] = set()
    while total.cases < options.cases:
        while len(running) < 2 * options.jobs:
            seed = f"{options.seed}/{number}"
            running.add(pool.submit(batch, seed, wishes(Random(seed), total.table, options.least)))
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
    print(f"{total.cases} cases, {len(total.differences)} differences")
    for difference in sorted(total.differences, key=len)[:50]:
        print(f"  {difference}")
    for reason, count in total.known.most_common():
        print(f"  and {count} expressions, {reason}")
    few = low(total.table, least)
    print(f"{len(few)} cells have fewer than {least}; the least of all:")
    for cell in few[:400] or low(total.table, total.cases)[:3]:
        print(f"  {' / '.join(part or 'value' for part in cell)}: {total.table[cell]}")


if __name__ == "__main__":
    sys.exit(main())
