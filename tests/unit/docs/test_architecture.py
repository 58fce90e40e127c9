"""The page about the architecture names modules and folders: each of them exists."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from support.docs.pages import CHECKOUT

PRODUCT: Final = CHECKOUT / "operator" / "fairlead"
PAGE: Final = CHECKOUT / "docs" / "guide" / "architecture.md"
_PATHS: Final = "To read the code, follow one of these paths:"


def _missing(text: str) -> Iterator[str]:
    """Yield what is named and does not exist. On a reading path a bare name is in the folder of the path before it."""
    prose, _, rest = text.partition(_PATHS)
    reading, _, after = rest.partition("\nAt the top")
    for name in re.findall(r"`([\w.-]+(?:/[\w.-]+)+|\w+\.py)`", prose + after):
        if not _exists(name):
            yield name
    for bullet in reading.split("\n- ")[1:]:
        folder = ""
        for name in re.findall(r"`([\w./-]+)`", bullet):
            path = name if "/" in name else f"{folder}/{name}"
            folder = path.rpartition("/")[0]
            if not _exists(path):
                yield path


def _exists(name: str) -> bool:
    return any(_is_module(root / name) for root in (PRODUCT, CHECKOUT))


def _is_module(path: Path) -> bool:
    return path.exists() or path.with_suffix(".py").is_file()


def test_each_module_that_the_page_names_exists() -> None:
    assert [*_missing(PAGE.read_text())] == []


def test_the_reading_paths_are_there() -> None:
    """A path that is no longer found would be checked no more."""
    paths = PAGE.read_text().partition(_PATHS)[2].split("\n- ")[1:]
    begun = [
        re.match(
            r"(?:A|An) (?:call|rule in shadow|measured value|device grant|affinity that is published|applied policy)",
            one,
        )
        for one in paths
    ]
    assert all(begun)
    assert len(begun) == 7


def test_a_module_that_is_gone_is_found() -> None:
    paths = "- One: `webhook/https/dispatch`, `gone`.\n- Two: `api/gone`.\n"
    text = f"See `webhook/gone` and `gone.py`.\n\n{_PATHS}\n\n{paths}"
    assert [*_missing(text)] == ["webhook/gone", "gone.py", "webhook/https/gone", "api/gone"]
