"""The parts of an expression, each with its value."""

import pytest

from fairlead.cel.functions.quantity import Quantity
from fairlead.cel.values.value_types import NONE, Duration, TypeName, UInt
from fairlead.policy.explain.explanation import Counterfactual
from fairlead.policy.explain.format_value import format_value
from support.policy.explaining import ON_IT, OTHER, explained

SHOWN: dict[str, tuple[str, list[tuple[str, object, str]]]] = {
    "exists: the one that did": (
        "pods.exists(q, q.spec.priority == 3)",
        [
            ("pods.exists(q, q.spec.priority == 3)", True, ""),
            ("pods", ["default/q", "default/r"], ""),
            ("q.spec.priority == 3", True, "pods[0] (default/q)"),
            ("q.spec.priority", 3, "pods[0] (default/q)"),
        ],
    ),
    "all: the one that did not": (
        "!pods.all(q, q.spec.priority != 4)",
        [
            ("!pods.all(q, q.spec.priority != 4)", True, ""),
            ("pods.all(q, q.spec.priority != 4)", False, ""),
            ("pods", ["default/q", "default/r"], ""),
            ("q.spec.priority != 4", False, "pods[1] (default/r)"),
            ("q.spec.priority", 4, "pods[1] (default/r)"),
        ],
    ),
    "exists_one: the one": (
        "pods.exists_one(q, q.spec.priority < 4)",
        [
            ("pods.exists_one(q, q.spec.priority < 4)", True, ""),
            ("pods", ["default/q", "default/r"], ""),
            ("q.spec.priority < 4", True, "pods[0] (default/q)"),
            ("q.spec.priority", 3, "pods[0] (default/q)"),
        ],
    ),
    "filter: what was kept": (
        "pods.filter(q, q.spec.priority < 4).size() == 1",
        [
            ("pods.filter(q, q.spec.priority < 4).size() == 1", True, ""),
            ("pods.filter(q, q.spec.priority < 4).size()", 1, ""),
            ("pods.filter(q, q.spec.priority < 4)", ["default/q"], ""),
            ("pods", ["default/q", "default/r"], ""),
            ("q.spec.priority < 4", True, "pods[0] (default/q)"),
            ("q.spec.priority", 3, "pods[0] (default/q)"),
        ],
    ),
    "map: the one that raised": (
        "pods.map(q, 1 / (q.spec.priority - 3)) == [1] || true",
        [
            ("pods.map(q, 1 / (q.spec.priority - 3)) == [1] || true", True, ""),
            ("pods", ["default/q", "default/r"], ""),
            ("q.spec.priority - 3", 0, "pods[0] (default/q)"),
            ("q.spec.priority", 3, "pods[0] (default/q)"),
        ],
    ),
    "a loop in a loop": (
        "pods.exists(q, q.spec.containers.exists(c, c.image == 'img'))",
        [
            ("pods.exists(q, q.spec.containers.exists(c, c.image == 'img'))", True, ""),
            ("pods", ["default/q", "default/r"], ""),
            ("q.spec.containers.exists(c, c.image == 'img')", True, "pods[1] (default/r)"),
            ("c.image == 'img'", True, "pods[1] (default/r) q.spec.containers[0] (main)"),
            ("c.image", "img", "pods[1] (default/r) q.spec.containers[0] (main)"),
        ],
    ),
    "with two variables": (
        "node.metadata.labels.exists(k, v, v == 'z1') && [5, 6].exists(i, x, x == 6)",
        [
            ("node.metadata.labels.exists(k, v, v == 'z1') && [5, 6].exists(i, x, x == 6)", True, ""),
            ("node.metadata.labels.exists(k, v, v == 'z1')", True, ""),
            ("v == 'z1'", True, "node.metadata.labels[1] (zone)"),
            ("v", "z1", "node.metadata.labels[1] (zone)"),
            ("[5, 6].exists(i, x, x == 6)", True, ""),
            ("x == 6", True, "[5, 6][1] (6)"),
            ("x", 6, "[5, 6][1] (6)"),
        ],
    ),
    "optMap": (
        "node.metadata.labels[?'gpu'].optMap(x, x + '!').orValue('') == 't4!'",
        [
            ("node.metadata.labels[?'gpu'].optMap(x, x + '!').orValue('') == 't4!'", True, ""),
            ("node.metadata.labels[?'gpu'].optMap(x, x + '!').orValue('')", "t4!", ""),
            ("node.metadata.labels[?'gpu'].optMap(x, x + '!')", "t4!", ""),
            ("node.metadata.labels[?'gpu']", "t4", ""),
            ("x + '!'", "t4!", ""),
            ("x", "t4", ""),
        ],
    ),
    "times": (
        "now - node.metadata.creationTimestamp > duration('1s')",
        [
            ("now - node.metadata.creationTimestamp > duration('1s')", True, ""),
            ("now - node.metadata.creationTimestamp", "1h1s", ""),
            ("now", "2027-01-15T08:00:00Z", ""),
            ("node.metadata.creationTimestamp", "2027-01-15T06:59:59Z", ""),
            ("duration('1s')", "1s", ""),
        ],
    ),
    "moments in lists and optionals": (
        "[optional.of(now)].size() == 1 && [now].size() == 1",
        [
            ("[optional.of(now)].size() == 1 && [now].size() == 1", True, ""),
            ("[optional.of(now)].size() == 1", True, ""),
            ("[optional.of(now)].size()", 1, ""),
            ("[optional.of(now)]", ["2027-01-15T08:00:00Z"], ""),
            ("optional.of(now)", "2027-01-15T08:00:00Z", ""),
            ("now", "2027-01-15T08:00:00Z", ""),
            ("[now].size() == 1", True, ""),
            ("[now].size()", 1, ""),
            ("[now]", ["2027-01-15T08:00:00Z"], ""),
        ],
    ),
    "a long list": (
        "lists.range(12) != []",
        [
            ("lists.range(12) != []", True, ""),
            ("lists.range(12)", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, "and 2 more"], ""),
        ],
    ),
    "quantities": (
        "quantity('1500m').add(1).isLessThan(quantity('4096Mi'))",
        [
            ("quantity('1500m').add(1).isLessThan(quantity('4096Mi'))", True, ""),
            ("quantity('1500m').add(1)", "2500m", ""),
            ("quantity('1500m')", "1500m", ""),
            ("quantity('4096Mi')", "4Gi", ""),
        ],
    ),
    "addresses": (
        "cidr('10.1.2.3/8').masked().containsIP(ip('10.9.9.9'))",
        [
            ("cidr('10.1.2.3/8').masked().containsIP(ip('10.9.9.9'))", True, ""),
            ("cidr('10.1.2.3/8').masked()", "10.0.0.0/8", ""),
            ("cidr('10.1.2.3/8')", "10.1.2.3/8", ""),
            ("ip('10.9.9.9')", "10.9.9.9", ""),
        ],
    ),
    "versions": (
        "semver('v1.37', true).isLessThan(semver('1.38.0-rc.1'))",
        [
            ("semver('v1.37', true).isLessThan(semver('1.38.0-rc.1'))", True, ""),
            ("semver('v1.37', true)", "1.37.0", ""),
            ("semver('1.38.0-rc.1')", "1.38.0-rc.1", ""),
        ],
    ),
}


@pytest.mark.parametrize(("expression", "want"), SHOWN.values(), ids=SHOWN)
def test_the_parts_are_shown_for(expression: str, want: list[tuple[str, object, str]]) -> None:
    (rule,) = explained({"filters": [{"name": "rule", "expression": expression}]}, on_it=[*ON_IT, OTHER]).filters
    assert rule.outcome == "Passed"
    assert [(step.text, step.value, " ".join(map(str, step.at))) for step in rule.steps] == want


def test_the_parts_are_shown_with_their_values() -> None:
    spec = {
        "variables": [{"name": "wants", "expression": "pod.metadata.labels[?'gpu'].orValue('any')"}],
        "filters": [
            {"name": "class", "expression": "node.metadata.labels['gpu'] == variables.wants", "reason": "wrong class"}
        ],
        "scores": [{"name": "free", "expression": "100.0 * free['cpu'] / 8.0"}, {"name": "bad", "expression": "1 / 0"}],
    }
    found = explained(spec)
    (rule,), (bad, free) = found.filters, found.scores
    assert (found.passed, rule.outcome, rule.reason) == (False, "Rejected", "wrong class")
    assert [(step.text, step.value) for step in rule.steps] == [
        ("node.metadata.labels['gpu'] == variables.wants", False),
        ("node.metadata.labels['gpu']", "t4"),
        ("variables.wants", "a100"),
        ("pod.metadata.labels[?'gpu'].orValue('any')", "a100"),
        ("pod.metadata.labels[?'gpu']", "a100"),
    ]
    assert [step.variable for step in rule.steps] == ["", "", "", "wants", "wants"]
    assert (free.outcome, free.value) == ("Scored", 12.5)
    assert ("free['cpu']", 1.0) in [(step.text, step.value) for step in free.steps]
    assert (bad.outcome, [(step.text, step.value) for step in bad.steps]) == ("Unknown", [("raised", "divide by zero")])


def test_parts_of_variables_are_told_once_and_say_whose_they_are() -> None:
    variables = [
        {"name": "low", "expression": "pod.spec.priority + 1"},
        {"name": "one", "expression": "variables.low > 0"},
        {"name": "two", "expression": "variables.low > 1"},
    ]
    (rule,) = explained(
        {"variables": variables, "filters": [{"name": "rule", "expression": "variables.one && variables.two"}]}
    ).filters
    assert [(step.variable, step.text, step.value) for step in rule.steps] == [
        ("", "variables.one && variables.two", True),
        ("", "variables.one", True),
        ("", "variables.two", True),
        ("one", "variables.low > 0", True),
        ("one", "variables.low", 6),
        ("low", "pod.spec.priority + 1", 6),
        ("low", "pod.spec.priority", 5),
        ("two", "variables.low > 1", True),
        ("two", "variables.low", 6),
    ]


def test_what_a_variable_raised_is_said_once() -> None:
    variables = [{"name": "bad", "expression": "1 / (pod.spec.priority - 5)"}]
    (rule,) = explained(
        {"variables": variables, "filters": [{"name": "rule", "expression": "variables.bad > 0"}]}
    ).filters
    assert [(step.variable, step.text, step.value) for step in rule.steps] == [
        ("", "raised", "divide by zero"),
        ("bad", "pod.spec.priority - 5", 0),
        ("bad", "pod.spec.priority", 5),
    ]


@pytest.mark.parametrize(
    ("value", "want"),
    [
        (Duration(0), "0s"),
        (Duration(-90 * 10**9), "-1m30s"),
        (Duration(3_600_001_002_003), "1h1ms2us3ns"),
        (Quantity(0), "0"),
        (Quantity(-(2**30) * 10**9), "-1Gi"),
        (Quantity(1), "0.000000001"),
        (Quantity(2_000 * 10**9), "2k"),
        (UInt(3), 3),
        (TypeName("int"), "int"),
        (NONE, None),
    ],
)
def test_a_value_is_shown_as(value: object, want: object) -> None:
    assert format_value(value) == want
    assert type(format_value(value)) is type(want)


ON_THE_ENGINE: dict[str, tuple[str, list[tuple[str, object]], list[Counterfactual]]] = {
    "an operand raises": (
        "pod.metadata.name == '%s'.format([node.metadata.labels['none']])",
        [("pod.metadata.name", "p"), ("raised", 'Key not found in map : "none"')],
        [Counterfactual("pod.metadata.name == '%s'.format([node.metadata.labels['none']])", None, "p")],
    ),
    "one of two": (
        "pod.spec.priority > 1 && pod.metadata.name == '%s'.format([variables.pattern])",
        [
            ("pod.spec.priority > 1 && pod.metadata.name == '%s'.format([variables.pattern])", False),
            ("pod.spec.priority > 1", True),
            ("pod.spec.priority", 5),
            ("pod.metadata.name == '%s'.format([variables.pattern])", False),
            ("pod.metadata.name", "p"),
            ("'%s'.format([variables.pattern])", "^t4$"),
            ("[variables.pattern]", ["^t4$"]),
            ("variables.pattern", "^t4$"),
            ("'^' + node.metadata.labels['gpu'] + '$'", "^t4$"),
            ("'^' + node.metadata.labels['gpu']", "^t4"),
            ("node.metadata.labels['gpu']", "t4"),
        ],
        [Counterfactual("pod.metadata.name == '%s'.format([variables.pattern])", False, "p", "^t4$")],
    ),
    "both": (
        "!(now.getHours('Europe/Berlin') < 10 || '%d'.format([pod.spec.priority]) == '5')",
        [
            ("!(now.getHours('Europe/Berlin') < 10 || '%d'.format([pod.spec.priority]) == '5')", False),
            ("now.getHours('Europe/Berlin') < 10 || '%d'.format([pod.spec.priority]) == '5'", True),
            ("now.getHours('Europe/Berlin') < 10", True),
            ("now.getHours('Europe/Berlin')", 9),
            ("now", "2027-01-15T08:00:00Z"),
            ("'%d'.format([pod.spec.priority]) == '5'", True),
            ("'%d'.format([pod.spec.priority])", "5"),
            ("[pod.spec.priority]", [5]),
            ("pod.spec.priority", 5),
        ],
        [
            Counterfactual("now.getHours('Europe/Berlin') < 10", True, 9, 10),
            Counterfactual("'%d'.format([pod.spec.priority]) == '5'", True, "5", "5"),
        ],
    ),
    "in what a loop goes through, and where a name is bound": (
        "cel.bind(x, node.metadata.name, ['%s'.format([x]) == pod.metadata.name].all(y, y))",
        [
            ("cel.bind(x, node.metadata.name, ['%s'.format([x]) == pod.metadata.name].all(y, y))", False),
            ("node.metadata.name", "n"),
            ("pod.metadata.name", "p"),
        ],
        [Counterfactual("['%s'.format([x]) == pod.metadata.name].all(y, y)", None)],
    ),
    "in a loop": (
        "['a', 'b'].exists(x, x == '%s'.format([node.metadata.name + x])) && pod.spec.priority > 1",
        [
            (
                "['a', 'b'].exists(x, x == '%s'.format([node.metadata.name + x])) && pod.spec.priority > 1",
                False,
            ),
            ("['a', 'b'].exists(x, x == '%s'.format([node.metadata.name + x]))", False),
            ("pod.spec.priority > 1", True),
            ("pod.spec.priority", 5),
        ],
        [Counterfactual("['a', 'b'].exists(x, x == '%s'.format([node.metadata.name + x]))", False)],
    ),
}


@pytest.mark.parametrize(("expression", "parts", "changes"), ON_THE_ENGINE.values(), ids=ON_THE_ENGINE)
def test_what_runs_on_the_engine_is_shown_too(
    expression: str, parts: list[tuple[str, object]], changes: list[Counterfactual]
) -> None:
    variables = [{"name": "pattern", "expression": "'^' + node.metadata.labels['gpu'] + '$'"}]
    (rule,) = explained({"variables": variables, "filters": [{"name": "rule", "expression": expression}]}).filters
    assert [(step.text, step.value) for step in rule.steps] == parts
    assert list(rule.changes) == changes
