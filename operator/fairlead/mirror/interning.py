"""What many objects have in common is kept once: texts, and what was made from the same before.

These are fresh structs that nobody else has seen yet, so that putting a part in the place of its equal changes nothing.
"""

import sys
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from msgspec.structs import force_setattr

from fairlead.cel.values.structs import NO_TEXT, struct

K = TypeVar("K")
T = TypeVar("T")


class Pool(Generic[K, T]):
    """What was made for a key before is given again. Bounded: when full it starts from nothing.

    Who holds a part keeps it; one that comes again after that is made twice, which costs memory and nothing else. The
    API server lists objects by name, so that those that are alike come one after the other.
    """

    __slots__ = ("_made", "_make", "_size")

    def __init__(self, make: Callable[[K], T], size: int) -> None:
        self._make = make
        self._size = size
        self._made: dict[K, T] = {}

    def __call__(self, key: K) -> T:
        """What is made from this key."""
        found = self._made.get(key)
        if found is None:
            if len(self._made) >= self._size:
                self._made.clear()
            found = self._made[key] = self._make(key)
        return found


def sharing(python: tuple[int, int]) -> Callable[[str], str]:
    """What gives for a text the one that is equal to it. Python 3.12 never forgets what was interned."""
    if python != (3, 12):
        return sys.intern
    texts = Pool[str, str](lambda text: text, _TEXTS)
    return lambda text: texts(text) if len(text) <= _LONG else text


_TEXTS: Final = 65_536
_LONG: Final = 256
same: Final = sharing(sys.version_info[:2])
"""The same text, kept once."""


def shared_text(text: str) -> str:
    """The same text; one that is absent stays so."""
    return text if text is NO_TEXT else same(text)


def shared_conditions(conditions: list[Any]) -> tuple[Any, ...]:
    """The same conditions: their texts are few, and each object brings its own copies."""
    for condition in conditions:
        for field in ("type", "status", "reason", "message"):
            if (text := getattr(condition, field)) is not NO_TEXT:
                force_setattr(condition, field, same(text))
    return tuple(conditions)


def shared_node(node: Any) -> Any:
    """The same node."""
    status = node.status
    if status.conditions:
        force_setattr(status, "conditions", shared_conditions(status.conditions))
    if status.images:
        images = [_images((tuple(image.names), image.sizeBytes)) for image in status.images]
        force_setattr(status, "images", tuple(images))
    return node


_Image: Final = struct("ContainerImage")
_images: Final = Pool[tuple[tuple[str, ...], int], Any](lambda key: _Image(names=key[0], sizeBytes=key[1]), 16_384)
