"""Entry points of the program: `fairlead`, `kubectl fairlead` and `python -m fairlead`."""

import atexit
import gc
import signal
import sys

_OBJECTS_NEW = 200_000


def run() -> None:
    """Run the command line."""
    _restore_interrupt()
    _collect_seldom()
    atexit.register(_leave_objects)
    from fairlead.cli.main import main

    sys.exit(main())


def complete() -> None:
    """Complete a command line that begins with `kubectl fairlead`; kubectl runs this."""
    _restore_interrupt()
    _collect_seldom()
    atexit.register(_leave_objects)
    from fairlead.cli.commands.completion import ASK
    from fairlead.cli.main import main

    sys.exit(main([ASK, *sys.argv[1:]]))


def _restore_interrupt() -> None:
    """Let Ctrl-C end the process at once, as it ends other programs, and with it a loop in a shell.

    Python would raise an exception instead, and print it where it cannot be caught: in an import, or at exit. No file
    is left half-written, because files are written to a temporary name and renamed.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _collect_seldom() -> None:
    """Let the garbage collector wait for many new objects: imports make them and keep them, and commands are short.

    Python would collect two hundred times until a command has loaded what it needs.
    """
    gc.set_threshold(_OBJECTS_NEW)


def _leave_objects() -> None:
    """Leave all objects to the operating system at the end, which frees them at once.

    Python would look for cycles among them several times on its way out, which takes as long as half of the imports.
    """
    gc.disable()
    gc.freeze()


if __name__ == "__main__":
    run()
