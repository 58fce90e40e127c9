"""The command `python -m demo`: shows it, or takes its cluster down."""

import argparse
import os
from collections.abc import Sequence

from rich.console import Console

from demo import story
from demo.ground import Ground
from demo.screen import BrokenPromiseError, Screen
from testbed import providers
from testbed.errors import ClusterError

DEFAULT_NAME = "demo"
_LOG_WIDTH = 140
_FAILED = 1
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; 1 when something failed, or is not what was promised."""
    options = _parser().parse_args(arguments)
    console = Console(highlight=False)
    screen = Screen(console if console.is_terminal else Console(highlight=False, width=_LOG_WIDTH))
    try:
        provider = providers.choose(options.name, options.provider)
        if options.action == "down":
            provider.down()
            screen.tell(f"The cluster {options.name} is gone.")
        else:
            story.show(Ground(provider), screen)
    except BrokenPromiseError as error:
        screen.broken(str(error), look=f"python -m testbed --name {options.name} logs")
        return _FAILED
    except ClusterError as error:
        screen.failed(error)
        return _FAILED
    except KeyboardInterrupt:
        screen.tell("Interrupted: `make demo` goes on from here, `make demo-down` removes what there is.")
        return _INTERRUPTED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("action", nargs="?", choices=("show", "down"), default="show")
    parser.add_argument("--name", default=DEFAULT_NAME, help="of the cluster (default: %(default)s)")
    parser.add_argument(
        "--provider",
        choices=("local", "kind"),
        default=os.environ.get("FAIRLEAD_PROVIDER") or None,
        help="how to have a cluster (default: kind where Docker can run it, local where it cannot)",
    )
    return parser
