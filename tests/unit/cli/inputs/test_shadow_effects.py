"""What rules in shadow would change for a pod: whatever they are, what decides is as without them."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cli.inputs.shadow_effects import PodShadow, pod_shadow, shadow_rules
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import as_enforced
from fairlead.policy.evaluate.matching import policy_set
from fairlead.simulation.results import PodResult
from fairlead.simulation.simulation import Simulation
from fairlead.simulation.snapshot import Snapshot
from support.policy import NOW, policy
from support.simulation.snapshot import node, pod

NODES = [node(f"n{at}", labels={"a": str(at % 2), "b": str(at % 3)}) for at in range(4)]
POD = pod("x", labels={"app": "web"})
FILTERS = [
    "node.metadata.labels['a'] == '1'",
    "node.metadata.labels['b'] != '1'",
    "node.metadata.labels['no'] == 'x'",
    "int(node.metadata.labels['b']) / 0 == 1",
    "false",
    "true",
]
SCORES = [
    "double(node.metadata.labels['b']) * 40.0",
    "node.metadata.name == 'n3' ? 100.0 : 0.0",
    "1.0 / double(node.metadata.labels['no'])",
]
CONDITIONS = ["pod.metadata.labels['app'] == 'web'", "pod.metadata.labels['no'] == 'x'", "false"]
RULE = st.tuples(st.sampled_from(["Enforce", "Shadow"]), st.sampled_from(["Pass", "Reject"]))


def judged(*policies: CompiledPolicy) -> PodResult:
    snapshot = Snapshot()
    for one in (*NODES, POD, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}}):
        snapshot.put(one)
    return Simulation(policy_set(policies), snapshot, NOW).judge(msgspec.json.encode(POD))


def shown(found: PodResult) -> list[Any]:
    return [(one.name, [(by.policy, by.rule, by.reason) for by in one.rejections], one.score) for one in found.nodes]


@st.composite
def written(draw: st.DrawFn, name: str) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Yield a policy, and the same without what is in shadow; None if nothing is left."""
    mode = draw(st.sampled_from(["Enforce", "Shadow", "Disabled"]))
    rules: dict[str, list[dict[str, Any]]] = {"filters": [], "scores": []}
    for kind, expressions in (("filters", FILTERS), ("scores", SCORES)):
        for at, expression in enumerate(draw(st.lists(st.sampled_from(expressions), max_size=3))):
            of_rule, on_error = draw(RULE)
            more = {"onError": on_error} if kind == "filters" else {}
            rules[kind].append({"name": f"{kind[0]}{at}", "expression": expression, "mode": of_rule, **more})
    conditions = [
        {"name": f"c{at}", "expression": one}
        for at, one in enumerate(draw(st.lists(st.sampled_from(CONDITIONS), max_size=1)))
    ]
    whole = {"name": name, "mode": mode, "match": {"conditions": conditions}, **rules}
    if mode != "Enforce":
        return whole, None
    return whole, whole | {kind: [one for one in some if one["mode"] != "Shadow"] for kind, some in rules.items()}


@given(st.tuples(written("p"), written("q")))
def test_what_decides_is_as_if_nothing_were_in_shadow(
    pair: tuple[tuple[dict[str, Any], dict[str, Any] | None], ...],
) -> None:
    policies = [policy(**whole) for whole, _ in pair]
    without = [policy(**rest) for _, rest in pair if rest is not None]
    decided = judged(*policies)
    assert shown(decided) == shown(judged(*without))
    shadow = pod_shadow(shadow_rules(policies), decided, judged(*map(as_enforced, policies)))
    if shadow is not None:
        _agrees(shadow)


def _agrees(shadow: PodShadow) -> None:
    """Assert that each possible node that would be lost has a rule in shadow that would reject it, and no other has."""
    possible = {one.name for one in shadow.decided.left}
    assert {*shadow.lost} == possible & {*shadow.rejections()}
    assert ("unschedulable" in shadow.effects) == (bool(possible) and possible == {*shadow.lost})
    assert ("restricted" in shadow.effects) == bool(shadow.lost)
    known = {one for one in shadow.rules if one.kind == "Filter"}
    assert all((one.policy, one.rule, one.kind) in known for some in shadow.rejections().values() for one in some)


LOST = ["restricted", "unschedulable"]


def of(*policies: CompiledPolicy) -> PodShadow | None:
    return pod_shadow(shadow_rules(policies), judged(*policies), judged(*map(as_enforced, policies)))


def test_of_a_match_that_cannot_be_decided_only_what_would_come_of_it_is_said() -> None:
    unclear = {"conditions": {"c": CONDITIONS[1]}}
    both = of(policy(match=unclear, filters={"a": {"expression": "true", "mode": "Shadow"}, "b": "true"}))
    assert both is not None
    assert (both.effects, both.rejections()) == ([], {})
    whole = of(policy(match=unclear, mode="Shadow", filters={"a": "true"}))
    assert whole is not None
    assert (whole.effects, {*whole.rejections()}) == (LOST, {"n0", "n1", "n2", "n3"})
    only = of(policy(match=unclear, filters={"a": {"expression": "true", "mode": "Shadow"}}))
    assert only is not None
    assert (only.effects, {*only.rejections()}) == (LOST, {"n0", "n1", "n2", "n3"})
