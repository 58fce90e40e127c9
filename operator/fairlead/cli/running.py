"""Runs what goes on until a signal says to stop, and says in one line why it could not."""

import os
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Final, TypeVar

from fairlead.cli.printing import complain

if TYPE_CHECKING:
    from fairlead.logs import Format

S = TypeVar("S")
_FAILED: Final = 1
_USAGE: Final = 2


def run_until_stopped(
    command: str, form: "Format", read: Callable[[], S], work: Callable[[S], Coroutine[None, None, None]]
) -> int:
    """The exit code. `read` gives the settings, or raises ValueError."""
    import asyncio

    from fairlead import logs
    from fairlead.cluster.errors import ClusterError
    from fairlead.settings_file import SettingsError
    from fairlead.webhook.tls import TlsError

    try:
        settings, level = read(), logs.level_of(os.environ)
    except ValueError as error:
        return _said(command, str(error), _USAGE)
    logs.set_up(level, form)
    try:
        asyncio.run(work(settings))
    except (SettingsError, TlsError, ClusterError) as error:
        return _said(command, str(error), _FAILED)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _said(command, f"{where}{error.strerror or error}", _FAILED)
    return 0


def _said(command: str, why: str, code: int) -> int:
    complain(f"fairlead {command}", why)
    return code
