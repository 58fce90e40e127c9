"""Published affinity in `fairlead simulate` and `fairlead diff`: pods count as created now, or keep what they have."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from fairlead.cli.main import main
from fairlead.policy.affinity.published_pods import PUBLISHED_ANNOTATION, REQUIRED
from support.simulation.created import OF_ALL, OF_POOL, POOL, L, created, publishing
from support.simulation.snapshot import Object, listed, namespace, node, pod
from support.simulation.workloads import owned

NODES: Final = [node("a1", labels={"pool": "a"}), node("b1", labels={"pool": "b"}), node("b2", labels={"pool": "b"})]
ADDED: Final = {"policies": ["pool"], "added": True, "excludedNodes": []}
TAKEN: Final = "1 pod is taken as created now, with the node affinity that pool publishes"
LOOSER: Final = {"key": "pool", "operator": "In", "values": ["a", "b"]}
OWN: Final = {
    "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "x", "operator": "Exists"}]}]}}
}
TOO_OLD: Final = (
    "1 pod was created when something else was published, and its node affinity excludes nodes that all rules pass "
    "(ml/p: {}): create it again"
)
TENANT: Final = {
    "name": "tenant",
    "expression": f"{L}[?'pool'].orValue('') == namespaceObject.metadata.labels[?'tenant'].orValue('')",
}


def left_alone(name: str) -> Object:
    made = pod(name)
    made["metadata"]["annotations"] = {PUBLISHED_ANNOTATION: "None"}
    return made


KEPT: Final = {"policies": ["pool"], "added": False, "excludedNodes": []}
OLDER_ONE: Final = {"policies": [], "added": False, "excludedNodes": []}
SCHEDULED: Final = {"conditions": [{"type": "PodScheduled", "status": "True"}]}
SIMULATED: Final[dict[str, tuple[Object, list[tuple[Object, Any]], list[str]]]] = {
    "a pool": (
        publishing(),
        [
            (pod("new"), ADDED),
            (owned(pod("of-controller", affinity=OWN), "ReplicaSet", "r"), ADDED),
            (pod("bare", affinity=OWN), None),
            (left_alone("alone"), None),
            (pod("on-node-by-its-scheduler", on="a1", status=SCHEDULED), ADDED),
            (pod("on-node-by-its-author", on="a1"), None),
            (pod("of-system", namespace="kube-system"), None),
            (created("as-published"), KEPT),
            (created("with-less", {"matchExpressions": [LOOSER]}), OLDER_ONE),
        ],
        [
            "schedulers that the operator manages never place pods of kube-system",
            "3 pods are taken as created now, with the node affinity that pool publishes",
        ],
    ),
    "two pools": (
        publishing("pool", OF_ALL),
        [
            (pod("that-loses-no-node"), ADDED),
            (created("p"), OLDER_ONE | {"excludedNodes": ["b1", "b2"]}),
            (created("whose-selector-says-so-too", nodeSelector={"pool": "a"}), OLDER_ONE),
        ],
        [TOO_OLD.format("b1, b2")],
    ),
    "a label of its namespace": (publishing("pool", TENANT), [(pod(), ADDED)], [TAKEN]),
    "nothing": (publishing(publish="None"), [(pod(), None)], []),
    "for pods that labels cannot tell": (
        publishing(match={"conditions": [{"name": "urgent", "expression": "pod.spec.priority < 5"}]}),
        [(pod(), None)],
        [],
    ),
}
"""What a policy publishes, pods, of each its published affinity for programs, and the notes."""
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)

    def run(command: str, *arguments: str, policies: list[Object], pods: list[Object]) -> tuple[int, str]:
        Path("c.json").write_text(json.dumps(listed(*NODES, namespace("ml", tenant="a"), pod("other"))))
        Path("p.json").write_text(json.dumps(listed(*pods)))
        options = ("--policies",) if command == "simulate" else ("--from", "--to")
        named = []
        for at, (option, one) in enumerate(zip(options, policies, strict=True)):
            Path(f"{at}.yaml").write_text(yaml.safe_dump(one))
            named += [option, f"{at}.yaml"]
        code = main([command, *named, "--snapshot", "c.json", "--pods", "p.json", *arguments])
        out, err = capsys.readouterr()
        assert "bug" not in err
        return code, out

    return run


@pytest.mark.parametrize(("policy", "pods", "notes"), SIMULATED.values(), ids=SIMULATED)
def test_pods_count_as_created_now_or_keep_what_they_have(
    policy: Object, pods: list[tuple[Object, Any]], notes: list[str], run: Run
) -> None:
    code, out = run("simulate", "-o", "json", policies=[policy], pods=[one for one, _ in pods])
    found = json.loads(out)
    assert {one["name"]: one["publishedAffinity"] for one in found["pods"]} == {
        one["metadata"]["name"]: published for one, published in pods
    }
    assert (code, found["notes"]) == (0, notes)


def test_what_rejects_a_node_names_the_policy(run: Run) -> None:
    unmet = "does not fit: node(s) didn't match Pod's node affinity/selector"
    room = {"name": "room", "expression": "free['cpu'] > 100.0", "onError": "Pass"}
    policies = [publishing("pool", OF_POOL, room)]
    of_itself = created("own", {"matchExpressions": [POOL, {"key": "disk", "operator": "Exists"}]})
    found = json.loads(run("simulate", "-o", "json", policies=policies, pods=[created("p"), of_itself])[1])
    [a1, b1, _], [own_a1, own_b1, _] = (one["nodes"] for one in found["pods"])
    assert [unmet in one["reasons"] for one in (a1, own_a1)] == [False, True]
    assert all(f"{unmet}, published by pool" in one["reasons"] for one in (b1, own_b1))


def test_many_pods_share_a_note(run: Run) -> None:
    old = [created(f"p{at}") for at in range(5)]
    _, out = run("simulate", policies=[publishing("pool", OF_ALL)], pods=[*old, pod("q"), pod("r")])
    assert "2 didn't match Pod's node affinity/selector\n" in out
    assert "Note: 5 pods were created when something else was published, and their node affinity excludes" in out
    assert "(ml/p0: b1, b2; ml/p1: b1, b2; ml/p2: b1, b2; and 2 more): create them again.\n" in out


_HOT: Final[dict[str, Any]] = {"data": [{"name": "load", "prometheus": {"query": "load"}}]}
_COOL: Final = OF_POOL | {"expression": f"{OF_POOL['expression']} && data.load < 0.5"}
NOT_EVALUATED: Final = (
    "not evaluated: pool/pool: it reads data.load, which is not known: give it with --prometheus default=URL or "
    "--data FILE"
)
CHANGED: Final[dict[str, tuple[Object, Object, Object, list[str]]]] = {
    "a looser rule": (
        publishing(),
        publishing("pool", OF_ALL),
        pod(),
        ["ml/p", "    gains b1, b2: no longer wrong pool (pool/pool)", "1 of 1 pod changes."],
    ),
    "a looser rule, for a pod that was created before": (
        publishing(),
        publishing("pool", OF_ALL),
        created("p"),
        ["Nothing changes for the pod.", f"Note: {TOO_OLD.format('b1, b2')}."],
    ),
    "a tighter rule": (
        publishing("pool", OF_ALL),
        publishing(),
        pod(),
        ["ml/p", "    loses b1, b2: wrong pool (pool/pool)", "1 of 1 pod changes.", f"Note: {TAKEN}."],
    ),
    "only published": (
        publishing(publish="None"),
        publishing(),
        pod(),
        ["Nothing changes for the pod.", f"Note: {TAKEN}."],
    ),
    "published no more, for a pod that was created before": (
        publishing("pool", OF_ALL),
        publishing("pool", OF_ALL, publish="None"),
        created("p"),
        ["Nothing changes for the pod.", f"Note: {TOO_OLD.format('b1, b2')}."],
    ),
    "published by a rule that is not evaluated": (
        publishing("pool", _COOL, publish="None", **_HOT),
        publishing("pool", _COOL, **_HOT),
        pod(),
        [
            "ml/p",
            "    loses b1, b2: excluded by node affinity that is published by pool",
            "1 of 1 pod changes.",
            f"Note: {NOT_EVALUATED}.",
            f"Note: {TAKEN}.",
        ],
    ),
}
"""Policy before and after, the pod, and the text."""


@pytest.mark.parametrize(("before", "after", "made", "text"), CHANGED.values(), ids=CHANGED)
def test_a_change(before: Object, after: Object, made: Object, text: list[str], run: Run) -> None:
    _, out = run("diff", policies=[before, after], pods=[made])
    assert [one for one in out.splitlines() if one and not one.startswith("Not simulated: ")] == text


def test_programs_read_what_is_published_of_nodes_that_a_pod_loses_or_gains(run: Run) -> None:
    versions = [publishing("pool", OF_ALL), publishing()]
    found = json.loads(run("diff", "-o", "json", policies=versions, pods=[pod()])[1])["pods"][0]
    assert [(one["node"], one["publishedBy"]) for one in found["lost"]] == [("b1", ["pool"]), ("b2", ["pool"])]
    assert found["publishedAffinity"] == ADDED
    found = json.loads(run("diff", "-o", "json", policies=versions[::-1], pods=[pod()])[1])["pods"][0]
    assert [(one["node"], one["publishedBy"]) for one in found["gained"]] == [("b1", ["pool"]), ("b2", ["pool"])]
