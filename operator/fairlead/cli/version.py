"""`fairlead version`: which version this is."""

import argparse
from typing import TYPE_CHECKING

from fairlead import __version__

if TYPE_CHECKING:
    from fairlead.cli.arguments import Commands


def add_to(commands: "Commands") -> None:
    """Say what the command takes."""
    commands.add_parser("version", help="print the version").set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    """Print it."""
    print(__version__)
    return 0
