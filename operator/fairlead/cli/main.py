"""The command `fairlead`. Commands import what they need when they run, so that every command starts quickly."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from fairlead import __version__
from fairlead.cli.commands import (
    affinity,
    certs,
    completion,
    crd,
    data,
    decisions,
    devices,
    diff,
    explain,
    groups,
    import_,
    learned,
    lint,
    operate,
    render,
    serve,
    shadow,
    simulate,
    status,
    test,
    ui,
    uninstall,
    version,
)
from fairlead.cli.console import exits
from fairlead.cli.console.exits import exit_code_of
from fairlead.cli.console.options import FILES
from fairlead.cli.console.output import complain, output

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

_COMMANDS = (
    *(
        lint,
        affinity,
        test,
        simulate,
        explain,
        diff,
        ui,
        render,
        status,
        shadow,
        decisions,
        data,
        devices,
        learned,
        groups,
        crd,
        import_,
    ),
    *(operate, serve, certs, uninstall, completion, version),
)
_PLUGIN: Final = "kubectl-fairlead"
_COMMAND: Final = "COMMAND"


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
            given.parser.refuse(unknown)
        if getattr(given, "files", True) == []:
            given.parser.error(f"the following arguments are required: {FILES}")
        code: int = given.run(given)
        return code

    return exit_code_of(" ".join([name, *(one for one in asked[:1] if not one.startswith("-"))]), run)


class _Parser(argparse.ArgumentParser):
    """Parser with one-line errors, whose help and version raise OSError if they cannot be printed."""

    def error(self, message: str) -> NoReturn:
        """Print the error and where to find help, and exit."""
        see = " See" if message.endswith("?") else "; see"
        complain(self.prog, f"{message}{see} `{self.prog} --help`")
        raise SystemExit(exits.USAGE)

    def refuse(self, arguments: Sequence[str]) -> NoReturn:
        """Print that there are no such arguments, and exit."""
        from fairlead.api.closest_name import closest_name

        dashes, name = arguments[0][:2], arguments[0][2:].partition("=")[0]
        options = [option[2:] for one in self._actions for option in one.option_strings if option.startswith("--")]
        near = closest_name(name, options) if dashes == "--" else ""
        self.error(f"unrecognized arguments: {' '.join(arguments)}" + (f": did you mean --{near}?" if near else ""))

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Raise ArgumentError for a value that is none of the choices, with the one that was probably meant."""
        if action.choices is None or value in action.choices:
            return
        from fairlead.api.closest_name import closest_name

        choices = [str(one) for one in action.choices]
        near = closest_name(str(value), choices)
        if action.metavar == _COMMAND:
            cure = f": did you mean {near}?" if near else ""
            raise argparse.ArgumentError(None, f"there is no command {value!r}{cure}")
        cure = f"did you mean {near}?" if near else f"there are {', '.join(choices)}"
        raise argparse.ArgumentError(action, f"there is no {value!r}: {cure}")

    def _print_message(self, message: str, file: "SupportsWrite[str] | None" = None) -> None:  # noqa: ARG002
        """Print the help or the version to standard output."""
        output().write(message)


def parser(name: str = "fairlead") -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    made = _Parser(prog=name, description="Policies that decide on which nodes Kubernetes pods run.")
    made.add_argument("-V", "--version", action="version", version=__version__, help="print the version and exit")
    commands = made.add_subparsers(title="commands", metavar=_COMMAND)
    for command in _COMMANDS:
        command.add_to(commands)
    helper = commands.add_parser("help", help="print the help of a command", description="Print the help of a command.")
    helper.add_argument("command", nargs="?", choices=[*commands.choices], metavar=_COMMAND, help="name of a command")
    helper.set_defaults(run=lambda given: _print_help(commands.choices.get(given.command, made)))
    made.set_defaults(run=lambda _: _print_help(made), parser=made)
    for one in commands.choices.values():
        one.set_defaults(parser=one)
    return made


def _print_help(of: argparse.ArgumentParser) -> int:
    of.print_help()
    return exits.DONE
