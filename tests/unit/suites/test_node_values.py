"""Measured values that a suite gives its nodes."""

import textwrap
from pathlib import Path
from typing import Any, Final

import pytest

from fairlead.api.parse import parse_params
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.suites.node_values import entry_errors
from fairlead.suites.suite import Suite
from fairlead.suites.validate import field_errors
from support.policy import policy
from support.suites.running import difference_lines, report, result

PROMETHEUS: Final = {"prometheus": {"query": "load", "interval": "15s"}}


def measured(*, name: str = "p", entry: str = "load", filters: Any = None, **fields: Any) -> CompiledPolicy:
    """A policy that rejects nodes whose load is 0.5 or more."""
    source = fields or PROMETHEUS
    rules = filters or {"idle": {"expression": f"data.{entry} < 0.5", "reason": "busy"}}
    return policy(name, data={entry: source}, filters=rules, scores={"least": f"100.0 - 100.0 * data.{entry}"})


def node(name: str = "n", **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, **fields}


MISSING, STALE = "data load is missing", "data load is stale"
NEW: Final = {"metadata": {"name": "n", "creationTimestamp": "2027-01-15T11:55:00Z"}}
OLD: Final = {"metadata": {"name": "n", "creationTimestamp": "2020-01-15T11:55:00Z"}}
VERDICTS: Final[dict[str, tuple[dict[str, Any], dict[str, Any], str]]] = {
    "a value": (PROMETHEUS, node(data={"load": 0.4}), ""),
    "a whole number": (PROMETHEUS, node(data={"load": 0}), ""),
    "a greater one": (PROMETHEUS, node(data={"load": 0.5}), "busy"),
    "none": (PROMETHEUS, node(), MISSING),
    "null": (PROMETHEUS, node(data={"load": None}), MISSING),
    "null in its long form": (PROMETHEUS, node(data={"load": {"value": None}}), MISSING),
    "no data": (PROMETHEUS, node(data=None), MISSING),
    "an age within maxAge": (PROMETHEUS, node(data={"load": {"value": 0.4, "age": "60s"}}), ""),
    "an age beyond it": (PROMETHEUS, node(data={"load": {"value": 0.4, "age": "61s"}}), STALE),
    "a maxAge of its own": ({**PROMETHEUS, "maxAge": "2m"}, node(data={"load": {"value": 0.4, "age": "2m"}}), ""),
    "the factor comes after it": ({**PROMETHEUS, "factor": 0.01}, node(data={"load": 49}), ""),
    "so does the step": ({**PROMETHEUS, "round": 0.1}, node(data={"load": 0.46}), "busy"),
    "a default while the node is young": ({**PROMETHEUS, "default": 0.1}, NEW, ""),
    "none for an old node": ({**PROMETHEUS, "default": 0.1}, OLD, MISSING),
    "an older one": ({**PROMETHEUS, "default": 0.1, "defaultFor": "5m"}, NEW, MISSING),
    "a value before the default": ({**PROMETHEUS, "default": 0.1}, NEW | {"data": {"load": 0.9}}, "busy"),
    "a value of an earlier node": (PROMETHEUS, NEW | {"data": {"load": {"value": 0.1, "age": "301s"}}}, MISSING),
    "nodeMetrics": ({"nodeMetrics": {"resource": "cpu"}}, node(data={"load": {"value": 0.1, "age": "3m"}}), ""),
    "of nodeMetrics, too old": (
        {"nodeMetrics": {"resource": "cpu"}},
        node(data={"load": {"value": 0, "age": "4m"}}),
        STALE,
    ),
    "a configMap": ({"configMap": {"name": "m"}}, node(data={"load": {"value": 0.1, "age": "23h"}}), ""),
}


@pytest.mark.parametrize(("source", "written", "want"), VERDICTS.values(), ids=VERDICTS)
def test_a_rule_reads_the_value_of_the_suite(source: dict[str, Any], written: dict[str, Any], want: str) -> None:
    expect: dict[str, Any] = {"rejected": {"n": want}} if want else {"passed": ["n"]}
    assert difference_lines(result(expect, measured(**source), nodes=[written])) == []


def test_a_case_lays_its_values_over_those_of_the_suite_and_of_templates() -> None:
    nodes = [
        {"from": "busy", "metadata": {"name": "a"}},
        {"from": "busy", "metadata": {"name": "b"}, "data": {"load": 0.2}},
        {"from": "busy", "metadata": {"name": "c"}, "copies": 2},
    ]
    case = {"name": "c", "nodes": [node("a", data={"load": {"value": 0.1}}), node("b", data={"load": None})], "pod": {}}
    expect = {"passed": ["a"], "rejected": {"b": MISSING, "c-1": "busy", "c-2": "busy"}}
    templates = {"busy": {"data": {"load": 0.9}}}
    found = result({}, measured(), templates=templates, nodes=nodes, cases=[{**case, "expect": expect}])
    assert difference_lines(found) == []


def test_the_values_stay_when_pods_of_the_node_come_and_go() -> None:
    placed = {"metadata": {"name": "kept"}, "spec": {"nodeName": "n"}}
    rules = {"idle": "data.load < 0.5 && size(pods) < 2"}
    expect = {"passed": ["n"], "scores": {"n": 60}, "evictable": ["kept"]}
    nodes = [node(data={"load": 0.4})]
    assert difference_lines(result(expect, measured(filters=rules), nodes=nodes, pods=[placed])) == []


def test_values_are_those_of_the_time_of_the_case() -> None:
    case = {"name": "c", "now": "2030-01-15T12:00:00Z", "pod": {}, "expect": {"passed": ["n"]}}
    assert difference_lines(result({}, measured(), nodes=[node(data={"load": 0.4})], cases=[case])) == []


def test_policies_that_call_different_polls_by_one_name_both_get_the_value() -> None:
    other = measured(name="q", nodeMetrics={"resource": "cpu", "as": "Ratio"})
    expect = {"passed": [], "rejected": {"n": "busy"}, "policies": ["p", "q"]}
    assert difference_lines(result(expect, measured(), other, nodes=[node(data={"load": 0.9})])) == []
    assert difference_lines(result({"passed": ["n"]}, measured(), other, nodes=[node(data={"load": 0.1})])) == []


def test_entries_that_share_a_poll_share_its_value() -> None:
    other = measured(name="q", entry="busy")
    assert difference_lines(result({"passed": ["n"]}, measured(), other, nodes=[node(data={"load": 0.1})])) == []
    assert difference_lines(
        result({"passed": ["n"]}, measured(), other, nodes=[node(data={"load": 0.1, "busy": 0.2})])
    ) == [
        (
            "nodes[0].data.busy: differs from load, which is the same measurement: prometheus default: load; "
            "give both the same value and age"
        )
    ]


def test_a_number_over_a_value_with_an_age_is_fresh_and_an_age_alone_is_refused() -> None:
    old = node(data={"load": {"value": 0.1, "age": "1h"}})
    case = {"name": "c", "nodes": [node(data={"load": 0.2})], "pod": {}, "expect": {"passed": ["n"]}}
    assert difference_lines(result({}, measured(), nodes=[old], cases=[case])) == []
    alone = case | {"nodes": [node(data={"load": {"age": "1m"}})]}
    assert difference_lines(result({}, measured(), nodes=[node(data={"load": 0.2})], cases=[alone])) == [
        "cases[0].nodes[0].data.load: has an age and no value; write both, as in {value: 0.4, age: 90s}"
    ]
    assert difference_lines(result({}, measured(), nodes=[old], cases=[alone | {"expect": {"passed": ["n"]}}])) == []


def test_an_entry_may_be_called_as_a_field_of_amounts() -> None:
    found = result({"passed": ["n"]}, measured(entry="requests"), nodes=[node(data={"requests": 0.4})])
    assert difference_lines(found) == []


SHAPES: Final[dict[str, tuple[Any, str]]] = {
    "no map": (0.4, "nodes[0].data: must be a map, not 0.4; write the values by the names of their entries"),
    "a text": (
        {"load": "0.4"},
        "nodes[0].data.load: must be a number, not '0.4'; write a number, null, or {value: 0.4, age: 90s}",
    ),
    "true": (
        {"load": True},
        "nodes[0].data.load: must be a number, not true; write a number, null, or {value: 0.4, age: 90s}",
    ),
    "infinity": (
        {"load": float("inf")},
        "nodes[0].data.load: must be a number, not inf; write a number, null, or {value: 0.4, age: 90s}",
    ),
    "a misspelt field": (
        {"load": {"valu": 0.4}},
        "nodes[0].data.load.valu: there is no such field; did you mean value?",
    ),
    "an age without a unit": (
        {"load": {"value": 0.4, "age": 90}},
        "nodes[0].data.load.age: 90 is not a duration; write one such as 90s, 5m or 1h30m",
    ),
    "a negative age": (
        {"load": {"value": 0.4, "age": "-1s"}},
        "nodes[0].data.load.age: '-1s' is not a duration; write one such as 90s, 5m or 1h30m",
    ),
}


@pytest.mark.parametrize(("data", "want"), SHAPES.values(), ids=SHAPES)
def test_what_is_no_value_is_refused(data: Any, want: str) -> None:
    assert _refused(nodes=[node(data=data)]) == [want]


def test_only_nodes_have_values() -> None:
    placed = {"metadata": {"name": "q"}, "spec": {"nodeName": "n"}, "data": {"load": 0.4}}
    assert _refused(nodes=[node()], pods=[placed]) == ["pods[0].data: there is no such field; did you mean metadata?"]
    assert _refused(nodes=[{"from": "t", **node()}], templates={"t": {"data": {"load": "x"}}}) == [
        "templates.t.data.load: must be a number, not 'x'; write a number, null, or {value: 0.4, age: 90s}"
    ]


def _refused(**suite: Any) -> list[str]:
    case = {"name": "case", "pod": {}, "expect": {"passed": []}}
    return [str(one) for one in field_errors(parse_params({"policies": ["x"], "cases": [case], **suite}, Suite))]


ANNOTATED: Final[dict[str, Any]] = {"nodeAnnotation": {"key": "example.com/load"}}
LABELLED: Final[dict[str, Any]] = {"nodeLabel": {"key": "example.com/load"}}
NAMES: Final[dict[str, tuple[CompiledPolicy, str]]] = {
    "a misspelt name": (measured(entry="loads"), "no policy of this suite measures 'load'; did you mean loads?"),
    "another one": (measured(entry="cpu"), "no policy of this suite measures 'load'; there are cpu"),
    "nothing is measured": (
        policy(filters={"f": "true"}),
        "no policy of this suite measures 'load'; its policies measure nothing",
    ),
    "an annotation": (
        measured(**ANNOTATED),
        (
            "the entry load reads an annotation of the node; "
            "write the annotation example.com/load under metadata.annotations"
        ),
    ),
    "a label": (
        measured(**LABELLED),
        "the entry load reads a label of the node; write the label example.com/load under metadata.labels",
    ),
}


@pytest.mark.parametrize(("read", "want"), NAMES.values(), ids=NAMES)
def test_a_value_that_nothing_measures_is_refused(read: CompiledPolicy, want: str) -> None:
    case = {"name": "c", "pod": {}, "expect": {"passed": []}, "nodes": [node(data={"load": 1})]}
    templates = {"t": {"data": {"load": 1}}}
    suite = {"policies": ["x"], "templates": templates, "nodes": [node(data={"load": None})], "cases": [case]}
    found = [str(one) for one in entry_errors(parse_params(suite, Suite), [read])]
    where = ["templates.t.data.load", "nodes[0].data.load", "cases[0].nodes[0].data.load"]
    assert found == [f"{one}: {want}" for one in where]


def test_the_command_names_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "load.yaml").write_text(
        textwrap.dedent("""\
        apiVersion: fairlead.dev/v1alpha1
        kind: SchedulerExtenderPolicy
        metadata: {name: load}
        spec:
          data: [{name: load, prometheus: {query: load}}]
          filters: [{name: idle, expression: data.load < 0.5, reason: busy}]
        """)
    )
    suite = tmp_path / "load.test.yaml"
    text = textwrap.dedent("""\
        policies: [load.yaml]
        nodes:
        - metadata: {name: a}
          data: {load: 0.4}
        - metadata: {name: b}
          data:
            load: {value: 0.4, age: 2m}
        cases:
        - {name: one, pod: {}, expect: {passed: [a], rejected: {b: data load is stale}}}
        """)
    suite.write_text(text)
    code, found = report(capsys, suite)
    assert (code, found["summary"]["passed"], found["findings"]) == (0, 1, [])
    suite.write_text(text.replace("    load: {", "    laod: {"))
    code, found = report(capsys, suite)
    [wrong] = found["findings"]
    assert (code, wrong["line"], wrong["field"]) == (2, 7, "nodes[1].data.laod")
    assert (wrong["message"], wrong["hint"]) == ("no policy of this suite measures 'laod'", "did you mean load?")
