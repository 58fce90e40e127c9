"""Reads a template of kwok nodes from a file, and says what is wrong with it in terms of that file.

`templates/nodes.yaml` says what may be written.
"""

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import yaml

from testbed.api import Object
from testbed.errors import ClusterError, sentence
from testbed.node_template import Alternative, Pool, Template, merge

DEFAULT = Path(__file__).parent / "templates" / "nodes.yaml"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?")
_LABEL = re.compile(r"(?=.{0,63}$)([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_QUANTITY = re.compile(r"\d+(\.\d+)?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NEEDED = ("cpu", "memory")
_PARTS = ("metadata", "spec", "status")


def read_template(path: Path) -> Template:
    """Read a template; what is wrong with it is said with the field that it is wrong in."""
    try:
        document = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ClusterError(f"{path} cannot be read: {error.strerror}", cure=f"name a file such as {DEFAULT}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ClusterError(f"{path} is not YAML: {error}", cure="mend it there") from error
    return _Reader(path).template(document)


@functools.cache
def default_template() -> Template:
    """Nodes of a general, a memory-heavy and a GPU pool in three zones."""
    return read_template(DEFAULT)


class _Reader:
    """Walks through one file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def template(self, document: object) -> Template:
        top = self._map(document, "", ("name", "node", "vary", "pools"))
        name = top.get("name", "kwok")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self._wrong("name", f"is {name!r}", "use up to 50 small letters, digits and dashes, such as: kwok")
        common = self._node(top.get("node", {}), "node")
        vary = self._vary(top.get("vary", []), "vary")
        listed = self._list(top["pools"], "pools") if "pools" in top else [{"name": "all"}]
        pools = [self._pool(pool, f"pools[{index}]", common, vary) for index, pool in enumerate(listed)]
        if not pools:
            self._wrong(
                "pools", "is empty", "write one pool at least, or leave `pools` out where all nodes are of one kind"
            )
        return Template(pools, name)

    def _pool(self, value: object, field: str, common: Object, vary: Sequence[Sequence[Alternative]]) -> Pool:
        pool = self._map(value, field, ("name", "weight", "node", "vary"))
        if not isinstance(pool.get("name"), str):
            self._wrong(f"{field}.name", "is missing" if "name" not in pool else "is not text", "give the pool a name")
        read = Pool(
            pool["name"],
            merge(common, self._node(pool.get("node", {}), f"{field}.node")),
            [*vary, *self._vary(pool.get("vary", []), f"{field}.vary")],
            self._weight(pool, field),
        )
        for resource in _NEEDED:
            if not _always_has(read, resource):
                self._wrong(
                    f"the pool {read.name}",
                    f"has nodes without {resource}",
                    f"write status.capacity.{resource} in its `node`, or in every alternative of one of its choices",
                )
        return read

    def _vary(self, value: object, field: str) -> list[list[Alternative]]:
        return [self._choice(choice, f"{field}[{index}]") for index, choice in enumerate(self._list(value, field))]

    def _choice(self, value: object, field: str) -> list[Alternative]:
        alternatives = []
        for index, each in enumerate(self._list(value, field)):
            place = f"{field}[{index}]"
            part = self._map(each, place, ("weight", *_PARTS))
            node = self._node({key: part[key] for key in _PARTS if key in part}, place)
            alternatives.append(Alternative(node, self._weight(part, place)))
        if not alternatives:
            self._wrong(field, "is empty", "write one alternative at least")
        return alternatives

    def _node(self, value: object, field: str) -> Object:
        node = self._map(value, field, _PARTS)
        metadata = self._map(node.get("metadata", {}), f"{field}.metadata", ("labels", "annotations"))
        spec = self._map(node.get("spec", {}), f"{field}.spec", ("taints", "unschedulable"))
        status = self._map(node.get("status", {}), f"{field}.status", ("capacity", "allocatable", "nodeInfo", "images"))
        self._each(
            metadata,
            "labels",
            f"{field}.metadata",
            lambda text: isinstance(text, str) and _LABEL.fullmatch(text) is not None,
            'write text of up to 63 letters, digits, `-`, `_` and `.`, in quotes where need be: "true"',
        )
        for parent, key, place in ((metadata, "annotations", "metadata"), (status, "nodeInfo", "status")):
            self._each(
                parent,
                key,
                f"{field}.{place}",
                lambda text: isinstance(text, str),
                'write text, in quotes where need be: "true"',
            )
        for key in ("capacity", "allocatable"):
            self._each(status, key, f"{field}.status", _is_quantity, "write an amount such as 4, 500m or 16Gi")
            if key in status:
                status = status | {key: {name: str(amount) for name, amount in status[key].items()}}
        for index, taint in enumerate(self._list(spec.get("taints", []), f"{field}.spec.taints")):
            place = f"{field}.spec.taints[{index}]"
            if (
                not self._map(taint, place, ("key", "value", "effect")).get("key")
                or taint.get("effect") not in _EFFECTS
            ):
                self._wrong(place, f"is {taint!r}", f"give it a key and one of the effects {sentence(_EFFECTS)}")
        return {name: part for name, part in (("metadata", metadata), ("spec", spec), ("status", status)) if part}

    def _each(
        self, parent: Mapping[str, Any], key: str, field: str, is_right: Callable[[object], bool], cure: str
    ) -> None:
        for name, value in self._map(parent.get(key, {}), f"{field}.{key}").items():
            if not is_right(value):
                self._wrong(f"{field}.{key}.{name}", f"is {value!r}", cure)

    def _weight(self, parent: Mapping[str, Any], field: str) -> int:
        weight = parent.get("weight", 1)
        if not isinstance(weight, int) or isinstance(weight, bool) or weight < 1:
            self._wrong(f"{field}.weight", f"is {weight!r}", "write a whole number from 1 up")
        return weight

    def _map(self, value: object, field: str, keys: Iterable[str] = ()) -> Object:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            self._wrong(field or "the file", f"is {_kind(value)}, not a map", "write `key: value` lines")
        known = [*keys]
        if known and (strange := [key for key in value if key not in known]):
            self._wrong(f"{field}.{strange[0]}".lstrip("."), "is not known here", f"use {sentence(known)}")
        return value

    def _list(self, value: object, field: str) -> list[Any]:
        if not isinstance(value, list):
            self._wrong(field, f"is {_kind(value)}, not a list", "begin each of its items with a dash")
        return value

    def _wrong(self, field: str, what: str, cure: str) -> NoReturn:
        raise ClusterError(f"{self._path}: {field} {what}", cure=f"{cure}; {DEFAULT} is an example")


def _always_has(pool: Pool, resource: str) -> bool:
    def has(node: Object) -> bool:
        return resource in node.get("status", {}).get("capacity", {})

    return has(pool.node) or any(all(has(alternative.node) for alternative in choice) for choice in pool.vary)


def _is_quantity(value: object) -> bool:
    return not isinstance(value, bool) and _QUANTITY.fullmatch(str(value)) is not None


def _kind(value: object) -> str:
    return (
        "empty"
        if value is None
        else {list: "a list", dict: "a map", str: "text", bool: "true or false"}.get(type(value), "a number")
    )
