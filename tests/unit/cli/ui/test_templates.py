"""Files of the page: they ship with the package, and ask for nothing from elsewhere."""

import re
import zipfile
from pathlib import Path
from typing import Final

from hatchling.builders.wheel import WheelBuilder

from fairlead.cli.ui.page_templates import STATIC, page_templates, static_file

_ROOT: Final = Path(__file__).parents[4]
_FOLDER: Final = "fairlead/cli/ui/templates/"
LINES_MAX: Final = 300


def test_the_wheel_has_the_files_of_the_page(tmp_path: Path) -> None:
    (wheel,) = WheelBuilder(str(_ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as files:
        shipped = {name.removeprefix(_FOLDER) for name in files.namelist() if name.startswith(_FOLDER)}
    assert shipped == {*STATIC, *page_templates().list_templates()}
    assert {"page.html", "opened.html", "failed.html"} <= shipped


def test_the_script_is_short_and_puts_no_markup_into_the_page() -> None:
    script = static_file("page.js").decode()
    assert len(script.splitlines()) <= LINES_MAX
    assert re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|Function\(", script) == []


def test_nothing_is_asked_for_from_elsewhere() -> None:
    environment = page_templates()
    sources = [environment.loader.get_source(environment, name)[0] for name in environment.list_templates()]  # type: ignore[union-attr]
    sources += [static_file(name).decode() for name in STATIC]
    for source in sources:
        assert re.findall(r"https?://|//[\w.]+\.\w+/|@import|url\(", source) == []
    assert all(re.findall(r'(?:src|href)="([^"#{]*)', source) != ["http"] for source in sources)


def test_a_failure_is_a_page_too() -> None:
    text = page_templates().get_template("failed.html").render(why="<b>you may not list nodes\u202e")
    assert "&lt;b&gt;you may not list nodes\\u202e" in text
