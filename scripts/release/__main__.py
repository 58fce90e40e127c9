"""The command `python -m release`, which the Makefile's targets call."""

import argparse
import sys
from collections.abc import Sequence

from release import bump, dist
from release.project import ReleaseError, say


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one step; 1 when it failed, with what to do on standard error."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    steps = parser.add_subparsers(required=True, metavar="STEP")
    steps.add_parser("dist", help=dist.__doc__).set_defaults(run=lambda _: dist.main())
    version = steps.add_parser("release", help=bump.__doc__)
    version.add_argument("version", nargs="?", default="")
    version.set_defaults(run=lambda of: bump.main(of.version))
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except ReleaseError as error:
        say(f"error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
