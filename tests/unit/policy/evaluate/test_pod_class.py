"""Pods of one class get the same verdicts on every node."""

from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.cel.values.structs import from_json
from fairlead.mirror.resource_limits import usage_of
from fairlead.policy.evaluate.matching import equivalence_key
from fairlead.policy.views.node_view import NodeView
from fairlead.policy.views.pod_view import PodView
from fairlead.strategies.reads import Reads
from support.policy import Evaluation, node, policy

EXPRESSIONS = [
    "pod.metadata.labels[?'gpu'].orValue('none') == 'a'",
    "has(pod.metadata.labels.gpu)",
    "pod.metadata.labels.size() > 1",
    "pod.metadata.labels.exists(key, key.startsWith('x'))",
    "pod.metadata.annotations['note'] == 'a'",
    "pod.spec.priority > 3",
    "has(pod.spec.priority)",
    "has(pod.spec.schedulerName)",
    "has(pod.spec.securityContext)",
    "has(pod.spec.securityContext.runAsUser)",
    "pod.spec.securityContext.runAsNonRoot",
    "has(pod.spec.securityContext.runAsNonRoot)",
    "pod.spec.containers.exists(c, has(c.image))",
    "pod.spec.containers.exists(c, has(c.securityContext))",
    "pod.spec.containers.all(c, c.name != 'b')",
    "pod.spec.containers.size() == 1",
    "pod.spec.containers[0].ports.exists(p, p.containerPort == 80)",
    "pod.spec.tolerations.exists(t, has(t.value))",
    "pod.spec.affinity == pod.spec.affinity && has(pod.spec.affinity)",
    "request['cpu'] > 1.0",
    "'cpu' in request",
    "request.size() == 1",
    "namespaceObject.metadata.labels[?'team'].orValue('') == 'ml'",
    "has(namespaceObject.metadata.labels)",
]
TEXTS = st.sampled_from(["", "a", "b"])


def _fields(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


LABELS = st.dictionaries(st.sampled_from(["gpu", "x/y", "1"]), TEXTS, max_size=3)
CONTAINERS = st.lists(
    _fields(
        name=TEXTS,
        image=TEXTS,
        securityContext=_fields(privileged=st.booleans()),
        ports=st.lists(_fields(containerPort=st.sampled_from([0, 80])), max_size=1),
    ),
    max_size=2,
)
PODS = _fields(
    metadata=_fields(labels=LABELS, annotations=_fields(note=TEXTS)),
    spec=_fields(
        priority=st.sampled_from([0, 1, 5]),
        schedulerName=TEXTS,
        securityContext=_fields(runAsUser=st.sampled_from([0, 1]), runAsNonRoot=st.booleans()),
        containers=CONTAINERS,
        tolerations=st.lists(_fields(key=TEXTS, value=TEXTS), max_size=1),
        affinity=_fields(nodeAffinity=st.just({})),
    ),
)
REQUESTS = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.sampled_from([0.0, 1.0, 2.0]))
NAMESPACES = _fields(metadata=_fields(labels=_fields(team=st.sampled_from(["ml", "x"]))))
VIEWS = st.builds(
    lambda one, namespace, request: PodView(from_json("Pod", one), from_json("Namespace", namespace), request),
    PODS,
    NAMESPACES,
    REQUESTS,
)
POLICIES = [
    policy(filters={"f": {"expression": one, "onError": on}}) for one in EXPRESSIONS for on in ("Pass", "Reject")
]


@settings(max_examples=80)
@given(pods=st.lists(VIEWS, min_size=2, max_size=4), rules=st.lists(st.sampled_from(POLICIES), min_size=1, max_size=3))
def test_pods_that_differ_in_something_that_a_rule_sees_are_never_one_class(
    pods: list[PodView], rules: list[Any]
) -> None:
    clusters = [Evaluation([rule], [node("n")]) for rule in rules]
    for cluster in clusters:
        for one in pods:
            kept = dict(cluster.filter(one, ["n"]).rejected)
            fresh = dict(Evaluation(cluster.evaluator.policies.policies, [node("n")]).filter(one, ["n"]).rejected)
            assert kept == fresh


@settings(max_examples=80)
@given(
    one=VIEWS,
    other=VIEWS,
    path=st.sampled_from(
        [
            ("spec",),
            ("metadata", "labels"),
            ("spec", "containers"),
            ("spec", "securityContext"),
            ("metadata", "labels", "gpu"),
        ]
    ),
)
def test_keys_are_equal_only_if_the_language_finds_the_values_equal(one: PodView, other: PodView, path: Any) -> None:
    key = equivalence_key(Reads(pod=frozenset({path})))
    if key(one) == key(other):
        left, right = one.pod, other.pod
        for step in path:
            left, right = _step(left, step), _step(right, step)
        assert left == right or (not left and not right)


CONTAINER: dict[str, Any] = {"name": "c", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}
LIMITED: dict[str, dict[str, Any]] = {
    "another limit": {"containers": [CONTAINER | {"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "16"}}}]},
    "no limit": {"containers": [CONTAINER | {"resources": {"requests": {"cpu": "1"}}}]},
    "a container that says nothing": {"containers": [CONTAINER, {"name": "d"}]},
}
LOAD: dict[str, Any] = {
    "data": [{"name": "used", "nodeAnnotation": {"key": "used"}}],
    "scores": {
        "low": {"lowRisk": {"resources": [{"name": "cpu", "mean": "used", "measure": "Used"}]}},
        "target": {"targetLoad": {"value": "used", "measure": "Used"}},
    },
}


def limited(spec: Mapping[str, Any]) -> PodView:
    return PodView(from_json("Pod", {"spec": spec}), None, {"cpu": 1.0}, usage_of)


@pytest.mark.parametrize("spec", LIMITED.values(), ids=LIMITED)
def test_pods_of_different_limits_are_never_one_class_where_a_rule_reads_limits(spec: dict[str, Any]) -> None:
    plain, other = limited({"containers": [CONTAINER]}), limited(spec)
    written = {"metadata": {"name": "n", "annotations": {"used": "0"}}, "status": {"capacity": {"cpu": "8"}}}
    idle = NodeView(from_json("Node", written), allocatable={"cpu": 8.0})
    cluster = Evaluation([policy(**LOAD)], [idle])
    first, second = cluster.scores(plain), cluster.scores(other)
    assert second == Evaluation([policy(**LOAD)], [idle]).scores(other) != first
    for reads, one_class in ((Reads(limit=frozenset({"cpu"})), False), (Reads(request=frozenset({"cpu"})), True)):
        key = equivalence_key(reads)
        assert (key(plain) == key(other)) is one_class


def _step(value: Any, step: str) -> Any:
    return value.get(step) if isinstance(value, Mapping) else getattr(value, step)


def test_the_order_of_maps_does_not_matter() -> None:
    key = equivalence_key(Reads(pod=frozenset({("metadata", "labels")})))
    ab, ba = ({"metadata": {"labels": labels}} for labels in ({"a": "1", "b": "2"}, {"b": "2", "a": "1"}))
    assert key(PodView(from_json("Pod", ab))) == key(PodView(from_json("Pod", ba)))


ANY: Final = PodView(from_json("Pod", {"metadata": {"name": "x"}}))
IDENTITIES: dict[str, tuple[set[Any], bool]] = {
    "its name": ({("metadata", "name")}, True),
    "its UID": ({("metadata", "uid")}, True),
    "when it was made": ({("metadata", "creationTimestamp")}, True),
    "all of its metadata": ({("metadata",)}, True),
    "all of it": ({()}, True),
    "its labels": ({("metadata", "labels")}, False),
    "its namespace": ({("metadata", "namespace")}, False),
    "who owns it": ({("metadata", "ownerReferences")}, False),
    "nothing": (set(), False),
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_whoever_reads_the_identity_of_a_pod_has_a_class_for_each(name: str) -> None:
    paths, want = IDENTITIES[name]
    assert (equivalence_key(Reads(pod=frozenset(paths)))(ANY) is None) is want


def test_an_expression_that_names_the_pod_itself_reads_its_identity() -> None:
    assert equivalence_key(policy(filters={"f": "[pod].size() == 1"}).reads)(ANY) is None
