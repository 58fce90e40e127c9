"""Benchmarks that start programs run, too; they are built as the cluster's are. No time is asserted."""

import pytest

from bench import __main__ as bench
from bench.measure import TINY, run

_SLOW = {"brake", "hostile", "publish"}
"""Up to a minute each. What they do is asserted by tests in tests/e2e: test_hostile_sources.py has every attack,
test_published_affinity.py what the scheduler asks, and test_mode.py how soon a weaker mode is obeyed."""


@pytest.mark.parametrize("subject", sorted(bench.PROGRAMS - _SLOW))
def test_a_subject_runs(subject: str) -> None:
    benchmarks = bench.benchmarks(subject)
    measured = list(run(benchmarks, "", TINY))
    assert [(found.name, found.unit) for found in measured] == [(name, one.unit) for name, one in benchmarks.items()]
    assert all(found.value > 0 or found.unit == "calls" for found in measured)
