"""Upper bounds of the sizes of values: texts, lists and maps, for any objects of the API.

Sizes follow from what the API server accepts: a label has at most 63 characters and a name 253, annotations have
256 KiB in all. A text or a list of unknown length has no bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Final

from fairlead.cel.functions.extensions import OPAQUE
from fairlead.cel.syntax.ast import OPTIONAL, Call, Const, Node, Select, Type
from fairlead.cel.values.meter import ANNOTATION_MAX, ITEM

LABEL: Final = 63
NAME: Final = 253
KEY: Final = 317  # of a label or an annotation, with its prefix
NUMBER: Final = 350  # characters of any number or time as text

TEXTS: Final = frozenset({"string", "bytes"})
_NAMES: Final = frozenset({"name", "namespace", "uid", "generateName"})
_NAMES_OF_SPEC: Final = frozenset({"nodeName", "schedulerName", "priorityClassName", "serviceAccountName"})
NUMBERS: Final = frozenset({"bool", "int", "uint", "double", "timestamp", "duration", "type", "null"})


@dataclass(frozen=True, slots=True)
class Size:
    """Upper bound of a value: characters of a text, elements of a list, entries of a map; 1 for any other."""

    most: float = 1
    item: "Size | None" = None
    key: "Size | None" = None

    @property
    def inside(self) -> "Size":
        """Size of an element, or of the value of an entry."""
        return self.item or UNKNOWN

    def joined(self, other: "Size") -> "Size":
        """Return the size of a value that has one of two sizes."""
        if self is other:
            return self
        if self.item is None and other.item is None and self.key is None and other.key is None:
            return self if self.most >= other.most else other
        item = self.item.joined(other.item) if self.item and other.item else self.item or other.item
        key = self.key.joined(other.key) if self.key and other.key else self.key or other.key
        return Size(max(self.most, other.most), item, key)

    def walked(self, deep: int = 0) -> float:
        """Return the units of walking a whole value."""
        if self.item is None:
            return ITEM + self.most / 32
        if deep > DEEPEST:
            return inf
        key = self.key.most / 16 if self.key is not None else 0
        return ITEM + self.most * (2 + key + self.item.walked(deep + 1)) if self.most else ITEM


DEEPEST: Final = 40
ONE: Final = Size()
UNKNOWN: Final = Size(inf)
EMPTY: Final = Size(0)
of_text: Final = lru_cache(maxsize=256)(Size)


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """Limits of the objects that an expression reads, and the evaluator."""

    text: float = inf
    """Characters of a text with no smaller limit."""
    annotations: float = 262_144
    elements: float = inf
    pods: float | None = None
    """Pods of a node; None: as many as `elements`."""
    range: float = inf
    """Elements of a range whose end is computed, or of a flattened list if no list in it or around it is longer."""
    is_engine: bool = False


LOWERED: Final = SizeLimits()


def fact_size(type_: Type, limits: SizeLimits) -> Size:
    """Return the size of a part of an object that has no limit of its own."""
    if type_.name in NUMBERS:
        return ONE
    if type_.name in ("string", "dyn"):  # a field of type `dyn` is a number or a text
        return Size(limits.text)
    if type_.name == "list":
        return Size(limits.elements, fact_size(type_.params[0], limits))
    if type_.name == "map":
        return Size(limits.elements, fact_size(type_.params[1], limits), Size(min(limits.text, KEY)))
    if type_.name == OPTIONAL and type_.params:
        return fact_size(type_.params[0], limits)
    return UNKNOWN


def field_size(holder: Type, name: str, type_: Type, limits: SizeLimits) -> Size:
    """Return the size of a field of an object: the API server rejects long names and labels."""
    short = holder.name.rpartition(".")[2]
    of_metadata = short in ("ObjectMeta", "PlacedPodMeta")
    if of_metadata and name in _NAMES:
        return Size(NAME)
    if of_metadata and name == "labels":
        return Size(limits.elements, Size(LABEL), Size(KEY))
    if of_metadata and name == "annotations":
        # The limit is for all of them together, and so for each.
        return Size(min(limits.elements, limits.annotations), Size(limits.annotations), Size(KEY))
    if short in ("PodSpec", "PlacedPodSpec") and name in _NAMES_OF_SPEC:
        return Size(NAME)
    if short == "Taint" and name in ("key", "value", "effect"):
        return Size(KEY)
    return fact_size(type_, limits)


def is_annotations(node: Node) -> bool:
    """Return whether a part is the annotations of an object; reading a long one raises."""
    match node:
        case Select(field="annotations", test_only=False) | Call(function="_?._", args=(_, Const(value="annotations"))):
            return True
    return False


def element_size(holder: Node, size: Size) -> Size:
    """Return the size of a looked-up element."""
    inside = size.inside
    return Size(min(inside.most, ANNOTATION_MAX)) if is_annotations(holder) else inside


def largest(sizes: Sequence[Size]) -> Size | None:
    """Return the size of a value that has one of these sizes; EMPTY if there are none."""
    if not sizes:
        return EMPTY
    found = sizes[0]
    for size in sizes[1:]:
        found = found.joined(size)
    return found


def list_size(most: float, items: Sequence[Size]) -> Size:
    """Return the size of a list with at most so many elements."""
    return Size(most, largest(items))


def product(first: float, second: float) -> float:
    """Return the product; zero times infinity is zero."""
    return first * second if first and second else 0


def is_number(type_: Type) -> bool:
    """Return whether values of a type have no size that counts: numbers, times, quantities, addresses, versions."""
    return type_.name in NUMBERS or type_.name in OPAQUE


def result_size(type_: Type) -> Size:
    """Return the size of the result of a function of numbers."""
    return Size(NUMBER) if type_.name in TEXTS else ONE
