"""Pods that agree on everything the rules read are one class: what is computed for one holds for all.

The key of a class is made of the values at the paths that the rules read, in the order of the paths. What `has()` tells
apart is apart in the key.
"""

from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final

import msgspec

from fairlead.cel.messages import NO_INT, NO_TEXT, empty
from fairlead.policy.facts import PodView
from fairlead.strategies.reads import EVERY, Path, Reads

IDENTITY: Final[frozenset[Path]] = frozenset(
    {("metadata", name) for name in ("name", "uid", "creationTimestamp", "generateName", "resourceVersion")}
)

LONG: Final = 256
"""A text with more characters is known by its digest: a key is kept as long as what is kept for its class."""

Key = tuple[object, ...]


def reads_identity(reads: Reads) -> bool:
    """Whether every pod is a class of its own."""
    return any(path in IDENTITY or path in ((), ("metadata",)) for path in reads.pod)


def class_key(reads: Reads) -> Callable[[PodView], Key]:
    """The function that gives the key of a pod's class. It raises TypeError for what is no object of the API."""
    pod = tuple(sorted(reads.pod))
    namespace = tuple(sorted(reads.namespace))
    request = tuple(sorted(reads.request))

    def key(view: PodView) -> Key:
        parts = [_at(view.pod, path) for path in pod]
        parts += [_at(view.namespaceObject, path) for path in namespace]
        parts += _amounts(view.request, request)
        return tuple(parts)

    return key


def _at(obj: Any, path: Path) -> object:
    for step in path:
        if isinstance(obj, Mapping):
            obj = obj.get(step)
        elif isinstance(obj, msgspec.Struct):
            obj = getattr(obj, step)
        else:
            break  # a list: all of it is read
        if obj is None:
            return None
    return _key(obj)


def _key(value: object) -> object:
    """A value that is equal to another's, and has its hash, only where no expression tells them apart."""
    if value is NO_TEXT or value is NO_INT or value is None:
        return None  # absent is not the same as zero
    if isinstance(value, str):
        return value if len(value) <= LONG else _digest(value)
    if isinstance(value, int | float):
        return value
    if isinstance(value, Mapping):
        return tuple(sorted((key, _key(item)) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return tuple([_key(item) for item in value])
    if isinstance(value, msgspec.Struct):
        if value is empty(type(value).__name__):
            return None
        return tuple([_key(getattr(value, name)) for name in value.__struct_fields__])
    raise TypeError(f"{type(value).__name__} is no value of an object of the API")


def _digest(text: str) -> bytes:
    """Equal to no text, for it is none."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).digest()


def _amounts(request: Mapping[str, float], names: Iterable[str]) -> list[object]:
    return [tuple(sorted(request.items())) if name == EVERY else request.get(name) for name in names]
