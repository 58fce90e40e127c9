"""What a test run keeps: tests are marked by what they ask for, failures leave logs, nothing is skipped quietly."""

import os
import re
import sys
from collections.abc import Generator

import pytest

from testbed.fixtures import LOGS, RAISED, keep_logs

_MARKS = {
    "control_plane": "needs a control plane of processes",
    "cluster": "needs a cluster with a real node",
    "kind": "needs Docker that can start a privileged container",
}
_skipped = pytest.StashKey[list[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Name the marks, so that `-m 'not cluster'` works and a misspelt one does not."""
    for mark, meaning in _MARKS.items():
        config.addinivalue_line("markers", f"{mark}: {meaning}")
    config.stash[_skipped] = []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by what it asks for."""
    for item in items:
        wanted = set(getattr(item, "fixturenames", ()))
        if "cluster" in wanted:
            item.add_marker("cluster")
        elif wanted & {"control_plane", "ground"}:
            item.add_marker("control_plane")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the logs of every component when a test fails; remember what was skipped."""
    report = yield
    if report.failed:
        folder = item.config.rootpath / LOGS / re.sub(r"[^\w.-]+", "_", item.nodeid)
        for provider in item.config.stash.get(RAISED, []):
            keep_logs(provider, folder)
        if folder.exists():
            report.sections.append(("logs of the components", str(folder)))
    if report.skipped and not hasattr(report, "wasxfail") and not item.get_closest_marker("kind"):
        item.config.stash[_skipped].append(item.nodeid)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where everything can be had, everything has to run."""
    if _must_run_all() and session.config.stash[_skipped] and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say so."""
    if _must_run_all() and (skipped := config.stash[_skipped]):
        terminalreporter.section("skipped where nothing may be", red=True)
        terminalreporter.line("this is Linux and root, so only the tests of kind may be skipped; these were too:")
        for name in skipped:
            terminalreporter.line(f"  {name}")


def _must_run_all() -> bool:
    return sys.platform == "linux" and os.geteuid() == 0
