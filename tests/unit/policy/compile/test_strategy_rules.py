"""Rules by strategies that the image's owner has added: what is read of them, and what is said when it is wrong."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal

import pytest
from pydantic import Field

from fairlead.api.params import DataName, Listed, Params
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy, deciding_fields
from fairlead.api.values import Duration, within
from fairlead.policy.compile.compiler import CompileOptions
from fairlead.policy.evaluate.matching import Matched
from fairlead.policy.explain.explainer import explain
from fairlead.policy.lint.inspection import inspect
from fairlead.strategies.contract import PASS, Filter, PodsRead, Reads, Reject, Score, Strategy, Unknown, Use
from support.policy import INSTALLED, MODEL, NOW, Evaluation, faults, node, obj, placed, pod, policy


class Part(Params):
    """A part of the parameters."""

    name: Annotated[str, Field(max_length=63)]
    depth: Annotated[int, Field(ge=0, le=9)] = 0


class Limit(Params):
    """Pass nodes with fewer pods than this."""

    max: Annotated[int, Field(ge=1, le=100)] = 1
    mode: Literal["Soft", "Hard"] = "Hard"
    size: Literal[1, 2] = 1
    parts: Annotated[Listed[Part], Field(max_length=2)] = ()
    wait: Annotated[Duration, within("0s", "1h")] = Duration("0s")
    load: DataName | None = None


class Prefer(Params):
    """Prefer nodes by a value."""

    load: DataName


FULL = Reject("too many pods")


def _limit(params: Limit) -> Filter:
    return Filter(
        reads=Reads(pods=frozenset({PodsRead()})),
        for_pod=lambda _: lambda node, *_: PASS if len(node.pods) < params.max else FULL,
        reasons=(FULL.reason,),
    )


def _prefer(params: Prefer) -> Score:
    return Score(
        reads=Reads(data=frozenset({str(params.load)})), for_pod=lambda _: lambda node, *_: node.data(params.load)
    )


SPREAD = Strategy(name="spread", filter=Use(Limit, _limit), score=Use(Prefer, _prefer))
GATE = Strategy(name="gate", filter=Use(Limit, _limit))
CUSTOM = {one.name: one for one in (SPREAD, GATE)}
RULES = CompileOptions(INSTALLED, custom=CUSTOM)
DATA = [{"name": "load", "nodeLabel": {"key": "load"}}]


def spread(**params: object) -> dict[str, Any]:
    return {"custom": {"name": "spread", "params": params}}


def test_a_filter_and_a_score_decide() -> None:
    made = policy(rules=RULES, data=DATA, filters={"f": spread(max=2)}, scores={"s": spread(load="load")})
    nodes = [node("a", labels={"load": "30"}), node("b", pods=[placed("x"), placed("y")]), node("c", pods=[placed()])]
    cluster = Evaluation([made], nodes)
    assert cluster.filter(pod()).passed == ["a", "c"]
    assert [one.reason for one in cluster.filter(pod()).rejected.values()] == ["too many pods"]
    assert cluster.scores(pod())[0] == 30.0
    assert {report.name: (report.evaluation, report.uses) for report in made.reports} == {
        "f": ("ByteCode", ("pods",)),
        "s": ("ByteCode", ("data.load (nodeLabel load)",)),
    }


def test_parameters_that_are_not_written_have_their_defaults() -> None:
    made = policy(rules=RULES, filters={"f": {"custom": {"name": "spread"}}, "g": {"custom": {"name": "gate"}}})
    assert Evaluation([made], [node("a"), node("b", pods=[placed()])]).filter(pod()).passed == ["a"]


P = "spec.filters[0].custom.params"
WRONG: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "too small": (spread(max=0), {f"{P}.max": "must be at least 1, not 0"}),
    "a text": (spread(max="3"), {f"{P}.max": "must be a whole number, not '3'; remove the quotes"}),
    "nearly a field": (spread(maxx=3), {f"{P}.maxx": "there is no such field; did you mean max?"}),
    "a field of a part": (
        spread(depth=3),
        {f"{P}.depth": "there is no such field; it belongs in spec.filters.custom.params.parts"},
    ),
    "no such word": (
        spread(mode="hard"),
        {f"{P}.mode": "'hard' is not one of Soft, Hard; did you mean Hard?"},
    ),
    "no such number": (spread(size=3), {f"{P}.size": "input should be 1 or 2"}),
    "a duration": (
        spread(wait="2h"),
        {f"{P}.wait": "'2h' is not possible here; write a duration such as 90s, 5m or 1h30m, from 0s to 1h"},
    ),
    "a part": (
        spread(parts=[{"name": "a"}, {"name": "a", "depth": 10}]),
        {f"{P}.parts[1].depth": "must be at most 9, not 10"},
    ),
    "a part twice": (
        spread(parts=[{"name": "a"}, {"name": "a"}]),
        {f"{P}.parts[1]": "name 'a' is a duplicate; list each only once"},
    ),
    "several": (
        spread(max=0, mode="x"),
        {f"{P}.max": "must be at least 1, not 0", f"{P}.mode": "'x' is not one of Soft, Hard"},
    ),
    "data that are not declared": (
        spread(load="load"),
        {f"{P}.load": "there is no entry load in the policy's data; the policy declares none"},
    ),
    "not installed": (
        {"custom": {"name": "sprad"}},
        {"spec.filters[0].custom.name": 'this image has no strategy "sprad"; it has gate, spread'},
    ),
    "built in": (
        {"custom": {"name": "nodeReadiness"}},
        {"spec.filters[0].custom.name": "nodeReadiness is built in; write nodeReadiness as a field of the rule"},
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_all_that_is_wrong_is_said_with_its_field(case: str) -> None:
    rule, want = WRONG[case]
    assert faults(RULES, filters={"f": rule}) == want


def test_without_custom_strategies_there_is_none() -> None:
    want = {"spec.filters[0].custom.name": 'this image has no strategy "spread"; it has none'}
    assert faults(filters={"f": spread()}) == want


def test_a_strategy_that_only_filters_gives_no_score() -> None:
    want = {"spec.scores[0].custom.name": "gate is not a score; use it under filters"}
    assert faults(RULES, scores={"s": {"custom": {"name": "gate"}}}) == want


def test_data_of_a_score_must_be_declared() -> None:
    want = {"spec.scores[0].custom.params.load": "there is no entry lod in the policy's data; declared are load"}
    assert faults(RULES, data=DATA, scores={"s": spread(load="lod")}) == want
    assert faults(RULES, scores={"s": spread()}).keys() == {"spec.scores[0].custom.params.load"}


def test_faults_of_parameters_are_said_beside_those_of_the_schema() -> None:
    wrong = obj(filters=[{"name": "f", "custom": {"name": "spread", "params": {"max": 0}}}, {"name": "g"}])
    said = [str(one) for one in inspect(wrong, MODEL, RULES, None).faults]
    assert said == [
        f"spec.filters[1]: give exactly one of {', '.join(deciding_fields(MODEL)['filters'])}; found none",
        f"{P}.max: must be at least 1, not 0",
    ]


class Refused(Params):
    """Parameters whose author raises what nobody expects."""

    def model_post_init(self, _: object) -> None:
        raise ZeroDivisionError("a\nb")


def _raises(_: Params) -> Filter:
    raise KeyError("no such thing")


FAULTY: dict[str, tuple[Callable[[Params], Any], str]] = {
    "raises": (_raises, "the strategy faulty failed: KeyError: 'no such thing' (test_strategy_rules.py:"),
    "nothing": (lambda _: None, "the strategy faulty failed: TypeError: it compiles to None, not to a Filter"),
    "a score": (
        lambda _: Score(reads=Reads(), for_pod=lambda _: lambda *_: 1.0),
        "the strategy faulty failed: TypeError: it compiles to CompiledScore(",
    ),
    "reads of another kind": (
        lambda _: Filter(reads=frozenset(), for_pod=lambda _: lambda *_: PASS, reasons=()),  # type: ignore[arg-type]
        "the strategy faulty failed: TypeError: it compiles to CompiledFilter(",
    ),
}


@pytest.mark.parametrize("case", FAULTY)
def test_an_error_of_a_strategy_is_a_fault_of_the_rule_and_says_so(case: str) -> None:
    make, want = FAULTY[case]
    rules = CompileOptions(INSTALLED, custom={"faulty": Strategy(name="faulty", filter=Use(Params, make))})
    (said,) = faults(rules, filters={"f": {"custom": {"name": "faulty"}}, "g": "true"}).items()
    assert said[0] == "spec.filters[0].custom.name"
    assert said[1].startswith(want)
    assert said[1].endswith("; this is an error of the strategy, not of the policy")


def test_so_is_one_of_its_parameters() -> None:
    rules = CompileOptions(INSTALLED, custom={"faulty": Strategy(name="faulty", filter=Use(Refused, _raises))})
    (said,) = faults(rules, filters={"f": {"custom": {"name": "faulty"}}}).values()
    assert said.startswith("the strategy faulty failed: ZeroDivisionError: a")


def test_an_error_of_a_custom_strategy_stays_in_its_rule() -> None:
    def fails(*_: object) -> Unknown:
        raise RecursionError

    odd = Strategy(name="odd", filter=Use(Params, lambda _: Filter(reads=Reads(), for_pod=lambda _: fails, reasons=())))
    rules = CompileOptions(INSTALLED, custom={"odd": odd})
    made = policy(rules=rules, filters={"f": {"custom": {"name": "odd"}, "onError": "Pass"}, "g": "true"})
    assert Evaluation([made], [node("a")]).filter(pod()).passed == ["a"]


def test_parameters_are_of_the_generation_of_a_file() -> None:
    one, same, other = (
        policy(rules=RULES, generation=0, filters={"f": spread(max=most)}).generation for most in (1, 1, 2)
    )
    assert one == same != other


def test_the_model_takes_any_parameters() -> None:
    written = SchedulerExtenderPolicy.model_validate(
        obj(filters={"f": spread(a=[{"b": 1.5}], c=None, d={"e": None})}), by_alias=True, by_name=False
    )
    custom = written.spec.filters[0].custom
    assert custom is not None
    assert custom.params == {"a": [{"b": 1.5}], "d": {"e": None}}


_UNTIMED = {"nodeLabel": {"key": "a"}}, {"nodeAnnotation": {"key": "a"}}
_TIMED = (
    {"nodeAnnotation": {"key": "a", "timeKey": "b"}},
    {"nodeAnnotation": {"key": "a", "format": "ValueCommaTime"}},
    {"prometheus": {"query": "a"}},
    {"nodeMetrics": {"resource": "memory"}},
    {"configMap": {"name": "a"}},
)
_WITH_LAG: Final[Mapping[str, Mapping[str, Any]]] = {
    "safe": {"resources": [{"name": "memory", "mean": "memFree", "measure": "Free"}]},
    "loadRisk": {"resources": [{"name": "memory", "mean": "memFree", "measure": "Free"}]},
    "targetLoad": {"resource": "memory", "value": "memFree", "measure": "Free"},
}


@pytest.mark.parametrize("name", _WITH_LAG)
@pytest.mark.parametrize("source", [*_UNTIMED, *_TIMED], ids=str)
def test_values_without_a_time_take_no_lag(name: str, source: Mapping[str, Any]) -> None:
    given = [{"name": "memFree", **source}]
    for params in (_WITH_LAG[name], {**_WITH_LAG[name], "lag": "0s"}):
        policy(rules=RULES, data=given, scores={"s": {name: params}})
    late = {"s": {name: {**_WITH_LAG[name], "lag": "90s"}}}
    if source in _TIMED:
        policy(rules=RULES, data=given, scores=late)
    else:
        want = "memFree does not tell when it was measured; leave lag out"
        assert faults(RULES, data=given, scores=late) == {f"spec.scores[0].{name}.lag": want}


@pytest.mark.parametrize("normalize", ["None", "MinMax", "Rank", None])
@pytest.mark.parametrize("has_range", [True, False])
def test_a_range_stands_in_place_of_normalize(normalize: str | None, has_range: bool) -> None:
    ranged = {"range": {"from": 30, "to": 80}} if has_range else {}
    rule = {"telemetry": {"value": "heat", "prefer": "Lowest", **ranged}, "normalize": normalize}
    given: dict[str, Any] = {"data": [{"name": "heat", "nodeLabel": {"key": "a"}}], "scores": {"s": rule}}
    if normalize and has_range:
        want = "telemetry has range, which stands in place of normalize; leave out normalize or range"
        assert faults(RULES, **given) == {"spec.scores[0].normalize": want}
    else:
        policy(rules=RULES, **given)


class Nothing(Params):
    """No parameters."""


def _returning(found: Any) -> CompileOptions:
    def score(_: Nothing) -> Score:
        def one(*_: object) -> Any:
            if isinstance(found, Exception):
                raise found
            return found

        return Score(reads=Reads(), for_pod=lambda _: one)

    return CompileOptions(INSTALLED, custom={"odd": Strategy(name="odd", score=Use(Nothing, score))})


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (KeyError("x"), "KeyError: 'x' (test_strategy_rules.py:"),
        ("7", "TypeError: the score returned '7', not a number or an Unknown ("),
        (float("nan"), "ValueError: the score returned nan, which is not a number: return an Unknown ("),
    ],
)
def test_explain_shows_what_a_strategy_did_wrong(found: Any, why: str) -> None:
    one = policy(rules=_returning(found), scores={"s": {"custom": {"name": "odd"}}})
    [rule] = explain(pod(), [Matched(one)], Evaluation([one], [node("a")]).nodes, "a", NOW).scores
    assert (rule.outcome, rule.reason.startswith(f"rule s cannot be decided: {why}")) == ("Unknown", True)


def test_a_score_that_is_a_text_is_no_score() -> None:
    """Not even if it reads as a number."""
    one = policy(rules=_returning("7"), scores={"s": {"custom": {"name": "odd"}}})
    assert Evaluation([one], [node("a")]).scores(pod()) == [0.0]


def test_a_normalization_that_there_is_not_does_not_compile() -> None:
    def score(_: Nothing) -> Score:
        return Score(reads=Reads(), for_pod=lambda _: lambda *_: 1.0, normalize="Foo")  # type: ignore[arg-type]

    rules = CompileOptions(INSTALLED, custom={"odd": Strategy(name="odd", score=Use(Nothing, score))})
    [said] = faults(rules, scores={"s": {"custom": {"name": "odd"}}}).values()
    assert "the strategy odd failed: TypeError: its normalize is 'Foo', not one of None, MinMax, Rank" in said
