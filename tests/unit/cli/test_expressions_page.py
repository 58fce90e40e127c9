"""What the page of expressions shows is what happens."""

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
import yaml

from fairlead.cel.check import VALUE, Environment, ExpressionError, check
from fairlead.cel.engine.environment import RULE
from fairlead.cel.functions.time_text import string_to_timestamp
from fairlead.cel.values.structs import from_json
from fairlead.policy.columns.rule_errors import RuleErrorTally
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.evaluate.annotations import annotations
from fairlead.policy.evaluate.preemption import dropped
from fairlead.policy.views.faults import RAISED
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView
from support.policy.asking import Evaluation
from support.policy.building import NOW, node, placed, pod, policy
from support.policy.lint import finding_line, report_of, spec

PAGE: Final = (Path(__file__).parents[3] / "docs/guide/expressions.md").read_text()
BLOCKS: Final = [textwrap.dedent(block) for block in re.findall(r"(?:^ {4}.*\n(?:\n(?= {4}))?)+", PAGE, re.MULTILINE)]
TABLES: Final = re.findall(r"^\| expression \| result \|\n.*\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
ROWS: Final = [line for table in TABLES for line in table.splitlines()]
OBJECTS: Final = yaml.safe_load(BLOCKS[0])
POLICIES: Final = BLOCKS[1:]


def test_the_page_is_read_as_it_is_meant() -> None:
    assert len(ROWS) > 40
    assert len(POLICIES) == 5


@pytest.mark.parametrize("text", POLICIES)
def test_lint_has_nothing_to_mend(text: str) -> None:
    report = report_of(spec(text))
    found = [finding for finding in report.findings if finding.severity != "note"]
    shows_what_raises = "keepers" in text
    assert [
        finding_line(finding) for finding in found if not (shows_what_raises and finding.reason == "AbsentRaises")
    ] == []
    assert {rule.evaluation for rule in report.rules} == {"ByteCode"}


@pytest.mark.parametrize("row", ROWS)
def test_an_expression_is_what_the_page_says(row: str) -> None:
    match = re.fullmatch(r"\| `(.+)` \| (?:`(.+)`|(fails|does not compile)) \|", row)
    assert match is not None
    text, value, otherwise = match[1].replace("\\|", "|"), match[2], match[3]
    if otherwise == "does not compile":
        with pytest.raises(ExpressionError):
            check(text, Environment(RULE), VALUE)
        return
    expression = CompiledExpression(check(text if otherwise else f"({text}) == ({value})", Environment(RULE), VALUE))
    assert expression.evaluation == "ByteCode"
    now = string_to_timestamp(OBJECTS["now"])
    facts = PodView(from_json("Pod", OBJECTS["pod"]), None, _amounts("request"))
    view = NodeView(
        from_json("Node", OBJECTS["node"]), allocatable=_amounts("allocatable"), requested=_amounts("requested")
    )
    if otherwise == "fails":
        with pytest.raises(RAISED):
            expression.for_pod(facts)(view, now)
    else:
        assert expression.for_pod(facts)(view, now) is True


RAISING: Final = next(block for block in POLICIES if "keepers" in block)
BIG: Final = {"size": "12"}
GPU: Final = {"gpu": "a100"}


def with_load(name: str, load: str | None) -> NodeView:
    stamped = {} if load is None else {"example.com/load": load, "example.com/load-time": "1800000000"}
    return node(name, labels=GPU, annotations=stamped)


def test_what_happens_when_an_expression_raises() -> None:
    one = policy(**yaml.safe_load(RAISING))
    cold, warm, silent = (with_load(*each) for each in (("cold", "0.2"), ("warm", "0.4"), ("silent", None)))
    nodes = [cold, warm, silent, node("plain", pods=[placed("q")])]
    cluster = Evaluation([one], nodes)

    doubtful = pod()  # the condition raises
    assert set(cluster.reasons(doubtful)) == {"cold", "warm", "silent", "plain"}
    assert cluster.scores(doubtful) == [0.0] * 4
    assert bound(cluster, doubtful, "cold") == ({}, None)
    assert victim_of(cluster, doubtful) == "keepers"

    big = pod(labels=BIG)
    assert cluster.reasons(big) == {"plain": "p/gpu: rule gpu cannot be decided"}  # and silent passes
    assert cluster.scores(big, ["cold", "warm", "silent"]) == [80.0, 60.0, 70.0]
    assert victim_of(cluster, big) == "keepers"
    assert bound(cluster, big, "cold") == ({"fairlead.dev/gpu": "a100"}, None)
    assert bound(cluster, big, "plain") == ({}, None)


def test_what_an_annotation_can_do_besides() -> None:
    text = f"{RAISING.rstrip()}\n    onError: Reject\n"
    cluster = Evaluation([policy(**yaml.safe_load(text))], [node("plain")])
    assert bound(cluster, pod(labels=BIG), "plain")[1] is not None


def bound(cluster: Evaluation, who: PodView, where: str) -> tuple[Mapping[str, str], str | None]:
    found = annotations(who, cluster.matched(who), cluster.nodes, where, now=NOW, tally=RuleErrorTally())
    return found.values, found.refusal


def victim_of(cluster: Evaluation, who: PodView) -> str | None:
    found = dropped(
        who,
        cluster.matched(who),
        cluster.nodes,
        "plain",
        {"u-q"},
        requests=lambda _: {},
        now=NOW,
        tally=RuleErrorTally(),
    )
    return None if found is None else found.rule


def _amounts(name: str) -> dict[str, float]:
    return {key: float(value) for key, value in OBJECTS[name].items()}
