"""Comments in YAML change nothing of what it says."""

import re
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.cli.imports.commented_yaml import add_comments, write_drafts
from fairlead.cli.imports.draft import PolicyDraft

_TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)
_VALUES = st.recursive(
    st.integers() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3) | st.dictionaries(st.from_regex("[a-c]{1,2}"), inner, min_size=1)
    ),
    max_leaves=10,
)


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    if isinstance(value, dict):
        return [found for key, one in value.items() for found in [(*path, key), *places(one, (*path, key))]]
    return []


@settings(max_examples=50)
@given(st.dictionaries(st.from_regex("[a-c]{1,3}", fullmatch=True), _VALUES, min_size=1), st.data())
def test_what_it_says_stays_the_same(value: dict[str, Any], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(places(value)), unique=True))
    comments = {path: [data.draw(_TEXTS)] for path in chosen}
    text = add_comments(value, comments)
    assert yaml.safe_load(text) == value
    assert text.count("# ") >= sum(bool(one.strip()) for [one] in comments.values() if one.isprintable())


def test_a_comment_is_above_its_field_in_its_column() -> None:
    value = {"a": {"b": [{"name": "x", "c": 1}, {"name": "z"}]}}
    comments = {("a",): ["on a"], ("a", "b"): ["on b"], ("a", "b", 1): ["on y", "again"], ("a", "b", 0, "c"): ["on c"]}
    assert add_comments(value, comments) == (
        "# on a\na:\n  # on b\n  b:\n  - name: x\n    # on c\n    c: 1\n  # on y\n  # again\n  - name: z\n"
    )


def test_a_field_that_does_not_exist_is_a_fault() -> None:
    with pytest.raises(KeyError):
        add_comments({"a": 1}, {("b",): ["on b"]})


def test_long_comments_are_wrapped_and_control_characters_shown() -> None:
    text = add_comments({"a": 1}, {("a",): ["word " * 60 + "\x1b[31m\nb: 2"]})
    assert yaml.safe_load(text) == {"a": 1}
    assert max(map(len, text.splitlines())) <= 120
    assert re.findall(r"\\x1b\[31m\\nb:\s+#\s+2|\\x1b\[31m\\nb: 2", text)


def test_what_has_no_policy_comes_first() -> None:
    full = PolicyDraft("a", ["on a"])
    full.add("scores", "x", {"weight": 1})
    other = PolicyDraft("b", ["on b"])
    other.add("scores", "x", {"weight": 1})
    text = write_drafts([full, PolicyDraft("", ["nothing"]), other])
    assert text.startswith("# nothing\n\n# on a\napiVersion: ")
    assert "---\n# on b\napiVersion: " in text
    assert [one["metadata"]["name"] for one in yaml.safe_load_all(text)] == ["a", "b"]
    assert write_drafts([PolicyDraft("", ["nothing"])]) == "# nothing\n"
