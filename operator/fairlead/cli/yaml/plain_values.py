"""Conversion of a YAML tree to plain data as kubectl reads it, and the lookup of a field's node.

Scalars are read as in `plain_data`, and keys are always strings, so that lint accepts exactly what the API server gets.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fairlead.api.errors import FieldPath
from fairlead.cli.yaml.parse_errors import TEMPLATE
from fairlead.cli.yaml.source import SourceText
from fairlead.cli.yaml.yaml_tree import YamlMapping, YamlNode, YamlScalar, YamlSequence
from fairlead.plain_data import key_text, resolve_scalar

VALUES_MAX: Final = 200_000

_TAG: Final = "tag:yaml.org,2002:"
_TEXT_TAGS: Final = ("!", f"{_TAG}str", f"{_TAG}timestamp")
_COLLECTION_TAGS: Final = {
    "!": (YamlMapping, YamlSequence),
    f"{_TAG}map": (YamlMapping,),
    f"{_TAG}seq": (YamlSequence,),
}


@dataclass(frozen=True, slots=True)
class Misread:
    """Error in valid YAML that cannot become a Kubernetes object."""

    path: FieldPath
    index: int
    message: str
    hint: str = ""


def to_data(node: YamlNode, source: SourceText) -> tuple[object, list[Misread]]:
    """Return plain data and all errors in it."""
    if node.size > VALUES_MAX:
        fault = f"with aliases expanded this is {_about(node.size)} values, {VALUES_MAX:,} are allowed"
        return None, [Misread((), node.start, fault, "use fewer aliases, or split it")]
    reader = _Reader(source, [])
    return reader.data(node, ()), reader.faults


def _about(size: int) -> str:
    return f"{size:,}" if size < 10**12 else "over a trillion"


@dataclass(slots=True)
class _Reader:
    source: SourceText
    faults: list[Misread]

    def data(self, node: YamlNode, path: FieldPath) -> object:
        match node:
            case YamlScalar():
                return self._scalar(node, path)
            case YamlSequence(items=items):
                self._check_tag(node, path)
                return [self.data(item, (*path, at)) for at, item in enumerate(items)]
            case YamlMapping():
                self._check_tag(node, path)
                return self._map(node, path)
        raise AssertionError(node)

    def _scalar(self, node: YamlScalar, path: FieldPath) -> object:
        if not node.tag:
            return resolve_scalar(node.value) if not node.style else node.value
        if node.tag in _TEXT_TAGS:
            return node.value
        value = resolve_scalar(node.value)
        wanted = {"int": int, "float": (int, float), "bool": bool, "null": type(None)}.get(node.tag.removeprefix(_TAG))
        if wanted is None:
            hint = "quote a string that begins with '!'"
            self.faults.append(Misread(path, node.outer, f"the tag {_shown(node.tag)} is unknown", hint))
            return node.value
        if not isinstance(value, wanted):  # type: ignore[arg-type]
            self.faults.append(
                Misread(path, node.start, f"{_shown(node.value)} does not match its tag", "remove the tag")
            )
        return value

    def _check_tag(self, node: YamlNode, path: FieldPath) -> None:
        if node.tag and type(node) not in _COLLECTION_TAGS.get(node.tag, ()):
            hint = "quote a string that begins with '!'"
            self.faults.append(Misread(path, node.outer, f"the tag {_shown(node.tag)} is unknown", hint))

    def _map(self, node: YamlMapping, path: FieldPath) -> dict[str, object]:
        found: dict[str, object] = {}
        seen: dict[str, YamlNode] = {}
        for key, value in node.entries:
            if _is_merge(key):
                self._check_merged(value, path)
                continue
            name = key_of(key)
            if name is None:
                fault, hint = "a key must be a string", "write it in quotes"
                if isinstance(key, YamlMapping) and self.source.text.startswith("{{", key.start - 1):
                    fault, hint = TEMPLATE
                self.faults.append(Misread(path, key.start, fault, hint))
                continue
            if name in seen:
                line, _ = self.source.place(seen[name].start)
                said = f"{_shown(name)} is already set in line {line}"
                is_next = not path and name == next(iter(seen))
                hint = "write --- between two objects" if is_next else "remove one of them"
                self.faults.append(Misread((*path, name), key.start, said, hint))
                if is_next:
                    break
                continue
            seen[name] = key
            found[name] = self.data(value, (*path, name))
        for name, _, value in _merged(node):
            if name not in found:
                found[name] = self.data(value, (*path, name))
        return found

    def _check_merged(self, value: YamlNode, path: FieldPath) -> None:
        for one in value.items if isinstance(value, YamlSequence) else [value]:
            if not isinstance(one, YamlMapping):
                self.faults.append(Misread(path, one.start, "<< takes a map, or a list of maps", "name one as *anchor"))


def key_of(key: YamlNode) -> str | None:
    """Return a key as a JSON string; None if it cannot be one."""
    if not isinstance(key, YamlScalar):
        return None
    if key.style or key.tag in _TEXT_TAGS:
        return key.value
    return key_text(key.value)


def entry(node: YamlNode, name: str) -> tuple[YamlNode, YamlNode] | None:
    """Return the key and the value of an entry, including merged ones; None if there is none."""
    if not isinstance(node, YamlMapping):
        return None
    for key, value in node.entries:
        if not _is_merge(key) and key_of(key) == name:
            return key, value
    return next(((key, value) for merged, key, value in _merged(node) if merged == name), None)


def find(node: YamlNode, path: FieldPath) -> tuple[YamlNode | None, YamlNode, bool]:
    """Return the key (if any) and the node of a field or of its nearest parent, and whether it is the field."""
    key: YamlNode | None = None
    for segment in path:
        if isinstance(segment, int):
            if not isinstance(node, YamlSequence) or segment >= len(node.items):
                return key, node, False
            key, node = None, node.items[segment]
        else:
            found = entry(node, segment)
            if found is None:
                return key, node, False
            key, node = found
    return key, node, True


def text_at(node: YamlNode, *path: str | int) -> str:
    """Return the value of a scalar field, "" if there is none."""
    _, found, there = find(node, path)
    return found.value if there and isinstance(found, YamlScalar) else ""


def _is_merge(key: YamlNode) -> bool:
    return isinstance(key, YamlScalar) and key.value == "<<" and not key.style and key.tag in ("", f"{_TAG}merge")


def _merged(node: YamlMapping, depth: int = 0) -> Iterator[tuple[str, YamlNode, YamlNode]]:
    """Yield the entries that `<<` merges in, those with precedence first."""
    if depth > _MERGES_MAX:
        return
    for key, value in node.entries:
        if not _is_merge(key):
            continue
        for one in value.items if isinstance(value, YamlSequence) else [value]:
            if isinstance(one, YamlMapping):
                for inner, below in one.entries:
                    if not _is_merge(inner) and (name := key_of(inner)) is not None:
                        yield name, inner, below
                yield from _merged(one, depth + 1)


_MERGES_MAX: Final = 20
_SHOWN_MAX: Final = 60


def _shown(text: str) -> str:
    text = text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
    return repr(text)
