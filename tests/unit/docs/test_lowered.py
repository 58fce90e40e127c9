"""Every policy that a page shows, and every natural rule over lists, is lowered: users do not pay for the engine."""

import json
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
    assert {"README.md", "docs/guide/expressions.md", "docs/guide/first-policy.md", "docs/guide/testing.md"} <= pages


def test_what_the_engine_costs_is_one_figure_wherever_it_is_said() -> None:
    lines = "filters:\n- {name: a, expression: \"node.metadata.creationTimestamp.getHours('Europe/Berlin') == 1\"}\n"
    (said,) = [one.message for one in report_of(spec(lines)).findings if one.reason == "RunsOnEngine"]
    figure = said.partition("which takes ")[2]
    assert re.fullmatch(r"about \d+ us per node instead of 1 us", figure)
    for page in _PAGES:
        text = " ".join(page.read_text().split()) if page.parent.name != "decisions" else ""
        near = re.findall(r"[^.|]*\b(?:engine|getHours)\b[^.|]*", text)
        assert [one for one in near if re.search(r"\d us\b", one) and figure not in one] == [], page
        assert [one for one in near if re.search(r"\btimes (?:slower|as slow)", one)] == [], page


@pytest.mark.parametrize("text", _FOUND.values(), ids=_FOUND)
def test_every_expression_is_lowered(text: str) -> None:
    if "kind:" in text:
        checker = Checker()
        checker.check("policy.yaml", text.encode())
        report = checker.report
    else:
        report = report_of(spec(text))
    assert {rule.evaluation for rule in report.rules if rule.expression} == {"ByteCode"}


_NATURAL: Final = """
sets.intersects(pods.map(q, q.metadata.namespace), ['a', 'b'])
sets.intersects(pods.map(q, q.metadata.labels[?'app'].orValue('')), ['a', 'b'])
sets.contains(node.status.images.map(i, i.names[0]), pod.spec.containers.map(c, c.image))
sets.contains(pod.spec.tolerations.map(t, t.key), node.spec.taints.map(t, t.key))
sets.equivalent(pod.spec.containers.map(c, c.image), ['a'])
pods.sortBy(q, -q.spec.priority)[0].metadata.name == 'r'
pods.sortBy(q, q.metadata.name).slice(0, 1).size() == 1
pods.map(q, double(q.spec.priority)).sort()[0] > 3.0
pods.filter(q, q.metadata.namespace == pod.metadata.namespace).map(q, q.spec.priority).sort().reverse()[0] < 5
pods.map(q, q.spec.containers.map(c, c.image)).flatten().exists(i, i == 'x')
pods.map(q, q.spec.containers.map(c, c.image)).flatten().filter(i, i.startsWith('x')).distinct().size() > 3
[pods.map(q, q.metadata.name), ['x']] . flatten( ).map(n, n + '-0').exists(n, n == pod.metadata.name)
[[[pod.metadata.name]]].flatten().flatten()[0] + 'x' == '.flatten()'
node.metadata.labels[?'a'].optMap(a, [[a], ['b']].flatten()).orValue([]).size() == 2
"""


@pytest.mark.parametrize("text", _NATURAL.strip().splitlines())
def test_a_natural_rule_over_lists_is_lowered(text: str) -> None:
    report = report_of(spec(f"filters: [{{name: a, expression: {json.dumps(text)}}}]"))
    assert not [finding for finding in report.findings if finding.severity == "error"]
    assert [rule.evaluation for rule in report.rules] == ["ByteCode"]


def test_the_types_below_flatten_are_left_alone_where_they_are_not_known() -> None:
    for text in ("[1, [2]].flatten()[0] == 1", "[['a']].flatten().exists(i, i == 1)"):
        report = report_of(spec(f"filters: [{{name: a, expression: {json.dumps(text)}}}]"))
        assert [rule.evaluation for rule in report.rules] == ["Engine"], text


_FOR_CONTRIBUTORS: Final = {"architecture.md", *(one.name for one in (_ROOT / "docs" / "decisions").glob("*.md"))}
_WORD: Final = re.compile(r"\blower(?:ed|ing)\b", re.IGNORECASE)


def test_lowered_is_no_word_for_users() -> None:
    """The field and the texts that users read say byte code."""
    files = [
        *_PAGES,
        *(_ROOT / "crds").rglob("*.yaml"),
        *(_ROOT / "charts").rglob("*.*"),
        *_ROOT.glob("examples/*.yaml"),
    ]
    found = [
        f"{one.relative_to(_ROOT)}: {line}"
        for one in files
        if one.name not in _FOR_CONTRIBUTORS
        for line in one.read_text().splitlines()
        if _WORD.search(line) and "The source calls this lowering" not in line
    ]
    assert found == []
    report = report_of(spec("filters: [{name: a, expression: pod.spec.priority > 1}]"))
    assert [rule.evaluation for rule in report.rules] == ["ByteCode"]
