"""Rules of a test run: tests are marked by what they ask for, failures leave logs, nothing is skipped quietly.

With `-n`, a file's tests stay together, and all of the folders whose tests share clusters.
"""

import os
import re
import sys
from collections import OrderedDict
from collections.abc import Generator

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling

from testbed.fixtures import LOGS, RAISED, keep_logs

_MARKS = {
    "control_plane": "needs a control plane of processes",
    "cluster": "needs a cluster with a real node",
    "kind": "needs Docker that can start a privileged container",
    "engine": "needs root on Linux, to start a Docker engine of its own",
}
_SHARING = ("e2e", "integration")
"""Folders whose tests share clusters: they take longest, so they begin first, in this order."""


def pytest_configure(config: pytest.Config) -> None:
    """Name the marks, so that `-m 'not cluster'` works and a misspelt one does not."""
    for mark, meaning in _MARKS.items():
        config.addinivalue_line("markers", f"{mark}: {meaning}")
    if _must_run_all() and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Skipped())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by what it asks for."""
    for item in items:
        wanted = set(getattr(item, "fixturenames", ()))
        if "engine" in wanted:
            item.add_marker("engine")
        elif "cluster" in wanted:
            item.add_marker("cluster")
        elif wanted & {"control_plane", "ground"}:
            item.add_marker("control_plane")


class _Queue(OrderedDict[str, dict[str, bool]]):
    """Tests that wait for a process, by file or folder."""

    def popitem(self, last: bool = True) -> tuple[str, dict[str, bool]]:
        """Remove and return an entry: what shares clusters goes first, however few tests it has."""
        first = next((folder for folder in _SHARING if folder in self), None)
        if first is not None:
            self.move_to_end(first, last=last)
        return super().popitem(last)


class _Together(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """Distribution of tests that keeps those of a cluster in one process."""

    def __init__(self, config: pytest.Config, log: object) -> None:
        super().__init__(config, log)
        self.workqueue = _Queue()

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((folder for folder in file.split("/") if folder in _SHARING), file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling:
    """Choose the distribution for `-n`."""
    return _Together(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the logs of every component when a test fails."""
    report = yield
    if report.failed:
        folder = item.config.rootpath / LOGS / re.sub(r"[^\w.-]+", "_", item.nodeid)
        for provider in item.config.stash.get(RAISED, []):
            keep_logs(provider, folder)
        if folder.exists():
            report.sections.append(("logs of the components", str(folder)))
    return report


class _Skipped:
    """Skipped tests, which fail the run where everything can be had; kept by the process that hears of all tests."""

    def __init__(self) -> None:
        self._names: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember what was skipped."""
        if report.skipped and not hasattr(report, "wasxfail") and "kind" not in report.keywords:
            self._names.append(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail."""
        if self._names and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say so."""
        if not self._names:
            return
        terminalreporter.section("skipped where nothing may be", red=True)
        terminalreporter.line("this is Linux and root, so only the tests of kind may be skipped; these were too:")
        for name in self._names:
            terminalreporter.line(f"  {name}")


def _must_run_all() -> bool:
    return sys.platform == "linux" and os.geteuid() == 0
