"""Objects of a cluster from the output of `kubectl get nodes,pods,namespaces -A -o json`, or from YAML.

Objects stay bytes, which is small; readers decode the fields they need. Other kinds are counted and skipped.
"""

import codecs
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec
import yaml

from fairlead.grants.ledger import GROUPS_LABEL, LABEL
from fairlead.groups.turns import LABEL as TURNS
from fairlead.learned.published import LABEL as LEARNED
from fairlead.plain_data import DEPTH_MAX, Loader, expanded_size, is_deep
from fairlead.simulation.as_stored import with_default_requests, with_text_amounts
from fairlead.simulation.snapshot_error import SnapshotError

GET: Final = "kubectl get nodes,pods,namespaces -A -o json"
VALUES_MAX: Final = 50_000_000
"""Greatest number of values of a YAML document, aliases expanded."""
Raw = bytes | msgspec.Raw
UNREADABLE: Final = (msgspec.DecodeError, ValueError)
"""Exceptions for an object that has a field of another type."""
Key = tuple[str, str]
"""Namespace and name; the namespace of nodes and namespaces is ""."""

_TRAILING: Final = re.compile(r"trailing characters \(byte (\d+)\)")
_BYTE: Final = re.compile(r" ?\(byte (\d+)\)")
_TOO_DEEP: Final = f"it is nested more than {DEPTH_MAX:,} levels deep; no Kubernetes object is"
_STORED_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_FIRST: Final = re.compile(rb"\S")
_WORKLOADS: Final = {
    **dict.fromkeys(("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"), "apps/v1"),
    **dict.fromkeys(("Job", "CronJob"), "batch/v1"),
}
"""Kinds with a template of pods, and their API version."""
_NAMESPACED: Final = ("Pod", "ConfigMap", *_WORKLOADS)
_NEWLINE: Final = b"\n"
_YAML: Final = (".yaml", ".yml")
_WIDE: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # what PowerShell writes with `>`


class SnapshotObject(NamedTuple):
    """An object and its file."""

    raw: Raw
    file: str


class _Meta(msgspec.Struct, gc=False):
    name: str = ""
    namespace: str | None = None
    uid: object = None
    labels: object = None


class _Object(msgspec.Struct, gc=False):
    apiVersion: str = ""  # noqa: N815 - as in the API
    kind: str = ""
    metadata: _Meta | None = None
    items: list[msgspec.Raw] | None = None


_object: Final = msgspec.json.Decoder(_Object)


@dataclass(slots=True)
class Snapshot:
    """The objects of a cluster, each once."""

    nodes: dict[Key, SnapshotObject] = field(default_factory=dict)
    pods: dict[Key, SnapshotObject] = field(default_factory=dict)
    namespaces: dict[Key, SnapshotObject] = field(default_factory=dict)
    ledgers: dict[Key, SnapshotObject] = field(default_factory=dict)
    """ConfigMaps with what is granted of the devices of nodes."""
    learned: dict[Key, SnapshotObject] = field(default_factory=dict)
    """ConfigMaps with what rules have learned."""
    turns: dict[Key, SnapshotObject] = field(default_factory=dict)
    """ConfigMaps with the turns of groups."""
    domains: dict[Key, SnapshotObject] = field(default_factory=dict)
    """ConfigMaps with the domains of groups."""
    config_maps: dict[Key, SnapshotObject] = field(default_factory=dict)
    """All other ConfigMaps."""
    workloads: dict[str, dict[Key, SnapshotObject]] = field(default_factory=dict)
    """Objects that have a template of pods, by their kind."""
    others: Counter[str] = field(default_factory=Counter)
    """Number of objects of other kinds."""
    namespace: str = "default"
    """Namespace of objects that name none."""

    def read(self, file: str, data: bytes) -> None:
        """Add all objects of a file: JSON or YAML, one or more documents, also lists. Raises SnapshotError."""
        data = _utf8(data)
        first = _FIRST.search(data)
        if first is None:
            raise SnapshotError(f"{file}: the file is empty; write it with `{GET}`")
        if first[0] in b"{[" and not file.lower().endswith(_YAML):
            self._json(file, data)
        else:
            self._yaml(file, data)

    def put(self, obj: Mapping[str, Any], file: str = "") -> None:
        """Add an object or a list of objects. Raises SnapshotError."""
        self.put_raw(_written(file, obj), file)

    def put_raw(self, raw: Raw, file: str = "", kind: str = "") -> None:
        """Add an object or a list as JSON; `kind` is the kind if the object has none. Raises SnapshotError."""
        try:
            found = _object.decode(raw)
        except msgspec.DecodeError as error:
            raise SnapshotError(f"{file}: contains something that is not a Kubernetes object: {error}") from None
        kind = found.kind or kind
        if kind.endswith("List") and found.items is not None:
            for item in found.items:
                self.put_raw(item, file, kind.removesuffix("List"))
            return
        if not kind:
            raise SnapshotError(f"{file}: contains an object without a kind: was it cut out of something else?")
        metadata = found.metadata or _Meta()
        kept = self._kept(found.apiVersion, kind, metadata.labels)
        if kept is None:
            self.others[kind] += 1
            return
        if not metadata.name:
            raise SnapshotError(f"{file}: a {kind} has no metadata.name; give it one")
        key = (metadata.namespace or self.namespace if kind in _NAMESPACED else "", metadata.name)
        if key in kept:
            self._refuse_twice(kind, key, kept[key].file, file)
        if kind in ("Pod", "Node") and not metadata.uid:  # no API server has seen it
            obj = with_text_amounts(msgspec.json.decode(raw))
            if kind == "Pod":
                obj = with_default_requests(obj) | {"metadata": {**obj["metadata"], "namespace": key[0]}}
            else:  # what rules learn is of a UID
                obj = obj | {"metadata": {**obj["metadata"], "uid": f"node-{metadata.name}"}}
            raw = _written(file, obj)
        kept[key] = SnapshotObject(raw, file)

    def newest_time(self) -> str | None:
        """Return the newest time that nodes and pods name, such as the last heartbeat: it was taken no earlier.

        Of the times that the API server and kubelets write, which are all in one form.
        """
        found = (time for held in (*self.nodes.values(), *self.pods.values()) for time in _times(held.raw))
        return max(found, default=None)

    def _kept(self, version: str, kind: str, labels: object) -> dict[Key, SnapshotObject] | None:
        if kind in _WORKLOADS and version in (_WORKLOADS[kind], ""):
            return self.workloads.setdefault(kind, {})
        if version not in ("v1", ""):  # other API groups have kinds of these names
            return None
        if kind == "ConfigMap":
            known = labels if isinstance(labels, Mapping) else {}
            by_label = {LABEL: self.ledgers, LEARNED: self.learned, TURNS: self.turns, GROUPS_LABEL: self.domains}
            return next((kept for label, kept in by_label.items() if label in known), self.config_maps)
        return {"Node": self.nodes, "Pod": self.pods, "Namespace": self.namespaces}.get(kind)

    def _refuse_twice(self, kind: str, key: Key, before: str, now: str) -> None:
        where = f"twice in {now}" if before == now else f"in {before} and in {now}"
        raise SnapshotError(f"{kind.lower()} {spelt(key)} is {where}; keep one of them")

    def _json(self, file: str, data: bytes) -> None:
        try:
            for document in _documents(file, data):
                self.put_raw(document, file)
        except RecursionError:
            raise SnapshotError(f"{file}: {_TOO_DEEP}") from None

    def _yaml(self, file: str, data: bytes) -> None:
        if is_deep(data):
            raise SnapshotError(f"{file}: {_TOO_DEEP}")
        count = 0
        try:
            for document in yaml.load_all(data, Loader):
                if document is not None:
                    count += 1
                    self.put_raw(_written(file, document), file)
        except (yaml.YAMLError, RecursionError) as error:
            raise SnapshotError(f"{file}: {_said(error)}; write it again with `{GET}`") from None
        if not count:
            raise SnapshotError(f"{file}: the file is empty; write it with `{GET}`")


class _Condition(msgspec.Struct, gc=False):
    lastHeartbeatTime: object = None  # noqa: N815 - as in the API
    lastTransitionTime: object = None  # noqa: N815


class _TimedStatus(msgspec.Struct, gc=False):
    conditions: list[_Condition] | None = None


class _TimedMeta(msgspec.Struct, gc=False):
    creationTimestamp: object = None  # noqa: N815
    annotations: object = None


class _Timed(msgspec.Struct, gc=False):
    metadata: _TimedMeta | None = None
    status: _TimedStatus | None = None


_timed: Final = msgspec.json.Decoder(_Timed)


def _times(raw: Raw) -> Iterator[str]:
    try:
        found = _timed.decode(raw)
    except msgspec.DecodeError:  # its readers say what is wrong with it
        return
    of_status = (found.status and found.status.conditions) or ()
    times = [time for one in of_status for time in (one.lastHeartbeatTime, one.lastTransitionTime)]
    if (metadata := found.metadata) is not None:
        written = metadata.annotations.values() if isinstance(metadata.annotations, Mapping) else ()
        measured = [value.rpartition(",")[2] for value in written if isinstance(value, str) and "," in value]
        times += [metadata.creationTimestamp, *measured]  # a value is written as VALUE,TIME
    yield from (one for one in times if isinstance(one, str) and _STORED_TIME.fullmatch(one))


def spelt(key: Key) -> str:
    """Return a key as text, such as ml/train-0."""
    return "/".join(part for part in key if part)


@contextmanager
def reading(kind: str, key: Key, obj: SnapshotObject) -> Iterator[None]:
    """Raise SnapshotError with the name of an object that cannot be read."""
    try:
        yield
    except UNREADABLE as error:
        where = f"{obj.file}: " if obj.file else ""
        raise SnapshotError(f"{where}{kind} {spelt(key)} cannot be read: {error}") from None


def _documents(file: str, data: bytes) -> Iterator[Raw]:
    """Yield the JSON documents of a file: several `kubectl get` may append to it, and a watch writes one per line."""
    whole, begin = memoryview(data), 0
    while True:
        try:
            yield msgspec.json.decode(whole[begin:], type=msgspec.Raw)
        except msgspec.DecodeError as error:
            trailing = _TRAILING.search(str(error))
            if trailing is None:
                raise SnapshotError(f"{file}: {_broken(error, data, begin)}; write it again with `{GET}`") from None
            end = begin + int(trailing[1]) - 1  # it counts from one
            yield msgspec.json.decode(whole[begin:end], type=msgspec.Raw)
            begin = end
        else:
            return


def _broken(error: msgspec.DecodeError, data: bytes, begin: int) -> str:
    said = str(error)
    if "truncated" in said:
        return f"the JSON ends early, in line {data.rstrip().count(_NEWLINE) + 1}: the file is cut off"
    place = _BYTE.search(said)
    at = begin + int(place[1]) if place else begin
    line = data.count(_NEWLINE, 0, at) + 1
    return f"this is not JSON from line {line} on: {_BYTE.sub('', said).removeprefix('JSON is malformed: ')}"


def _said(error: yaml.YAMLError | RecursionError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"this is not YAML from line {error.problem_mark.line + 1} on: {error.problem}"
    return f"this is not YAML: {str(error).splitlines()[0]}"


def _written(file: str, document: object) -> bytes:
    if not isinstance(document, Mapping):
        raise SnapshotError(f"{file}: contains something that is not a Kubernetes object")
    if expanded_size(document) > VALUES_MAX:
        raise SnapshotError(
            f"{file}: with its aliases expanded this is more than {VALUES_MAX:,} values; write them out"
        )
    try:
        return msgspec.json.encode(document)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise SnapshotError(f"{file}: contains a value that JSON cannot hold: {error}") from None


def _utf8(data: bytes) -> bytes:
    if data.startswith(_WIDE):
        return data.decode("utf-16", "replace").encode()
    return data.removeprefix(codecs.BOM_UTF8)
