"""Writes the reference page of the command line from its parsers, so that it says what `--help` says."""

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

from fairlead.cli import exits
from fairlead.cli.main import parser

PAGE = Path(__file__).parents[1] / "docs/reference/commands.md"
HEAD = """# Commands

What `fairlead --help` and `fairlead COMMAND --help` say. This page is written by `make crds`. All of it is there as
`kubectl fairlead`, too, where `kubectl-fairlead` is on the PATH.

Errors are one line on standard error that says what to do. `-o json` and `-o yaml` print the same object; fields may be
added to it, and none goes. Reading from a cluster is done with the rights of the kubeconfig's user, and nothing but
`fairlead operate`, `serve` and `uninstall` ever writes to one.
"""


def page() -> str:
    """The page as it should be."""
    os.environ["COLUMNS"] = "100"  # or the page would be as wide as somebody's terminal
    made = parser()
    (commands,) = [one for one in made._actions if isinstance(one, argparse._SubParsersAction)]  # noqa: SLF001
    parts = [HEAD, *_codes()]
    for name, command in commands.choices.items():
        parts += [f"## fairlead {name}\n", f"```text\n{command.format_help().strip()}\n```\n"]
    return "\n".join(parts)


def _codes() -> Iterator[str]:
    yield "## Exit codes\n"
    yield "| code | means |"
    yield "| --- | --- |"
    yield from (f"| {code} | {means} |" for code, means in exits.MEANINGS.items())
    yield ""


if __name__ == "__main__":
    PAGE.write_text(page())
