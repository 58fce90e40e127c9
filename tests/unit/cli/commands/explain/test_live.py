"""`fairlead explain` of pods of a cluster: an API server that says what it is told to say."""

import json
from pathlib import Path
from typing import Any

import pytest

from fairlead.cli.main import main
from support.cli import status
from support.cli.explained import (
    LISTED,
    NAMESPACE,
    OPERATOR_PODS,
    PODS,
    POLICY,
    SCHEDULER,
    TRAIN,
    UNSCHEDULABLE,
    WEB,
    Ask,
    cluster_answers,
    live_policy,
    scheduler_pod,
    without_kind,
)
from support.cli.status_api import api_server, items
from support.policy.lint import HEAD
from support.simulation.snapshot import Object, pod


def test_a_live_pod_is_explained_by_the_policies_of_the_cluster(ask: Ask) -> None:
    code, out, err = ask(cluster_answers())
    assert (code, err) == (0, "")
    assert "2 of 5 nodes are possible" in out
    assert "Serving: gpu: generation 3, which replicas serve" in out


def test_what_runs_on_nodes_is_named_where_it_may_not_be_read_and_not_guessed(ask: Ask) -> None:
    code, out, _ = ask(cluster_answers(PODS=403))
    assert code == 1
    assert (
        "Note: pods on nodes are unknown, and free capacity is counted as if nodes were empty: pods is forbidden: "
        in out
    )
    assert "Note: not evaluated: gpu/room: it reads the pods on nodes." in out
    assert "Note: not evaluated: gpu/roomy: it reads the pods on nodes." in out
    assert "gpu/class: wrong class" in out
    assert "UNKNOWN: 2 of 5 nodes cannot be judged, as gpu/room was not evaluated; the others are not possible" in out


def test_a_score_that_is_not_evaluated_leaves_nodes_possible_and_none_preferred(ask: Ask) -> None:
    no_room = live_policy(
        POLICY.replace("  - {name: room, expression: \"free['cpu'] >= 2.0\", reason: too full}\n", "")
    )
    code, out, _ = ask(cluster_answers(PODS=403, LISTED=items(no_room)))
    assert code == 1
    assert "2 of 5 nodes are possible; preferred ones are not known, as gpu/roomy was not evaluated" in out
    assert "2       possible   t4-1, t4-2   not evaluated: gpu/roomy" in out


def test_a_namespace_that_may_not_be_read_leaves_out_what_asks_for_it(ask: Ask) -> None:
    by_namespace = POLICY.replace("spec:", "spec:\n  match: {namespaceSelector: {matchLabels: {team: x}}}", 1)
    assert "policies: gpu" in ask(cluster_answers(LISTED=items(live_policy(by_namespace))))[1]
    code, out, _ = ask(cluster_answers(LISTED=items(live_policy(by_namespace)), NAMESPACE=403))
    assert code == 1
    assert "Note: not evaluated: gpu as a whole: it reads the pod's namespace." in out
    assert "It is not known whether gpu matches this pod." in out


MEASURED = """
spec:
  match: {podSelector: {matchLabels: {gpu: %s}}}
  data: [{name: load, prometheus: {server: main, query: load}}]
  filters: [{name: not-hot, expression: data.load < 0.8}]
"""


def test_a_value_that_is_not_given_makes_nodes_unknown_and_options_that_give_it_are_named(ask: Ask) -> None:
    code, out, _ = ask(
        cluster_answers(LISTED=items(live_policy(HEAD.replace("some", "gpu") + (MEASURED % "t4").lstrip())))
    )
    assert code == 1
    assert "UNKNOWN: 3 of 5 nodes cannot be judged, as gpu/not-hot was not evaluated" in out
    assert "preferred" not in out
    how = "give it with --prometheus main=URL or --data FILE"
    assert f"Note: not evaluated: gpu/not-hot: it reads data.load, which is not known: {how}." in out
    assert "Note: the replicas' own values cannot be asked: " in out


def test_what_does_not_match_the_pod_is_not_noted_for_it(ask: Ask) -> None:
    code, out, _ = ask(
        cluster_answers(LISTED=items(live_policy(HEAD.replace("some", "gpu") + (MEASURED % "other").lstrip())))
    )
    assert code == 0
    assert "3 of 5 nodes are possible" in out
    assert "Note: " not in out


def test_what_the_scheduler_said_and_who_is_alive_stand_first(ask: Ask) -> None:
    tried = TRAIN | {"status": {"conditions": [UNSCHEDULABLE]}}
    replicas = status.pod("fairlead-b"), status.TERMINATING
    there = cluster_answers(PODS=items(WEB, tried)) | {
        OPERATOR_PODS: items(*replicas, scheduler_pod("s-1"), scheduler_pod("s-2"))
    }
    _, out, _ = ask(there, "--now", "2027-01-15T22:00:00Z")
    assert out.splitlines()[1:5] == [
        "PodScheduled: Unschedulable for 2m: 0/5 nodes are available: 5 nope.",
        "scheduler fairlead: ready: 2 of 2 pods ready",
        "operator: 1 of 1 replica ready in fairlead-system",
        "policies: gpu",
    ]
    assert "2 of 5 nodes are possible\nThe message above is from the scheduler's last try: it tries again when" in out
    said = json.loads(ask(there, "-o", "json")[1])["scheduling"]
    assert said["podScheduled"]["message"] == "0/5 nodes are available: 5 nope."
    assert (said["scheduler"]["ready"], said["operator"]["ready"], said["answered"]) == (True, 1, True)
    bare = cluster_answers()
    assert "PodScheduled: no scheduler has reported on this pod." in ask(bare)[1]
    lost = ask(bare | {OPERATOR_PODS: 403, SCHEDULER: 403})[1]
    assert "scheduler fairlead: not known: " in lost
    assert "operator: not known: " in lost


@pytest.mark.parametrize("gone", [items(), items(status.pod("fairlead-a", ready=False))], ids=["none", "not ready"])
def test_without_a_replica_that_answers_pods_wait_and_nothing_is_possible(ask: Ask, gone: Object) -> None:
    there = cluster_answers() | {OPERATOR_PODS: items(scheduler_pod("s-1"), scheduler_pod("s-2"), *gone["items"])}
    code, out, _ = ask(there)
    assert code == 0
    assert "operator: NO ANSWER: " in out
    assert (
        "UNSCHEDULABLE: no replica answers scheduler fairlead, and all its pods wait (failurePolicy Fail of gpu). "
        "Otherwise 2 of 5 nodes would be possible: t4-1, t4-2" in out
    )
    assert "3       no answer      t4-2, t4-1, v100-1   the scheduler's call is not answered" in out
    assert "Serving: gpu: generation 3; no replica serves it, as none is ready" in out
    assert "which replicas serve" not in out
    assert "CLOSEST" not in out
    found = json.loads(ask(there, "-o", "json")[1])
    assert [one["verdict"] for one in found["nodes"]] == ["NoAnswer"] * 3 + ["DoesNotFit"] * 2
    assert (found["preferred"], found["scheduling"]["waits"], found["scheduling"]["answered"]) == ([], True, False)
    assert "node t4-1: no answer" in ask(there, "--node", "t4-1")[1]


def test_without_a_replica_policies_that_are_ignored_then_reject_nothing(ask: Ask) -> None:
    ignored = live_policy(POLICY.replace("spec:", "spec:\n  failurePolicy: Ignore", 1))
    there = cluster_answers(LISTED=items(ignored)) | {OPERATOR_PODS: items(scheduler_pod("s-1"), scheduler_pod("s-2"))}
    code, out, _ = ask(there)
    assert code == 0
    assert "Policies are skipped while no replica answers." in out
    assert "3 of 5 nodes are possible: no replica answers, and all policies of this scheduler have failurePolicy" in out
    annotations = {"annotations": [{"key": "fairlead.dev/a", "expression": "'b'"}]}
    for binding in (annotations, {"gang": [{"name": "g", "group": "pod.metadata.name", "size": "2"}]}):
        ignored["spec"]["binding"] = binding
        _, out, _ = ask(there)
        assert "UNSCHEDULABLE: no replica answers scheduler fairlead, and all its pods wait (gpu binds pods)" in out
    ignored["spec"]["binding"] = {"annotations": [{**annotations["annotations"][0], "mode": "Shadow"}]}
    assert "3 of 5 nodes are possible: no replica answers" in ask(there)[1]


def test_a_scheduler_that_is_not_ready_is_said_before_nodes_are_called_possible(ask: Ask) -> None:
    pods = [status.pod(name, scheduler="fairlead", ready=False) for name in ("s-1", "s-2")]
    there = cluster_answers() | {SCHEDULER: status.deployment("fairlead", ready=0)}
    code, out, _ = ask(there | {OPERATOR_PODS: items(status.pod("fairlead-a"), *pods)})
    assert code == 0
    assert "scheduler fairlead: NOT READY: 0 of 2 pods are ready" in out
    assert "NOT SCHEDULED: scheduler fairlead is not ready. Otherwise 2 of 5 nodes would be possible" in out
    half = [scheduler_pod("s-1"), pods[1]]  # one is enough
    _, out, _ = ask(there | {OPERATOR_PODS: items(status.pod("fairlead-a"), *half)})
    assert "scheduler fairlead: ready: 1 of 2 pods are ready" in out
    assert "\n2 of 5 nodes are possible" in out


@pytest.mark.parametrize(
    ("changes", "said"),
    {
        "nodes": ({"/api/v1/nodes": 403}, "you may not list nodes, which this command needs: "),
        "policies": ({LISTED: 403}, "you may not list policies: "),
        "no such kind": ({LISTED: 404}, "this cluster has no CustomResourceDefinition of policies: "),
        "the pod, neither": ({PODS: 403, f"{NAMESPACE}/pods/train": 403}, "get pods ml/train: 403"),
        "no such pod": ({PODS: items(WEB), f"{NAMESPACE}/pods/train": 404}, "there is no pod ml/train in the cluster"),
        "no nodes": ({"/api/v1/nodes": items()}, "the cluster has no nodes"),
        "who asks is not known": ({"/version": 401}, "get version: 401"),
        "the version, neither": ({"/version": 403, "/api/v1/nodes": 403}, "you may not list nodes, "),
    }.values(),
)
def test_what_keeps_an_explanation_is_one_line(ask: Ask, changes: dict[str, object], said: str) -> None:
    code, out, err = ask({**cluster_answers(), **changes})
    assert (code, out) == (2, "")
    assert err.startswith(f"fairlead explain: {said}")
    assert err.count("\n") == 1


def test_policies_from_files_are_asked_about_a_live_pod(ask: Ask) -> None:
    code, out, _ = ask({**cluster_answers(), LISTED: 403}, "--policies", "p.yaml")
    assert code == 0
    assert "2 of 5 nodes are possible" in out
    assert "Served" not in out


def test_pods_that_wait_in_a_cluster_are_simulated(
    here: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    there = cluster_answers(
        PODS=items(*map(without_kind, (WEB, TRAIN, pod("other", schedulerName="default-scheduler"))))
    )
    with api_server(there, tmp_path) as file:
        live: list[Any] = ["--snapshot", "live", "--pods", "live", "--kubeconfig", str(file), "-o", "json"]
        assert main(["simulate", "--policies", "p.yaml", *live]) == 0
        found = json.loads(capsys.readouterr().out)
        assert [one["name"] for one in found["pods"]] == ["train"]
        files = ["--snapshot", "c.json", *live[2:]]
        assert main(["simulate", "--policies", "p.yaml", *files]) == 0
        assert json.loads(capsys.readouterr().out)["pods"] == found["pods"]
    with api_server({**there, PODS: items(without_kind(WEB))}, tmp_path) as file:
        live[5] = str(file)
        assert main(["simulate", "--policies", "p.yaml", *live]) == 0
        assert json.loads(capsys.readouterr().out)["pods"] == []
        assert main(["simulate", "--policies", "p.yaml", *live[:-2]]) == 0
        assert "none of these pods has a scheduler that the policies name." in capsys.readouterr().out
    with api_server({**there, PODS: 403}, tmp_path) as file:
        live[5] = str(file)
        assert main(["simulate", "--policies", "p.yaml", *live]) == 2
        assert "you may not list pods of all namespaces: " in capsys.readouterr().err
