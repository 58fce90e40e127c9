"""Templates that ship with the package."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path


def templates() -> Mapping[str, str]:
    """Return the templates by name, which is the path below the folder of templates."""
    installed = files("fairlead") / "_templates"
    folder = Path(str(installed)) if installed.is_dir() else Path(__file__).parents[3] / "templates"
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in sorted(folder.rglob("*.yaml"))}
