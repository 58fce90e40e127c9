"""Tables that tests leave for the end of a run, whichever process ran them."""

from typing import Any, Final

import pytest

_TABLES: Final = pytest.StashKey[dict[str, str]]()
_OUTPUT: Final = "tables"


def leave(config: pytest.Config, title: str, text: str) -> None:
    """Have it printed."""
    config.stash.setdefault(_TABLES, {})[title] = text


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A process of `-n` hands its tables on."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output[_OUTPUT] = session.config.stash.get(_TABLES, {})


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """One has ended; one that died has no output."""
    for title, text in getattr(node, "workeroutput", {}).get(_OUTPUT, {}).items():
        leave(node.config, title, text)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print them."""
    for title, text in config.stash.get(_TABLES, {}).items():
        terminalreporter.section(title)
        terminalreporter.line(text)
