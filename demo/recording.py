"""Recording of the demo: the rows that it printed, as plain text and as an SVG that plays by CSS alone.

A page that shows an SVG as an image runs no script of it and loads no font. So one animation moves the rows up, one
moves the sheet down that covers rows which are still to come, and each wait has one for what ends it.
"""

import io
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from rich.console import Console
from rich.style import Style
from rich.text import Text

from demo.screen import Screen

WIDTH: Final = 114
"""Columns: what `fairlead explain` prints fits, and a README shows it at a size that can be read."""
HEIGHT: Final = 28
"""Rows that are seen at once."""
COLOURS: Final = ("red", "green", "yellow", "blue", "magenta", "cyan")
_FIRST_COLOUR = 1
"""Red's number in a terminal."""
_COLUMN_PX, _ROW_PX, _MARGIN_PX = 8, 18, 16
_BASELINE_PX = 13
_LONGEST_WAIT_S = 1.5
_ROW_S, _WORD_S = 0.2, 0.05
"""Time to read."""
_REST_S = 6.0
"""Pause before it starts again."""
_VARIES: Final = re.compile(
    r"\b[\d.]+ ?m?s\b"  # time
    r"|\b\d+(?:\.\d+){3}:\d+"  # address
    r"|\bfairlead-[0-9a-f]+-\w{5}\b"  # pod
    r"|\bred-[12]\b"  # of two equal nodes
)
"""Texts that differ between runs in a line of the outline."""
_OUTLINE: Final = re.compile(r"^(?:\d+\. |  ✓ |    (?:kubectl|fairlead) ).*", re.MULTILINE)
"""Headings, promises that were kept, and commands."""
ALTERNATIVE: Final = (
    "Recording of a terminal that runs make demo: pods are placed by two policies, a pod is rejected with the reason of"
    " the rule, an edited rule places it while it waits, and a misspelt rule is denied with the fix"
)
_TEMPLATE = "recording.svg.j2"


@dataclass(frozen=True, slots=True)
class Row:
    """Row that the demo printed, no longer than the screen is wide."""

    text: Text
    waited_s: float = 0.0
    """Seconds that the demo waited before it could print the row."""
    continues: bool = False
    """True if it is the rest of the row before."""


class Tape(io.StringIO):
    """File that keeps what is written to it, in pieces, and passes it on."""

    def __init__(self, pass_on: Callable[[str], object]) -> None:
        super().__init__()
        self._pass_on = pass_on
        self.pieces: list[tuple[str, float]] = []
        """Each with the seconds that the demo waited before it."""
        self.waited_s = 0.0

    def write(self, text: str) -> int:
        """Keep a piece."""
        if text:
            self.pieces.append((text, self.waited_s))
            self.waited_s = 0.0
            self._pass_on(text)
        return len(text)


@dataclass(frozen=True, slots=True)
class RecordingScreen(Screen):
    """Screen that records what a terminal shows, but for the progress that it erases."""

    tape: Tape = field(default_factory=lambda: Tape(lambda _: None))

    def rows(self) -> list[Row]:
        """Return what was printed."""
        found: list[Row] = []
        for piece, waited_s in self.tape.pieces:
            for number, line in enumerate(Text.from_ansi(piece).split("\n", allow_blank=True)[:-1]):
                indent = len(line.plain) - len(line.plain.lstrip())
                for place, part in enumerate(line.wrap(self.console, WIDTH - indent, overflow="fold")):
                    part.rstrip()
                    part.pad_left(indent if place else 0)
                    found.append(Row(part, waited_s if number == place == 0 else 0.0, continues=place > 0))
        return found

    @contextmanager
    def _progress(self, _: str) -> Iterator[Callable[[str], None]]:
        began = time.monotonic()
        yield lambda _: None
        self.tape.waited_s = time.monotonic() - began


def screen(pass_on: Callable[[str], object] = lambda _: None) -> RecordingScreen:
    """Return a screen that records, and passes on what is printed."""
    tape = Tape(pass_on)
    terminal = Console(file=tape, force_terminal=True, color_system="standard", width=WIDTH, highlight=False)
    return RecordingScreen(terminal, tape)


def plain(rows: Sequence[Row]) -> str:
    """Return the text alone, with long rows in one piece again."""
    text = "".join(f" {one.text.plain.lstrip()}" if one.continues else f"\n{one.text.plain}" for one in rows)
    return f"{text.strip()}\n"


def outline(printed: str) -> list[str]:
    """Return the lines that every run of this demo prints, whatever its cluster answers and however wide the screen."""
    return [_VARIES.sub("N", line).strip() for line in _OUTLINE.findall(printed)]


def svg(rows: Sequence[Row]) -> str:
    """Return the SVG. With reduced motion it stands still where the pod is rejected."""
    appears, ends, lasts = _times(rows)
    names = {number: f"w{number}" for number in ends}

    def percent(at_s: float) -> str:
        return f"{100 * at_s / lasts:.2f}".rstrip("0").rstrip(".")

    still = next((number for number, one in enumerate(rows) if one.text.plain.startswith("6. ")), len(rows))
    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(autoescape=True, loader=loader, undefined=StrictUndefined)
    scrolled = [(percent(at), -_ROW_PX * max(0, number + 1 - HEIGHT)) for number, at in enumerate(appears)]
    uncovered = [(percent(at), _ROW_PX * (number + 1)) for number, at in enumerate(appears[:HEIGHT])]
    return environment.get_template(_TEMPLATE).render(
        alternative=ALTERNATIVE,
        colours=COLOURS,
        height=HEIGHT * _ROW_PX + 2 * _MARGIN_PX,
        lasts=f"{lasts:.0f}",
        late=[(names[number], percent(at)) for number, at in ends.items()],
        lines=[_pieces(one.text, number, names.get(number, "")) for number, one in enumerate(rows)],
        margin=_MARGIN_PX,
        rows_px=HEIGHT * _ROW_PX,
        scrolled=[("0", 0), *(one for one in scrolled if one[1])],
        still_px=-_ROW_PX * max(0, still - HEIGHT),
        uncovered=uncovered,
        width=WIDTH * _COLUMN_PX + 2 * _MARGIN_PX,
    )


def _times(rows: Sequence[Row]) -> tuple[list[float], dict[int, float], float]:
    """Return when each row appears, when each wait ends by the number of its row, and how long all takes."""
    now, appears, ends = 0.0, list[float](), dict[int, float]()
    for number, one in enumerate(rows):
        appears.append(now)
        if one.waited_s:
            now += min(one.waited_s, _LONGEST_WAIT_S)
            ends[number] = now
        now += _ROW_S + _WORD_S * len(one.text.plain.split())
    return appears, ends, round(now + _REST_S)


def _pieces(text: Text, number: int, wait: str) -> list[dict[str, Any]]:
    """Return runs of one style; those that end a wait, such as the tick, have the name of an animation."""
    found, column = list[dict[str, Any]](), 0
    for segment in text.render(Console(), end=""):
        bare = segment.text.strip()
        if bare:
            before = len(segment.text) - len(segment.text.lstrip())
            classes = _classes(segment.style or Style.null())
            late = wait if classes else ""
            found.append(
                {
                    "x": (column + before) * _COLUMN_PX,
                    "y": number * _ROW_PX + _BASELINE_PX,
                    "length": len(bare) * _COLUMN_PX,
                    "classes": " ".join([*classes, *(["late"] if late else [])]),
                    "late": late,
                    "text": bare,
                }
            )
        column += len(segment.text)
    return found


def _classes(style: Style) -> list[str]:
    number = style.color.number if style.color else None
    colour = COLOURS[number % 8 - _FIRST_COLOUR] if number is not None and 0 < number % 8 < 7 else ""
    return [name for name, given in (("b", style.bold), ("dim", style.dim), (colour, colour)) if given]


def write(rows: Sequence[Row], folder: Path) -> None:
    """Write both forms."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "demo.svg").write_text(svg(rows))
    (folder / "demo.txt").write_text(plain(rows))
