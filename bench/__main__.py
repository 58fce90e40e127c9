"""Run every benchmark, each subject in a process of its own, and print a table; all of them also write the page.

A target that is missed is said and is no failure: the machine may be a slow one. A benchmark that crashes is.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from importlib import import_module
from typing import Final

from bench import page
from bench.measure import Benchmarks
from bench.report import Line, machine, parser, table

SUBJECTS: Final = (
    "expressions",
    "calls",
    "groups",
    "decisions",
    "slices",
    "systems",
    "learned",
    "compiling",
    "webhook",
    "shadow",
    "memory",
    "mirror",
    "data_poll",
    "statuses",
    "startup",
    "simulate",
    "ui",
    "single",
    "follow",
    "outcomes",
    "grants",
    "group_binds",
    "hostile",
    "publish",
    "brake",
)
PROGRAMS: Final = frozenset({"single", "follow", "outcomes", "grants", "group_binds", "hostile", "publish", "brake"})
"""Subjects that start programs, of which some are built from Go first."""


def benchmarks(subject: str) -> Benchmarks:
    """Benchmarks of a subject."""
    found: Benchmarks = import_module(f"bench.{subject}").BENCHMARKS
    return found


def main() -> int:
    """The exit code: 1 if a benchmark crashed."""
    arguments = parser().parse_args()
    chosen = [one for one in SUBJECTS if any(arguments.name in name for name in benchmarks(one))]
    if not chosen:
        parser().error(f"no benchmark has {arguments.name!r} in its name")
    if not arguments.json:
        print("{cpu}, {cores} cores, {python}".format_map(machine()), flush=True)
    lines, failed = list[Line](), list[str]()
    for subject in chosen:
        try:
            for line in _measured(subject, arguments.name):
                print(line, file=sys.stderr, flush=True)
                lines.append(line)
        except subprocess.CalledProcessError:
            failed.append(subject)
    print(json.dumps({**machine(), "lines": [asdict(line) for line in lines]}) if arguments.json else table(lines))
    if not (arguments.name or arguments.json or failed):
        page.put("Subjects", ["What `make bench` measures.", page.when_and_where(), "", *page.rows(lines)])
    if failed:
        print(f"crashed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def _measured(subject: str, name: str) -> Iterator[Line]:
    """The lines of a subject as they come."""
    command = [sys.executable, "-m", f"bench.{subject}", "--json", name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for text in process.stdout or ():
            yield Line(**json.loads(text))
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)


if __name__ == "__main__":
    sys.exit(main())
