"""The long run: `python -m fuzz --requests 1000000 --attacks 20000 --evaluations 100000 --affinities 1000000 --seed 1`.

Requests go to the verbs, attacks to the server over the wire, evaluations to expressions by chance, affinities are what
filters by chance imply. It says with which seed what it found comes again.
"""

import argparse
import asyncio
import gc
import logging
import os
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random

from fairlead.webhook.extender import bind, circuit_breaker, verbs
from fairlead.webhook.extender import requests as protocol
from fuzz.against import Broken, Fuzz
from fuzz.expressions import Evaluations
from fuzz.reached import reached
from fuzz.seeds import seeds
from fuzz.wire import wire
from support.policy.affinities import Affinities, Unsound

PARTS = 10
TRACED = 10_000
GROWTH = 1.05
"""How many times as many blocks of memory there may be at the end as after the first tenth."""


def run(seed: str, requests: int) -> tuple[Counter[tuple[str, int]], list[int]]:
    """What was answered, and how many blocks of memory there were after each tenth."""
    fuzz, blocks = Fuzz(Random(seed)), list[int]()
    for _ in range(PARTS):
        for _ in range(requests // PARTS):
            fuzz.one()
        gc.collect()
        blocks.append(sys.getallocatedblocks())
    return Counter(fuzz.answers), blocks


IDLE = 150
"""Connections that say nothing while the others attack; of one address there may be 256."""


async def attack(seed: str, attacks: int) -> bool:
    """Attack a server over the wire; whether it stood."""
    logging.disable()  # each request that is no HTTP would be a traceback
    blocks = list[int]()
    with tempfile.TemporaryDirectory() as folder:
        async with wire(Path(folder), seed, idle=IDLE) as one:
            for part in range(PARTS):
                for _ in range(attacks // PARTS):
                    await one.one()
                if part == 0:
                    await one.silent_are_served()
                gc.collect()
                blocks.append(sys.getallocatedblocks())
            for name, count in sorted(one.attacks.items()):
                print(f"{count:9} {name}")
            for status, count in sorted(one.statuses.items()):
                print(f"{count:9} status {status}")
    flat = blocks[-1] < GROWTH * blocks[0]
    print(f"blocks of memory after each tenth of {attacks} attacks {blocks}, {'flat' if flat else 'GROWS'}")
    return flat


def evaluate(seed: str, count: int) -> tuple[Counter[str], tuple[float, str], tuple[int, str]]:
    """Evaluate by chance. Raises Broken."""
    one = Evaluations(Random(seed))
    one.run(count)
    return one.outcomes, one.slowest, one.largest


def evaluations(seed: str, count: int, jobs: int) -> bool:
    """The same on all cores, and what came of it; whether all were within the limits of the language."""
    outcomes, stood = Counter[str](), True
    slowest, largest = (0.0, ""), (0, "")
    with ProcessPoolExecutor(jobs) as pool:
        running = [pool.submit(evaluate, f"{seed}/{job}", count // jobs) for job in range(jobs)]
        for job, one in enumerate(running):
            try:
                found = one.result()
            except Broken as error:
                print(f"evaluation, seed {seed}/{job}: {error}")
                stood = False
                continue
            outcomes += found[0]
            slowest, largest = max(slowest, found[1]), max(largest, found[2])
    for outcome, times in sorted(outcomes.items()):
        print(f"{times:9} evaluation {outcome}")
    print(f"the slowest evaluation took {slowest[0]:.1f} ms: {slowest[1]}")
    print(f"the largest evaluation took {largest[0] / 2**20:.1f} MiB: {largest[1]}")
    return stood


def imply(seed: str, count: int) -> Counter[str]:
    """Check what filters by chance imply. Raises Unsound."""
    one = Affinities(Random(seed))
    one.run(count)
    return one.seen


def affinities(seed: str, count: int, jobs: int) -> bool:
    """The same on all cores, and what was seen; whether every node that passes is selected."""
    seen, sound = Counter[str](), True
    with ProcessPoolExecutor(jobs) as pool:
        running = [pool.submit(imply, f"{seed}/{job}", count // jobs) for job in range(jobs)]
        for job, one in enumerate(running):
            try:
                seen += one.result()
            except Unsound as error:
                print(f"affinity, seed {seed}/{job}: {error}")
                sound = False
    for what, times in sorted(seen.items()):
        print(f"{times:9} affinity: {what}")
    return sound


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz")
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--attacks", type=int, default=20_000)
    parser.add_argument("--evaluations", type=int, default=100_000)
    parser.add_argument("--affinities", type=int, default=1_000_000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    started, each = time.monotonic(), options.requests // options.jobs
    answers, failed = Counter[tuple[str, int]](), False
    with ProcessPoolExecutor(options.jobs) as pool:
        running = [pool.submit(run, f"{options.seed}/{job}", each) for job in range(options.jobs)]
        for job, one in enumerate(running):
            try:
                found, blocks = one.result()
            except Broken as error:
                print(f"seed {options.seed}/{job}: {error}")
                failed = True
                continue
            answers += found
            flat = blocks[-1] < GROWTH * blocks[0]
            print(
                f"seed {options.seed}/{job}: blocks of memory after each tenth {blocks}, {'flat' if flat else 'GROWS'}"
            )
            failed = failed or not flat
    for (verb, status), count in sorted(answers.items()):
        print(f"{count:9} {verb} {status}")
    print(f"{answers.total()} answers to {each * options.jobs} requests from {len(seeds())} seeds", end="")
    print(f" in {time.monotonic() - started:.0f} s")
    lines = reached(Fuzz(Random(options.seed)).one, TRACED, protocol, verbs, circuit_breaker, bind)
    print(f"{lines.share:.1%} of the lines reached by {TRACED} of them; missed {lines.missed}")
    try:
        failed = not asyncio.run(attack(options.seed, options.attacks)) or failed
    except Broken as error:
        print(f"attack, seed {options.seed}: {error}")
        failed = True
    if options.evaluations:
        failed = not evaluations(options.seed, options.evaluations, options.jobs) or failed
    if options.affinities:
        failed = not affinities(options.seed, options.affinities, options.jobs) or failed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
