"""Writes the reference page of the command line from its parsers, so that it says what `--help` says."""

import argparse
from collections.abc import Iterator
from pathlib import Path

from fairlead.cli.console import exits
from fairlead.cli.main import parser
from generate.tables import row

PAGE = Path(__file__).parents[2] / "docs/reference/commands.md"
HEAD = """# Commands

The help of `fairlead` and of each command; `make crds` generates this page. With `kubectl-fairlead` on the PATH, every
command also runs as `kubectl fairlead COMMAND`.

`fairlead help COMMAND` prints the help of a command, `fairlead --version` the version. Where a command takes FILE as an
argument, it also takes `-f FILE`, as kubectl does. An option with `...` takes several values, and may be repeated:
`--policies a.yaml b.yaml` and `--policies a.yaml --policies b.yaml` are the same.

An error is one line on standard error that says what to do. `-o json` and `-o yaml` print the same [object](json.md);
later versions may add fields but remove none. Commands read a cluster with the permissions of the kubeconfig's user,
and [log in](../guide/troubleshooting.md#when-the-command-line-cannot-log-in) as kubectl does: with exec plugins, which
may ask at the terminal, as the service account of a pod, and through `HTTPS_PROXY`, which the operator does not use;
only `fairlead operate`, `serve` and `uninstall` ever write to a cluster. A long run shows its
progress on standard error: at a terminal in one line, which it erases at the end, elsewhere in a line every 10 s.

**Custom strategies**: every command that compiles policies loads the Python files in `/opt/fairlead/strategies`, or in
the directory that the environment variable `FAIRLEAD_STRATEGIES` names
([write a strategy](../guide/write-a-strategy.md)).

**Completion**, also of pods, nodes, namespaces, policies and groups: add `source <(fairlead completion bash)` (or
`zsh`), or `fairlead completion fish | source`, to the shell's startup file. kubectl completes `kubectl fairlead`
through `kubectl_complete-fairlead`, which is installed with it.
"""


def page() -> str:
    """The page as it should be."""
    (commands,) = [one for one in parser()._actions if isinstance(one, argparse._SubParsersAction)]  # noqa: SLF001
    parts = [HEAD, *_codes()]
    for name, command in commands.choices.items():
        parts += _command(name, command)
    return "\n".join(parts)


def _codes() -> Iterator[str]:
    yield "## Exit codes\n"
    yield "| code | meaning |"
    yield "| --- | --- |"
    yield from (f"| {code} | {means} |" for code, means in exits.MEANINGS.items())
    yield ""


def _command(name: str, command: argparse.ArgumentParser) -> Iterator[str]:
    actions = [one for one in command._actions if one.dest != "help"]  # noqa: SLF001
    options = [one for one in actions if one.option_strings]
    places = [one for one in actions if not one.option_strings]
    usage = ["fairlead", name, *["[OPTIONS]"] * bool(options), *map(_usage, places)]
    yield f"## fairlead {name}\n"
    yield f"```text\n{' '.join(usage)}\n```\n"
    yield from (f"{text}\n" for text in (command.description, command.epilog) if text)
    if actions:
        yield "| argument | description |"
        yield "| --- | --- |"
        yield from (_row(_place(one), one, command) for one in places)
        yield from (_row(_option(one), one, command) for one in options)
        yield ""


def _usage(one: argparse.Action) -> str:
    return f"[{_place(one)}]" if one.nargs in ("?", "*") else _place(one)


def _place(one: argparse.Action) -> str:
    return _metavar(one) + ("..." if one.nargs in ("+", "*") else "")


def _option(one: argparse.Action) -> str:
    return ", ".join(one.option_strings) + ("" if one.nargs == 0 else f" {_place(one)}")


def _metavar(one: argparse.Action) -> str:
    return str(one.metavar or "|".join(map(str, one.choices or [one.dest.upper()])))


def _row(what: str, one: argparse.Action, command: argparse.ArgumentParser) -> str:
    told = (one.help or "") % {**vars(one), "prog": command.prog}
    needed = " (required)" if one.required and one.option_strings else ""
    return row(f"`{what}`{needed}", told)


def write() -> None:
    """Write what is generated here."""
    PAGE.write_text(page())
