"""What an evaluation may cost: hostile expressions and objects end in an error before they take time or memory."""

import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import PropertyMock, patch

import pytest

from differential.cases import case
from differential.compare import run
from fairlead.cel.check import VALUE, Environment, ExpressionError, check
from fairlead.cel.engine.environment import RULE
from fairlead.cel.lowering.program import OF_NODE, Program
from fairlead.cel.values.errors import Abort, CelError, Kind
from fairlead.cel.values.meter import ANNOTATION_MAX, BUDGET, Meter, OptimisticMeter
from fairlead.cel.values.structs import from_json
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.policy_errors import PolicyError
from support.policy.building import policy

MEMORY = 16 << 20
LONG = ANNOTATION_MAX - 10
ANNOTATIONS = {
    "letters": "x" * LONG,
    "list": ("ab," * LONG)[:LONG],
    "digits": "1" * LONG + "x",
    "too-long": "y" * (ANNOTATION_MAX + 1),
    "pattern": r"\pL{1000}",
    "a": "a" * 2_499,
    "amount": "1" * 990 + "e-1500",
}
POD = SimpleNamespace(
    pod=from_json(
        "Pod",
        {
            "metadata": {"name": "a", "namespace": "b", "labels": {"app": "x"}, "annotations": ANNOTATIONS},
            "spec": {"containers": [{"name": "c", "args": ["z" * 1_000_000, "z" * 1_000_000]}]},
        },
    ),
    namespaceObject=from_json("Namespace", {}),
    request={"cpu": 1.0},
)
PODS = [from_json("PlacedPod", {"metadata": {"name": f"p{at}", "labels": {"app": f"{at % 7}"}}}) for at in range(1_000)]
NODE = SimpleNamespace(**{name: {} for name in OF_NODE})
NODE.node = from_json("Node", {"metadata": {"name": "n", "labels": {"zone": "a"}}})
NODE.pods = PODS


def _annotation(name: str) -> str:
    return f"pod.metadata.annotations['{name}']"


def _bound(first: str, each: str, times: int, result: str) -> str:
    text = "".join(f"cel.bind(v{at + 1}, {each.replace('_', f'v{at}')}, " for at in range(times))
    return f"cel.bind(v0, {first}, {text}{result.replace('_', f'v{times}')}{')' * times})"


COSTS_TOO_MUCH = {
    "texts that double": _bound("'ab'", "_+_+_+_+_+_+_+_+_+_", 12, "_.size() > 0"),
    "lists that grow": _bound("[1, 2]", "_+_+_+_+_+_+_+_+_+_", 12, "_.size() > 0"),
    "replace by what is long": "'" + "a" * 1_000 + "'" + (".replace('a', '" + "a" * 700 + "')") * 3 + ".size() > 0",
    "join of what is long": f"lists.range(9000).map(i, {_annotation('letters')}).join(',').size() > 0",
    "lists compared with themselves": _bound("[1]", "[_,_,_,_,_,_,_,_,_,_]", 9, "_ == _"),
    "numbers of which each is compared with each": "lists.range(9000).map(i, double(i)).distinct().size() > 0",
    "sets of what cannot be hashed": (
        "sets.contains(lists.range(5000).map(i, double(i)), lists.range(5000).map(i, -double(i)))"
    ),
    "a sort": "lists.range(9999).sortBy(i, i % 3).size() > 0",
    "lists that are flattened": "cel.bind(l, lists.range(3000).map(i, [i]), lists.range(900).exists(i, "
    "l.flatten().size() < i))",
    "loops with much in them": "lists.range(9999).all(i, " + " && ".join(["i >= 0"] * 100) + ")",
    "looking backwards": (f"{_annotation('letters')}.lastIndexOf({_annotation('letters')}.substring(8000, 16000)) > 1"),
    "a text looked for in each other": f"{_annotation('list')}.split(',').all(i, {_annotation('letters')} != i + "
    f"{_annotation('letters')}.substring(2, 100))",
    "all matches": f"regex.extractAll({_annotation('letters')}, 'x.*y|x').size() > 0",
    "replaced matches": rf"regex.replace({_annotation('letters')}, '(x)', r'\1{'.' * 900}').size() > 0",
    "a large pattern": f"{_annotation('letters')}.matches('(a|x)*b(a|x){{300}}y')",
    "patterns of each pod": r"pods.all(p, !('x'.matches('\\pL{1000}' + p.metadata.name)))",
    "addresses of each pod": "pods.all(p, isIP('2001:db8:0:0:0:0:0:' + p.metadata.labels['app']))",
    "versions of each pod": (
        "pods.all(p, isSemver('1.2.3-0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.' + p.metadata.labels['app']))"
    ),
    "a whole pod compared for each pod": "pods.all(p, pod == pod)",
    "long texts compared for each pod": (
        "pods.all(p, pod.spec.containers[0].args[0] == pod.spec.containers[0].args[1])"
    ),
    "a text cut for each pod": f"pods.all(p, {_annotation('letters')}.lowerAscii().upperAscii().size() > 0)",
    "sums of durations": "cel.bind(d, now - now, lists.range(1500).map(i, ["
    + ", ".join(["d + d"] * 10)
    + "]).size() > 0)",
    "entries that may be missing": "cel.bind(v, [1], lists.range(900).map(i, ["
    + ", ".join(["v[?0]"] * 40)
    + "]).size() > 0)",
    "keys looked up": "cel.bind(m, {pod.spec.containers[0].args[0]: 1}, "
    "pods.all(p, m[pod.spec.containers[0].args[1]] == 1))",
    "keys that may be missing": "cel.bind(m, {pod.spec.containers[0].args[0]: 1}, "
    "pods.all(p, m[?pod.spec.containers[0].args[1]].orValue(1) == 1))",
    "keys that are there": "cel.bind(m, {pod.spec.containers[0].args[0]: 1}, "
    "pods.all(p, pod.spec.containers[0].args[1] in m))",
    "keys of equal maps": "cel.bind(m, {pod.spec.containers[0].args[0]: 1}, "
    "cel.bind(n, {pod.spec.containers[0].args[1]: 1}, pods.all(p, m == n)))",
    "the end of a text that is split": _bound(
        f"'{'a' * 99}b{'a' * 99}'", "_", 0, "lists.range(90).all(i, (_ + " + _annotation("a") + ").split(_).size() > 1)"
    ),
    "objects that are asked whether they have a field": "lists.range(600).all(i, "
    + " && ".join(["!optional.ofNonZeroValue(node.status.config).hasValue()"] * 10)
    + ")",
    "errors that are absorbed": "cel.bind(m, {'a': node.spec.unschedulable}, lists.range(200).exists(i, "
    + " || ".join(["m['b']"] * 80)
    + "))",
    "lists that are written out": f"lists.range(5000).map(i, [i{', 1' * 900}]).size() > 0",
    "maps that are written out": "lists.range(5000).map(i, {'z': i, "
    + ", ".join(f"'{at}': 1" for at in range(300))
    + "}).size() > 0",
    "fractions of which each is compared with each": "lists.range(4000).map(i, double(i)).distinct().size() > 0",
    "amounts of many digits": f"cel.bind(a, {_annotation('amount')}, lists.range(55).all(i, "
    + " && ".join(["isQuantity(a)"] * 10)
    + "))",
    "durations": f"lists.range(9999).all(i, duration({_annotation('digits')} + 's') > duration('1s'))",
}
RAISES = {
    "ranges": ("lists.range(1000000).distinct().size() > 0", Kind.LIMIT),
    "an annotation that is too long": (f"{_annotation('too-long')} == 'y'", Kind.ARGUMENT),
    "one that may be missing": ("pod.metadata.annotations[?'too-long'].orValue('') == 'y'", Kind.ARGUMENT),
    "one by its field": ("pod.metadata.annotations.?pattern != pod.metadata.annotations[?'too-long']", Kind.ARGUMENT),
    "one that somebody else wrote": (f"'x'.matches({_annotation('pattern')})", Kind.PATTERN),
    "a pattern that is too long": (f"'x'.matches({_annotation('letters')})", Kind.PATTERN),
}  # fmt: skip


def program(text: str) -> Program:
    return Program(check(text, Environment(RULE), VALUE).checked)


def compiled_rule(text: str) -> CompiledExpression:
    """As a policy that has it compiles it."""
    made = policy(filters={"f": text}).filters[0].expression
    assert made is not None
    return made


def outcomes(text: str) -> Iterator[object]:
    """What comes of it, whatever code is taken."""
    made = program(text)
    for one in (made.for_pod, made.plain, lambda pod: made.noting(pod, lambda _: None)):
        try:
            yield one(POD)(NODE, 0)
        except (CelError, Abort) as error:
            yield error.kind
    result, _ = made.traced(POD)(NODE, 0)
    yield result.kind if isinstance(result, CelError | Abort) else result


@pytest.mark.parametrize("text", COSTS_TOO_MUCH.values(), ids=COSTS_TOO_MUCH)
def test_what_costs_too_much_raises_before_it_does(text: str) -> None:
    assert len(text) <= 4096
    program(text).check()
    tracemalloc.start()
    try:
        assert {*outcomes(text)} == {Kind.COST}
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("text", ["lists.range(0).exists(i, _)", "(node.metadata.name == '' ? true : _)"])
def test_what_is_computed_before_a_loop_that_goes_nowhere_is_counted(text: str) -> None:
    assert program(text.replace("_", "regex.extractAll(pod.spec.containers[0].args[0], 'z').size() > 0")).is_metered


def test_a_pattern_that_takes_long_to_compile_is_refused_before_it_is_used() -> None:
    with pytest.raises(ExpressionError, match="this always raises an error: regular expression too large"):
        program(r"pod.metadata.name.matches('\\pL{1000}')")


@pytest.mark.parametrize(("text", "kind"), RAISES.values(), ids=RAISES)
def test_what_may_not_be_read_raises(text: str, kind: Kind) -> None:
    assert {*outcomes(text)} == {kind}


ORDINARY = {
    "node.metadata.labels[?'zone'].orValue('') == 'a'": False,
    "pods.filter(p, p.metadata.labels[?'app'].orValue('') == '3').size() < 200": True,
    "node.metadata.labels['zone'].matches('^[a-z]+$')": False,
    f"double({_annotation('digits')}.substring(0, 3)) > 1.0": False,
    "free[?'cpu'].orValue(1.0) > request['cpu'] / 2.0": False,
    f"{_annotation('list')}.split(',').size() > 3": False,
    "pods.all(p, pods.exists(q, q.metadata.name == p.metadata.name) || p.metadata.name != '')": True,
    "pod.metadata.name.matches(pod.metadata.labels['app']) || true": True,
    "lists.range(2000).map(i, string(now)).join('é').upperAscii().size() > 1": True,
}


@pytest.mark.parametrize(("text", "metered"), ORDINARY.items(), ids=ORDINARY)
def test_what_cannot_cost_too_much_is_not_counted(text: str, metered: bool) -> None:
    assert program(text).is_metered is metered


def test_what_is_computed_once_costs_as_much_wherever_it_is_used() -> None:
    used = f"{_annotation('list')}.split(',').size() > 0 && " * 20
    once = f"pods.exists(p, {_annotation('list')}.split(',').exists(i, i == p.metadata.name))"
    assert {*outcomes(once)} == {Kind.COST}
    assert {*outcomes(used + "pods.exists(p, p.metadata.name == 'p1')")} == {Kind.COST}


def test_a_meter_that_is_empty_ends_the_evaluation_before_anything_is_made() -> None:
    meter = Meter()
    meter.pay(BUDGET)
    with pytest.raises(Abort, match="costs too much"):
        meter.pay(1)
    meter.begin()
    meter.pay(BUDGET)


def test_code_that_counts_does_what_code_that_does_not_does() -> None:
    """Whatever is compared with the engine, once more with all of it counted."""
    with patch.object(Program, "is_metered", PropertyMock(return_value=True)):
        for number in range(1_000):
            result = run(case(Random(f"metered/{number}")))  # noqa: S311
            assert not result.differences, "\n".join(result.differences)


def test_an_evaluation_that_begins_anew_has_cost_no_more_than_half_before(monkeypatch: pytest.MonkeyPatch) -> None:
    paid = list[int]()

    def counted(pay: Any) -> Any:
        def method(meter: Meter, units: int) -> None:
            pay(meter, units)
            paid.append(units)

        return method

    for kind in {Meter, OptimisticMeter}:
        monkeypatch.setattr(kind, "pay", counted(kind.pay))
    for count in range(1, 9):
        text = " && ".join([f"pods.all(p, p.metadata.name + p.metadata.uid != '{at}')" for at in range(count)])
        made = program(f"{text} && node.metadata.labels['none'] == '' || true").for_pod(POD)
        paid.clear()
        with suppress(Abort):
            assert made(NODE, 0) is True
        assert sum(paid) <= BUDGET + BUDGET // 2


def test_no_code_of_a_large_expression_is_made_while_it_is_evaluated() -> None:
    large = " || ".join(["node.metadata.labels['none'] == 'a'"] * 40 + ["now.getHours() > 25"])
    made = program(large)
    made.check()
    with patch.object(Program, "_written", side_effect=AssertionError):
        for one in (made.for_pod(POD), made.noting(POD, lambda _: None)):
            with pytest.raises(KeyError, match="none"):
                one(NODE, 0)


def test_what_costs_more_than_half_is_evaluated() -> None:
    text = " && ".join([f"pods.all(p, p.metadata.name + p.metadata.uid != '{at}')" for at in range(3)])
    meter = Meter()
    with patch("fairlead.cel.lowering.program.Meter", lambda: meter):
        assert program(text).plain(POD)(NODE, 0) is True
    assert BUDGET - meter.left > BUDGET // 2
    assert {*outcomes(text)} == {True}


TOO_MUCH_FOR_THE_ENGINE = {
    "a flattened tree": _bound("[1]", "[_,_,_,_,_,_,_,_,_,_]", 9, "_.flatten(9).size() > 0"),
    "texts that the checker takes for numbers": "cel.bind(v, ([1] + dyn(["
    f"{_annotation('letters')}]))[1], lists.range(5000).map(i, v + v).size() > 0)",
    "texts that the checker takes for numbers, doubled": _bound(
        "([1] + dyn(['ab']))[1]", "_+_+_+_+_+_+_+_+_+_", 9, "dyn(_).size() > 0"
    ),
    "operators that ask for types": "cel.bind(v, dyn(1), lists.range(500).map(i, ["
    + ", ".join(["v % 2"] * 40)
    + "]).size() > 0)",
    "operators of which the checker says nothing": "cel.bind(v, dyn(1), lists.range(2000).map(i, v"
    + " + i - i" * 10
    + ").size() > 0)",
    "a text of an unknown type that doubles": _bound(
        "([1] + dyn([node.metadata.name]))[1]", "_+_+_+_+_+_+_+_+_+_", 9, "dyn(_) != ''"
    ),
    "a list or a map of any length": "pod.spec.containers.all(i, dyn(i.args).exists(k, v, k != v))",
    "texts whose characters are counted": "'%s'.format([1]) == '1' && cel.bind(s, pod.metadata.annotations['a'], "
    "lists.range(3000).exists(i, s.size() < 0))",
    "amounts": "'%s'.format([1]) == '1' && cel.bind(s, pod.metadata.annotations['a'], lists.range(90).exists(i, "
    "quantity(s).add(quantity(s)).add(i).sign() < 0))",
    "addresses": "'%s'.format([1]) == '1' && cel.bind(s, pod.metadata.annotations['a'], lists.range(150).exists(i, "
    "isIP(s) && cidr('10.0.0.0/8').containsIP(s)))",
    "versions": "'%s'.format([1]) == '1' && cel.bind(s, pod.metadata.annotations['a'], lists.range(90).exists(i, "
    "isSemver(s) && semver(s).isGreaterThan(semver('1.2.3'))))",
    "a list that is made anew for each element": "lists.range(9999).map(i, i).size() > 1 && '%s'.format([1]) == '1'",
    "a range of an unknown end": "lists.range(int(pod.metadata.name)).all(i, '%d'.format([i]) != 'x')",
    "lists in lists": "pod.spec.containers.all(c, c.env.all(e, '%s'.format([e.name]) != ''))",
}


@pytest.mark.parametrize("text", TOO_MUCH_FOR_THE_ENGINE.values(), ids=TOO_MUCH_FOR_THE_ENGINE)
def test_the_engine_is_given_nothing_that_it_cannot_bound(text: str) -> None:
    with pytest.raises(PolicyError, match="runs on the engine, where one evaluation may cost"):
        compiled_rule(text)


@pytest.mark.parametrize(
    ("name", "value"), [("a text", {"a": "x" * 2_000}), ("a map", {f"k{at}": "" for at in range(200)})]
)
def test_the_engine_reads_no_objects_that_are_too_large(name: str, value: Any) -> None:
    rule = compiled_rule("pod.metadata.annotations.all(k, '%s'.format([pod.metadata.annotations[k]]) != '')")
    assert rule.evaluation == "Engine"
    pod = SimpleNamespace(pod=from_json("Pod", {"metadata": {"annotations": value}}))
    with pytest.raises(Abort, match="than a rule on the engine may read"):
        rule.for_pod(pod)(None, 0)
