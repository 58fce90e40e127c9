"""Rules of a test run: tests are marked by what they ask for, failures leave logs, nothing is skipped quietly.

With `-n`, a file's tests stay together, and one process has all of a folder whose tests share clusters, but for the
last of them: two have those, once nothing else is left.
"""

import os
import re
import sys
from collections.abc import Generator, Sequence

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling
from xdist.workermanage import WorkerController

from testbed.fixtures import LOGS, RAISED, keep_logs

_MARKS = {
    "control_plane": "needs a control plane of processes",
    "cluster": "needs a cluster with a real node",
    "kind": "needs Docker that can start a privileged container",
    "engine": "needs root on Linux, to start a Docker engine of its own",
    "asked_for(variable)": "needs minutes, and this environment variable",
    "since(version)": "needs this version of Kubernetes, or a newer one",
}
_SHARING = ("e2e", "integration")
"""Folders whose tests share clusters: they take longest, so they begin first, in this order."""
_AT_THE_END = 2
"""Processes that have a folder once nothing else is left: clusters of their own, which a small machine can bear."""


def pytest_configure(config: pytest.Config) -> None:
    """Name the marks, so that `-m 'not cluster'` works and a misspelt one does not."""
    for mark, meaning in _MARKS.items():
        config.addinivalue_line("markers", f"{mark}: {meaning}")
    if _must_run_all() and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Skipped())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out those that are not for this run, and mark each test by what it asks for."""
    kept, left_out = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        (kept if _is_for(config, item) else left_out).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept
    for item in items:
        wanted = set(getattr(item, "fixturenames", ()))
        if "engine" in wanted:
            item.add_marker("engine")
        elif "cluster" in wanted:
            item.add_marker("cluster")
        elif wanted & {"control_plane", "ground"}:
            item.add_marker("control_plane")


def _is_for(config: pytest.Config, item: pytest.Item) -> bool:
    """Return whether a test is for this run."""
    version = config.getoption("--kubernetes")
    return all(mark.args[0] in os.environ for mark in item.iter_markers("asked_for")) and all(
        _minor(version) >= _minor(mark.args[0]) for mark in item.iter_markers("since")
    )


def _minor(version: str) -> tuple[int, int]:
    major, minor, *_ = version.split(".")
    return int(major), int(minor)


class _Together(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
    """Distribution of files that keeps those of a cluster in one process, as long as there are others."""

    def __init__(self, config: pytest.Config, log: object) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # files begin in the order of their names

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0]

    def _reschedule(self, node: WorkerController) -> None:
        if self.workqueue and self._next_file(node) is None:
            node.shutdown()
        else:
            super()._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        if (file := self._next_file(node)) is not None:
            self.workqueue.move_to_end(file, last=False)
        super()._assign_work_unit(node)

    def _next_file(self, node: WorkerController) -> str | None:
        others = [[*files] for one, files in self.assigned_work.items() if one is not node]
        return next_file([*self.workqueue], [*self.assigned_work[node]], others)


def next_file(waiting: Sequence[str], mine: Sequence[str], others: Sequence[Sequence[str]]) -> str | None:
    """Return the file that a process takes, by the files that it and the others have had; None if it is to end."""
    folders = {_folder_of(file) for file in waiting}
    for folder in _SHARING:
        processes = sum(folder in map(_folder_of, one) for one in others)
        is_free = processes < (_AT_THE_END if folders == {folder} else 1)
        if folder in folders and (folder in map(_folder_of, mine) or is_free):
            return next(file for file in waiting if _folder_of(file) == folder)
    return next((file for file in waiting if not _folder_of(file)), None)


def _folder_of(file: str) -> str:
    """Return the folder that shares clusters, "" if the file is in none."""
    return next((folder for folder in file.split("/") if folder in _SHARING), "")


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
