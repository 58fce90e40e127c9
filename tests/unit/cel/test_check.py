"""Rejected expressions: the message, the position of the caret, and the hint."""

import pytest

from fairlead.cel.check import BOOL, NUMBER, STRING, VALUE, Environment, ExpressionError, Want, check
from fairlead.cel.engine.environment import CONDITION, PROTECTION, RULE
from fairlead.cel.syntax.ast import Type

STRINGS = Type("list", (Type("string"),))
RULES = Environment(RULE, {"wants": Type("string"), "zones": STRINGS}, ("load", "rackPower"))
CONDITIONS = Environment(CONDITION)

# expression, column of the caret (in line 1), what is said
REJECTED: dict[str, tuple[str, int, str]] = {
    "a misspelt field": (
        "pod.spec.prority > 1",
        10,
        "PodSpec has no field `prority`; did you mean `priority`?",
    ),
    "a field of the wrong level": (
        "pod.nodeName == ''",
        5,
        "Pod has no field `nodeName`; did you mean `spec.nodeName`?",
    ),
    "nothing near": (
        "node.zzz == ''",
        6,
        "Node has no field `zzz`; its fields are apiVersion, kind, metadata, spec, status",
    ),
    "a field that the mirror does not keep": (
        "pods.exists(p, p.spec.hostNetwork)",
        23,
        (
            "`hostNetwork` is not available for pods on the node (`pods`, `victim`); available: containers, "
            "initContainers, nodeName, priority, schedulingGroup"
        ),
    ),
    "a misspelt field of a pod on the node": (
        "pods.exists(p, p.metadata.lables['a'] == 'b')",
        27,
        "`lables` is not available for pods on the node (`pods`, `victim`); did you mean `labels`?",
    ),
    "after astral characters": ("'é😀' == pod.metadata.nam", 22, "ObjectMeta has no field `nam`; did you mean `name`?"),
    "an unknown variable": ("nod.metadata.name == ''", 1, "unknown variable `nod`; did you mean `node`?"),
    "a variable of another scope": (
        "victim.spec.priority > 1",
        1,
        (
            "`victim` is not available in a rule; available: allocatable, data, free, namespaceObject, "
            "node, now, pod, pods, request, requested, variables"
        ),
    ),
    "a variable of the policy that is misspelt": (
        "variables.wnats == ''",
        11,
        "unknown variable `variables.wnats`; did you mean `wants`?",
    ),
    "a misspelt function": (
        "pod.metadata.name.startWith('a')",
        19,
        "unknown function `startWith`; did you mean `startsWith`?",
    ),
    "a misspelt macro": (
        "pods.exist(p, p.spec.priority > 1)",
        6,
        "unknown function `exist`; did you mean `exists`?",
    ),
    "an int for a double": ("free['cpu'] >= 2", 13, "`>=` is not defined for double and int; write `2.0`"),
    "an int on the left": ("2 <= free['cpu']", 3, "`<=` is not defined for int and double; write `2.0`"),
    "a double that is computed": (
        "free['cpu'] > pod.spec.priority",
        13,
        "`>` is not defined for double and int; write `double(pod.spec.priority)`",
    ),
    "a quantity as text": (
        "node.status.allocatable['cpu'] > 2",
        32,
        (
            "`>` is not defined for string and int; write "
            "`quantity(node.status.allocatable['cpu']).asApproximateFloat() > 2.0`"
        ),
    ),
    "a comparison with null": (
        "pod.spec.nodeName == null",
        19,
        "`==` is not defined for string and null; absent is not null: write `!has(pod.spec.nodeName)`",
    ),
    "a number negated": (
        "!pod.spec.priority",
        1,
        "`!` needs bools, not int; compare `pod.spec.priority` with something",
    ),
    "one equals sign": ("pod.status.phase = 'x'", 18, "syntax error: CEL has no `=`; write `==`"),
    "an end too early": (
        "pod.spec.priority >",
        20,
        "syntax error: unexpected end of the expression",
    ),
    "a bracket left open": ("size([1, 2]", 12, "syntax error: unexpected end of the expression; expected `)`"),
    "a string left open": ("'abc", 1, "syntax error: the string does not end; close it with `'`"),
    "two things side by side": (
        "pod node",
        5,
        "syntax error: unexpected `node`",
    ),
    "the word namespace": (
        "namespace.metadata.name == 'a'",
        1,
        "`namespace` is a reserved word in CEL; the pod's namespace is `namespaceObject`",
    ),
    "has() of a map's key": (
        "has(pod.metadata.labels['a'])",
        24,
        ("has() needs a field, as in has(pod.spec.priority); for a map key write `'a' in pod.metadata.labels`"),
    ),
    "undeclared data": ("data.laod > 1.0", 6, "the policy's data has no entry `laod`; did you mean `load`?"),
    "undeclared data by key": (
        "data[?'price'].orValue(1.0) > 1.0",
        7,
        "the policy's data has no entry `price`; declared: load, rackPower",
    ),
    "all annotations of pods on the node": (
        "pods.exists(p, p.metadata.annotations.exists(k, k == 'a'))",
        27,
        (
            "annotations of pods on the node can be read only with a literal key; write annotations['key'] "
            "or annotations[?'key']"
        ),
    ),
    "an object made": (
        "kubernetes.Pod{} == pod",
        1,
        "objects cannot be constructed (kubernetes.Pod); compare their fields instead",
    ),
    "what the engine checks and cannot evaluate": (
        "node.metadata.labels.transformMap(k, v, v).size() > 0",
        51,
        "the engine cannot evaluate transformMap and transformMapEntry; use transformList or map()",
    ),
    "the inside of a quantity": (
        "quantity('1').canonical == ''",
        15,
        "a quantity has no fields; use its functions, such as isGreaterThan()",
    ),
    "a time zone that there is not": (
        "now.getHours('Nowhere/X') == 1",
        14,
        ("there is no such time zone; write one such as 'Europe/Berlin', or an offset such as '+02:00'"),
    ),
    "a file for a time zone": (
        "now.getHours('/dev/stdin') == 1",
        14,
        ("there is no such time zone; write one such as 'Europe/Berlin', or an offset such as '+02:00'"),
    ),
    "a file beside the time zones": (
        "now.getHours('../../../dev/stdin') == 1",
        14,
        ("there is no such time zone; write one such as 'Europe/Berlin', or an offset such as '+02:00'"),
    ),
    "a time zone that the pod names": (
        "now.getHours(pod.metadata.annotations['zone']) == 1",
        13,
        "a time zone must be a literal; write one such as 'Europe/Berlin', or an offset such as '+02:00'",
    ),
    "a time zone that is computed, of what may be a time": (
        "dyn(now).getHours('/dev/' + 'stdin') == 1",
        18,
        "a time zone must be a literal; write one such as 'Europe/Berlin', or an offset such as '+02:00'",
    ),
    "has() of a variable": (
        "has(variables.wants)",
        5,
        "has() needs a field, and a variable always exists; use the variable itself",
    ),
    "a time compared with null": (
        "pod.metadata.deletionTimestamp == null",
        32,
        "`== null` cannot tell whether a field is set: absent is not null; use has(...) or !has(...)",
    ),
    "an object compared with null": (
        "null != pod.spec.affinity",
        6,
        "`!= null` cannot tell whether a field is set: absent is not null; use has(...) or !has(...)",
    ),
    "a glob for a pattern": (
        "node.metadata.name.matches('*-web')",
        28,
        (
            "this always raises an error: invalid regular expression: no argument for repetition operator: "
            "*; RE2 has no globs, lookaheads or backreferences; a literal * is [*]"
        ),
    ),
    "a duration in days": (
        "now - node.metadata.creationTimestamp > duration('1d')",
        50,
        "this always raises an error: String to Duration conversion failed; there are no days: write `duration('24h')`",
    ),
    "a date for a moment": (
        "now > timestamp('2026-01-01')",
        17,
        "this always raises an error: String to Timestamp conversion failed; write a time such as 2026-01-31T08:00:00Z",
    ),
    "a quantity with a byte too much": (
        "quantity('16GB').sign() > 0",
        10,
        "this always raises an error: cannot convert string to quantity; write a quantity such as 500m, 2, 16Gi or 16G",
    ),
    "a string for a filter": (
        "pod.metadata.name",
        1,
        "expected a bool, got a string; write `pod.metadata.name == '...'`",
    ),
    "an optional for a filter": (
        "pod.metadata.labels[?'a']",
        1,
        "expected a bool, got an optional(string); write `pod.metadata.labels[?'a'].hasValue()`",
    ),
    "dyn for a filter": (
        "dyn(true)",
        1,
        "expected a bool, but the type is known only at run time; compare it with something",
    ),
    "nothing at all": ("  ", 1, "the expression is empty; write one that evaluates to a bool"),
    "too long": (
        f"'{'x' * 5000}' == ''",
        1,
        "the expression has 5008 bytes, 4096 are allowed; split it with variables",
    ),
    "too deep": (
        "(" * 40 + "true" + ")" * 40,
        1,
        "the expression is nested more than 32 levels deep; split it with variables",
    ),
    "a number without room": (
        "99999999999999999999 > 1",
        1,
        "the number does not fit into int; an int has 64 bits; write a double as 1e20",
    ),
}


@pytest.mark.parametrize(("text", "column", "want"), REJECTED.values(), ids=REJECTED)
def test_an_expression_is_rejected_with_its_place_and_a_hint(text: str, column: int, want: str) -> None:
    with pytest.raises(ExpressionError) as rejected:
        check(text, RULES, BOOL)
    assert [str(one) for one in rejected.value.diagnostics] == [f"1:{column}: {want}"]


def test_the_caret_stands_under_the_place() -> None:
    text = "pod.metadata.name == 'a' &&\n\tpod.spec.prority > 1"
    with pytest.raises(ExpressionError) as rejected:
        check(text, RULES, BOOL)
    (one,) = rejected.value.diagnostics
    assert one.pointing(text) == "\tpod.spec.prority > 1\n\t         ^"


def test_the_caret_knows_how_wide_characters_are() -> None:
    text = "'日本' == pod.nam"
    with pytest.raises(ExpressionError) as rejected:
        check(text, RULES, BOOL)
    assert rejected.value.diagnostics[0].pointing(text) == f"{text}\n{' ' * 14}^"


def test_all_faults_are_reported_at_once() -> None:
    with pytest.raises(ExpressionError) as rejected:
        check("pod.spec.prority > 1 && node.metadat.name == '' && data.x > 1.0", RULES, BOOL)
    assert [one.column for one in rejected.value.diagnostics] == [10, 30]


WANTED: dict[str, tuple[str, Want, Environment]] = {
    "a filter": ("node.metadata.labels['a'] == variables.wants", BOOL, RULES),
    "a score that is an int": ("pods.size()", NUMBER, RULES),
    "a score that is a double": ("100.0 * (1.0 - data.load)", NUMBER, RULES),
    "an annotation": ("node.metadata.name + string(now)", STRING, RULES),
    "a list in a variable": ("['a', 'b']", VALUE, RULES),
    "a list that a variable holds": ("'a' in variables.zones", BOOL, RULES),
    "a condition": ("pod.spec.priority > 100", BOOL, CONDITIONS),
    "a protection": ("victim.metadata.labels[?'a'].hasValue()", BOOL, Environment(PROTECTION)),
    "has() of a variable inside of texts": ("r'\\d' + '\\'' != 'has(variables.wants)'", BOOL, RULES),
    "quantities": ("quantity(node.status.allocatable['cpu']).isGreaterThan(quantity('2'))", BOOL, RULES),
    "extensions": (
        "math.greatest([1, 2].sort()[0], 2) == 2 && sets.contains([1], [1]) && 'a,b'.split(',').size() == 2",
        BOOL,
        RULES,
    ),
    "two variables in a macro": ("pods.all(i, p, i < 10 && p.spec.priority < 100)", BOOL, RULES),
    "all data": ("data.exists(name, data[name] > 1.0)", BOOL, RULES),
    "time zones": (
        " && ".join(
            f"now.getHours('{zone}') > 0"
            for zone in ("Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "UTC", "+02:00", "-11:30", "")
        ),
        BOOL,
        RULES,
    ),
}


@pytest.mark.parametrize(("text", "want", "environment"), WANTED.values(), ids=WANTED)
def test_a_right_expression_is_accepted(text: str, want: Want, environment: Environment) -> None:
    assert not want.types or check(text, environment, want).type.name in want.types


def test_a_variable_must_hold_a_value() -> None:
    with pytest.raises(ExpressionError, match=r"expected a value, got an optional\(string\); write"):
        check("pod.metadata.labels[?'a']", RULES, VALUE)


@pytest.mark.parametrize(
    "text", ["\0", "\ud800 == ''", "'\x00'", "\u200bpod", "x" * 4096, "(" * 2000, "[" * 4000, "!" * 4000, "-" * 4000]
)
def test_absurd_input_is_rejected_with_a_message(text: str) -> None:
    with pytest.raises(ExpressionError) as rejected:
        check(text, RULES, BOOL)
    assert all(one.message for one in rejected.value.diagnostics)
