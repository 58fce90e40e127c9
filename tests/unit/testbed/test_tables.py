"""What a test leaves for the end is printed once, in one process and in several."""

from pathlib import Path

import pytest


@pytest.mark.parametrize("processes", [(), ("-n", "2")], ids=["one process", "two"])
def test_tables_are_printed_at_the_end(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, processes: tuple[str, ...]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    pytester.makeini("[pytest]")
    pytester.makeconftest('pytest_plugins = ["testbed.tables"]')
    pytester.makepyfile("""
        from testbed import tables

        def test_it(pytestconfig):
            tables.leave(pytestconfig, "what became of it", "all is well")
    """)
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider", *processes)
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["*= what became of it =*", "all is well"])
    assert done.stdout.str().count("all is well") == 1
