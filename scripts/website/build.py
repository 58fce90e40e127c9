"""Builds the site from a copy of docs/ in which links and diagrams are what a browser needs."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

from website.diagrams import drawn
from website.links import absolute
from website.navigation import Entry, entries

ROOT: Final = Path(__file__).parents[2]
SETTINGS: Final = ROOT / "zensical.toml"
FOLDER: Final = ROOT / "build" / "site"
_PAGES, _HTML = "pages", "html"
_COLOUR: Final = re.compile(r"\x1b\[[\d;]*m")
_NO_PAGE: Final = (
    "Zensical made no page. After `Too many open files` stop other programs that watch files, such as clusters, or"
    " allow more: `sysctl fs.inotify.max_user_instances=512`"
)


class SiteError(Exception):
    """Problem of a page, as Zensical reports it."""


def build(folder: Path = FOLDER, *, docs: Path = ROOT / "docs") -> Path:
    """Build the site, and return the folder of its files. Raises SiteError."""
    prepare(folder, docs=docs)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", f"--config-file={SETTINGS.name}"]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    said = _COLOUR.sub("", done.stdout)
    if done.returncode:
        raise SiteError(said.partition("\nTraceback")[0].strip())
    if not (folder / _HTML / "index.html").exists():  # it ends with success even if it cannot watch the pages
        raise SiteError(f"{_NO_PAGE}\n{said.strip()}")
    return folder / _HTML


def prepare(folder: Path, *, docs: Path = ROOT / "docs") -> None:
    """Write what Zensical reads: pages, their order, and settings."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(docs, folder / _PAGES)
    settings = SETTINGS.read_text()
    repository = tomllib.loads(settings)["project"]["repo_url"]
    for path in (folder / _PAGES).rglob("*.md"):
        page = path.relative_to(folder / _PAGES).as_posix()
        path.write_text(drawn(absolute(path.read_text(), page, repository)))
    own = f'[project]\ndocs_dir = "{_PAGES}"\nsite_dir = "{_HTML}"\nnav = {_toml(entries(docs))}\n'
    (folder / SETTINGS.name).write_text(settings.replace("[project]\n", own, 1))


def _toml(value: str | list[Entry] | Entry) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(key)} = {_toml(each)}' for key, each in value.items())}}}"
    return json.dumps(value)
