"""`fairlead completion bash|zsh|fish`, and the completions that its scripts request at each Tab.

The scripts call `fairlead __complete WORD...` for completions of the last word. The answer is in the format of cobra,
which kubectl uses: a line for each completion, then a colon and a number. So one answer serves three shells and the
kubectl plugin, and no script is ever older than the program.
"""

import argparse
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from fairlead.cli.console import exits
from fairlead.cli.console.output import output

if TYPE_CHECKING:
    from fairlead.cli.console.options import Commands

ASK: Final = "__complete"
FILES: Final = 0
"""Directive: the shell completes file names if there are no completions."""
NO_FILES: Final = 4
_OBJECTS: Final = ("pod", "node", "namespace", "policy", "shadowed", "entry", "group")
"""Arguments and options that name objects of the cluster."""
_HOW: Final = {
    "bash": "source <(fairlead completion bash)",
    "zsh": "source <(fairlead completion zsh)",
    "fish": "fairlead completion fish | source",
}


def add_to(commands: "Commands") -> None:
    """Add the command and its options."""
    parser = commands.add_parser(
        "completion",
        help="print the completion script of a shell",
        description="Print the completion script of a shell. For the current session: "
        + "; ".join(f"{shell} `{how}`" for shell, how in _HOW.items())
        + ". For every session: add that line to the shell's startup file. "
        "kubectl completes `kubectl fairlead` if kubectl's own completion is set up.",
    )
    parser.add_argument("shell", choices=[*_HOW], help="the shell")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    from importlib.resources import files

    output().write((files("fairlead.cli") / "completions" / f"fairlead.{options.shell}").read_text("utf-8"))
    return exits.DONE


def answer(parser: argparse.ArgumentParser, words: Sequence[str]) -> int:
    """Print the completions of the last word."""
    found, directive = candidates(parser, words or [""])
    out = output()
    out.writelines(f"{word}\t{told}\n" if told else f"{word}\n" for word, told in found)
    out.write(f":{directive}\n")
    return exits.DONE


def candidates(parser: argparse.ArgumentParser, words: Sequence[str]) -> tuple[list[tuple[str, str]], int]:
    """Return completions of the last word with their descriptions, and the directive."""
    *before, last = words
    waits: argparse.Action | None = None
    given, placed = dict[str, str](), list[str]()
    options = True
    for word in before:
        if waits is not None:
            given[waits.dest], waits = word, None
        elif options and word == "--":
            options = False
        elif options and word.startswith("-") and word != "-":
            option, equals, value = word.partition("=")
            if (waits := _valued(parser, option)) is not None and equals:
                given[waits.dest], waits = value, None
        elif (below := _below(parser)) is not None:
            if word not in below.choices:
                return [], NO_FILES
            parser, placed = below.choices[word], []
        else:
            placed.append(word)
    if waits is not None:
        return _values(waits, given, placed, last)
    if options and last.startswith("-"):
        return _starting(_options(parser), last), NO_FILES
    if (below := _below(parser)) is not None:
        # argparse stores the help of each command here
        told = [(one.dest, one.help or "") for one in below._choices_actions]  # noqa: SLF001
        return _starting(told, last), NO_FILES
    places = [one for one in parser._actions if not one.option_strings]  # noqa: SLF001
    if not places:
        return _starting(_options(parser), last), NO_FILES
    place = places[min(len(placed), len(places) - 1)]
    if len(placed) >= len(places) and place.nargs not in ("+", "*"):
        return [], NO_FILES
    return _values(place, given, placed, last)


def _below(parser: argparse.ArgumentParser) -> "Commands | None":
    found = (one for one in parser._actions if isinstance(one, argparse._SubParsersAction))  # noqa: SLF001
    return next(found, None)


def _valued(parser: argparse.ArgumentParser, option: str) -> argparse.Action | None:
    """Return the option if it takes a value."""
    found = next((one for one in parser._actions if option in one.option_strings), None)  # noqa: SLF001
    return found if found is not None and found.nargs != 0 else None


def _options(parser: argparse.ArgumentParser) -> list[tuple[str, str]]:
    return [
        (option, (one.help or "") % {**vars(one), "prog": parser.prog})
        for one in parser._actions  # noqa: SLF001
        for option in one.option_strings
        if option.startswith("--") or len(one.option_strings) == 1
    ]


def _values(
    action: argparse.Action, values: Mapping[str, str], placed: Sequence[str], last: str
) -> tuple[list[tuple[str, str]], int]:
    if action.choices is not None:
        return _starting(((str(one), "") for one in action.choices), last), NO_FILES
    if action.dest in _OBJECTS:
        # Imported here: the client takes longer to load than everything else.
        from fairlead.cli.completions.cluster_names import offer_names

        return _starting(((one, "") for one in offer_names(action.dest, values, placed, last)), last), NO_FILES
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest
    is_file = action.type is not None and action.type is not int and _is_path(action.type)
    return [], FILES if is_file or any(word in metavar.upper() for word in ("FILE", "DIR", "VALUES")) else NO_FILES


def _is_path(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, os.PathLike)


def _starting(offered: Iterable[tuple[str, str]], with_: str) -> list[tuple[str, str]]:
    return [(word, " ".join(told.split())) for word, told in offered if word.startswith(with_)]
