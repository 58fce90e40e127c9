"""The long run: `python -m support.grants --cases 1000000 --seed 1`, or one case again: `--case 1/4711`."""

import argparse
import sys
import time
from collections import Counter

from support.grants.explorer import Failure, explore, numbers_of, report, run_case

PART = 10_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="support.grants")
    parser.add_argument("--cases", type=int, default=1_000_000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--case", help="name of a case, as a failure prints it")
    options = parser.parse_args()
    if options.case is not None:
        trace: list[str] = []
        try:
            run_case(numbers_of(options.case), Counter(), trace)
        except Exception:  # noqa: BLE001  whatever it is, it is what the case found
            print(report(options.case, numbers_of(options.case)))
            return 1
        print("\n".join(trace))
        return 0
    seen, started = Counter[str](), time.monotonic()
    for first in range(0, options.cases, PART):
        try:
            seen += explore(options.seed, min(PART, options.cases - first), first)
        except Failure as failure:
            print(f"\n{failure}")
            return 1
        done = min(first + PART, options.cases)
        print(f"\r{done} cases, {time.monotonic() - started:.0f} s", end="", flush=True)
    print()
    for what, times in sorted(seen.items()):
        print(f"{times:10} {what}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
