"""Writes which packages of others lie in a folder of Python packages, and under which licences they may be passed on.

It is run where images and bundles are made, and uses the standard library alone.
"""

import sys
from collections.abc import Collection, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

_OURS = "fairlead"
_LICENCES = ("licen", "copying", "notice", "authors")
_HEAD = """Fairlead is licensed under Apache-2.0. With it come these packages of others, each under its own licence.
"""


def notices(folder: Path, *, without: Collection[str] = ()) -> str:
    """Return the text: each package, but for those without, with its version, licence and the texts that it brings."""
    found = sorted(distributions(path=[str(folder)]), key=lambda one: one.name.lower())
    return _HEAD + "".join(_of(one) for one in found if one.name.lower() not in (_OURS, *without))


def licence_of(package: Distribution) -> str:
    """Return the name of a package's licence, as its metadata say."""
    metadata = package.metadata
    classified = [one.rpartition(" :: ")[2] for one in metadata.get_all("Classifier") or [] if "License ::" in one]
    said = [name for field in ("License-Expression", "License") for name in metadata.get_all(field) or []]
    short = [name for name in said if name and "\n" not in name and name != "UNKNOWN"]
    return next(iter([*short, *classified]), "see below")


def _of(package: Distribution) -> str:
    texts = "\n".join(_texts(package)) or "It brings no text of its licence; see its page on PyPI.\n"
    return f"\n{'=' * 100}\n{package.name} {package.version} ({licence_of(package)})\n{'=' * 100}\n\n{texts}"


def _texts(package: Distribution) -> Iterator[str]:
    for file in sorted(package.files or [], key=str):
        is_licence = file.name.lower().startswith(_LICENCES) and file.suffix.lower() in ("", ".txt", ".md", ".rst")
        if is_licence and file.parts[0].endswith(".dist-info"):
            yield Path(str(file.locate())).read_text(encoding="utf-8", errors="replace").strip() + "\n"


if __name__ == "__main__":
    sys.stdout.write(notices(Path(sys.argv[1])))
