"""Run the demo of Fairlead, or delete its cluster."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from demo import ending, recording, story
from demo.ground import Ground
from demo.screen import BrokenPromiseError, Screen
from testbed import providers
from testbed.errors import ClusterError

_LOG_WIDTH = 140
_FAILED = 1
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; return 1 if something failed or a claim does not hold."""
    options = _parser().parse_args(arguments)
    console = Console(highlight=False)
    recorder = recording.screen(sys.stdout.write) if options.record else None
    screen = recorder or Screen(console if console.is_terminal else Console(highlight=False, width=_LOG_WIDTH))
    try:
        provider = providers.choose(options.name, options.provider)
        if options.action == "down":
            provider.down()
            screen.tell(f"The cluster {options.name} is deleted.")
        else:
            story.show(Ground(provider), screen)
            if recorder is not None:
                recording.write(recorder.rows(), options.record)
    except BrokenPromiseError as error:
        screen.broken(str(error), look=f"python -m testbed --name {options.name} logs")
        return _FAILED
    except ClusterError as error:
        screen.failed(error)
        return _FAILED
    except KeyboardInterrupt:
        again, delete = ending.show(options.name), ending.delete(options.name)
        screen.tell(f"Interrupted: `{again}` continues from here, `{delete}` deletes the cluster.")
        return _INTERRUPTED
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m demo", description=__doc__)
    parser.add_argument("action", nargs="?", choices=("show", "down"), default="show")
    parser.add_argument("--name", default=ending.DEFAULT_NAME, help="name of the cluster (default: %(default)s)")
    parser.add_argument(
        "--provider",
        choices=("local", "kind"),
        default=os.environ.get("FAIRLEAD_PROVIDER") or None,
        help="how to create the cluster (default: kind if Docker can run it, otherwise local)",
    )
    parser.add_argument(
        "--record", type=Path, metavar="FOLDER", help="write what is shown to demo.svg and demo.txt there"
    )
    return parser
