"""The command `fairlead`. Only the command that is asked for is loaded: to answer at once is part of being useful."""

import argparse
import os
import sys
from collections.abc import Sequence

from fairlead.cli import certs, lint, operate, serve, uninstall, version

_COMMANDS = (lint, operate, serve, certs, uninstall, version)
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; what it returns is the exit code."""
    parser = argparse.ArgumentParser(prog="fairlead", description="Policies for where Kubernetes pods are placed.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add_to(commands)
    given = parser.parse_args(arguments)
    try:
        code: int = given.run(given)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads has seen enough. Without this, Python complains once more when it closes its output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _INTERRUPTED
    return code
