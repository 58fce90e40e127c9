"""Output of the demo. Without a terminal it prints plain lines, also for what it waits for."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.syntax import Syntax
from rich.table import Table

from testbed.errors import ClusterError


class BrokenPromiseError(Exception):
    """Claim of the demo that does not hold."""


@dataclass(frozen=True, slots=True)
class Screen:
    """Console that the demo writes to."""

    console: Console

    def chapter(self, title: str) -> None:
        """Print the title of the next chapter."""
        self.console.print()
        self.console.print(f"[bold cyan]{escape(title)}[/]")

    def tell(self, text: str) -> None:
        """Print a sentence or two."""
        self.console.print(escape(text), soft_wrap=not self.console.is_terminal)

    def quote(self, text: str) -> None:
        """Print a quoted message unchanged."""
        self._indented(f"[yellow]{escape(text.strip())}[/]")

    def output(self, text: str) -> None:
        """Print a program's output without breaking its columns."""
        for line in text.strip().splitlines():
            self.console.print(f"    {escape(line)}".rstrip(), style="yellow", soft_wrap=True)

    def code(self, text: str) -> None:
        """Print an expression."""
        if self.console.is_terminal:
            # of the languages that can be highlighted, the nearest to CEL
            shown = Syntax(text, "javascript", background_color="default", word_wrap=True)
            self.console.print(Padding(shown, (0, 0, 0, 4)))
        else:
            self._indented(escape(text.strip()))

    def _indented(self, markup: str) -> None:
        if self.console.is_terminal:
            self.console.print(Padding(markup, (0, 0, 0, 4), expand=False))
        else:  # a log keeps long lines
            self.console.print("\n".join(f"    {line}".rstrip() for line in markup.splitlines()), soft_wrap=True)

    def command(self, text: str) -> None:
        """Print a command, never broken into two lines."""
        self.console.print(f"    [bold]{escape(text)}[/]", soft_wrap=True)

    def table(self, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print rows under titles."""
        table = Table(*titles, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for row in rows:
            table.add_row(*map(escape, row))
        self.console.print(Padding(table, (0, 0, 0, 4), expand=False))

    @contextmanager
    def waiting(self, what: str) -> Iterator[Callable[[str], None]]:
        """Show what the demo waits for, its progress, and in the end how long it took."""
        began, shown = time.monotonic(), escape(what)
        with self._progress(shown) as hear:
            yield hear
        self.console.print(f"  [green]✓[/] {shown} [dim]({time.monotonic() - began:.1f} s)[/]")

    @contextmanager
    def _progress(self, shown: str) -> Iterator[Callable[[str], None]]:
        if self.console.is_terminal:
            columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
            with Progress(*columns, console=self.console, transient=True) as progress:
                task = progress.add_task(shown, total=None)
                # progress replaces the description: both do not fit into the width of most terminals
                yield lambda heard: progress.update(task, description=escape(heard))
        else:
            self.console.print(f"  waiting: {shown}")
            yield self._told_once()

    def _told_once(self) -> Callable[[str], None]:
        said = ""

        def tell(heard: str) -> None:
            nonlocal said
            if heard != said:
                self.console.print(f"    {escape(heard)}")
            said = heard

        return tell

    def promise(self, what: str, *, holds: bool, found: object = "") -> None:
        """Print a claim that holds. Raises BrokenPromiseError if it does not."""
        if not holds:
            raise BrokenPromiseError(f"{what}; found: {found}" if found != "" else what)
        self.console.print(f"  [green]✓[/] {escape(what)}")

    def broken(self, what: str, *, look: str) -> None:
        """Print the claim that does not hold, and where to look."""
        self.console.print(f"[bold red]claim does not hold:[/] {escape(what)}")
        self.console.print(f"  next: `{escape(look)}` shows all logs", soft_wrap=True)

    def failed(self, error: ClusterError) -> None:
        """Print an error, and what to do about it."""
        for line in (f"error: {error}", *getattr(error, "__notes__", ())):
            self.console.print(escape(line), soft_wrap=True)
