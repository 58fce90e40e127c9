"""Pods that agree on everything the rules read are one class: what is computed for one holds for all.

The key of a class is made of the values at the paths that the rules read, in the order of the paths.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from fairlead.cel.messages import NO_INT, NO_TEXT
from fairlead.policy.facts import PodView
from fairlead.strategies.reads import EVERY, Path, Reads

IDENTITY: Final[frozenset[Path]] = frozenset(
    {("metadata", name) for name in ("name", "uid", "creationTimestamp", "generateName", "resourceVersion")}
)
_encode: Final = msgspec.msgpack.Encoder(enc_hook=repr, order="deterministic").encode


def reads_identity(reads: Reads) -> bool:
    """Whether every pod is a class of its own."""
    return any(path in IDENTITY or path in ((), ("metadata",)) for path in reads.pod)


def class_key(reads: Reads) -> Callable[[PodView], tuple[object, ...]]:
    """The function that gives the key of a pod's class."""
    pod = tuple(sorted(reads.pod))
    namespace = tuple(sorted(reads.namespace))
    request = tuple(sorted(reads.request))

    def key(view: PodView) -> tuple[object, ...]:
        parts = [_at(view.pod, path) for path in pod]
        parts += [_at(view.namespaceObject, path) for path in namespace]
        parts += _amounts(view.request, request)
        return tuple(parts)

    return key


def _at(obj: Any, path: Path) -> object:
    for step in path:
        obj = obj.get(step) if isinstance(obj, Mapping) else getattr(obj, step)
        if obj is None:
            return None
    if obj is NO_TEXT or obj is NO_INT:
        return None  # absent is not the same as zero
    return obj if isinstance(obj, str | int | float) else _encode(obj)


def _amounts(request: Mapping[str, float], names: Iterable[str]) -> list[object]:
    return [tuple(sorted(request.items())) if name == EVERY else request.get(name) for name in names]
