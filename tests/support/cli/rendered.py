"""Output of `fairlead render`, scene by scene. `make crds` writes the golden files anew."""

import io
from contextlib import redirect_stdout
from pathlib import Path

from fairlead.cli.main import main

DATA = Path(__file__).parents[2] / "data" / "rendered"
_SETTINGS = ("--settings", str(DATA / "values.yaml"))
_KNOWN = ("--kubernetes-version", "v1.37.1", "--ca", str(DATA / "ca.crt"))
_POLICIES = (str(DATA / "a.yaml"), str(DATA / "b.yaml"))
SCENES: dict[str, tuple[str, ...]] = {
    "nothing-known.yaml": (str(DATA / "a.yaml"),),
    "all-known.yaml": (str(DATA / "a.yaml"), *_KNOWN),
    "settings.yaml": (*_POLICIES, *_SETTINGS, *_KNOWN),
    "config-only.json": (str(DATA / "b.yaml"), "--settings", str(DATA / "config-only.yaml"), "-o", "json"),
}


def printed(*arguments: str) -> str:
    """Output of a scene, which has to be a success."""
    out = io.StringIO()
    with redirect_stdout(out):
        code = main(["render", *arguments])
    if code:
        raise AssertionError(f"exit code {code}")
    return out.getvalue()


def write() -> None:
    """Write the golden files anew."""
    for name, scene in SCENES.items():
        (DATA / name).write_text(printed(*scene))
