"""Karpenter beside the chart, the operator and its scheduler: which node it adds, and whether the pod is placed.

Two NodePools, `cpu` and `memory`, differ in one label and in their weight: Karpenter prefers `cpu`. The author of a
policy sets `publish: NodeAffinity` and nothing else.

`make test-karpenter` runs this: Karpenter takes minutes to build, so that `make test` does not build it.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from extender import Stage
from fairlead.policy.affinity.published_pods import PUBLISHED_ANNOTATION, REQUIRED
from support.chart.release import Release, pods_of_one_test, released
from support.kube.crd import POLICIES
from testbed import node_template, nodes, tables
from testbed.api import Object, wait_for
from testbed.fixtures import Cluster
from testbed.karpenter import Karpenter
from testbed.kwok import LABEL

_NAMESPACE = "default"
_CLASS = "example.com/class"
_REASON = "another pool"
_ROWS: list[str] = []


def _rule(expression: str) -> list[Object]:
    return [{"name": "pool", "expression": expression, "reason": _REASON}]


def _in_pool(*pools: str) -> list[Object]:
    return _rule(f"node.metadata.labels[?'pool'].orValue('') in {[*pools]}")


@pytest.fixture(scope="module")
def release(
    cluster: Cluster,
    karpenter: Karpenter,
    operator_image_tag: str,
    scheduler_image_tag: str,
    pytestconfig: pytest.Config,
) -> Iterator[Release]:
    """Installed with published affinity, beside one node of two processors and the two NodePools."""
    with released(cluster, operator_image_tag, 0) as made:
        made.own_values = {"publishedAffinity": {"enabled": True}}
        made.install({"name": "fairlead"})
        template = node_template.equal(cpu="2", name="old", labels={"pool": "cpu"})
        old = node_template.make(1, template, seed=0)
        nodes.ensure(cluster.folder, cluster.kubeconfig, old)
        made.nodes = [str(one["metadata"]["name"]) for one in old]
        karpenter.put_pool("cpu", 100, {"pool": "cpu"})
        karpenter.put_pool("memory", 1, {"pool": "memory"})
        yield made
        tables.leave(pytestconfig, "nodes that Karpenter adds", "\n".join(_ROWS))


@pytest.fixture
def stage(release: Release, karpenter: Karpenter) -> Iterator[Stage]:
    """Pods of one test; they, its policies and the nodes made for them are gone in the end."""
    with pods_of_one_test(release, _NAMESPACE) as made:
        yield made
    wait_for("the pods to be gone", lambda: not made.places())
    karpenter.remove_nodes()


@dataclass(frozen=True, slots=True)
class _End:
    """What has become of a pod: the NodePools of nodes that were added for it, and whether it was placed on one."""

    added: Sequence[str]
    placed: bool


@dataclass(frozen=True, slots=True)
class _Situation:
    """A row of the guide's table."""

    has_room: bool
    """Whether the pod would fit on the node that is there."""
    accepted: str
    """The pool whose nodes the rule accepts."""
    before: _End
    after: _End


_SITUATIONS = {
    "no room, and the rule accepts what is added": _Situation(
        has_room=False, accepted="cpu", before=_End(["cpu"], placed=True), after=_End(["cpu"], placed=True)
    ),
    "room, but the rule rejects the node": _Situation(
        has_room=True, accepted="memory", before=_End([], placed=False), after=_End(["memory"], placed=True)
    ),
    "no room, and the rule rejects what is added": _Situation(
        has_room=False, accepted="memory", before=_End(["cpu"], placed=False), after=_End(["memory"], placed=True)
    ),
}


@pytest.mark.parametrize("publish", ["None", "NodeAffinity"])
@pytest.mark.parametrize("name", _SITUATIONS)
def test_what_is_added(name: str, publish: str, release: Release, stage: Stage, karpenter: Karpenter) -> None:
    situation = _SITUATIONS[name]
    expected = situation.before if publish == "None" else situation.after
    (old,) = release.nodes
    if not situation.has_room:
        stage.make_pod("full", on=old, cpu="2")
    _serve(release, stage, _in_pool(situation.accepted), publish)
    began = time.monotonic()
    _make_pod(stage, "wanted")
    if expected.placed:
        node = stage.placed("wanted")
        ended = f"placed after {time.monotonic() - began:.1f} s"
        assert [karpenter.pool_of(node)] == expected.added
    else:
        useless = _settled(stage, karpenter, expected.added) or old
        wait_for("the scheduler to have asked about it", lambda: _REASON in stage.refusal("wanted"))
        # Karpenter takes each of these pods for placed there, so it adds nothing more.
        _make_pod(stage, "another", cpu="100m")
        assert f"node/{useless}" in _said(stage, "another", "Pod should schedule on")
        assert not any(stage.places()[one] for one in ("wanted", "another"))
        ended = f"pending after {time.monotonic() - began:.1f} s"
    assert karpenter.claims() == expected.added
    _record(f"{name}, publish {publish}", karpenter, ended, _notes(stage, "wanted"))


def test_a_rule_that_names_nodes_publishes_only_labels(release: Release, stage: Stage, karpenter: Karpenter) -> None:
    (old,) = release.nodes
    rule = f"node.metadata.labels[?'pool'].orValue('') == 'memory' && node.metadata.name != '{old}'"
    _serve(release, stage, _rule(rule), "NodeAffinity", reason="Wider")
    left_out = release.api.get(f"{POLICIES}/pool")["status"]["published"]["leftOut"]
    assert [one["rule"] for one in left_out] == ["pool"]
    _make_pod(stage, "wanted")
    assert karpenter.pool_of(stage.placed("wanted")) == "memory"

    # What it would be with the name: Karpenter does not look at such a pod.
    names = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": [old]}]}
    _make_pod(stage, "names-nodes", cpu="64", affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [names]}}})
    said = _said(stage, "names-nodes", "matchFields")
    assert karpenter.claims() == ["memory"]
    _record("a pod with matchFields", karpenter, "no more", [said])


def test_a_label_must_be_of_a_nodepool(release: Release, stage: Stage, karpenter: Karpenter) -> None:
    _serve(release, stage, _rule(f"node.metadata.labels[?'{_CLASS}'].orValue('') == 'large'"), "NodeAffinity")
    _make_pod(stage, "wanted")
    said = _said(stage, "wanted", "does not have known values")
    assert _CLASS in said
    assert karpenter.claims() == []
    karpenter.put_pool("memory", 1, {"pool": "memory"}, {"key": _CLASS, "operator": "Exists"})
    node = stage.placed("wanted")
    assert karpenter.pool_of(node) == "memory"
    assert release.api.get(f"/api/v1/nodes/{node}")["metadata"]["labels"][_CLASS] == "large"
    karpenter.put_pool("memory", 1, {"pool": "memory"})
    _record("a label of no NodePool, then of one", karpenter, "placed", [said])


def test_pods_that_are_created_again_follow_a_looser_rule(release: Release, stage: Stage, karpenter: Karpenter) -> None:
    (old,) = release.nodes
    stage.make_pod("full", on=old, cpu="2")
    names = ("first", "second")
    tight = _serve(release, stage, _in_pool("arm"), "NodeAffinity")
    for name in names:
        _make_pod(stage, name)
        _said(stage, name, "incompatible")
    loose = _serve(release, stage, _in_pool("arm", "memory"), "NodeAffinity")
    assert loose != tight
    assert {_hash_of(stage.pod(name)) for name in names} == {tight}, "affinity cannot be changed"
    assert karpenter.claims() == []
    warned = wait_for("status to name them", lambda: _warning(release, "PublishedAffinityOutdated"), timeout_s=180)
    assert warned["count"] == len(names)
    assert all(f"{_NAMESPACE}/{name}" in warned["message"] for name in names)
    for name in names:
        release.api.delete(f"{stage.path}/{name}")
        _make_pod(stage, name)
    assert {karpenter.pool_of(stage.placed(name)) for name in names} == {"memory"}
    assert {_hash_of(stage.pod(name)) for name in names} == {loose}
    _record(
        "a looser rule, and its pods created again", karpenter, "placed", [warned["message"], *_notes(stage, "first")]
    )


def _serve(release: Release, stage: Stage, filters: Sequence[Object], publish: str, reason: str = "Exact") -> str:
    """Have the policy served, and pods created as it says; the hash of what is published, empty if nothing is."""
    before = _hash_of(_created(stage))
    release.put("pool", filters=filters, publish=publish)
    release.ready("pool")
    if publish == "None":
        wait_for("nothing to be published", lambda: not _hash_of(_created(stage)))
        return ""
    release.until("pool", "Published", reason)
    return wait_for("pods to be created so", lambda: ((now := _hash_of(_created(stage))) != before and now) or None)


def _warning(release: Release, reason: str) -> Object | None:
    """The warning in the policy's status."""
    warnings = release.api.get(f"{POLICIES}/pool").get("status", {}).get("warnings", [])
    return next((one for one in warnings if one["reason"] == reason), None)


def _created(stage: Stage) -> Object:
    """A pod as it would be created now."""
    return stage.api.create(f"{stage.path}?dryRun=All", _pod("tried", "1m"))


def _hash_of(pod: Object) -> str:
    found: str = pod["metadata"].get("annotations", {}).get(PUBLISHED_ANNOTATION, "")
    return found


def _make_pod(stage: Stage, name: str, cpu: str = "500m", **spec: object) -> None:
    stage.api.create(stage.path, _pod(name, cpu, **spec))


def _pod(name: str, cpu: str, **spec: object) -> dict[str, Any]:
    """A pod for nodes that are only objects: on the real node are the operator and its scheduler."""
    container = {"name": "main", "image": "main", "resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "fairlead",
            "nodeSelector": dict([LABEL]),
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            **spec,
        },
    }


def _settled(stage: Stage, karpenter: Karpenter, added: Sequence[str]) -> str:
    """Wait until Karpenter has done for the pod what it wants to; the node that it has added, if it has."""
    _said(stage, "wanted", "Pod should schedule on")
    if not added:
        return ""
    made = wait_for("the node to be there", lambda: karpenter.nodes() or None, timeout_s=60)
    (node,) = made
    return node


def _said(stage: Stage, pod: str, part: str) -> str:
    """Note of an event of the pod that has this text."""
    return wait_for(
        f"an event of {pod} that says {part!r}",
        lambda: next((note for note in _notes(stage, pod) if part in note), None),
        timeout_s=60,
    )


def _notes(stage: Stage, pod: str) -> list[str]:
    """Notes of all events of the pod; pods of other tests had its name."""
    path, uid = f"/apis/events.k8s.io/v1/namespaces/{stage.name}/events", stage.pod(pod)["metadata"]["uid"]
    found = stage.api.items(path, fieldSelector=f"regarding.uid={uid}")
    return [str(one["note"]) for one in sorted(found, key=lambda one: str(one["metadata"]["creationTimestamp"]))]


def _record(what: str, karpenter: Karpenter, end: str, notes: Sequence[str] = ()) -> None:
    """Leave a row for the end of the run, with what was said about the pod."""
    added = ", ".join(karpenter.claims()) or "nothing"
    _ROWS.extend([f"{what}: adds {added}; {end}", *(f"    {note.partition('. preemption')[0]}" for note in notes)])
