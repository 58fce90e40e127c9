"""The predicted outcomes for an absent label, and for another value of it, are those of the evaluation."""

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.cel.check import BOOL, Environment, check
from fairlead.cel.engine.environment import RULE
from fairlead.cel.values.structs import from_json
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.lint.absent_keys import MapEntry, Truth, entries, outcomes
from fairlead.policy.views.faults import RAISED
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView
from support.examples import MANY

_ENVIRONMENT = Environment(RULE)
_L = "node.metadata.labels"


def compiled(text: str) -> CompiledExpression:
    return CompiledExpression(check(text, _ENVIRONMENT, BOOL))


def _outcome(expression: CompiledExpression, labels: dict[str, str], *, unschedulable: bool = False) -> Truth:
    whole = {"metadata": {"name": "n", "labels": labels}, "spec": {"unschedulable": unschedulable}}
    try:
        found: bool = expression.for_pod(PodView(None))(NodeView(from_json("Node", whole)), 0)
    except RAISED:
        return None
    return found


_VALUES = st.sampled_from(["", "x", "y"])
_READS = st.one_of(
    st.sampled_from([f"{_L}['a']", f"{_L}.a"]),
    _VALUES.map(lambda value: f"{_L}[?'a'].orValue('{value}')"),
)
_CERTAIN = st.one_of(
    st.tuples(_READS, st.sampled_from(["==", "!="]), _VALUES).map(lambda one: f"{one[0]} {one[1]} '{one[2]}'"),
    st.tuples(_READS, st.sets(_VALUES)).map(lambda one: f"{one[0]} in {sorted(one[1])}"),
    st.sampled_from([f"'a' in {_L}", f"has({_L}.a)", f"{_L}[?'a'].hasValue()", "true", "false"]),
    st.just(f"{_L}.a.split(',').exists(v, v == 'x')"),
)
_UNCERTAIN = st.one_of(
    _CERTAIN,
    st.tuples(_READS, st.sampled_from(["exists", "all", "exists_one"])).map(
        lambda one: f"['x', 'y'].{one[1]}(v, v == {one[0]})"
    ),
    _READS.map(lambda read: f"['x', 'y'].filter(v, v != {read}).size() == 2"),
    _READS.map(lambda read: f"('a' in {_L} ? {read} : 'x') == 'x'"),
    st.just("node.spec.unschedulable"),
)


def _of(atoms: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        atoms,
        lambda below: st.one_of(
            st.tuples(below, st.sampled_from(["&&", "||"]), below).map(lambda one: f"({one[0]}) {one[1]} ({one[2]})"),
            below.map(lambda one: f"!({one})"),
            st.tuples(below, below, below).map(lambda one: f"({one[0]}) ? ({one[1]}) : ({one[2]})"),
        ),
        max_leaves=5,
    )


@settings(max_examples=MANY)
@given(_of(_UNCERTAIN))
def test_what_comes_without_the_label_is_foretold(text: str) -> None:
    expression = compiled(text)
    for entry in entries(expression):
        foretold = {absent for absent, _ in outcomes(expression, entry)}
        for unschedulable in (False, True) if foretold else ():
            assert _outcome(expression, {}, unschedulable=unschedulable) in foretold


@settings(max_examples=MANY)
@given(_of(_CERTAIN))
def test_what_is_certain_is_foretold_as_it_comes(text: str) -> None:
    expression = compiled(text)
    for entry in entries(expression):
        if foretold := outcomes(expression, entry):
            assert foretold == {(_outcome(expression, {}), _outcome(expression, {"a": "zz"}))}


def test_an_entry_is_named_as_it_is_written() -> None:
    [entry] = entries(compiled(f"{_L}['a'] == 'x' || has({_L}.b)"))
    assert (entry.key, entry.map, entry.root) == ("a", _L, "node")
    assert entries(compiled(f"{_L}[?'a'].orValue('') == 'x' && 'b' in {_L}")) == []
    [first, second] = entries(compiled(f"pod.spec.containers.exists(c, c.resources.limits['a'] == {_L}.a)"))
    assert (first.map, first.root, second.map) == ("c.resources.limits", "c", _L)
    assert isinstance(first, MapEntry)
