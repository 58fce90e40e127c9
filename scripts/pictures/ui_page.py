"""The page of `fairlead ui` for a cluster of some nodes with GPUs, as a file that a browser opens."""

import asyncio
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from fairlead.cli.main import parser
from fairlead.cli.ui.page_reader import PageReader
from fairlead.cli.ui.page_templates import STATIC, page_templates, static_file
from fairlead.cli.ui.page_view import page_view
from support.cli import gpu_cluster

SIZE: Final = (1080, 620)
WITHOUT_PODS: Final = "#pods { display: none; }\n"
"""Style of a picture in which the matrix comes first."""
_NODES, _PODS = 60, 60
_NOW: Final = "2027-01-15T22:00:00Z"


@cache
def page() -> str:
    """Return the page."""
    with tempfile.TemporaryDirectory() as folder:
        snapshot, policies = gpu_cluster.write(Path(folder), _NODES, _PODS)
        options = ["--snapshot", str(snapshot), "--policies", *map(str, policies), "--now", _NOW]
        found = asyncio.run(PageReader(parser().parse_args(["ui", *options])).read())
    view, _ = page_view(replace(found, options=""))
    return page_templates().get_template("page.html").render(view=replace(view, where="training"))


def source() -> str:
    """Return everything that the picture shows."""
    return "\n".join([page(), *(static_file(name).decode() for name in STATIC)])


def write(folder: Path, style: str = "") -> Path:
    """Write the page and its files, with more style; return its path."""
    for name in STATIC:
        (folder / name).write_bytes(static_file(name) + (style.encode() if name.endswith(".css") else b""))
    path = folder / "page.html"
    path.write_text(page().replace('"/static/', '"'))
    return path
