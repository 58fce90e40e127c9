"""Policies from the files of a folder: read again and again, since folders that are mounted tell nobody of changes.

A file that cannot be read, or is no YAML, keeps what it held when it last could be.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

import yaml

from fairlead.api.names import KIND
from fairlead.plain_data import DEPTH_MAX, Loader, is_deep

SUFFIXES: Final = (".yaml", ".yml", ".json")
_BYTES_MAX: Final = 8 << 20
_VALUES_MAX: Final = 100_000
_DEPTH_MAX: Final = 100
_GROUP: Final = "fairlead.dev/"
_EMPTY: Final = "is empty: if it still is at the next look, its policies have gone"
Obj = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Scan:
    """What was found."""

    policies: Mapping[str, Obj]
    faults: Mapping[str, str]
    """What cannot be used, by file."""
    unknown: bool = False
    """Whether nobody knows what some file holds now."""


@dataclass(slots=True)
class _File:
    digest: bytes
    policies: list[Obj] = field(default_factory=list)
    fault: str = ""


@dataclass(slots=True)
class PolicyFiles:
    """A folder, and what was in it."""

    folder: Path
    _files: dict[Path, _File] = field(default_factory=dict)

    def scan(self) -> Scan:
        """Look again. Raises OSError if the folder itself cannot be read."""
        found = sorted(path for path in self.folder.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file())
        self._files = {path: self._read(path) for path in found}
        policies: dict[str, Obj] = {}
        faults: dict[str, str] = {}
        where: dict[str, Path] = {}
        for path, file in self._files.items():
            if file.fault:
                faults[str(path)] = file.fault
            for obj in file.policies:
                name = str(obj["metadata"]["name"])
                if name in policies:
                    faults[str(path)] = (
                        f"the policy {name} is in {where[name].name} already, which is the one that counts"
                    )
                else:
                    policies[name], where[name] = obj, path
        return Scan(policies, faults, any(file.fault for file in self._files.values()))

    def _read(self, path: Path) -> _File:
        before = self._files.get(path, _File(b""))
        try:
            with path.open("rb") as opened:
                data = opened.read(_BYTES_MAX + 1)
        except OSError as error:
            return _File(b"", before.policies, f"cannot be read: {error.strerror}")
        if not data and before.policies and before.fault != _EMPTY:
            return _File(b"", before.policies, _EMPTY)  # editors empty a file before they write it
        digest = hashlib.sha256(data).digest()
        if digest == before.digest:
            return before
        if len(data) > _BYTES_MAX:
            return _File(digest, before.policies, f"is larger than {_BYTES_MAX >> 20} MiB")
        if is_deep(data):
            return _File(digest, before.policies, f"is nested more than {DEPTH_MAX:,} deep; no policy is")
        try:
            policies = list(_policies(data))
        except Exception as error:  # noqa: BLE001 - where a tag does not fit, such as `!!bool maybe`, it may be any
            return _File(digest, before.policies, f"is no YAML: {' '.join(str(error).split())}")
        return _File(digest, policies)


def _policies(data: bytes) -> Iterator[Obj]:
    """The policies of a file; what else is in it is somebody else's."""
    for document in yaml.load_all(data, Loader):
        for obj in _listed(document):
            kind, version = obj.get("kind"), str(obj.get("apiVersion"))
            metadata = obj.get("metadata")
            if kind != KIND or not version.startswith(_GROUP):
                continue
            if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
                raise ValueError(f"a {KIND} has no metadata.name")  # noqa: TRY004 - of the file
            _refuse_odd(obj, count())
            # What an API server once wrote there says nothing of what the file holds now.
            kept = {key: value for key, value in metadata.items() if key in ("name", "labels", "annotations")}
            yield obj | {"metadata": kept}


def _listed(document: object) -> Iterator[dict[str, Any]]:
    if not isinstance(document, dict):
        return
    items = document.get("items")
    if str(document.get("kind", "")).endswith("List") and isinstance(items, list):
        for item in items:
            yield from _listed(item)
    else:
        yield document


def _refuse_odd(value: object, number: Iterator[int], depth: int = 0) -> None:
    """Refuse what JSON has no word for: it could not be kept; and aliases of aliases, which have no end."""
    if next(number) > _VALUES_MAX:
        raise ValueError(f"a {KIND} has more than {_VALUES_MAX} values")
    if depth > _DEPTH_MAX:
        raise ValueError(f"a {KIND} is nested deeper than {_DEPTH_MAX} levels")
    match value:
        case dict():
            if not all(isinstance(key, str) for key in value):
                raise ValueError("keys have to be texts")
            for item in value.values():
                _refuse_odd(item, number, depth + 1)
        case list():
            for item in value:
                _refuse_odd(item, number, depth + 1)
        case float() if not math.isfinite(value):
            raise ValueError(f"{value} is no number of JSON")
        case str() | int() | float() | None:
            pass
        case _:
            raise ValueError(f"{type(value).__name__} is nothing that JSON has a word for")
