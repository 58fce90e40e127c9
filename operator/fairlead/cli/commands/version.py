"""`fairlead version`: the version of the program."""

import argparse
import sys
from typing import TYPE_CHECKING

from fairlead import __version__
from fairlead.cli.console.output import TABLE, add_output, output, serialize

if TYPE_CHECKING:
    from fairlead.cli.console.options import Commands


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "version",
        help="print the version",
        description="Print the version; -o json and yaml add the API version of policies and Python's version.",
    )
    add_output(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the version."""
    if options.output == TABLE:
        output().write(f"{__version__}\n")
        return 0
    from fairlead.api.names import API_VERSION

    python = ".".join(map(str, sys.version_info[:3]))
    output().write(serialize({"version": __version__, "resource": API_VERSION, "python": python}, options.output))
    return 0
