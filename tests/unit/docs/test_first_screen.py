"""The first screen of the README: what Fairlead is, how to try it, a policy, a refusal, and where to read on."""

import re
from typing import Final

import yaml

from support.docs.pages import CHECKOUT, Page

_LINES: Final = 40
_README: Final = Page(CHECKOUT / "README.md")
_INSTALL: Final = Page(CHECKOUT / "docs" / "guide" / "install.md")
_SCREEN: Final = _README.text.splitlines()[:_LINES]
_BLOCKS: Final = [block for block in _README.blocks() if block.line < _LINES]


def test_it_can_be_tried_in_six_lines_on_kind_and_in_six_on_another_cluster() -> None:
    kind, other = [block.text.splitlines() for block in _BLOCKS if block.language == "sh"]
    assert (len(kind), len(other)) == (6, 6)
    assert "kind create cluster" in kind[0]
    of_the_guide = next(block.text.splitlines() for block in _INSTALL.blocks() if "kind load" in block.text)
    assert kind[1].split(" && ") == of_the_guide[:2], "there is one way to build and load the image"
    assert [line for line in other if "kind " in line] == []
    unset = {*re.findall(r"\$(\w+)", "\n".join(other))}
    above = "\n".join(_SCREEN[: _SCREEN.index(other[0])])
    assert {name for name in unset if f"`{name}`" not in above} == set()


def test_the_policy_is_that_of_the_lines_and_says_why_the_pod_is_refused() -> None:
    (shown,) = [yaml.safe_load(block.text) for block in _BLOCKS if block.language == "yaml"]
    assert shown == yaml.safe_load((CHECKOUT / "demo" / "memory-pool.yaml").read_text())
    (rule,) = shown["spec"]["filters"]
    assert f"0/1 nodes are available: 1 {rule['reason']}." in "\n".join(_SCREEN)
    pod = yaml.safe_load((CHECKOUT / "demo" / "report.yaml").read_text())
    assert pod["metadata"]["labels"] == shown["spec"]["match"]["podSelector"]["matchLabels"]


def test_it_ends_with_a_line_of_links() -> None:
    links = re.findall(r"\]\((docs/[\w/-]+\.md)\)", _SCREEN[-1] or _SCREEN[-2])
    assert {"docs/guide/install.md", "docs/guide/first-policy.md", "docs/compatibility.md", "docs/guide/faq.md"} <= {
        *links
    }
    assert _SCREEN[-1].startswith("[") or _SCREEN[-2].startswith("[")
