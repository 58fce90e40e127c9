"""Every policy that a page shows is lowered: users who copy one do not pay for the engine."""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from fairlead.cli.inputs.checker import Checker
from support.policy.lint import report_of, spec

_ROOT: Final = Path(__file__).parents[3]
_PAGES: Final = [_ROOT / "README.md", *sorted((_ROOT / "docs").rglob("*.md"))]
_BLOCK: Final = re.compile(r"^```.*\n([\s\S]*?)^```$|((?:^ {4}.*\n(?:\n(?= {4}))?)+)", re.MULTILINE)
_RULES: Final = {"filters", "scores", "preemption", "match", "binding"}
_SHOWN_BROKEN: Final = "lables"
"""The misspelt field in policies that a page shows being refused."""


def _policies() -> Iterator[tuple[str, str]]:
    for page in _PAGES:
        for found in _BLOCK.finditer(page.read_text()):
            text = textwrap.dedent(found[1] or found[2])
            for document in _documents(text):
                is_policy = document.get("kind") == "SchedulerExtenderPolicy" or _RULES & document.keys()
                if is_policy and "expression:" in text and _SHOWN_BROKEN not in text:
                    yield f"{page.relative_to(_ROOT)}:{found.start()}", yaml.safe_dump(document)


def _documents(text: str) -> list[dict[str, object]]:
    try:
        return [document for document in yaml.safe_load_all(text) if isinstance(document, dict)]
    except yaml.YAMLError:
        return []


_FOUND: Final = dict(_policies())


def test_the_policies_are_found() -> None:
    pages = {where.partition(":")[0] for where in _FOUND}
    assert len(pages) >= 18
    assert {"README.md", "docs/guide/recipes.md", "docs/guide/first-policy.md", "docs/guide/testing.md"} <= pages


@pytest.mark.parametrize("text", _FOUND.values(), ids=_FOUND)
def test_every_expression_is_lowered(text: str) -> None:
    if "kind:" in text:
        checker = Checker()
        checker.check("policy.yaml", text.encode())
        report = checker.report
    else:
        report = report_of(spec(text))
    assert {rule.evaluation for rule in report.rules if rule.expression} == {"Lowered"}
