"""Policies from the files of a folder: read again and again, since folders that are mounted tell nobody of changes.

A file that cannot be read, or is no YAML, keeps what it held when it last could be.
"""

import asyncio
import hashlib
import logging
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

import yaml

from fairlead.api.names import KIND
from fairlead.plain_data import DEPTH_MAX, Loader, is_deep
from fairlead.webhook.serving.last_good import LastGoodStore
from fairlead.webhook.serving.reloader import PolicyReloader

LOG: Final = logging.getLogger(__name__)
_FILES_S: Final = 1.0

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


class PolicyFolder:
    """The policies of a folder."""

    def __init__(self, folder: Path, reloader: PolicyReloader, last_good: LastGoodStore) -> None:
        self._folder, self._reloader, self._last_good = folder, reloader, last_good
        self._files = PolicyFiles(folder)
        self._scan = Scan({}, {})
        self._lost: Mapping[str, Obj] = {}
        """What serves in place of files that could never be used."""

    @property
    def faults(self) -> Mapping[str, str]:
        """What is wrong with files, by their names."""
        return self._scan.faults

    async def begin(self) -> None:
        """Read the policies. Raises OSError."""
        self._take(await asyncio.to_thread(self._files.scan))
        self._reloader.policies.warm()

    async def run(self) -> None:
        """Those that were kept have to be known before one is met that does not compile."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow())
            kept = await self._last_good.loaded()
            self._reloader.policies.last_good = kept
            elsewhere = {name: one.obj for (name, _), one in kept.items() if name not in self._scan.policies}
            if not self._scan.unknown:  # they went while nobody was there
                for name in elsewhere:
                    self._last_good.forget(name)
            elif elsewhere:  # nobody knows what those files held
                self._lost = elsewhere
                LOG.warning("last_good.serving", extra={"policies": sorted(elsewhere)})
            self._take(self._with_lost(self._scan))
            self._reloader.wake()
            await self._reloader.run()

    async def reload(self) -> None:
        """Read the folder again."""
        try:
            scan = await asyncio.to_thread(self._files.scan)
        except OSError as error:
            fault = f"cannot be read: {error.strerror}"
            scan = Scan(self._scan.policies, {**self._scan.faults, str(self._folder): fault}, unknown=True)
        self._take(self._with_lost(scan))

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(_FILES_S)
            await self.reload()

    def _take(self, scan: Scan) -> None:
        """Tell of policies that are others than before."""
        before, known, faults = self._scan.policies, self._scan.faults, scan.faults
        for name in before.keys() - scan.policies.keys():
            self._reloader.remove(name)
        for name, obj in scan.policies.items():
            if before.get(name) is not obj:
                self._reloader.put(obj)
        for file, fault in faults.items():
            if known.get(file) != fault:
                LOG.warning("policy_file.invalid", extra={"file": file, "error": fault})
        for file in known.keys() - faults.keys():
            LOG.info("policy_file.valid", extra={"file": file})
        self._scan = scan

    def _with_lost(self, scan: Scan) -> Scan:
        """With what serves in place of files that could never be used; until all can be."""
        if not scan.unknown:
            self._lost = {}
        return Scan({**self._lost, **scan.policies}, scan.faults, scan.unknown)


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
