"""`fairlead lint FILE|DIR|-...`: what is wrong with policies, and what will surprise, before they are applied.

Exit code: 0 without errors (warnings and notes are none), 1 with errors in what was read, 2 if something could not be
read or was not asked for rightly.

`-o json` prints one object: `findings`, each with file, line, column, severity (error, warning or note), field,
message, hint, reason, policy and rule; `rules`, each with file, line, policy, name, kind, evaluation, why, uses and
expression; `summary` with policies, ignored, errors, warnings, notes, expressions and lowered. Fields may be added and
none goes.
"""

import argparse
import os
import sys
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from fairlead.cli.arguments import Commands

_ERRORS: Final = 1
_USAGE: Final = 2


def add_to(commands: "Commands") -> None:
    """Say what the command takes."""
    parser = commands.add_parser(
        "lint",
        help="say what is wrong with policies before they are applied",
        description="Say what is wrong with policies, and what will surprise, before they are applied. "
        "Exit code 0 without errors, 1 with errors, 2 if something cannot be read.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE|DIR|-", help="YAML or JSON; - is standard input")
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text", help="text when absent")
    parser.add_argument("-v", "--verbose", action="store_true", help="also say what each rule uses")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Lint."""
    # Loaded here: the language alone takes longer than the rest of the program.
    from fairlead.api.names import KIND
    from fairlead.cli.checks import Checker
    from fairlead.cli.files import BYTES_MAX, files
    from fairlead.cli.printing import as_json, as_text

    checker = Checker()
    unreadable = False
    notes: list[str] = []
    for file in files(given.files):
        if file.unreadable:
            checker.refuse(file.name, f"cannot be read: {file.unreadable}")
            unreadable = True
        elif file.empty:
            notes.append(f"{file.name}: {file.empty}")
        elif file.too_large:
            fault = f"the file is larger than {BYTES_MAX >> 20} MiB"
            checker.refuse(file.name, fault, "split it")
        else:
            checker.check(file.name, file.data)
    report = checker.finish()
    if not report.policies and not report.findings:
        notes = [f"no {KIND} found in {', '.join(given.files)}"]
    for note in notes:
        print(f"fairlead lint: {note}", file=_safe(sys.stderr))
    out = _safe(sys.stdout)
    if given.output == "json":
        print(as_json(report), file=out)
    else:
        for line in as_text(report, colour=_wants_colour(out), verbose=given.verbose):
            print(line, file=out)
    if unreadable:
        return _USAGE
    return _ERRORS if report.count("error") else 0


def _wants_colour(out: TextIO) -> bool:
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _safe(out: TextIO) -> TextIO:
    """One that takes every character."""
    if hasattr(out, "reconfigure"):
        out.reconfigure(errors="backslashreplace")
    return out
