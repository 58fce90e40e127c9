"""Policies at random with rules in shadow, nodes that change, and what enforcing a rule would give."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final

from hypothesis import strategies as st

from fairlead.api.parse import parse_policy
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from fairlead.policy.compile.model import CompiledPolicy
from fairlead.policy.compile.modes import as_enforced
from fairlead.policy.evaluate.evaluator import Evaluator
from fairlead.policy.evaluate.matching import policy_set
from fairlead.policy.evaluate.scoring import on_the_wire
from fairlead.policy.nodes.journal import Journal
from fairlead.policy.nodes.node_table import Nodes
from fairlead.policy.shadow.effects import Effects
from fairlead.policy.shadow.shadow_rules import RuleId
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.reads import NodeChange, owner_of
from support.policy.asking import filtered, scored
from support.policy.building import INSTALLED, MODEL, node, obj, placed, pod
from support.policy.comparing import COMPARED, Counting, comparing

FILTERS: Final[Sequence[Mapping[str, Any]]] = [
    {"expression": "node.metadata.labels[?'gpu'].orValue('') == pod.metadata.labels[?'gpu'].orValue('')"},
    {"expression": "node.metadata.labels['zone'] != 'z2'"},
    {"expression": "node.metadata.labels['zone'] != 'z2'", "onError": "Pass"},
    {"expression": "free['cpu'] >= 3.0"},
    {"expression": "!pods.exists(p, p.metadata.labels[?'app'].orValue('') == 'a')"},
    {"expression": "data.load < 0.5", "onError": "Pass"},
    {"expression": "now < timestamp('2027-01-15T08:00:30Z')"},
    {"expression": "node.metadata.name != 'n' + pod.metadata.name"},
    {"expression": "false"},
    {"expression": "true"},
]
SCORES: Final[Sequence[Mapping[str, Any]]] = [
    {"expression": "free['cpu']", "normalize": "MinMax"},
    {"expression": "node.metadata.labels[?'zone'].orValue('') == 'z1' ? 100.0 : 0.0", "normalize": "None", "weight": 3},
    {"expression": "data.load", "normalize": "Rank"},
    {"expression": "-1.0 * requested['cpu']", "normalize": "MinMax", "weight": 2},
    COMPARED,
]
CONDITIONS: Final = [None, "pod.metadata.labels['gpu'] == 'a'", "pod.spec.priority > 1"]
"""The first of these raises for pods without the label."""
PROTECTIONS: Final = [
    {"expression": "victim.metadata.labels[?'app'].orValue('') == 'a'"},
    {"expression": "victim.metadata.labels['app'] == 'b'"},
    {"expression": "false"},
]
ANNOTATIONS: Final = [
    {"expression": "node.metadata.name"},
    {"expression": "node.metadata.labels['zone']", "onError": "Reject"},
    {"expression": "node.metadata.labels['zone']", "onError": "Omit"},
]
DATA: Final = [{"name": "load", "nodeAnnotation": {"key": "load"}}]
NAMES: Final = [f"n{at}" for at in range(6)]
MODES: Final = st.sampled_from([None, "Enforce", "Shadow", "Shadow"])
OPTIONS: Final = comparing(Counting())
CUSTOM: Final = CompileOptions(INSTALLED, custom=OPTIONS.custom)


@cache
def _compiled(written: str) -> CompiledPolicy:
    return compile_policy(parse_policy(json.loads(written), MODEL), CUSTOM)


Rule = tuple[Mapping[str, Any], str | None]
"""A rule without its name, and its mode."""


def _rules(name: str, rules: Sequence[Rule], key: str = "name") -> list[dict[str, Any]]:
    modes: list[dict[str, Any]] = [{} if mode is None else {"mode": mode} for _, mode in rules]
    return [{key: f"{name}-{at}", **rules[at][0], **mode} for at, mode in enumerate(modes)]


def _some(bodies: Sequence[Mapping[str, Any]], most: int) -> st.SearchStrategy[list[Rule]]:
    return st.lists(st.tuples(st.sampled_from(bodies), MODES), max_size=most)


@st.composite
def policies(draw: st.DrawFn, *, modes: Sequence[str] = ("Enforce", "Enforce", "Shadow", "Disabled")) -> CompiledPolicy:
    """A policy of a few rules, each in any mode."""
    name = draw(st.sampled_from("pqr"))
    condition = draw(st.sampled_from(CONDITIONS))
    annotations = draw(_some(ANNOTATIONS, 2))
    spec: dict[str, Any] = {
        "mode": draw(st.sampled_from(modes)),
        "data": DATA,
        "failurePolicy": "Fail" if annotations else draw(st.sampled_from(["Fail", "Ignore"])),
        "filters": _rules("filter", draw(_some(FILTERS, 3))),
        "scores": _rules("score", draw(_some(SCORES, 2))),
        "preemption": {"protect": _rules("protect", draw(_some(PROTECTIONS, 2)))},
    }
    if annotations:
        spec["binding"] = {"annotations": _rules(f"fairlead.dev/{name}", annotations, "key")}
    if condition is not None:
        spec["match"] = {"conditions": [{"name": "c", "expression": condition}]}
    written = json.dumps(obj(name, **spec), sort_keys=True)
    compiled = _compiled(written)
    _WRITTEN[id(compiled)] = written
    return compiled


def sets(most: int = 3, **drawn: Any) -> st.SearchStrategy[list[CompiledPolicy]]:
    """Policies with names of their own."""
    return st.lists(policies(**drawn), min_size=1, max_size=most, unique_by=lambda one: one.name)


def without_shadow(policy: CompiledPolicy) -> CompiledPolicy:
    """Return a policy of `policies` as it is without its rules in shadow, compiled from what is left of it."""
    whole = json.loads(_WRITTEN[id(policy)])
    spec, mode = whole["spec"], whole["spec"]["mode"]
    spec["mode"] = "Enforce" if mode == "Shadow" else mode

    def left(rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [one for one in rules if mode != "Shadow" and one.get("mode") != "Shadow"]

    spec["filters"], spec["scores"] = left(spec["filters"]), left(spec["scores"])
    spec["preemption"] = {"protect": left(spec["preemption"]["protect"])}
    if annotations := left(spec.pop("binding", {}).get("annotations", [])):
        spec["binding"] = {"annotations": annotations}
    return _compiled(json.dumps(whole, sort_keys=True))


_WRITTEN: Final[dict[int, str]] = {}
LABELS: Final[Sequence[dict[str, str]]] = [{}, {"gpu": "a"}, {"gpu": "b"}]
PODS: Final = [pod(f"x{at}", labels=each, priority=at, schedulerName="fairlead") for at, each in enumerate(LABELS)]


class ChangingNodes:
    """Nodes, and how each of them is."""

    def __init__(self, journal: int = 20_000) -> None:
        self.nodes = Nodes(journal=Journal(journal))
        self._objects: dict[str, dict[str, Any]] = {}
        for at, name in enumerate(NAMES[:-1]):
            labels = {"gpu": "ab"[at % 2], "zone": f"z{at % 3}"}
            self._objects[name] = {"labels": labels, "annotations": {"load": f"0.{at}"}, "used": 1.0 * at, "cpu": 6.0}
            self.nodes.put(self._view(name))

    def _view(self, name: str) -> NodeView:
        return node(name, **self._objects[name])

    def change(self, name: str, how: str) -> None:
        """Change a node in one of the ways of `CHANGES`."""
        if how == "gone" or name not in self._objects:
            if how == "gone":
                self._objects.pop(name, None)
                self.nodes.remove(name)
            else:
                self._objects[name] = {"labels": {"gpu": "a", "zone": "z0"}, "used": 0.0, "cpu": 6.0}
                self.nodes.put(self._view(name))
            return
        held = self._objects[name]
        if how == "label":
            held["labels"] = held["labels"] | {"zone": "z2"}
            change = NodeChange(node=frozenset({("metadata", "labels", "zone")}))
        elif how == "unlabelled":
            held["labels"] = {key: one for key, one in held["labels"].items() if key != "zone"}
            change = NodeChange(node=frozenset({("metadata", "labels", "zone")}))
        elif how == "load":
            held["annotations"] = {"load": "0.9"}
            change = NodeChange(node=frozenset({("metadata", "annotations", "load")}))
        else:
            new = placed(f"placed-{how}", labels={"app": how})
            held["used"] = held["used"] + 2.0
            held["pods"] = (*held.get("pods", ()), new)
            change = NodeChange(pods=(owner_of(new),), requested=frozenset({"cpu"}))
        self.nodes.put(self._view(name), change)


CHANGES: Final = st.tuples(
    st.sampled_from(NAMES), st.sampled_from(["label", "unlabelled", "load", "a", "b", "gone", "comes"])
)


def passed(policies: Iterable[CompiledPolicy], nodes: Nodes, pod: PodView, names: Sequence[str]) -> list[str]:
    """Return the names of the nodes that pass, computed from nothing."""
    return [*filtered(Evaluator(policy_set(policies), nodes), pod, names).passed]


def best(policies: Iterable[CompiledPolicy], nodes: Nodes, pod: PodView, names: Sequence[str]) -> set[str]:
    """Return the names of the nodes with the most points, computed from nothing."""
    points = on_the_wire(scored(Evaluator(policy_set(policies), nodes), pod, names))
    return {name for name, each in zip(names, points, strict=True) if each == max(points)}


def effects(
    policies: Sequence[CompiledPolicy],
    enforced: CompiledPolicy,
    nodes: Nodes,
    pod: PodView,
    names: Sequence[str],
) -> Effects:
    """Return the effects that one policy would have in this form, computed from nothing."""
    others = [one for one in policies if one.name != enforced.name]
    before = passed(policies, nodes, pod, names)
    after = passed([*others, enforced], nodes, pod, before)
    if not after:
        return Effects(restricted=bool(before), unschedulable=bool(before))
    best_now, best_then = best(policies, nodes, pod, before), best([*others, enforced], nodes, pod, after)
    return Effects(restricted=len(after) < len(before), reordered=best_now.isdisjoint(best_then))


def all_enforced(policy: CompiledPolicy) -> CompiledPolicy:
    """Return a policy with all its rules in force."""
    return as_enforced(policy)


def one_enforced(policy: CompiledPolicy, rule: RuleId) -> CompiledPolicy:
    """Return a policy with one of its rules in shadow in force."""
    kind, name = rule
    shadow = policy.shadow
    assert shadow is not None
    filters = [one for one in shadow.filters if kind == "Filter" and one.name == name]
    scores = [one for one in shadow.scores if kind == "Score" and one.name == name]
    return replace(
        policy, mode="Enforce", filters=(*policy.filters, *filters), scores=(*policy.scores, *scores), shadow=None
    )
