"""Subjects of the pictures: what two commands print, a page of the site, and the page of `fairlead ui`."""

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from website.build import ROOT, SETTINGS, build
from website.navigation import FILE

from fairlead.cli.main import main
from fairlead.cli.reports.status_data import Overview
from fairlead.cli.reports.status_text import status_text
from pictures import terminal, ui_page

FOLDER: Final = ROOT / "docs" / "pictures"
_PENDING_POD: Final = "pod/new-model -n demo --policies examples/gpu-class.yaml --snapshot examples/clusters/gpus.yaml"
_SITE_PAGE: Final = "guide/first-policy"
_SEEN_LINES: Final = 30
"""Lines of the page that fit into its picture, beside its headings."""


@dataclass(frozen=True, slots=True)
class Subject:
    """Subject of one picture."""

    name: str
    size: Callable[[], tuple[int, int]]
    """Returns width and height in pixels."""
    source: Callable[[], str]
    """Returns everything that the picture shows: it is drawn again if this differs."""
    write: Callable[[Path], Path]
    """Writes the page into an empty folder, and returns its path."""
    is_dark: bool = False
    """True if the browser asks for dark colours."""

    @property
    def file(self) -> str:
        """Name of the picture."""
        return f"{self.name}.png"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def explained() -> str:
    """Return the page of `fairlead explain` as the README shows it, in colours."""
    pod, *options = _PENDING_POD.split()
    given = [str(ROOT / one) if one.startswith("examples/") else one for one in options]
    with redirect_stdout(_Terminal()) as printed:
        main(["explain", pod, *given])
    return terminal.page("fairlead explain pod/new-model --namespace demo", printed.getvalue())


def reported() -> str:
    """Return the page of `fairlead status` for a cluster with several problems, which its tests set up."""
    printed = (ROOT / "tests" / "data" / "status" / "three-in-the-morning.json").read_bytes()
    lines = status_text(msgspec.json.decode(printed, type=Overview), colour=False, whole=False)
    return terminal.page("fairlead status", "".join(f"{line}\n" for line in lines))


def _site_source() -> str:
    lines = (ROOT / "docs" / f"{_SITE_PAGE}.md").read_text().splitlines()
    seen = [*lines[:_SEEN_LINES], *(line for line in lines[_SEEN_LINES:] if line.startswith("## "))]
    orders = [(ROOT / "docs" / folder / FILE).read_text() for folder in ("", "guide")]
    return "\n".join([SETTINGS.read_text(), *orders, *seen])


def _write_site(folder: Path) -> Path:
    return build(folder) / _SITE_PAGE / "index.html"


def _of_terminal(name: str, source: Callable[[], str]) -> Subject:
    def write(folder: Path) -> Path:
        path = folder / "page.html"
        path.write_text(source())
        return path

    return Subject(name, lambda: terminal.size(source()), source, write)


def _of_ui(name: str, style: str = "", *, is_dark: bool = False) -> Subject:
    return Subject(name, lambda: ui_page.SIZE, ui_page.source, lambda folder: ui_page.write(folder, style), is_dark)


SUBJECTS: Final = (
    _of_terminal("explain", explained),
    _of_terminal("status", reported),
    Subject("site", lambda: (1280, 800), _site_source, _write_site),
    _of_ui("ui"),
    _of_ui("ui-matrix", ui_page.WITHOUT_PODS),
    _of_ui("ui-matrix-dark", ui_page.WITHOUT_PODS, is_dark=True),
)
