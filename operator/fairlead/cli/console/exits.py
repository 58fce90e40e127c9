"""Exit codes of all commands, and the conversion of errors to them.

A command that fails prints one line and never a traceback. docs/reference/commands.md gets the meanings of the codes
from here.
"""

import os
import sys
import traceback
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO, TypeVar

from fairlead.cli.console.missing_package import missing_package
from fairlead.cli.console.output import complain

if TYPE_CHECKING:
    from fairlead.logs import LogFormat

S = TypeVar("S")
_REACH: Final = "check that the cluster is up, and that --kubeconfig and --context select the right one"
NO_POLICIES: Final = "this cluster has no CustomResourceDefinition of policies: install the chart"

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
FAULT: Final = 70
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141

MEANINGS: Final = {
    DONE: "success, no problems found",
    FAILED: "the check found problems, or the operation failed; see the output",
    USAGE: "usage error, or a file, the output or the cluster could not be read or written, or a package is missing",
    FAULT: "a bug in Fairlead; please report the line that it printed",
    INTERRUPTED: "interrupted with Ctrl-C",
    BROKEN_PIPE: "the reader of the output closed the pipe early: the result is unknown",
}


def exit_code_of(name: str, run: Callable[[], int]) -> int:
    """Run a command and return its exit code, with its output flushed; an output that fails has its own code."""
    try:
        return _guarded(name, run)
    except BrokenPipeError:
        return BROKEN_PIPE
    except OSError:  # standard error failed too, so nothing can be printed
        return USAGE
    finally:
        _let_go(sys.stdout)
        _let_go(sys.stderr)


def _guarded(name: str, run: Callable[[], int]) -> int:
    """Run a command and print its error. Raises OSError if standard error fails."""
    try:
        try:
            return run()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        return INTERRUPTED
    except CommandError as error:
        complain(name, str(error))
        return error.code
    except OSError as error:
        complain(name, ": ".join(str(one) for one in (error.filename, error.strerror or error) if one))
        return USAGE
    except Exception as error:  # noqa: BLE001 - the last place that can report it
        if (missing := missing_package(error)) is not None:
            complain(name, missing)
            return USAGE
        if (expected := _expected(error)) is not None:
            complain(name, expected)
            return USAGE
        complain(name, f"a bug in Fairlead, please report it: {type(error).__name__}: {error}{_place(error)}")
        return FAULT


def _let_go(stream: TextIO | None) -> None:
    """Flush a stream, or redirect it to /dev/null: Python would fail at exit if it flushed it again."""
    if stream is None:
        return
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _place(error: Exception) -> str:
    """Return the place in Fairlead's code, which is all that a bug report needs of a traceback."""
    ours = [one for one in traceback.extract_tb(error.__traceback__) if "fairlead" in Path(one.filename).parts]
    return f" ({Path(ours[-1].filename).name}:{ours[-1].lineno}, {ours[-1].name})" if ours else ""


class CommandError(Exception):
    """Error of a command, with a one-line message that says what to do."""

    def __init__(self, message: str, code: int = USAGE) -> None:
        super().__init__(message)
        self.code = code


def _expected(error: Exception) -> str | None:
    """Return the message of an error of the cluster or of a snapshot; None for any other."""
    from fairlead.kube.errors import ClusterError, UnreachableError
    from fairlead.simulation.snapshot_error import SnapshotError

    if isinstance(error, UnreachableError):
        return f"{error}; {_REACH}"
    return str(error) if isinstance(error, ClusterError | SnapshotError) else None


def run_until_stopped(
    command: str, form: "LogFormat", read: Callable[[], S], work: Callable[[S], Coroutine[None, None, None]]
) -> int:
    """Run a server and return its exit code. `read` returns the settings or raises ValueError."""
    import asyncio

    from fairlead import logs
    from fairlead.kube.errors import ClusterError
    from fairlead.process.settings_file import SettingsError
    from fairlead.webhook.https.tls import TlsError

    try:
        settings, level = read(), logs.level_of(os.environ)
    except ValueError as error:
        return _failed(command, str(error), USAGE)
    logs.set_up(level, form)
    try:
        asyncio.run(work(settings))
    except (SettingsError, TlsError, ClusterError) as error:
        return _failed(command, str(error), FAILED)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _failed(command, f"{where}{error.strerror or error}", FAILED)
    return DONE


def _failed(command: str, why: str, code: int) -> int:
    complain(f"fairlead {command}", why)
    return code
