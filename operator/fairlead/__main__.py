"""The program: `fairlead`, `kubectl fairlead` and `python -m fairlead`."""

import signal
import sys


def run() -> None:
    """Run what is asked for."""
    _end_as_others()
    from fairlead.cli.main import main

    sys.exit(main())


def complete() -> None:
    """What kubectl runs to complete a line that begins with `kubectl fairlead`."""
    _end_as_others()
    from fairlead.cli.commands.completion import ASK
    from fairlead.cli.main import main

    sys.exit(main([ASK, *sys.argv[1:]]))


def _end_as_others() -> None:
    """Ctrl-C ends us as it ends other programs, at once and wherever we are, and a shell's loop with us.

    Python would raise an exception instead, which is printed where nobody can catch it: in an import, at the end.
    Nothing is half-written by that: files are written beside where they are to be, and renamed.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    run()
