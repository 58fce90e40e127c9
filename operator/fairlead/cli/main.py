"""The command `fairlead`. Only the command that is asked for is loaded: to answer at once is part of being useful."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fairlead.cli import certs, completion, crd, lint, operate, render, serve, status, test, uninstall, version
from fairlead.cli.endings import ended

_COMMANDS = (lint, test, render, status, crd, operate, serve, certs, uninstall, completion, version)
_PLUGIN: Final = "kubectl-fairlead"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; what it returns is the exit code."""
    asked = list(sys.argv[1:] if arguments is None else arguments)
    name = "kubectl fairlead" if Path(sys.argv[0]).name == _PLUGIN else "fairlead"
    made = parser(name)
    if asked[:1] == [completion.ASK]:
        return ended(name, lambda: completion.answer(made, asked[1:]))

    def run() -> int:
        given = made.parse_args(asked)
        code: int = given.run(given)
        return code

    return ended(" ".join([name, *asked[:1]]), run)


def parser(name: str = "fairlead") -> argparse.ArgumentParser:
    """All that can be asked for."""
    made = argparse.ArgumentParser(prog=name, description="Policies for where Kubernetes pods are placed.")
    commands = made.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add_to(commands)
    return made
