"""Order of pages: each folder has its own in .nav.yml, and pages that it does not name come last."""

from pathlib import Path
from typing import Final

import yaml

FILE: Final = ".nav.yml"
Entry = str | dict[str, "str | list[Entry]"]
"""Path of a page from docs/ on, or such entries under a title."""


def entries(docs: Path, folder: str = "") -> list[Entry]:
    """Return the entries of a folder."""
    file = docs / folder / FILE
    named = yaml.safe_load(file.read_text())["nav"] if file.exists() else []
    found = [_resolved(one, docs, folder) for one in named]
    seen = {path for one in found for path in paths(one)}
    rest = [path for path in _pages(docs / folder) if _from(docs, path) not in seen]
    return found + [_from(docs, path) for path in sorted(rest, key=lambda path: (path.name != "index.md", path.name))]


def paths(entry: Entry) -> list[str]:
    """Return the pages of an entry."""
    if isinstance(entry, str):
        return [entry]
    return [
        path
        for value in entry.values()
        for one in ([value] if isinstance(value, str) else value)
        for path in paths(one)
    ]


def _resolved(entry: Entry, docs: Path, folder: str) -> Entry:
    """Return an entry of a .nav.yml with paths from docs/ on, and with a folder's own entries in its place."""
    if isinstance(entry, str):
        return (Path(folder) / entry).as_posix()
    ((title, value),) = entry.items()
    if isinstance(value, list):
        return {title: [_resolved(one, docs, folder) for one in value]}
    path = (Path(folder) / value).as_posix()
    return {title: entries(docs, path) if (docs / path).is_dir() else path}


def _pages(folder: Path) -> list[Path]:
    """Return pages of this folder, not of folders in it that have an entry of their own."""
    return [*folder.glob("*.md")]


def _from(docs: Path, path: Path) -> str:
    return path.relative_to(docs).as_posix()
