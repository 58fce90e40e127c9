"""Explorer of interleavings: a case is a list of numbers, each of which decides one step.

What a number means depends on where the case is, so that any list of numbers is a case, and a part of it is one too.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

_PART: Final = 10_000

RunCase = Callable[[Sequence[int], Counter[str], list[str] | None], None]
"""Runs the case of some numbers, counts what was seen, and traces what happens; raises if the promise is broken."""


class PromiseBrokenError(AssertionError):
    """A promise that a case breaks."""


class Failure(AssertionError):  # noqa: N818  its text is a report
    """A case that broke the promise: its seed, the shortest part of it that does, and what happens there."""


class Explorer:
    """Runs cases of one kind, and shortens one that fails."""

    def __init__(self, run_case: RunCase, steps: int, bits: int) -> None:
        self._run_case, self._steps, self._bits = run_case, steps, bits

    def numbers_of(self, seed: str) -> list[int]:
        """Return the case of a seed: the setup, and a number for each step."""
        random = Random(seed)
        return [random.getrandbits(self._bits) for _ in range(self._steps + 1)]

    def explore(self, seed: str, cases: int, first: int = 0) -> Counter[str]:
        """Run cases one after the other; raise `Failure` at the first that breaks the promise."""
        seen = Counter[str]()
        for number in range(first, first + cases):
            name = f"{seed}/{number}"
            numbers = self.numbers_of(name)
            try:
                self._run_case(numbers, seen, None)
            except Exception as error:
                raise Failure(self.report(name, numbers)) from error
        return seen

    def report(self, name: str, numbers: Sequence[int]) -> str:
        """Return what to read of a case that failed: its name, by which it is run again, and what happens in it."""
        least, trace = self.shrunk(numbers), list[str]()
        why = self.broken_by(least, trace)
        lines = "\n".join(f"{at:3} {line}" for at, line in enumerate(trace, 1))
        return f"case {name} ({len(least) - 1} steps when shrunk): {type(why).__name__}: {why}\n{lines}"

    def broken_by(self, numbers: Sequence[int], trace: list[str] | None = None) -> Exception | None:
        """Return how a case breaks the promise; None if it does not."""
        try:
            self._run_case(numbers, Counter(), trace)
        except Exception as error:  # noqa: BLE001  whatever it is, it is what the case found
            return error
        return None

    def shrunk(self, numbers: Sequence[int]) -> list[int]:
        """Return a part of a case that fails alike, and no longer does without any of its steps."""
        kind, least, size = type(self.broken_by(numbers)), list(numbers), max(1, len(numbers) // 2)
        while True:
            at, before = 1, len(least)
            while at < len(least):
                part = least[:at] + least[at + size :]
                if type(self.broken_by(part)) is kind:
                    least = part
                else:
                    at += size
            if size == 1 and len(least) == before:
                return least
            size = max(1, size // 2)

    def main(self, prog: str) -> int:
        """Explore as a command: `--cases 1000000 --seed 1`, or one case again: `--case 1/4711`."""
        parser = argparse.ArgumentParser(prog=prog)
        parser.add_argument("--cases", type=int, default=1_000_000)
        parser.add_argument("--seed", default="1")
        parser.add_argument("--case", help="name of a case, as a failure prints it")
        options = parser.parse_args()
        if options.case is not None:
            return self._again(options.case)
        seen, started = Counter[str](), time.monotonic()
        for first in range(0, options.cases, _PART):
            try:
                seen += self.explore(options.seed, min(_PART, options.cases - first), first)
            except Failure as failure:
                print(f"\n{failure}")
                return 1
            done = min(first + _PART, options.cases)
            print(f"\r{done} cases, {time.monotonic() - started:.0f} s", end="", flush=True)
        print()
        for what, times in sorted(seen.items()):
            print(f"{times:10} {what}")
        return 0

    def _again(self, name: str) -> int:
        trace: list[str] = []
        if self.broken_by(self.numbers_of(name), trace) is not None:
            print(self.report(name, self.numbers_of(name)))
            return 1
        print("\n".join(trace))
        return 0
