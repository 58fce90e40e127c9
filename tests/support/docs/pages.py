"""The commands that pages show, and a place to run them in as a reader would: a clean home, the checkout's folders.

A block of `sh` is run and has to succeed. In a block of `console` each line after `$ ` is run, and what follows is
what it prints: `...` stands for anything, alone on a line for any lines. A block of `yaml` with a title is a file of
that name. `<!-- not run: why -->` before a block is a block that nobody runs, and
`<!-- commands run in a cluster -->` a page that needs one with Fairlead installed.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).parents[3]
COMMANDS: Final = frozenset({"sh", "bash", "shell", "console"})
OTHERS: Final = frozenset({"python", "yaml", "json", "text", "lua", "mermaid", "dockerfile", "toml", "xml"})
_COPIED: Final = ("charts", "crds", "examples")
_FENCE: Final = re.compile(r"^(?P<in> *)```(?P<info>[^\n]*)\n(?P<text>.*?)^(?P=in)```[ ]*$", re.MULTILINE | re.DOTALL)
_NOT_RUN: Final = re.compile(r"<!-- not run: ([^\n]+?) -->\s*\Z")
_IN_A_CLUSTER: Final = "<!-- commands run in a cluster -->"
_TITLE: Final = re.compile(r'title="([^"]+)"')


class PageError(Exception):
    """A page does not do what it says."""


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block."""

    line: int
    language: str
    title: str
    text: str
    not_run: str
    """Why it is not; empty: it is."""


@dataclass(frozen=True, slots=True)
class Page:
    """One, as it is written."""

    path: Path

    @property
    def name(self) -> str:
        """From the checkout on."""
        return self.path.relative_to(CHECKOUT).as_posix()

    @property
    def text(self) -> str:
        """All of it."""
        return self.path.read_text()

    @property
    def needs_a_cluster(self) -> bool:
        """Return whether its commands need a cluster."""
        return _IN_A_CLUSTER in self.text

    def blocks(self) -> Iterator[Block]:
        """In their order."""
        text = self.text
        for found in _FENCE.finditer(text):
            language, _, rest = found["info"].strip().partition(" ")
            title, why = _TITLE.search(rest), _NOT_RUN.search(text[: found.start()])
            inside = found["in"]
            body = "".join(line.removeprefix(inside) for line in found["text"].splitlines(keepends=True))
            line = text.count("\n", 0, found.start()) + 1
            yield Block(line, language, title[1] if title else "", body, why[1] if why else "")

    def has_commands(self) -> bool:
        """Return whether any command is run."""
        return any(block.language in COMMANDS and not block.not_run for block in self.blocks())


def pages() -> list[Page]:
    """Pages whose commands people type."""
    top = [CHECKOUT / "README.md", CHECKOUT / "SUPPORT.md", CHECKOUT / "charts" / "fairlead" / "README.md"]
    documents = (CHECKOUT / "docs").rglob("*.md")
    return [Page(path) for path in (*top, *sorted(path for path in documents if path.parent.name != "decisions"))]


@dataclass(frozen=True, slots=True)
class Place:
    """Machine and folder of a reader."""

    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    """Beyond a home and programs."""
    programs: Sequence[Path] = ()
    """Folders of more programs than `fairlead`."""

    def __post_init__(self) -> None:
        (self.folder / "home").mkdir(parents=True, exist_ok=True)
        for name in _COPIED:
            if (CHECKOUT / name).exists():
                shutil.copytree(CHECKOUT / name, self.folder / name, dirs_exist_ok=True)

    def follow(self, page: Page) -> None:
        """Do what it says, from top to bottom. Raises PageError."""
        for block in page.blocks():
            if block.not_run:
                continue
            if block.title:
                file = self.folder / block.title
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(block.text)
            elif block.language == "console":
                for command, expected in exchanges(block.text):
                    self._run(page, block, command, expected)
            elif block.language in COMMANDS:
                self._run(page, block, block.text, None)

    def _run(self, page: Page, block: Block, command: str, expected: str | None) -> None:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=300,
        )
        where = f"{page.name}:{block.line}: {command.strip()}"
        if expected:
            if not matches(expected, done.stdout):
                raise PageError(f"{where}\nprints\n{done.stdout}\nand not\n{expected}")
        elif done.returncode:
            raise PageError(f"{where}\nends with {done.returncode}\n{done.stdout}")

    def _environment(self) -> dict[str, str]:
        folders = [Path(sys.executable).parent, *self.programs, *os.environ.get("PATH", "").split(":")]
        kept = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
        path = ":".join(map(str, folders))
        return {"HOME": str(self.folder / "home"), "PATH": path, "NO_COLOR": "1", **kept, **self.environment}


def exchanges(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a block of `console`, and what it is to print."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        length = 1
        while length < len(lines) and (lines[length - 1].endswith("\\\n") or lines[length].startswith("> ")):
            length += 1
        yield "".join(line.removeprefix("> ") for line in lines[:length]), "".join(lines[length:]).strip("\n")


def matches(expected: str, printed: str) -> bool:
    """Return whether it printed that; columns may be wider or narrower, as their contents are."""
    parts = [".*" if line.strip() == "..." else _line(line) for line in expected.splitlines()]
    pattern = "\n".join(parts)
    return re.fullmatch(pattern, "\n".join(map(_squeezed, printed.strip("\n").splitlines())), re.DOTALL) is not None


def _line(line: str) -> str:
    return "[^\n]*".join(re.escape(part) for part in _squeezed(line).split("..."))


def _squeezed(line: str) -> str:
    return re.sub(r"(?<=\S)[ \t]+", " ", line).rstrip()
