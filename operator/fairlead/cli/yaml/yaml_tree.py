"""YAML documents as trees whose nodes know their position.

Built from the parser's events without recursion, so that neither depth nor aliases can do harm: each node knows its
number of values with aliases expanded. `yaml.compose` recurses, resolves tags by rules other than kubectl's, rejects
an anchor that is defined twice, and accepts an alias to its own parent.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import yaml

from fairlead.cli.yaml.parse_errors import explain_parse_error
from fairlead.cli.yaml.source import BrokenError, SourceText

DEPTH_MAX: Final = 200
NODES_MAX: Final = 500_000
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # thirty times faster with libyaml


@dataclass(slots=True, eq=False)
class YamlNode:
    """Node of a document, from `start` up to `end`, without its anchor and tag."""

    start: int
    end: int
    tag: str = ""
    outer: int = 0  # start of its anchor and tag
    size: int = 1  # number of values with aliases expanded


@dataclass(slots=True, eq=False)
class YamlScalar(YamlNode):
    """Scalar with its value; `style` is its first character, "" if it is plain."""

    value: str = ""
    style: str = ""


@dataclass(slots=True, eq=False)
class YamlSequence(YamlNode):
    """Sequence of nodes."""

    items: list[YamlNode] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class YamlMapping(YamlNode):
    """Mapping with its entries in order; merge keys are not resolved."""

    entries: list[tuple[YamlNode, YamlNode]] = field(default_factory=list)


def documents(source: SourceText) -> Iterator[YamlNode]:
    """Yield the documents of a text. Raises BrokenError at the first error; documents before it are valid."""
    count = 0
    builder = _Builder(source)
    try:
        for event in yaml.parse(source.text, Loader=_LOADER):
            count += 1
            if count > NODES_MAX:
                raise BrokenError(_start(event), f"the file has more than {NODES_MAX:,} values", "split it")
            if isinstance(event, yaml.DocumentStartEvent):
                builder = _Builder(source)
            elif isinstance(event, yaml.DocumentEndEvent):
                if builder.root is not None:
                    yield builder.root
            else:
                builder.take(event)
    except yaml.MarkedYAMLError as error:
        raise explain_parse_error(error, source, builder.quoted) from None
    except yaml.YAMLError as error:
        raise BrokenError(0, f"this is not YAML: {str(error).splitlines()[0]}") from None


class _Builder:
    """Builder of the tree of one document."""

    def __init__(self, source: SourceText) -> None:
        self.root: YamlNode | None = None
        self.quoted: tuple[int, int] | None = None
        self._source = source
        self._open: list[tuple[YamlSequence | YamlMapping, str | None]] = []
        self._keys: list[YamlNode | None] = []
        self._anchors: dict[str, YamlNode] = {}

    def take(self, event: yaml.Event) -> None:
        """Add the next event."""
        match event:
            case yaml.ScalarEvent():
                start = self._after_properties(event)
                if event.style in ("'", '"'):
                    self.quoted = start, _end(event)
                tag = _tag(event.tag, implicit=event.implicit[0] or event.implicit[1])
                node = YamlScalar(
                    start,
                    _end(event),
                    tag,
                    _start(event),
                    value=event.value,
                    style=event.style if event.style in ("'", '"', "|", ">") else "",
                )
                self._name(event.anchor, node)
                self._add(node)
            case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                if len(self._open) >= DEPTH_MAX:
                    fault = f"this is nested more than {DEPTH_MAX} levels deep"
                    raise BrokenError(_start(event), fault, "no Kubernetes object is")
                kind = YamlSequence if isinstance(event, yaml.SequenceStartEvent) else YamlMapping
                start = self._after_properties(event)
                tag = _tag(event.tag, implicit=event.implicit)
                self._open.append((kind(start, start, tag, _start(event)), event.anchor))
                self._keys.append(None)
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                closed, anchor = self._open.pop()
                self._keys.pop()
                closed.end = _end(event)
                self._name(anchor, closed)
                self._add(closed)
            case yaml.AliasEvent():
                self._add(self._named(event))

    def _named(self, event: yaml.AliasEvent) -> YamlNode:
        if event.anchor in {anchor for _, anchor in self._open}:
            raise BrokenError(_start(event), f"*{event.anchor} is inside the value that it names", "write it out")
        if event.anchor not in self._anchors:
            hint = "quote a string that begins with '*'"
            raise BrokenError(_start(event), f"there is no anchor &{event.anchor} above", hint)
        return self._anchors[event.anchor]

    def _name(self, anchor: str | None, node: YamlNode) -> None:
        if anchor is not None:
            self._anchors[anchor] = node

    def _add(self, node: YamlNode) -> None:
        if not self._open:
            self.root = node
            return
        holder, _ = self._open[-1]
        holder.size += node.size
        if isinstance(holder, YamlSequence):
            holder.items.append(node)
        elif (key := self._keys[-1]) is None:
            self._keys[-1] = node
        else:
            holder.entries.append((key, node))
            self._keys[-1] = None

    def _after_properties(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> int:
        """Return where the node begins after its anchor and tag, which the parser counts as part of it."""
        text, at, end = self._source.text, _start(event), _end(event)
        if event.anchor is None and event.tag is None:
            return at
        end = len(text) if isinstance(event, yaml.CollectionStartEvent) else max(at, end)
        while at < end and text[at] in "&!":
            while at < end and text[at] not in " \t\r\n":
                at += 1
            at = _after_blanks(text, at, end)
        return at


def _after_blanks(text: str, at: int, end: int) -> int:
    while at < end:
        if text[at] == "#":
            while at < end and text[at] not in "\r\n":
                at += 1
        elif text[at] in " \t\r\n":
            at += 1
        else:
            break
    return at


def _tag(tag: str | None, *, implicit: bool) -> str:
    """Return an explicit tag, else "": the parsers also give every quoted scalar a tag."""
    return "" if tag is None or (implicit and tag != "!") else tag


def _start(event: yaml.Event) -> int:
    return event.start_mark.index if event.start_mark else 0


def _end(event: yaml.Event) -> int:
    return event.end_mark.index if event.end_mark else 0
