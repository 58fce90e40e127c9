"""Time that a user waits for a command."""

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Final

import yaml

from bench import cluster
from bench.measure import Benchmark, Benchmarks, Size, timed
from bench.report import main


def help_(size: Size) -> list[float]:
    """`fairlead --help`, from the start of Python to its end."""
    return _taken(size, "--help")


def lint(size: Size) -> list[float]:
    """`fairlead lint` of one small policy."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "policy.yaml")
        file.write_text(yaml.safe_dump(cluster.plain([cluster.SIMPLE])))
        return _taken(size, "lint", str(file))


def lint_100(size: Size) -> list[float]:
    """`fairlead lint` of a folder with 100 policies, each with a variable, three filters and a score, no two alike."""
    with tempfile.TemporaryDirectory() as folder:
        for at in range(100):
            filters = [rule.replace("'z9'", f"'z{at}'").replace("2.0", f"{at}.0") for rule in cluster.FILTERS]
            policy = cluster.plain(filters, cluster.SCORES)
            policy["metadata"] = {"name": f"policy-{at}"}
            Path(folder, f"{at}.yaml").write_text(yaml.safe_dump(policy))
        return _taken(size, "lint", folder)


def _taken(size: Size, *arguments: str) -> list[float]:
    command = [sys.executable, "-m", "fairlead", *arguments]
    return timed(
        lambda _: subprocess.run(command, check=True, stdout=subprocess.DEVNULL),
        max(1, size.rounds // 10),
        lambda: None,
        perf_counter,
    )


BENCHMARKS: Final[Benchmarks] = (
    {
        "help-start": Benchmark("ms", help_),
        "lint-start": Benchmark("ms", lint),
        "lint-100-policies": Benchmark("ms", lint_100),
    }
    if find_spec("fairlead.cli")
    else {}
)

if __name__ == "__main__":
    main(BENCHMARKS)
