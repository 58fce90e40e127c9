"""The compiler: from the object of the API to rules, or to all faults."""

from typing import Any

import pytest

from fairlead.api.params import DataName, Params
from fairlead.api.parse import parse_policy
from fairlead.api.v1alpha1 import policy_model
from fairlead.cel.syntax.source_refs import references, replace_references
from fairlead.policy.compile.compiler import CompileOptions, compile_policy, compile_steps, spec_hash
from fairlead.policy.compile.expression_compiler import ExpressionCompiler
from fairlead.policy.compile.policy_errors import PolicyError
from fairlead.strategies.contract import PASS, Filter, Reads, Score, Strategy, Use
from support.policy import INSTALLED, MODEL, Evaluation, faults, node, obj, pod, policy

FAULTS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "nothing is wrong": ({"filters": {"f": "true"}}, {}),
    "everything is said at once": (
        {
            "variables": {"v": "1 +"},
            "match": {"conditions": {"c": "pod.spec.prority > 1"}},
            "filters": {"ok": "true", "f": "'text'"},
            "scores": {"s": "'text'"},
            "protect": {"k": "victim.metadata.nme == ''"},
            "annotations": {"other.example/x": "1"},
        },
        {
            "spec.variables[0].expression": "",
            "spec.match.conditions[0].expression": "did you mean `priority`?",
            "spec.filters[1].expression": "expected a bool",
            "spec.scores[0].expression": "expected a number",
            "spec.preemption.protect[0].expression": "did you mean `name`?",
            "spec.binding.annotations[0].key": "it must begin with fairlead.dev/",
            "spec.binding.annotations[0].expression": "expected a string",
        },
    ),
    "who uses a broken variable is not to blame": (
        {"variables": {"v": "nope", "w": "variables.v + 1"}, "filters": {"f": "variables.w == 1"}},
        {"spec.variables[0].expression": "nope"},
    ),
    "a circle is named, once for each in it": (
        {
            "variables": {"a": "variables.b", "b": "variables.c", "c": "variables.b", "ok": "1"},
            "filters": {"f": "variables.a == 1", "g": "variables.ok == 1"},
        },
        {
            "spec.variables[1].expression": "uses itself: b -> c -> b; let one of them not use the others",
            "spec.variables[2].expression": "uses itself: c -> b -> c",
        },
    ),
    "a variable that uses itself": (
        {"variables": {"a": "variables.a + 1"}},
        {"spec.variables[0].expression": "uses itself: a -> a"},
    ),
    "two circles": (
        {"variables": {"a": "variables.a", "b": "variables.b"}},
        {"spec.variables[0].expression": "a -> a", "spec.variables[1].expression": "b -> b"},
    ),
    "there is no such variable": (
        {"variables": {"wants": "1"}, "filters": {"f": "variables.want == 1"}},
        {"spec.filters[0].expression": "did you mean `wants`?"},
    ),
    "a condition cannot see the node": (
        {"match": {"conditions": {"c": "node.metadata.name == ''"}}},
        {"spec.match.conditions[0].expression": "node"},
    ),
    "nor through a variable": (
        {
            "variables": {"zone": "node.metadata.labels['zone']", "far": "'x' + variables.zone"},
            "match": {"conditions": {"c": "pod.spec.priority > 1 && variables.far == 'xz1'"}},
        },
        {
            "spec.match.conditions[0].expression": "line 1, column 26: the variable `far` reads `node`,"
            " which a condition of match cannot see; there are pod, namespaceObject, now"
        },
    ),
    "a filter cannot see the victim through a variable": (
        {
            "variables": {"v": "victim.spec.priority"},
            "filters": {"f": "variables.v > 1"},
            "protect": {"p": "variables.v > 1"},
        },
        {"spec.filters[0].expression": "the variable `v` reads `victim`, which a rule cannot see"},
    ),
    "an entry of data that is not declared": (
        {"data": [{"name": "load", "nodeLabel": {"key": "l"}}], "filters": {"f": "data.loda > 1.0"}},
        {"spec.filters[0].expression": "did you mean `load`?"},
    ),
    "too many loop steps": (
        {"filters": {"f": "pods.exists(p, pods.exists(q, p.metadata.name == q.metadata.name))"}},
        {"spec.filters[0].expression": "10,000,000 are allowed"},
    ),
    "a variable that does not depend on its order": (
        {"variables": {"b": "variables.a + 1", "a": "pod.spec.priority"}, "filters": {"f": "variables.b == 2"}},
        {},
    ),
    "names in strings and comments are no uses": (
        {
            "variables": {"a": '\'variables.a\' + r\'\\d\' + """variables.a""" // variables.a'},
            "filters": {"f": "variables.a != ''"},
        },
        {},
    ),
    "a variable that asks for a type": (
        {"variables": {"t": "type(pod.spec.priority) == int"}, "match": {"conditions": {"c": "variables.t"}}},
        {},
    ),
    "names of every script in texts": (
        {"filters": {"f": "node.metadata.labels[?'ключ/值'].orValue('مرحبا 🚀') != '\\u00e9'"}},
        {},
    ),
    "other scripts as names": (
        {"filters": {"f": "pod.spec.имя == 1"}},
        {"spec.filters[0].expression": ""},
    ),
    "an expression of 4 KiB and one byte": (
        {"filters": {"f": "true" + " " * 4092}},
        {},
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_all_that_is_wrong_is_said_with_its_field(name: str) -> None:
    spec, want = FAULTS[name]
    found = faults(**spec)
    assert found.keys() == want.keys(), found
    for field, words in want.items():
        assert words in found[field]


class Loads(Params):
    load: DataName


def _with_strategy() -> tuple[Any, CompileOptions]:
    by_load = Strategy(
        name="byLoad",
        filter=Use(
            Loads,
            lambda params: Filter(
                reads=Reads(data=frozenset({str(params.load)})), for_pod=lambda _: lambda *_: PASS, reasons=()
            ),
        ),
        score=Use(
            Loads,
            lambda params: Score(
                reads=Reads(data=frozenset({str(params.load)})),
                for_pod=lambda _: lambda node, *_: node.data(params.load),
                normalize="Rank",
            ),
        ),
    )
    return policy_model({"byLoad": Loads}, {"byLoad": Loads}), CompileOptions(INSTALLED | {"byLoad": by_load})


DATA = [{"name": "load", "nodeLabel": {"key": "l"}}]
NAMED = {
    "declared": (DATA, {}),
    "not declared": ([{**DATA[0], "name": "other"}], "there is no entry load in the policy's data; declared are other"),
    "nothing declared": ([], "there is no entry load in the policy's data; the policy declares none"),
}


@pytest.mark.parametrize("name", NAMED)
def test_entries_of_data_that_strategies_name_must_be_declared(name: str) -> None:
    data, want = NAMED[name]
    model, rules = _with_strategy()
    written = parse_policy(
        obj(data=data, filters={"f": {"byLoad": {"load": "load"}}}, scores={"s": {"byLoad": {"load": "load"}}}), model
    )
    if not want:
        compile_policy(written, rules)
        return
    with pytest.raises(PolicyError) as error:
        compile_policy(written, rules)
    assert [str(fault) for fault in error.value.faults] == [
        f"spec.filters[0].byLoad.load: {want}",
        f"spec.scores[0].byLoad.load: {want}",
    ]


def test_a_score_by_a_strategy_is_neutral_where_its_data_are_missing_and_normalized_as_it_says() -> None:
    model, rules = _with_strategy()
    written = parse_policy(obj(data=DATA, scores={"s": {"byLoad": {"load": "load"}}}), model)
    cluster = Evaluation(
        [compile_policy(written, rules)],
        [node("n0", labels={"l": "3"}), node("n1"), node("n2", labels={"l": "9"})],
    )
    assert cluster.scores(pod()) == [0.0, 50.0, 100.0]
    assert cluster.scores(pod(), ["n1"]) == [0.0]


def test_annotation_prefixes_are_the_operators() -> None:
    own = CompileOptions(INSTALLED, ("example.com/", "fairlead.dev/"))
    assert not faults(own, annotations={"example.com/x": "'x'"})
    assert "allow no annotations" in str(faults(CompileOptions(INSTALLED, ()), annotations={"fairlead.dev/x": "'x'"}))


def test_what_rules_use_is_reported() -> None:
    made = policy(
        variables={"wants": "pod.metadata.labels[?'gpu'].orValue('')"},
        filters={
            "a": "variables.wants == '' || free['cpu'] > 1.0",
            "b": {"nodeReadiness": {"labels": [{"key": "gpu"}], "choose": {"podAnnotation": "x"}, "holdOff": "9s"}},
        },
        scores={"s": "double(size(pods))"},
    )
    assert {report.name: report.uses for report in made.reports} == {
        "a": ("free.cpu", "pod.metadata.labels.gpu"),
        "b": ("node.metadata.labels.gpu", "now", "pod.metadata.annotations.x"),
        "s": ("pods",),
    }


@pytest.mark.parametrize(
    ("source", "want"),
    [
        ({"prometheus": {"query": "up", "server": "ops"}}, "prometheus ops"),
        ({"nodeMetrics": {"resource": "cpu"}}, "nodeMetrics cpu"),
        ({"configMap": {"name": "prices"}}, "configMap prices"),
        ({"nodeAnnotation": {"key": "example.com/load", "timeKey": "t"}}, "nodeAnnotation example.com/load"),
        ({"nodeLabel": {"key": "load"}}, "nodeLabel load"),
    ],
)
def test_where_the_values_that_rules_use_come_from_is_reported(source: dict[str, Any], want: str) -> None:
    made = policy(
        data=[{"name": "load", **source}],
        filters={"a": "data.load < 1.0", "b": "has(data.load)"},
        scores={"s": {"congestion": {"value": "load"}}},
    )
    assert {report.uses for report in made.reports} == {(f"data.load ({want})",)}


def test_a_policy_that_is_off_is_compiled_and_reported_and_never_applied() -> None:
    off = policy(mode="Disabled", filters={"f": "false"})
    assert [report.name for report in off.reports] == ["f"]
    assert not off.enforced
    assert not Evaluation([off], [node()]).filter(pod()).rejected
    assert faults(mode="Disabled", filters={"f": "nonsense("})


def test_a_policy_from_a_file_has_the_hash_of_its_spec_for_a_generation() -> None:
    one, same, other = (
        parse_policy(obj(generation=0, filters={"f": text}), MODEL) for text in ("true", "true", "false")
    )
    assert spec_hash(one) == spec_hash(same) != spec_hash(other)
    assert policy(generation=0, filters={"f": "true"}).generation == spec_hash(one)
    assert policy(generation=7).generation == "7"


def test_duplicates_that_the_schema_cannot_let_through_do_not_crash() -> None:
    expressions = ExpressionCompiler(["load", "load"])
    written = parse_policy(obj(variables={"a": "1", "b": "variables.a"}), MODEL).spec.variables
    for _ in expressions.declare([*written, *written]):
        pass
    assert set(expressions.variables) == {"a", "b"}


def _ten_rules() -> dict[str, Any]:
    return {
        "variables": {f"v{at}": f"pod.metadata.labels[?'k{at}'].orValue('any')" for at in range(5)},
        "match": {"conditions": {"c": "pod.spec.priority > 100"}},
        "filters": {
            f"f{at}": f"variables.v{at % 5} == 'any' || node.metadata.labels[?'g{at}'].orValue('x') == variables.v0"
            f" && pods.exists(p, p.metadata.namespace == 'x{at}')"
            for at in range(7)
        },
        "scores": {f"s{at}": f"100.0 * requested['cpu'] / {at + 1}.0" for at in range(3)},
    }


def test_ten_rules_compile_in_pieces() -> None:
    written = parse_policy(obj(**_ten_rules()), MODEL)
    pauses = sum(1 for _ in compile_steps(written, CompileOptions()))
    expressions = 5 + 1 + 7 + 3
    assert pauses >= 3 * expressions  # before the check, the lowering, and the next expression


REFERENCES = {
    "variables.a + variables . b": ["a", "b"],
    "'variables.a' + \"variables.b\"": [],
    "r'\\' + variables.c": ["c"],
    "'\\'' + variables.c": ["c"],
    "'''it's variables.a''' + variables.c": ["c"],
    "1 // variables.a\n + variables.b": ["b"],
    "my_variables.a + x.variables.b": [],
    "variables.a.variables.b": ["a"],
}


@pytest.mark.parametrize("text", REFERENCES)
def test_variables_are_found_outside_of_texts_and_comments(text: str) -> None:
    assert [found.name for found in references(text)] == REFERENCES[text]
    assert replace_references(text, lambda name: f"variables.{name}").replace(" ", "") == text.replace(" ", "")


_LOAD = {"load": {"nodeLabel": {"key": "load"}}}
KEPT: list[dict[str, Any]] = [
    {"variables": {"x": "pod.spec.priority > 1"}, "filters": {"f": "variables.x"}},
    {"variables": {"x": "node.spec.unschedulable"}, "filters": {"f": "variables.x"}},
    {"variables": {"x": "1"}, "filters": {"f": "variables.x"}},
    {"variables": {"y": "true", "x": "variables.y"}, "filters": {"f": "variables.x"}},
    {"variables": {"y": "node.spec.unschedulable", "x": "variables.y"}, "filters": {"f": "variables.x"}},
    {"filters": {"f": "variables.x"}},
    {"data": _LOAD, "filters": {"f": "data['load'] > 1.0"}},
    {"filters": {"f": "data['load'] > 1.0"}},
    {"filters": {"f": "1.0 > 2.0"}, "scores": {"s": "1.0"}},
    {"filters": {"f": "1.0"}, "scores": {"s": "1.0 > 2.0"}},
    {"match": {"conditions": {"c": "node.spec.unschedulable"}}},
]
"""Policies that say the same in other words, and something else in the same."""


def test_what_is_kept_of_other_policies_is_never_taken_for_something_else() -> None:
    known = CompileOptions(INSTALLED, expression_cache={})

    def came_of(rules: CompileOptions, spec: dict[str, Any]) -> object:
        try:
            return policy(rules=rules, **spec).reports
        except PolicyError as error:
            return [str(fault) for fault in error.faults]

    want = [came_of(CompileOptions(INSTALLED), spec) for spec in KEPT]
    assert [came_of(known, spec) for spec in [*KEPT, *KEPT]] == [*want, *want]
    assert known.expression_cache
    first, again = policy(rules=known, **KEPT[0]), policy(rules=known, **KEPT[0])
    assert first.filters[0].expression is again.filters[0].expression
