"""Policies by chance, and whether what they publish selects every node that passes."""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any, Final

from fairlead.api.rules import MatchSpec
from fairlead.api.selectors import compile_selector
from fairlead.cel.check import BOOL, Environment, check
from fairlead.cel.engine.environment import RULE
from fairlead.cel.values.structs import from_json
from fairlead.policy.affinity.label_atoms import Vocabulary
from fairlead.policy.affinity.label_requirement import Matches
from fairlead.policy.affinity.label_requirement import node_selection as selected_by
from fairlead.policy.affinity.published_pods import as_created, published_for
from fairlead.policy.affinity.published_policies import affinity_of_scheduler, publication_of
from fairlead.policy.compile.expression import CompiledExpression
from fairlead.policy.compile.expression_rules import filter_of
from fairlead.policy.compile.model import CompiledMatch, CompiledPolicy, ExpressionRule, FilterRule
from fairlead.policy.views.faults import RAISED
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView

VALUES: Final = ("", "x", "y")
VOCABULARY: Final = Vocabulary(late_labels=("late/",))
_NODE, _POD, _NS = "node.metadata.labels", "pod.metadata.labels", "namespaceObject.metadata.labels"
_ANNOTATIONS = "pod.metadata.annotations"
_OF_NODE: Final = ("a", "b")
_RESOURCE: Final = "example.com/gpu"
ENVIRONMENT: Final = Environment(RULE)
PODS_EACH, NODES_EACH = 5, 12
RUN_WHOLE: Final = 25
"""Of so many expressions one is also evaluated as a whole, not only its parts."""

CelTruth = bool | None
"""What comes of an expression; None is an error."""
Formula = str | tuple[Any, ...]
"""An atom, or an operator with its operands."""


class Unsound(Exception):  # noqa: N818 - it is what was found
    """A node passes and is not selected, or another property does not hold."""


@cache
def compiled(written: str) -> CompiledExpression:
    return CompiledExpression(check(written, ENVIRONMENT, BOOL))


@cache
def pods() -> tuple[tuple[PodView, dict[str, Any], Mapping[str, str]], ...]:
    """Return pods as rules see them, as they are created, and the labels of their namespaces."""
    some: tuple[str | None, ...] = (None, "", "x", "y")
    whole = itertools.product(some, (*some, "no label"), (None, "", "x"), ("x", "other"), (False, True), (0, 10))
    return tuple(_pod(*one) for one in whole)


def _pod(
    label: str | None, annotation: str | None, of_namespace: str | None, namespace: str, asks: object, priority: int
) -> tuple[PodView, dict[str, Any], Mapping[str, str]]:
    labels = {} if label is None else {"p": label}
    annotations = {} if annotation is None else {"q": annotation}
    metadata = {"name": "pod", "namespace": namespace, "labels": labels, "annotations": annotations}
    container: dict[str, Any] = {"name": "c"} | ({"resources": {"limits": {_RESOURCE: "1"}}} if asks else {})
    spec = {"schedulerName": "fairlead", "priority": priority, "containers": [{"name": "first"}, container]}
    manifest = {"metadata": metadata, "spec": spec}
    labels_of_namespace = {} if of_namespace is None else {"t": of_namespace}
    holder = from_json("Namespace", {"metadata": {"name": namespace, "labels": labels_of_namespace}})
    return PodView(from_json("Pod", manifest), holder), manifest, labels_of_namespace


@cache
def nodes() -> tuple[NodeView, ...]:
    some: tuple[str | None, ...] = (None, "", "x", "y")
    return tuple(
        _node(f"n{at}", *one)
        for at, one in enumerate(itertools.product(some, some, (None, "2", "5", "x"), (0.0, 8.0), (None, "x")))
    )


def _node(name: str, a: str | None, b: str | None, n: str | None, cpu: float, other: str | None) -> NodeView:
    pairs = {"a": a, "b": b, "n": n, "late/z": other, "kubernetes.io/hostname": other}
    labels = {key: value for key, value in pairs.items() if value is not None}
    metadata = {"name": name, "labels": labels, "annotations": {} if other is None else {"w": other}}
    whole = {"metadata": metadata, "spec": {"unschedulable": cpu == 0.0}}
    return NodeView(from_json("Node", whole), allocatable={"cpu": 8.0}, requested={"cpu": 8.0 - cpu})


def _constants_of(read: str) -> Iterator[str]:
    for value in VALUES:
        yield f"{read} == '{value}'"
        yield f"'{value}' != {read}"
    yield f"{read} in ['x', '']"
    yield f"{read} in []"


def _reads(holder: str, key: str) -> list[str]:
    return [f"{holder}['{key}']", *(f"{holder}[?'{key}'].orValue('{value}')" for value in VALUES)]


_FACTS: Final = [*_reads(_POD, "p"), *_reads(_ANNOTATIONS, "q"), *_reads(_NS, "t"), "pod.metadata.namespace"]
_LABELS: Final = [one for key in _OF_NODE for one in _reads(_NODE, key)]
_OF_LABELS: Final = [
    *(one for read in _LABELS for one in _constants_of(read)),
    *(
        one
        for key in _OF_NODE
        for one in (f"'{key}' in {_NODE}", f"has({_NODE}.{key})", f"{_NODE}[?'{key}'].hasValue()")
    ),
    *("true", "false"),
]
OF_PODS: Final = [
    *(one for read in _FACTS for one in _constants_of(read)),
    *(f"'p' in {_POD}", f"has({_ANNOTATIONS}.q)", f"{_NS}[?'t'].hasValue()"),
    f"pod.spec.containers.exists(one, '{_RESOURCE}' in one.resources.limits)",
]
_SAME: Final = [
    written
    for label in _LABELS
    for fact in _FACTS
    for written in (f"{label} == {fact}", f"{fact} == {label}", f"{label} != {fact}")
]
_NUMBERS: Final = [
    f"int({read}) {sign} 3" for read in (f"{_NODE}['n']", f"{_NODE}[?'n'].orValue('4')") for sign in "<>"
]
_UNSAID: Final = [
    "free['cpu'] > 2.0",
    "node.spec.unschedulable",
    "node.metadata.annotations['w'] == 'x'",
    f"{_NODE}['a'].startsWith('x')",
    f"{_NODE}['a'] == {_NODE}['b']",
    f"{_NODE}['late/z'] == 'x'",
    f"{_NODE}[?'kubernetes.io/hostname'].orValue('') == 'x'",
    "node.metadata.name == 'n3'",
    "pod.spec.priority > 5",
    f"{_POD}['p'] == {_ANNOTATIONS}['q']",
]
_KINDS: Final = ((_OF_LABELS, 8), (OF_PODS, 4), (_SAME, 4), (_NUMBERS, 1), (_UNSAID, 3))


@dataclass(slots=True)
class Affinities:
    """So many policies by chance, and what was seen of them."""

    random: Random
    seen: Counter[str] = field(default_factory=Counter)
    _known: dict[tuple[str, int, int], CelTruth] = field(default_factory=dict)

    def run(self, count: int) -> None:
        """Check policies until so many filters were checked. Raises Unsound."""
        while self.seen["filters"] < count:
            self._one()

    def _one(self) -> None:
        trees = {self._tree(self.random.randrange(4)): self.random.random() < 0.5 for _ in range(self._few())}
        conditions = [self._tree(1, (OF_PODS,)) for _ in range(self.random.choice((0, 0, 0, 1)))]
        expressions = {tree: _compiled(tree) for tree in (*trees, *conditions)}
        for turned in (False, True):  # compiling is half of the time
            self._check([(tree, rejects is not turned) for tree, rejects in trees.items()], conditions, expressions)

    def _check(
        self,
        filters: Sequence[tuple[Formula, bool]],
        conditions: Sequence[Formula],
        expressions: Mapping[Formula, CompiledExpression],
    ) -> None:
        policy = self._policy(filters, conditions, expressions)
        publication = publication_of(policy, VOCABULARY)
        is_exact = publication.policy is not None and not publication.left_out
        self.seen["filters"] += len(filters)
        self.seen["exact" if is_exact else "wider" if publication.policy else "nothing"] += 1
        if publication.policy is None:
            return
        affinity = affinity_of_scheduler("fairlead", [publication.policy])
        said = f"{[(text_of(tree), rejects) for tree, rejects in filters]} if {[*map(text_of, conditions)]}: {affinity}"
        runs_whole = self.random.randrange(RUN_WHOLE) == 0
        for pod_at in self.random.sample(range(len(pods())), PODS_EACH):
            pod, manifest, labels = pods()[pod_at]
            applies = self._matches(policy, pod) and all(self._truth(one, pod_at, 0) is True for one in conditions)
            added = published_for(manifest, labels, affinity)
            if not applies:
                self.seen["pods that do not match"] += 1
                if added:
                    raise Unsound(f"another pod gets it: {manifest} of {said}")
                continue
            self.seen["pods with affinity"] += bool(added)
            created = as_created(manifest, labels, affinity)
            selects = selected_by_pod(created)
            results = set[bool]()
            for node_at in self.random.sample(range(len(nodes())), NODES_EACH):
                node = nodes()[node_at]
                passes = self._passes(filters, pod_at, node_at)
                if runs_whole and passes is not _run(policy, pod, node):
                    raise AssertionError(f"the parts say {passes} of {said}")
                is_selected = selects(node.labels, node.name)
                results.add(passes)
                if passes and not is_selected:
                    raise Unsound(f"{node.name} {dict(node.labels)} passes for {manifest}, {labels}: {said}")
                if is_exact and added and is_selected and not passes:
                    raise Unsound(f"{node.name} {dict(node.labels)} is selected for {manifest}, {labels}: {said}")
            # What selects some nodes only is published, unless it is a value that no label can have.
            if (
                is_exact
                and not added
                and len(results) > 1
                and "no label" not in manifest["metadata"]["annotations"].values()
            ):
                raise Unsound(f"nothing is published for {manifest}, {labels}: {said}")

    def _few(self) -> int:
        return self.random.choice((1, 1, 1, 1, 2, 3))

    def _tree(self, depth: int, among: Sequence[Sequence[str]] = ()) -> Formula:
        draw = self.random.random()
        if depth == 0 or draw < 0.15:
            kinds = among or self.random.choices([one for one, _ in _KINDS], [weight for _, weight in _KINDS])
            return self.random.choice(kinds[0])
        if draw < 0.3:
            return "!", self._tree(depth - 1, among)
        if draw < 0.9:
            return self.random.choice(("&&", "||")), self._tree(depth - 1, among), self._tree(depth - 1, among)
        return "?", *(self._tree(depth - 1, among) for _ in range(3))

    def _policy(
        self,
        filters: Sequence[tuple[Formula, bool]],
        conditions: Sequence[Formula],
        expressions: Mapping[Formula, CompiledExpression],
    ) -> CompiledPolicy:
        rules = [_rule(f"f{at}", expressions[tree], rejects) for at, (tree, rejects) in enumerate(filters)]
        spec = MatchSpec.model_validate(self._selection())
        match = CompiledMatch(
            None if spec.namespaces is None else frozenset(spec.namespaces),
            None if spec.namespace_selector is None else compile_selector(spec.namespace_selector),
            None if spec.pod_selector is None else compile_selector(spec.pod_selector),
            tuple(ExpressionRule(f"c{at}", expressions[one]) for at, one in enumerate(conditions)),
            spec,
        )
        return CompiledPolicy(name="p", scheduler_name="fairlead", filters=tuple(rules), match=match)

    def _selection(self) -> dict[str, Any]:
        result: dict[str, Any] = {}
        if self.random.random() < 0.1:
            result["namespaces"] = ["x", "elsewhere"]
        for name, key in (("namespaceSelector", "t"), ("podSelector", "p")):
            if self.random.random() < 0.15:
                operator = self.random.choice(("In", "NotIn", "Exists", "DoesNotExist"))
                values = {"values": self.random.choice((["x"], ["", "y"]))} if operator.endswith("In") else {}
                result[name] = {"matchExpressions": [{"key": key, "operator": operator} | values]}
        return result

    def _matches(self, policy: CompiledPolicy, pod: PodView) -> bool:
        match = policy.match
        return (
            (match.namespaces is None or pod.namespace in match.namespaces)
            and (match.namespace_selector is None or match.namespace_selector(pod.namespaceObject.metadata.labels))
            and (match.pod_selector is None or match.pod_selector(pod.labels))
        )

    def _passes(self, filters: Sequence[tuple[Formula, bool]], pod_at: int, node_at: int) -> bool:
        found = [(self._truth(tree, pod_at, node_at), rejects) for tree, rejects in filters]
        return all((truth is None and not rejects) or truth is True for truth, rejects in found)

    def _truth(self, tree: Formula, pod_at: int, node_at: int) -> CelTruth:
        """Evaluate as CEL does: an error on one side does not matter if the other side decides."""
        if isinstance(tree, str):
            key = (tree, pod_at, node_at)
            if key not in self._known:
                self._known[key] = outcome(compiled(tree), pods()[pod_at][0], nodes()[node_at])
            return self._known[key]
        name, first, *rest = tree
        truth = self._truth(first, pod_at, node_at)
        if name == "!":
            return None if truth is None else not truth
        if name == "?":
            return None if truth is None else self._truth(rest[0 if truth else 1], pod_at, node_at)
        decides = name == "||"
        if truth is decides:
            return decides
        other = self._truth(rest[0], pod_at, node_at)
        return other if other is decides or truth is not None else None


def selected_by_pod(manifest: Mapping[str, Any]) -> Matches:
    """Return which nodes a pod selects, as kube-scheduler reads it."""
    spec: Any = PodView(from_json("Pod", dict(manifest))).pod.spec
    affinity = spec.affinity.nodeAffinity
    selects, _ = selected_by(spec.nodeSelector, affinity.requiredDuringSchedulingIgnoredDuringExecution)
    return selects


def outcome(expression: CompiledExpression, pod: PodView, node: NodeView) -> CelTruth:
    try:
        return bool(expression.for_pod(pod)(node, 0))
    except RAISED:
        return None


def _run(policy: CompiledPolicy, pod: PodView, node: NodeView) -> bool:
    found = [(outcome(rule.expression, pod, node), rule.rejects_on_error) for rule in policy.filters if rule.expression]
    return all((truth is None and not rejects) or truth is True for truth, rejects in found)


def _rule(name: str, expression: CompiledExpression, rejects_on_error: bool) -> FilterRule:
    made: Any = filter_of(expression, name, name, resolvable=False)
    return FilterRule(name, made, rejects_on_error, resolvable=False, expression=expression)


def _compiled(tree: Formula) -> CompiledExpression:
    return CompiledExpression(check(text_of(tree), ENVIRONMENT, BOOL))


def text_of(tree: Formula) -> str:
    if isinstance(tree, str):
        return tree
    name, *parts = tree
    written = [f"({text_of(one)})" for one in parts]
    if name == "?":
        return f"{written[0]} ? {written[1]} : {written[2]}"
    return f"!{written[0]}" if name == "!" else f" {name} ".join(written)
