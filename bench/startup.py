"""How long a user waits for a command that has next to nothing to do."""

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


def lint(size: Size) -> list[float]:
    """`fairlead lint` of one small policy, from the start of Python to its end."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "policy.yaml")
        file.write_text(yaml.safe_dump(cluster.plain([cluster.SIMPLE])))
        command = [sys.executable, "-m", "fairlead", "lint", str(file)]
        return timed(
            lambda _: subprocess.run(command, check=True, stdout=subprocess.DEVNULL),
            max(1, size.rounds // 10),
            lambda: None,
            perf_counter,
        )


BENCHMARKS: Final[Benchmarks] = {"lint-start": Benchmark("ms", lint)} if find_spec("fairlead.cli") else {}

if __name__ == "__main__":
    main(BENCHMARKS)
