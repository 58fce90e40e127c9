"""How a command ends: with an exit code, and with at most one line about why. Never with a traceback."""

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

from fairlead.cli import exits
from fairlead.cli.printing import complain


def ended(name: str, run: Callable[[], int]) -> int:
    """The exit code of a command. What it has printed is out by then, or it is known that it is not."""
    try:
        return _said(name, run)
    except BrokenPipeError:
        return exits.NOT_READ
    except OSError:  # nor can it be said
        return exits.NOT_ASKED
    finally:
        _let_go(sys.stdout)
        _let_go(sys.stderr)


def _said(name: str, run: Callable[[], int]) -> int:
    """The same, with what goes wrong said; raises OSError where nobody hears it."""
    try:
        try:
            return run()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except OSError as error:
        complain(name, ": ".join(str(one) for one in (error.filename, error.strerror or error) if one))
        return exits.NOT_ASKED
    except Exception as error:  # noqa: BLE001 - somebody has to say it
        complain(name, f"a fault of ours, please report it: {type(error).__name__}: {error}{_place(error)}")
        return exits.FAULT


def _let_go(stream: TextIO | None) -> None:
    """What cannot be written is not tried once more when Python ends, which would complain and end otherwise."""
    if stream is None:
        return
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _place(error: Exception) -> str:
    """Where in our code, which is all that a report needs of a traceback."""
    ours = [one for one in traceback.extract_tb(error.__traceback__) if "fairlead" in Path(one.filename).parts]
    return f" ({Path(ours[-1].filename).name}:{ours[-1].lineno}, {ours[-1].name})" if ours else ""
