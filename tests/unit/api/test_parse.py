import re
from itertools import pairwise

import pytest
from generate.crds import installed_policy

from fairlead.api.errors import FieldError, InvalidObjectError
from fairlead.api.parse import parse_policy
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy
from fairlead.strategies import installed
from policies.bad import A_NAME, BAD, Bad
from policies.good import EVERYTHING, GOOD, Object, policy
from policies.spoilt import spoilt

POLICY = installed_policy()


def parse(obj: object) -> SchedulerExtenderPolicy:
    return parse_policy(obj, POLICY)


def errors_of(obj: object) -> tuple[FieldError, ...]:
    with pytest.raises(InvalidObjectError) as refused:
        parse(obj)
    return refused.value.errors


@pytest.mark.parametrize("good", [pytest.param(good, id=sentence) for sentence, good in GOOD.items()])
def test_a_good_policy_is_read(good: Object) -> None:
    assert parse(good).metadata.name == "some" or good is EVERYTHING


@pytest.mark.parametrize("bad", [pytest.param(bad, id=sentence) for sentence, bad in BAD.items()])
def test_a_bad_policy_is_refused_for_the_same_field_as_by_the_api_server(bad: Bad) -> None:
    said = [str(error) for error in errors_of(bad.policy)]
    blamed = [one for one in said if _blames(one, bad.want_field)]
    assert blamed, said
    want = bad.want_offline or bad.want_server
    assert [one for one in blamed if want.replace(": ", "; ", 1) in one or want in one], said


def _blames(said: str, field: str) -> bool:
    """Whether an error is about a field or a key of it; the API server writes keys of maps in two ways."""
    plain = re.sub(r"\[([a-z]\w*)\]", r".\1", field)
    return said.startswith((f"{plain}: ", f"{plain}["))


def test_what_is_not_written_has_its_default() -> None:
    spec = parse(policy(filters=[{"name": "a", "expression": "true"}], scores=[{"name": "b", "expression": "1"}])).spec
    assert (spec.scheduler_name, spec.mode, spec.priority, spec.failure_policy) == ("fairlead", "Enforce", 0, "Fail")
    assert (spec.filters[0].on_error, spec.filters[0].reason, spec.filters[0].resolvable) == ("Reject", None, None)
    assert (spec.scores[0].weight, spec.scores[0].normalize) == (1, None)
    assert (spec.match.namespaces, spec.match.conditions, spec.preemption.protect, spec.binding) == (None, (), (), None)


def test_what_is_written_is_what_is_read() -> None:
    spec = parse(EVERYTHING).spec
    assert spec.model_dump(by_alias=True, exclude_unset=True, mode="json") == EVERYTHING["spec"]
    assert spec.data[0].max_age is not None
    assert spec.data[0].max_age.seconds == 60


def test_a_rule_says_which_strategy_it_uses() -> None:
    params = {"conditions": [{"type": "NetworkReady"}], "holdOff": "20s"}
    by_strategy, by_expression = parse(
        policy(filters=[{"name": "a", "nodeReadiness": params}, {"name": "b", "expression": "true"}])
    ).spec.filters
    assert by_strategy.strategy is not None
    name, given = by_strategy.strategy
    assert name == "nodeReadiness"
    assert given.model_dump(by_alias=True, exclude_unset=True, mode="json") == params
    assert by_expression.strategy is None


def test_everything_that_is_wrong_is_said_at_once() -> None:
    said = [
        str(error)
        for error in errors_of(
            policy(
                mode="Observe",
                filters=[{"name": "A", "expression": ""}, {"expresion": "true", "name": "b"}],
                scores=[{"name": "c", "expression": "1", "weight": 0}],
            )
        )
    ]
    assert said == [
        "spec.mode: 'Observe' is not one of Enforce, Shadow, Disabled",
        f"spec.filters[0].name: 'A' is not possible here; {A_NAME}",
        "spec.filters[0].expression: must not be empty; CEL that is true for nodes that the pod may use",
        "spec.filters[1].expresion: there is no such field; did you mean expression?",
        "spec.scores[0].weight: must be at least 1, not 0",
    ]


_STRATEGIES = ", ".join(one.name for one in installed() if one.filter)
_FIELDS = f"name, mode, expression, reason, resolvable, onError, custom, {_STRATEGIES}"
HINTS: dict[str, tuple[Object, str]] = {
    "a list of the spec beside it": (
        policy() | {"filters": []},
        "filters: there is no such field; it belongs in spec",
    ),
    "a field of rules in the spec": (
        policy(expression="true"),
        "spec.expression: there is no such field; it belongs in spec.variables, spec.filters, spec.scores and others",
    ),
    "a field of scores in a filter": (
        policy(filters=[{"name": "a", "expression": "true", "weight": 2}]),
        "spec.filters[0].weight: there is no such field; it belongs in spec.scores",
    ),
    "a strategy that gives no points": (
        policy(scores=[{"name": "a", "nodeReadiness": {}}]),
        "spec.scores[0].nodeReadiness: there is no such field; it belongs in spec.filters",
    ),
    "a part of match in the spec": (
        policy(podSelector={}),
        "spec.podSelector: there is no such field; it belongs in spec.match",
    ),
    "labels without matchLabels": (
        policy(match={"podSelector": {"app": "web"}}),
        "spec.match.podSelector.app: there is no such field; labels go under matchLabels",
    ),
    "a name that another resource has for it": (
        policy(matchConditions=[]),
        "spec.matchConditions: there is no such field; here it is called match.conditions",
    ),
    "a name of nothing": (
        policy(filters=[{"name": "a", "expression": "true", "zzz": 1}]),
        f"spec.filters[0].zzz: there is no such field; the fields here are {_FIELDS}",
    ),
    "a number in quotes": (
        policy(scores=[{"name": "a", "expression": "1", "weight": "5"}]),
        "spec.scores[0].weight: must be a whole number, not '5'; remove the quotes",
    ),
    "a word for a number": (
        policy(priority="high"),
        "spec.priority: must be a whole number, not 'high'",
    ),
    "a truth in quotes": (
        policy(filters=[{"name": "a", "expression": "true", "resolvable": "true"}]),
        "spec.filters[0].resolvable: must be true or false, not 'true'; remove the quotes",
    ),
    "a map for a list": (
        policy(variables={"a": "1"}),
        "spec.variables: must be a list, not a map; each item begins with '- ' and has its own name and expression",
    ),
    "a text for a list of texts": (
        policy(match={"namespaces": "default"}),
        "spec.match.namespaces: must be a list, not 'default'; write [default]",
    ),
    "a list for a map": (
        policy(match=[{"namespaces": ["a"]}]),
        "spec.match: must be a map of fields, not a list; remove the '-'",
    ),
    "a text for a map": (
        policy(filters=["true"]),
        f"spec.filters[0]: must be a map of fields, not 'true'; its fields are {_FIELDS}",
    ),
    "a list for an expression": (
        policy(filters=[{"name": "a", "expression": ["true"]}]),
        "spec.filters[0].expression: must be a string, not a list; write one string, with && between conditions",
    ),
    "a map for an expression": (
        policy(filters=[{"name": "a", "expression": {"a": 1}}]),
        (
            "spec.filters[0].expression: must be a string, not a map; "
            "quote a string that begins with '{', or write it under '|'"
        ),
    ),
    "a field of match, in the singular": (
        policy(match={"namespace": "a"}),
        "spec.match.namespace: there is no such field; did you mean namespaces?",
    ),
    "labels in match": (
        policy(match={"labels": {"a": "b"}}),
        "spec.match.labels: there is no such field; here it is called podSelector.matchLabels",
    ),
    "a name at the top": (
        policy() | {"name": "a"},
        "name: there is no such field; it belongs in metadata, spec.data, spec.variables and others",
    ),
    "a placeholder of a shell": (
        policy(schedulerName="${NAME}"),
        (
            "spec.schedulerName: '${NAME}' is not possible here; `${` is a template that was not filled in; "
            "let your tool fill it in first"
        ),
    ),
    "no metadata": (
        {key: value for key, value in policy().items() if key != "metadata"},
        "metadata: is missing; write its name",
    ),
}


@pytest.mark.parametrize(("obj", "want"), HINTS.values(), ids=HINTS)
def test_it_is_said_what_would_be_right(obj: Object, want: str) -> None:
    assert [str(error) for error in errors_of(obj)][-1] == want


def test_a_list_with_a_bad_item_is_not_called_too_short() -> None:
    (error,) = errors_of(policy(match={"namespaces": ["ml-*"]}))
    assert error.path == ("spec", "match", "namespaces", 0)


def test_a_name_that_two_rules_have_is_told() -> None:
    (error,) = errors_of(
        policy(
            filters=[{"name": name, "expression": "true"} for name in ("a", "b", "c")],
            scores=[{"name": name, "expression": "1"} for name in ("b", "c", "d")],
        )
    )
    assert error.path == ("spec", "scores", 0, "name")
    assert error.hint == "give the score another name than the filter has; found b, c"


def _nested(depth: int) -> Object:
    nest: Object = {}
    for _ in range(depth):
        nest = {"a": nest}
    return nest


ITSELF: Object = {}
ITSELF["itself"] = ITSELF
ABSURD: dict[str, tuple[object, str]] = {
    "nothing": (None, "must be a map of fields, not null"),
    "a number": (5, "must be a map of fields, not 5"),
    "a text": ("x" * 10**6, "must be a map of fields, not 'xxx"),
    "a list": ([policy()], "must be a map of fields, not a list"),
    "no fields": ({}, "apiVersion: is missing"),
    "another kind": (policy() | {"kind": "Pod"}, "kind: 'Pod' is not SchedulerExtenderPolicy"),
    "another version": (policy() | {"apiVersion": "v1"}, "apiVersion: 'v1' is not fairlead.dev/v1alpha1"),
    "no metadata": (policy() | {"metadata": None}, "metadata: is missing"),
    "metadata of another shape": (policy() | {"metadata": "some"}, "metadata: must be a map of fields, not 'some'"),
    "no spec": (policy() | {"spec": None}, "spec: is missing"),
    "a text for a spec": (policy() | {"spec": "x"}, "spec: must be a map of fields, not 'x'"),
    "ten thousand filters": (
        policy(filters=[{"name": f"f{i}", "expression": "true"} for i in range(10_000)]),
        "spec.filters: must have at most 32 items",
    ),
    "ten thousand bad filters": (policy(filters=[{"name": f"f{i}"} for i in range(10_000)]), "more errors"),
    "an expression of a mebibyte": (
        policy(filters=[{"name": "a", "expression": "x" * 2**20}]),
        "spec.filters[0].expression: must have at most 4096 characters, not 1048576",
    ),
    "a field name with half a character": (policy(**{"\ud800": 1}), "spec: "),
    "a field name of a mebibyte": (policy(**{"x" * 2**20: 1}), "there is no such field"),
    "a hundred thousand maps in each other": (policy(match=_nested(100_000)), "spec.match.a: there is no such field"),
    "maps in each other where a text belongs": (
        policy(filters=[{"name": _nested(100_000), "expression": "true"}]),
        "spec.filters[0].name: must be a string, not a map",
    ),
    "something that contains itself": (policy(match=ITSELF), "spec.match.itself: there is no such field"),
    "not a number": (
        policy(data=[{"name": "a", "nodeLabel": {"key": "a"}, "factor": float("nan")}]),
        "spec.data[0].factor: must be a finite number, not nan",
    ),
    "an infinite weight": (
        policy(scores=[{"name": "a", "expression": "1", "weight": float("inf")}]),
        "spec.scores[0].weight: must be",
    ),
    "a number of five thousand digits": (policy(priority=10**5000), "not a number of many digits"),
    "a number of five thousand digits where a fraction may be": (
        policy(data=[{"name": "a", "nodeLabel": {"key": "a"}, "default": 10**5000}]),
        "spec.data[0].default: must be",
    ),
    "fields that are numbers": (policy() | {"spec": {5: 6, True: 1}}, "spec[5]: keys should be strings"),
    "a set": (policy(filters={"a"}), "spec.filters"),
    "bytes": (policy(schedulerName=b"fairlead"), "spec.schedulerName: must be a string, not a bytes"),
    "half a character": (policy(filters=[{"name": "a", "expression": "\ud800"}]), "spec.filters[0].expression: "),
    "a line break at the end of a name": (policy(schedulerName="fairlead\n"), "spec.schedulerName: "),
    "names in other scripts": (policy(schedulerName="日程"), "spec.schedulerName: '日程' is not possible here"),
    "digits in other scripts": (policy(schedulerName="a٣"), "spec.schedulerName: 'a٣' is not possible here"),
}


@pytest.mark.parametrize(("obj", "want"), ABSURD.values(), ids=ABSURD)
def test_the_absurd_is_refused_in_a_few_short_words(obj: object, want: str) -> None:
    said = [str(error) for error in errors_of(obj)]
    assert [one for one in said if want in one], said[:3]
    assert len(said) <= 101
    assert max(map(len, said)) < 1000
    "\n".join(said).encode()


def _custom(params: object) -> Object:
    return policy(filters=[{"name": "a", "custom": {"name": "spread", "params": params}}])


@pytest.mark.parametrize("params", [_nested(100), _nested(100_000), ITSELF, {"a": [[[ITSELF]]]}], ids=len)
def test_parameters_whose_fields_nobody_knows_end_somewhere(params: Object) -> None:
    (error,) = errors_of(_custom(params))
    assert str(error).startswith("spec.filters[0].custom.params.")
    assert error.message == "is nested too deeply"
    assert len(str(error)) < 100


def test_parameters_are_not_many() -> None:
    (error,) = errors_of(_custom({f"a{at}": [*range(99)] for at in range(99)}))
    assert error.message == "the policy has more than 5,000 values"
    parse(_custom(_nested(15)))


def test_whatever_is_spoilt_is_read_or_refused_and_never_breaks_the_reader() -> None:
    said = [_refusal(spoilt(seed)) for seed in range(1000)]
    assert 500 < sum(map(bool, said)) < 1000


def _refusal(obj: object) -> str:
    try:
        parse(obj)
    except InvalidObjectError as refused:
        return str(refused)
    return ""


def test_a_status_is_not_looked_at() -> None:
    assert parse(policy() | {"status": "whatever"}).status.conditions == ()


def test_errors_come_in_the_order_of_the_fields() -> None:
    numbers = [error.path[2] for error in errors_of(policy(filters=[{"name": "A", "expression": "true"}] * 20))]
    assert all(int(one) <= int(other) for one, other in pairwise(numbers))


@pytest.mark.parametrize("name", ["expr", "cel", "rule", "condition"])
@pytest.mark.parametrize("rules", ["filters", "scores"])
def test_other_names_of_an_expression_lead_to_it(name: str, rules: str) -> None:
    said = [str(one) for one in errors_of(policy(**{rules: [{"name": "a", name: "true"}]}))]
    assert said == [f"spec.{rules}[0].{name}: there is no such field; did you mean expression?"]
