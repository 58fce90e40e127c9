"""The recording shows what the demo prints, in pages that run no script and load nothing."""

import io
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console
from rich.text import Text

from demo import recording
from demo.recording import ALTERNATIVE, COLOURS, HEIGHT, Row, outline, plain, svg
from demo.screen import Screen

ROOT = Path(__file__).parents[3]
PICTURES = ROOT / "docs" / "pictures"
_SVG = "{http://www.w3.org/2000/svg}"


def scenes(screen: Screen) -> None:
    screen.chapter("1. A <chapter>")
    with screen.waiting("a [node] to come") as hear:
        hear("it is on its way")
    screen.table(["node", "why"], [("a", "it is the only one"), ("b", "")])
    screen.command("kubectl get pods & wait")
    screen.output("NODES   VERDICT\n\n    " + "long " * 40)
    screen.code("|| node.metadata.labels[?'x'].orValue('') == 'y'")
    screen.quote("0/7 nodes are available")
    screen.promise("it took 1.5 s, on red-1", holds=True)
    screen.tell("Done. " * 30)


@pytest.fixture
def rows() -> list[Row]:
    screen = recording.screen()
    scenes(screen)
    return screen.rows()


def texts(drawn: str) -> Iterator[ET.Element]:
    return ET.fromstring(drawn).iter(f"{_SVG}text")  # noqa: S314 - it is our own


def squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


def text_of(drawn: str) -> str:
    return squeezed("".join(one.text or "" for one in texts(drawn)))


def test_it_has_the_text_that_is_printed_without_a_terminal(rows: list[Row]) -> None:
    printed = io.StringIO()
    scenes(Screen(Console(file=printed, width=140, highlight=False)))
    assert outline(plain(rows)) == outline(printed.getvalue()) != []
    assert text_of(svg(rows)) == squeezed(plain(rows))


def test_what_two_runs_have_in_common() -> None:
    progress = "  waiting: pods\n    1 of 2\nCoreDNS: 2.4 s\n"
    one = f"1. A cluster\n{progress}  ✓ both placed (0.3 s)\n    web  red-1\n    kubectl get pods\n  ✓ 9 s ago"
    other = "1. A cluster\n  ✓ both placed (11.0 s)\n    web   red-2\n    kubectl get pods\n  ✓ 10 s ago\n"
    common = ["1. A cluster", "✓ both placed (N)", "kubectl get pods", "✓ N ago"]
    assert outline(one) == outline(other) == common
    assert outline(one) != outline(other.replace("placed", "there"))
    assert outline(one) != outline(other.replace("get", "delete"))


def test_a_wait_ends_later_than_it_begins() -> None:
    drawn = svg([Row(Text.from_markup("  [green]✓[/] pods [dim](9.0 s)[/]"), waited_s=9.0), Row(Text("next"))])
    late = [one.text for one in texts(drawn) if "late" in one.get("class", "")]
    assert late == ["✓", "(9.0 s)"]
    (ends,) = re.findall(r"@keyframes w0\{0%\{opacity:0\}([\d.]+)%\{opacity:1\}", drawn)
    assert 0 < float(ends) < 100


def test_every_row_comes_into_sight_in_its_order() -> None:
    drawn = svg([Row(Text(f"row {number}")) for number in range(HEIGHT + 5)])
    (moved,) = re.findall(r"@keyframes rows\{(.*)\}", drawn)
    (uncovered,) = re.findall(r"@keyframes sheet\{(.*)\}", drawn)
    steps = [(float(at), int(px)) for at, px in re.findall(r"([\d.]+)%\{transform:translateY\((-?\d+)px\)\}", moved)]
    sheet = [(float(at), int(px)) for at, px in re.findall(r"([\d.]+)%\{transform:translateY\((\d+)px\)\}", uncovered)]
    assert [px for _, px in sheet] == [18 * (number + 1) for number in range(HEIGHT)]
    assert [px for _, px in steps] == [0, *(-18 * number for number in range(1, 6))]
    assert [at for at, _ in sheet + steps[1:]] == sorted({at for at, _ in sheet + steps[1:]})
    assert steps[-1][0] < 95, "the end stands still for some seconds"


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_its_colours_can_be_read_on_light_and_on_dark_paper(rows: list[Row]) -> None:
    schemes = re.findall(r"svg\{(--paper[^}]+)\}", svg(rows))
    assert len(schemes) == 2
    for scheme in schemes:
        colours = dict(re.findall(r"--(\w+):(#[0-9a-f]{6})", scheme))
        for name in ("ink", "dim", *COLOURS):
            lights = sorted([luminance(colours[name]), luminance(colours["paper"])])
            assert (lights[1] + 0.05) / (lights[0] + 0.05) >= 4.5, name


@pytest.fixture(scope="module")
def kept() -> str:
    return (PICTURES / "demo.svg").read_text()


def test_the_kept_recording_is_small_and_whole(kept: str) -> None:
    assert len(kept.encode()) < 300_000
    assert text_of(kept) == squeezed((PICTURES / "demo.txt").read_text())
    assert "Done, in" in (PICTURES / "demo.txt").read_text()
    assert not re.search(r"<script|@import|@font-face|href|url\((?!#)", kept)
    assert str(Path.home()) not in kept
    assert "prefers-reduced-motion" in kept


def test_the_kept_recording_has_a_text_alternative_where_it_is_shown(kept: str) -> None:
    described = ET.fromstring(kept).find(f"{_SVG}desc")  # noqa: S314 - it is our own
    assert described is not None
    assert described.text == ALTERNATIVE
    assert f"![{ALTERNATIVE}](docs/pictures/demo.svg)" in (ROOT / "README.md").read_text()
