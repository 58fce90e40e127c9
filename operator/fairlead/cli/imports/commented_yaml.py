"""YAML with comments above its fields. Pure."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from fairlead.api.errors import FieldPath
from fairlead.cli.console.output import clean
from fairlead.cli.imports.draft import PolicyDraft
from fairlead.cli.yaml.plain_values import find
from fairlead.cli.yaml.source import SourceText
from fairlead.cli.yaml.yaml_tree import YamlNode, documents
from fairlead.yaml_output import WIDTH, to_yaml


def write_drafts(drafts: Iterable[PolicyDraft]) -> str:
    """Return the policies as one text. Comments of which there is no policy come first."""
    alone, policies = [], []
    for one in drafts:
        if one.has_rules:
            policies.append(_comment(one.notes) + add_comments(one.policy, one.comments))
        else:
            alone.append(_comment(one.notes))
    return "\n".join([*alone, *["---\n".join(policies)] * bool(policies)])


def add_comments(value: Mapping[str, Any], comments: Mapping[FieldPath, Iterable[str]]) -> str:
    """Return plain data as YAML with comments above fields and items."""
    source = SourceText(to_yaml(value))
    [root] = documents(source)
    above: dict[int, str] = {}
    for path, texts in comments.items():
        line, indent = _place(source, root, path)
        above[line] = above.get(line, "") + _comment(texts, indent)
    lines = source.text.splitlines(keepends=True)
    return "".join(above.get(at, "") + line for at, line in enumerate(lines, 1))


def _place(source: SourceText, root: YamlNode, path: FieldPath) -> tuple[int, int]:
    """Return the line of a field and its indentation; that of an item is where its hyphen is."""
    key, node, is_there = find(root, path)
    if not is_there:
        raise KeyError(path)
    line, column = source.place((key or node).start)
    return line, column - (1 if key else 3)


def _comment(texts: Iterable[str], indent: int = 0) -> str:
    return "".join(f"{line}\n" for text in texts for line in _wrapped(text, " " * indent))


def _wrapped(text: str, indent: str) -> Iterator[str]:
    yield from textwrap.wrap(
        clean(text),
        width=WIDTH,
        initial_indent=f"{indent}# ",
        subsequent_indent=f"{indent}#   ",
        break_long_words=False,
        break_on_hyphens=False,
    )
