"""Policies from the files of a folder, read twice a second: mounted volumes report no changes.

A file that cannot be read, or is not YAML, keeps the policies it had when it last could be read.
"""

import asyncio
import hashlib
import logging
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from time import time
from typing import Any, Final

import yaml

from fairlead.api.names import KIND
from fairlead.plain_data import DEPTH_MAX, Loader, expanded_size, explain_error, is_deep
from fairlead.webhook.serving.last_good import LastGoodStore
from fairlead.webhook.serving.reloader import PolicyReloader

LOG: Final = logging.getLogger(__name__)
_FILES_S: Final = 0.5

SUFFIXES: Final = (".yaml", ".yml", ".json")
_BYTES_MAX: Final = 8 << 20
_VALUES_MAX: Final = 100_000
_DEPTH_MAX: Final = 100
_GROUP: Final = "fairlead.dev/"
_EMPTY: Final = "is empty; if it is still empty at the next scan, its policies are removed"
Obj = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Scan:
    """Result of one scan of the folder."""

    policies: Mapping[str, Obj]
    faults: Mapping[str, str]
    """Errors by file."""
    unknown: bool = False
    """Whether the current contents of some file are unknown."""


@dataclass(slots=True)
class _File:
    digest: bytes
    policies: list[Obj] = field(default_factory=list)
    fault: str = ""


@dataclass(slots=True)
class PolicyFiles:
    """A folder, with the last contents of its files."""

    folder: Path
    _files: dict[Path, _File] = field(default_factory=dict)

    def scan(self) -> Scan:
        """Read the files that changed. Raises OSError if the folder cannot be read."""
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
                    faults[str(path)] = f"the policy {name} is already in {where[name].name}, which is used"
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
            return _File(b"", before.policies, _EMPTY)  # editors truncate a file before they write it
        digest = hashlib.sha256(data).digest()
        if digest == before.digest:
            return before
        if len(data) > _BYTES_MAX:
            return _File(digest, before.policies, f"is larger than {_BYTES_MAX >> 20} MiB")
        if is_deep(data):
            return _File(digest, before.policies, f"is nested more than {DEPTH_MAX:,} levels deep")
        try:
            policies = list(_policies(data))
        except Exception as error:  # noqa: BLE001 - a wrong tag, such as `!!bool maybe`, may raise anything
            return _File(digest, before.policies, f"is not YAML: {explain_error(error)}")
        return _File(digest, policies)


class PolicyFolder:
    """Source of policies: a folder.

    Files do not say which policy is the oldest, which comes first in the limits. So the oldest are those of which a
    good generation is stored; of the others those that were there at the start, and then as they appeared.
    """

    def __init__(
        self,
        folder: Path,
        reloader: PolicyReloader,
        last_good: LastGoodStore,
        now: Callable[[], float] = time,
    ) -> None:
        """`now` is the time of day in seconds."""
        self._folder, self._reloader, self._last_good, self._now = folder, reloader, last_good, now
        self._appeared: dict[str, str] = {}
        self._files = PolicyFiles(folder)
        self._scan = Scan({}, {})

    @property
    def faults(self) -> Mapping[str, str]:
        """Return the errors by file."""
        return self._scan.faults

    async def begin(self) -> None:
        """Read the policies for the first time. Raises OSError."""
        self._take(await asyncio.to_thread(self._files.scan))
        self._reloader.policies.warm()

    async def run(self) -> None:
        """Compile the policies, after their last good generations are loaded: one may not compile."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow())
            self._reloader.policies.last_good = stored = await self._last_good.loaded()
            self._take(self._scan)
            if stored:
                self._date({name for name, _ in stored})
            self._reloader.wake()
            await self._reloader.run()

    async def reload(self) -> None:
        """Read the folder again."""
        try:
            scan = await asyncio.to_thread(self._files.scan)
        except OSError as error:
            fault = f"cannot be read: {error.strerror}"
            scan = Scan(self._scan.policies, {**self._scan.faults, str(self._folder): fault}, unknown=True)
        self._take(scan)

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(_FILES_S)
            await self.reload()

    def _take(self, scan: Scan) -> None:
        """Put the policies that changed into the store."""
        before, known, faults = self._scan.policies, self._scan.faults, scan.faults
        for name in before.keys() - scan.policies.keys():
            self._reloader.policies.remove(name)
        is_first = not self._appeared
        for name in self._appeared.keys() - scan.policies.keys():
            del self._appeared[name]
        for name, obj in scan.policies.items():
            if before.get(name) is not obj:
                self._appeared.setdefault(name, "" if is_first else self._today())
                self._reloader.policies.put(self._dated(obj))
        if not scan.unknown:
            self._reloader.policies.forget_missing()
        elif restored := self._reloader.policies.restore_missing():  # the files that cannot be read may contain them
            LOG.warning("last_good.serving", extra={"policies": restored})
        for file, fault in faults.items():
            if known.get(file) != fault:
                LOG.warning("policy_file.invalid", extra={"file": file, "error": fault})
        for file in known.keys() - faults.keys():
            LOG.info("policy_file.valid", extra={"file": file})
        self._scan = scan

    def _date(self, served: Collection[str]) -> None:
        """Put the policies behind those that have served."""
        for name, obj in self._scan.policies.items():
            if name not in served:
                self._appeared[name] = self._appeared[name] or self._today()
                self._reloader.policies.put(self._dated(obj))

    def _dated(self, obj: Obj) -> Obj:
        metadata = obj["metadata"]
        if not (appeared := self._appeared[metadata["name"]]):
            return obj
        return {**obj, "metadata": {**metadata, "creationTimestamp": appeared}}

    def _today(self) -> str:
        return f"{datetime.fromtimestamp(self._now(), UTC):%Y-%m-%dT%H:%M:%SZ}"


def _policies(data: bytes) -> Iterator[Obj]:
    """Return the policies in a file; other objects in it are ignored."""
    for document in yaml.load_all(data, Loader):
        if isinstance(document, dict) and "items" in document and expanded_size(document) > _BYTES_MAX:
            raise ValueError(f"a list has more than {_BYTES_MAX:,} values with aliases expanded")
        for obj in _listed(document):
            kind, version = obj.get("kind"), str(obj.get("apiVersion"))
            metadata = obj.get("metadata")
            if kind != KIND or not version.startswith(_GROUP):
                continue
            if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
                raise ValueError(f"a {KIND} has no metadata.name")  # noqa: TRY004 - of the file
            _check_is_json(obj, count())
            # Fields that an API server once wrote do not describe the file's contents.
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


def _check_is_json(value: object, number: Iterator[int], depth: int = 0) -> None:
    """Check that JSON can represent a value. Raises ValueError, also for nested aliases without end."""
    if next(number) > _VALUES_MAX:
        raise ValueError(f"a {KIND} has more than {_VALUES_MAX} values")
    if depth > _DEPTH_MAX:
        raise ValueError(f"a {KIND} is nested more than {_DEPTH_MAX} levels deep")
    match value:
        case dict():
            if not all(isinstance(key, str) for key in value):
                raise ValueError("keys must be strings")
            for item in value.values():
                _check_is_json(item, number, depth + 1)
        case list():
            for item in value:
                _check_is_json(item, number, depth + 1)
        case float() if not math.isfinite(value):
            raise ValueError(f"{value} is not a JSON number")
        case str() | int() | float() | None:
            pass
        case _:
            raise ValueError(f"{type(value).__name__} is not a JSON type")
