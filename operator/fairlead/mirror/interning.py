"""Interning: equal strings and equal parts of many objects are stored once.

The objects are fresh structs that no other code has seen yet, so replacing a part by its equal changes nothing for
others.
"""

import sys
from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec.structs import force_setattr

from fairlead.cel.values.structs import NO_TEXT, struct
from fairlead.mirror import decode

K = TypeVar("K")
T = TypeVar("T")


class Pool(Generic[K, T]):
    """Bounded cache of values made from keys; when it is full, it is emptied.

    Objects keep the values they use; a value that is needed again after that is made twice, which costs memory and
    nothing else. The API server lists objects by name, so similar ones come one after the other.
    """

    __slots__ = ("_made", "_make", "_size")

    def __init__(self, make: Callable[[K], T], size: int) -> None:
        self._make = make
        self._size = size
        self._made: dict[K, T] = {}

    def __call__(self, key: K) -> T:
        """Return the value made from a key."""
        found = self._made.get(key)
        if found is None:
            if len(self._made) >= self._size:
                self._made.clear()
            found = self._made[key] = self._make(key)
        return found


def sharing(python: tuple[int, int]) -> Callable[[str], str]:
    """Return the function that interns strings; not `sys.intern` on Python 3.12, which never frees interned strings."""
    if python != (3, 12):
        return sys.intern
    texts = Pool[str, str](lambda text: text, _TEXTS)
    return lambda text: texts(text) if len(text) <= _LONG else text


_TEXTS: Final = 65_536
_LONG: Final = 256
interned: Final = sharing(sys.version_info[:2])
"""Returns the interned string that equals a string."""


def intern_text(text: str) -> str:
    """Return the interned string; NO_TEXT (absent) stays as it is."""
    return text if text is NO_TEXT else interned(text)


def intern_conditions(conditions: list[Any]) -> tuple[Any, ...]:
    """Return conditions with interned strings: their values are few, but each object brings its own copies."""
    for condition in conditions:
        for field in ("type", "status", "reason", "message"):
            if (text := getattr(condition, field)) is not NO_TEXT:
                force_setattr(condition, field, interned(text))
    return tuple(conditions)


def intern_node(node: Any, before: Any = None, images_hash: int | None = None) -> int | None:
    """Intern the conditions and images of a node; return a hash of its images if they were left undecoded.

    `before` is the node's state before, for which `images_hash` was returned. Images are most of a node, and
    updates repeat them: those of an equal hash are not decoded again. The hash has 64 bits and a key of this
    process, so that no client can search for two lists with the same one, and takes a quarter of a cryptographic one's
    time.
    """
    status = node.status
    if status.conditions:
        force_setattr(status, "conditions", intern_conditions(status.conditions))
    images = status.images
    if images.__class__ is not msgspec.Raw:
        if images:
            force_setattr(status, "images", _shared_images(images))
        return None
    found = hash(bytes(images))
    is_known = before is not None and found == images_hash
    force_setattr(status, "images", before.status.images if is_known else _shared_images(decode.node_images(images)))
    return found


def _shared_images(images: Iterable[Any]) -> tuple[Any, ...]:
    return tuple([_images((tuple(image.names), image.sizeBytes)) for image in images])


_Image: Final = struct("ContainerImage")
_images: Final = Pool[tuple[tuple[str, ...], int], Any](lambda key: _Image(names=key[0], sizeBytes=key[1]), 16_384)
