"""Benchmarks that start programs run, too; they are built as the cluster's are. No time is asserted."""

import pytest

from bench import __main__ as bench
from bench.measure import TINY, run

_SLOW = {"brake", "hostile", "publish"}
"""Up to a minute each. The drill of hostile sources, with every attack, is run by tests/e2e/test_hostile_sources.py; what
the scheduler asks of published affinity is asserted by tests/e2e/test_published_affinity.py, and that a weaker mode is
obeyed at once by tests/e2e/test_mode.py."""


@pytest.mark.parametrize("subject", sorted(bench.PROGRAMS - _SLOW))
def test_a_subject_runs(subject: str) -> None:
    benchmarks = bench.benchmarks(subject)
    measured = list(run(benchmarks, "", TINY))
    assert [(found.name, found.unit) for found in measured] == [(name, one.unit) for name, one in benchmarks.items()]
    assert all(found.value > 0 or found.unit == "calls" for found in measured)
