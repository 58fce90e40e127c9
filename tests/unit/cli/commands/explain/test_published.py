"""What `fairlead explain` says of affinity that policies publish, and of the node for which a pod is nominated."""

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from fairlead.policy.affinity.published_policies import affinity_of_scheduler
from support.cli.explained import Ask, Run, cluster_answers, live_policy, without_kind
from support.cli.status_api import items
from support.simulation.created import OF_ALL, OF_POOL, OLDER, POOL, created, publishing
from support.simulation.snapshot import Object, listed, node, pod
from support.simulation.workloads import workload

NODES: Final = [node("a1", labels={"pool": "a"}), node("b1", labels={"pool": "b"}), node("b2", labels={"pool": "b"})]
DISK: Final = {"key": "disk", "operator": "DoesNotExist"}
ZONE: Final = {"name": "zone", "expression": "node.metadata.labels[?'zone'].orValue('x') == 'x'"}
UNMET: Final = "node(s) didn't match Pod's node affinity/selector"
NOW: Final = "PUBLISHED AFFINITY"
PUBLISHED: Final = "/apis/fairlead.dev/v1alpha1/publishedaffinities"


def explain(run: Run, policies: list[Object], made: Object, *more: str) -> str:
    Path("p.yaml").write_text(yaml.safe_dump_all(policies))
    Path("c.json").write_text(json.dumps(listed(*NODES, made)))
    code, out, err = run(*more or (made["metadata"]["name"],), "--policies", "p.yaml", "--snapshot", "c.json")
    assert (code, err) == (0, "")
    return out


def section(out: str) -> list[str]:
    """Return the lines about published affinity."""
    lines = out.splitlines()
    if NOW not in lines:
        return []
    at = lines.index(NOW) + 1
    return [re.sub(r", and [0-9a-f]{12} is now", ", and HASH is now", one) for one in lines[at : lines.index("", at)]]


SAID: Final[dict[str, tuple[list[Object], Object, list[str]]]] = {
    "none of it": ([publishing()], pod("p"), []),
    "all of it": (
        [publishing()],
        created("p"),
        ["pool publishes: pool in a", f"It was created when {OLDER} was published for its scheduler, and HASH is now."],
    ),
    "of two policies, and its own": (
        [publishing(), publishing("zone", ZONE)],
        created(
            "p",
            {"matchExpressions": [POOL, {"key": "zone", "operator": "In", "values": ["x"]}, DISK]},
            {"matchExpressions": [DISK, POOL, {"key": "zone", "operator": "DoesNotExist"}]},
        ),
        [
            "pool publishes: pool in a",
            "zone publishes: zone in x, or zone is absent",
            "not published now, but its own or published before: disk is absent",
            f"It was created when {OLDER} was published for its scheduler, and HASH is now.",
        ],
    ),
    "a part of which one of its terms has nothing": (
        [publishing()],
        created("p", {"matchExpressions": [POOL]}, {"matchExpressions": [DISK]}),
        [
            "not published now, but its own or published before: pool in a, disk is absent",
            f"It was created when {OLDER} was published for its scheduler, and HASH is now.",
        ],
    ),
    "what no API server accepts": (
        [publishing()],
        created("p", {"matchExpressions": [{"key": "pool", "operator": "Like", "values": ["a"]}, {}]}),
        [
            "not published now, but its own or published before: pool Like a,   ",
            f"It was created when {OLDER} was published for its scheduler, and HASH is now.",
            "a1 passes all rules but not its node affinity, which cannot be changed: create the pod again.",
        ],
    ),
    "an older one": (
        [publishing("pool", OF_ALL)],
        created("p"),
        [
            "not published now, but its own or published before: pool in a",
            f"It was created when {OLDER} was published for its scheduler, and HASH is now.",
            "b1, b2 pass all rules but not its node affinity, which cannot be changed: create the pod again.",
        ],
    ),
    "one that is published no more": (
        [publishing("pool", OF_ALL, publish="None")],
        created("p"),
        [
            "not published now, but its own or published before: pool in a",
            f"It was created when {OLDER} was published for its scheduler, and now nothing is.",
            "b1, b2 pass all rules but not its node affinity, which cannot be changed: create the pod again.",
        ],
    ),
}
"""Policies, the pod, and the section."""


@pytest.mark.parametrize(("policies", "made", "want"), SAID.values(), ids=SAID)
def test_what_of_its_affinity_is_published(policies: list[Object], made: Object, want: list[str], run: Run) -> None:
    assert section(explain(run, policies, made)) == want


def test_a_pod_that_has_what_is_published_is_up_to_date(run: Run) -> None:
    found = json.loads(explain(run, [publishing()], created("p"), "p", "-o", "json"))["publishedAffinity"]
    made = created("p", hash_=found["currentHash"])
    assert section(explain(run, [publishing()], made)) == ["pool publishes: pool in a"]


def test_what_rejects_a_node_names_the_policy(run: Run) -> None:
    asked = explain(run, [publishing("pool", OF_POOL)], created("p"))
    assert f"2       rejected    b1, b2   pool/pool: wrong pool; {UNMET}, published by pool\n" in asked
    wide = explain(run, [publishing("pool", OF_POOL)], created("p"), "p", "-o", "wide")
    assert f"pool/pool: wrong pool; {UNMET}, published by pool (pool=a)\n" in wide
    one = explain(run, [publishing("pool", OF_POOL)], created("p"), "p", "--node", "b1")
    assert f"    the scheduler: {UNMET}, published by pool (pool=a)\n" in one
    assert section(one)[0] == "pool publishes: pool in a"
    assert f"2       does not fit   b1, b2   {UNMET}\n" in explain(run, [publishing("pool", OF_ALL)], created("p"))


def test_programs_read_the_same(run: Run) -> None:
    made = created("p", {"matchExpressions": [POOL, DISK]}, status={"nominatedNodeName": "a1"})
    found = json.loads(explain(run, [publishing()], made, "p", "-o", "json"))
    assert found["publishedAffinity"] == {
        "hash": OLDER,
        "currentHash": found["publishedAffinity"]["currentHash"],
        "added": False,
        "requirements": [{"policy": "pool", **POOL}],
        "others": [{**DISK, "values": []}],
        "excludedNodes": [],
    }
    assert found["pod"]["nominatedNode"] == "a1"
    assert found["nodes"][1]["unfit"] == [
        {"what": UNMET, "detail": "pool=a and !disk", "publishedBy": ["pool"]},
    ]
    found = json.loads(explain(run, [publishing("pool", OF_ALL)], created("p"), "p", "-o", "json"))
    assert found["publishedAffinity"]["excludedNodes"] == ["b1", "b2"]


def test_a_pod_that_does_not_exist_yet_is_explained_as_it_would_be_created(run: Run) -> None:
    Path("new.json").write_text(json.dumps(pod("new")))
    Path("web.json").write_text(json.dumps(workload()))
    for file in ("new.json", "web.json"):
        out = explain(run, [publishing()], pod("p"), "-f", file)
        assert section(out) == ["pool publishes: pool in a", "It would be created with this now."]
    assert section(explain(run, [publishing()], pod("p"))) == []


def test_pods_that_wait_are_told_to_be_created_again(run: Run) -> None:
    made = created("p", {"matchExpressions": [POOL, {"key": "disk", "operator": "Exists"}]})
    out = explain(run, [publishing("pool", OF_ALL)], made, "--pending", "-A")
    said = "3 nodes pass all rules but not their node affinity, of an older publication: create them again"
    assert f"none of 3 nodes: 3 didn't match Pod's node affinity/selector; {said}\n" in out


NOMINATED: Final[dict[str, tuple[Object, str]]] = {
    "for a node that a rule rejects": (
        pod("p", status={"nominatedNodeName": "b1"}),
        "It is nominated for b1, which is rejected by pool/pool: autoscalers count it as placed there, and add no node",
    ),
    "for one that passes": (pod("p", status={"nominatedNodeName": "a1"}), ""),
    "for one that is gone": (pod("p", status={"nominatedNodeName": "c1"}), ""),
    "before it was placed": (pod("p", on="a1", status={"nominatedNodeName": "b1"}), ""),
}


@pytest.mark.parametrize(("made", "said"), NOMINATED.values(), ids=NOMINATED)
def test_a_nominated_pod(made: Object, said: str, run: Run) -> None:
    out = explain(run, [publishing(publish="None")], made)
    assert said in out
    assert ("is nominated" in out) is bool(said)


def _live(made: Object, *, policy: Object | None = None, **answers: Any) -> dict[str, object]:
    there = policy or publishing()
    there = live_policy(yaml.safe_dump(there)) | {"status": {"servingGeneration": 3, **there.get("status", {})}}
    return cluster_answers(PODS=items(without_kind(made)), LISTED=items(there)) | {
        "/api/v1/nodes": items(*map(without_kind, NODES)),
        **answers,
    }


def _object(*policies: str) -> Object:
    """Return what the leader has published: terms on the label `pool` of each policy, whatever its rules say now."""
    requirement: Any = {"key": "pool", "operator": "In", "values": ["a"]}
    published: Any = [
        {"name": name, "uid": "u", "generation": 3, "when": [], "terms": [{"matchExpressions": [requirement]}]}
        for name in policies
    ]
    return {"metadata": {"name": "fairlead"}, "spec": affinity_of_scheduler("fairlead", published)}


LIVE: Final[dict[str, tuple[dict[str, Any], list[str]]]] = {
    "what the leader has published counts": (
        {PUBLISHED: items(_object("other"))},
        [
            "other publishes: pool in a",
            f"It was created when {OLDER} was published for its scheduler, and HASH is now.",
        ],
    ),
    "nothing is published": (
        {PUBLISHED: items()},
        [
            "not published now, but its own or published before: pool in a",
            f"It was created when {OLDER} was published for its scheduler, and now nothing is.",
        ],
    ),
    "it may not be read": (
        {PUBLISHED: 403},
        ["pool publishes: pool in a", f"It was created when {OLDER} was published for its scheduler, and HASH is now."],
    ),
    "the kind does not exist": (
        {},
        [
            "not published now, but its own or published before: pool in a",
            f"It was created when {OLDER} was published for its scheduler, and now nothing is.",
        ],
    ),
}


@pytest.mark.parametrize(("answers", "want"), LIVE.values(), ids=LIVE)
def test_in_a_cluster(answers: dict[str, Any], want: list[str], ask: Ask) -> None:
    code, out, err = ask(_live(created("p"), **answers), pod="p")
    assert (code, err) == (0, "")
    assert section(out) == want


def test_where_nothing_adds_it_a_new_pod_gets_none(ask: Ask) -> None:
    Path("new.json").write_text(json.dumps(pod("train")))
    condition = {"type": "Published", "status": "False", "reason": "NotInstalled", "message": "off"}
    off = publishing() | {"status": {"conditions": [condition]}}
    for policy, want in ((publishing(), True), (off, False)):
        out = ask(_live(created("p"), policy=policy, **{PUBLISHED: 403}), "-f", "new.json")[1]
        assert bool(section(out)) is want


def test_labels_of_a_namespace_that_are_not_known_are_not_taken_as_absent(ask: Ask) -> None:
    tenant = {
        "name": "tenant",
        "expression": "node.metadata.labels[?'pool'].orValue('')"
        " == namespaceObject.metadata.labels[?'team'].orValue('')",
    }
    answers = _live(pod("train"), policy=publishing("pool", tenant), **{PUBLISHED: 403, "/api/v1/namespaces/ml": 403})
    Path("new.json").write_text(json.dumps(pod("new")))
    assert section(ask(answers, "-f", "new.json", pod="new")[1]) == []
