"""The command `python -m release`, which the Makefile's targets call."""

import argparse
import sys
from collections.abc import Sequence

from release import dist
from release.project import ReleaseError, say


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one step; 1 when it failed, with what to do on standard error."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    steps = parser.add_subparsers(required=True, metavar="STEP")
    steps.add_parser("dist", help=dist.__doc__).set_defaults(run=lambda _: dist.main())
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except ReleaseError as error:
        say(f"error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
