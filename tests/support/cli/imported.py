"""Policies that `fairlead import` makes of texts, as data and as comments."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from fairlead.api.parse import parse_policy
from fairlead.cli.imports.commented_yaml import write_drafts
from fairlead.cli.imports.foreign_documents import ForeignDocuments
from fairlead.cli.inputs.files import File
from fairlead.strategies.registry import installed_policy
from support.policy.lint import finding_line


@dataclass(frozen=True, slots=True)
class Imported:
    """Result of an import."""

    text: str
    faults: tuple[str, ...]

    @property
    def policies(self) -> list[dict[str, Any]]:
        """The policies as plain data."""
        return [one for one in yaml.safe_load_all(self.text) if one is not None]

    @property
    def policy(self) -> dict[str, Any]:
        """The only one."""
        [found] = self.policies
        return found

    @property
    def spec(self) -> dict[str, Any]:
        """The spec of the only one."""
        found: dict[str, Any] = self.policy["spec"]
        return found

    @property
    def comments(self) -> str:
        """All comments as one line."""
        lines = (line.strip() for line in self.text.splitlines())
        return " ".join(line.removeprefix("#").strip() for line in lines if line.startswith("#"))


GOLDEN: Final = Path(__file__).parents[2] / "data" / "imports"
"""Pairs of what is imported, `in.yaml`, and the policies that it becomes, `out.yaml`, by project."""


def pairs() -> list[Path]:
    """The folders of pairs."""
    return sorted(one.parent for one in GOLDEN.glob("*/*/in.yaml"))


def imported_pair(folder: Path) -> Imported:
    """Return what the input of a pair becomes."""
    return _imported({"in.yaml": (folder / "in.yaml").read_bytes()})


def write() -> None:
    """Write the outputs of all pairs anew."""
    for folder in pairs():
        (folder / "out.yaml").write_text(imported_pair(folder).text)


def imported(*texts: str) -> Imported:
    """Return what files named a.yaml, b.yaml and so on become."""
    return _imported({f"{chr(97 + at)}.yaml": text.encode() for at, text in enumerate(texts)})


def _imported(files: Mapping[str, bytes]) -> Imported:
    found = ForeignDocuments()
    assert all(found.read(File(name, data)) for name, data in files.items())
    drafts = found.import_all()
    return Imported(write_drafts(drafts), tuple(finding_line(one) for one in found.findings))


def check(policy: Mapping[str, Any]) -> None:
    """Raise unless it is a policy."""
    parse_policy(policy, installed_policy())
