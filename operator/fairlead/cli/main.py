"""The command `fairlead`. Commands import what they need when they run, so that every command starts quickly."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from fairlead.cli.commands import (
    certs,
    completion,
    crd,
    diff,
    explain,
    lint,
    operate,
    render,
    serve,
    simulate,
    status,
    test,
    uninstall,
    version,
)
from fairlead.cli.console import exits
from fairlead.cli.console.exits import exit_code_of
from fairlead.cli.console.output import complain, output
from fairlead.cli.data import data_command as data
from fairlead.cli.devices import devices_command as devices
from fairlead.cli.imports import command as import_

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

_COMMANDS = (
    *(lint, test, simulate, explain, diff, render, status, data, devices, crd, import_),
    *(operate, serve, certs, uninstall, completion, version),
)
_PLUGIN: Final = "kubectl-fairlead"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    asked = list(sys.argv[1:] if arguments is None else arguments)
    name = "kubectl fairlead" if Path(sys.argv[0]).name == _PLUGIN else "fairlead"
    made = parser(name)
    if asked[:1] == [completion.ASK]:
        return exit_code_of(name, lambda: completion.answer(made, asked[1:]))

    def run() -> int:
        given, unknown = made.parse_known_args(asked)
        if unknown:
            given.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        code: int = given.run(given)
        return code

    return exit_code_of(" ".join([name, *(one for one in asked[:1] if not one.startswith("-"))]), run)


class _Parser(argparse.ArgumentParser):
    """Parser with one-line errors, whose help raises OSError if it cannot be printed."""

    def error(self, message: str) -> NoReturn:
        """Print the error and where to find help, and exit."""
        complain(self.prog, f"{message}; see `{self.prog} --help`")
        raise SystemExit(exits.USAGE)

    def print_help(self, file: "SupportsWrite[str] | None" = None) -> None:
        """Print the help to standard output."""
        (output() if file is None else file).write(self.format_help())


def parser(name: str = "fairlead") -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    made = _Parser(prog=name, description="Policies that decide on which nodes Kubernetes pods run.")
    commands = made.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in _COMMANDS:
        command.add_to(commands)
    for one in commands.choices.values():
        one.set_defaults(parser=one)
    return made
