"""`fairlead explain` of pods in files: what each rule compared, by node and in one table."""

import json
from pathlib import Path

import pytest
import yaml

from fairlead.cli.main import main
from support.cli.explained import FILES, NODES, POLICY, TRAIN, Run
from support.policy.lint import HEAD
from support.simulation.snapshot import Object, listed, node, pod

NOT_SIMULATED = (
    "Not simulated: affinity between pods, topology spread, volumes, resource claims, other pods of a group, "
    "the scheduler's own scores, preemption"
)


def test_nodes_are_grouped_by_verdict_and_each_rule_says_what_it_compared(run: Run) -> None:
    code, out, err = run("pod/train", "-n", "ml", *FILES)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "pod ml/train, scheduler fairlead, requests cpu 2, memory 4Gi",
        "policies: gpu",
        "2 of 5 nodes are possible",
        "",
        "NODES   VERDICT     WHICH    WHY",
        "1       preferred   t4-2     160 points",
        "1       possible    t4-1     100 points",
        "1       rejected    v100-1   gpu/class: wrong class",
        "1       rejected    v100-2   gpu/class: wrong class; gpu/room: too full; Insufficient cpu",
        "1       rejected    w-1      gpu/class: wrong class; node(s) were unschedulable",
        "",
        "WHAT THE RULES COMPARED",
        "gpu/class: wrong class, on 3 nodes, such as v100-1",
        "    COMPARED                                                      VALUE ON v100-1",
        "    node.metadata.labels[?'gpu'].orValue('') == variables.wants   'v100' against 't4'",
        "    or",
        "    variables.wants == 'any'                                      't4'",
        "gpu/room: too full, on v100-2",
        "    COMPARED             VALUE ON v100-2",
        "    free['cpu'] >= 2.0   1",
        "",
        "CLOSEST",
        "v100-1 is possible but for",
        "    gpu/class: wrong class",
        "        COMPARED                                                      VALUE",
        "        node.metadata.labels[?'gpu'].orValue('') == variables.wants   'v100' against 't4'",
        "        or",
        "        variables.wants == 'any'                                      't4'",
        "",
        "No match: night: its condition important is false (pod.spec.priority > 100: 0)",
        f"{NOT_SIMULATED}.",
        "Note: gpu/room, gpu/roomy read the pods on nodes; replicas may be a moment behind.",
    ]


def test_what_is_as_good_to_the_scheduler_is_said(run: Run) -> None:
    Path("p.yaml").write_text(POLICY.replace("free['cpu'] * 10.0", "free['cpu'] * 0.5"))
    _, out, _ = run("pod/train", "-n", "ml", *FILES)
    assert "The scheduler gets a tenth of the points, rounded: for it t4-1 is equally good.\n" in out
    assert json.loads(run("train", "-n", "ml", *FILES, "-o", "json")[1])["asGood"] == ["t4-1"]


def test_data_that_grow_stale_want_the_time_of_the_snapshot(run: Run) -> None:
    data = "spec:\n  data: [{name: load, maxAge: 60s, nodeAnnotation: {key: a.b/load, timeKey: a.b/time}}]"
    Path("p.yaml").write_text(POLICY.replace("spec:", data))
    said = "Note: data of gpu can be stale: give the time when c.json was written as --now."
    assert said in run("train", "-n", "ml", *FILES)[1]
    assert said not in run("train", "-n", "ml", *FILES, "--now", "2027-01-15T22:00:00Z")[1]


def test_pods_of_the_system_are_placed_by_nobody_of_ours(run: Run) -> None:
    Path("c.json").write_text(json.dumps(listed(*NODES, pod("x", namespace="kube-system"))))
    _, out, _ = run("x", *FILES)
    assert "Note: schedulers that the operator manages never place pods of kube-system." in out


def test_a_pod_with_nowhere_to_go_is_told_the_node_that_lacks_the_least(run: Run) -> None:
    code, out, _ = run("lost", *FILES)
    assert code == 0
    assert "UNSCHEDULABLE: none of 5 nodes is possible" in out
    assert "CLOSEST\nt4-1 is possible but for\n    gpu/class: wrong class\n" in out


def test_one_node_in_full(run: Run) -> None:
    code, out, _ = run("train", "-n", "ml", *FILES, "--node", "t4-1")
    assert code == 0
    assert out.splitlines()[:4] == [
        "pod ml/train, scheduler fairlead, requests cpu 2, memory 4Gi",
        "policies: gpu",
        "node t4-1: possible",
        "",
    ]
    assert "gpu/class: passes" in out
    assert "gpu/roomy: 50, which is 50 of 100 and adds 100 points" in out
    _, out, _ = run("train", "-n", "ml", *FILES, "--node", "v100-2")
    assert "node v100-2: rejected\n    the scheduler: Insufficient cpu (requests 2, 1 is free)\n" in out
    assert "gpu/class: rejects: wrong class\n" in out
    assert "  would pass with another result of:\n    COMPARED   " in out
    assert "    or\n    variables.wants == 'any'" in out


def test_programs_read_the_same(run: Run) -> None:
    code, out, _ = run("train", "-n", "ml", *FILES, "-o", "json", "--now", "2027-01-15T22:00:00Z")
    found = json.loads(out)
    assert code == 0
    assert found["pod"]["name"] == "train"
    assert found["now"] == "2027-01-15T22:00:00Z"
    assert found["policies"] == ["gpu"]
    assert found["notFor"][0]["policy"] == "night"
    assert [(one["name"], one["verdict"], one["score"]) for one in found["nodes"]] == [
        ("t4-1", "Possible", 100.0),
        ("t4-2", "Preferred", 160.0),
        ("v100-1", "Rejected", None),
        ("v100-2", "Rejected", None),
        ("w-1", "Rejected", None),
    ]
    assert found["nodes"][3]["rejectedBy"] == [
        {"policy": "gpu", "rule": "class", "reason": "wrong class"},
        {"policy": "gpu", "rule": "room", "reason": "too full"},
    ]
    lacks = {"what": "Insufficient cpu", "detail": "requests 2, 1 is free", "publishedBy": []}
    assert found["nodes"][3]["unfit"] == [lacks]
    assert found["preferred"] == ["t4-2"]
    assert [(one["rule"], one["rejected"], one["node"]) for one in found["rules"]] == [
        ("class", 3, "v100-1"),
        ("room", 1, "v100-2"),
    ]
    assert found["rules"][1]["changes"][0]["left"] == 1.0
    assert found["closest"]["name"] == "v100-1"
    assert yaml.safe_load(run("train", "-n", "ml", *FILES, "-o", "yaml", "--now", "2027-01-15T22:00:00Z")[1]) == found
    one = json.loads(run("train", "-n", "ml", *FILES, "-o", "json", "--node", "t4-1")[1])["node"]
    assert (one["verdict"], one["filters"][0]["outcome"], one["points"][0]["points"]) == ("Possible", "Passed", 100.0)


def test_each_node_has_a_row_with_its_score_and_reason(run: Run) -> None:
    code, out, _ = run("train", "-n", "ml", *FILES, "-o", "wide")
    assert code == 0
    lacks = "Insufficient cpu (requests 2, 1 is free)"
    assert out.partition("\n\n")[2].partition("\n\n")[0].splitlines() == [
        "NODE     VERDICT     SCORE   REASON",
        "t4-2     preferred   160",
        "t4-1     possible    100",
        "v100-1   rejected    -       gpu/class: wrong class",
        f"v100-2   rejected    -       gpu/class: wrong class; gpu/room: too full; {lacks}",
        "w-1      rejected    -       gpu/class: wrong class; node(s) were unschedulable (it is cordoned)",
    ]
    assert "WHAT THE RULES COMPARED" in out


def _with_filter(expression: str, score: str = "") -> str:
    spec = {"filters": [{"name": "f", "expression": expression}]}
    if score:
        spec["scores"] = [{"name": "s", "expression": score}]
    return yaml.safe_dump({**yaml.safe_load(HEAD.replace("some", "p")), "spec": spec})


EITHER = "node.metadata.labels['gpu'] == 'a100' || 'any' in pod.metadata.labels || pods.size() > 5"


def test_every_alternative_is_shown(run: Run) -> None:
    Path("p.yaml").write_text(_with_filter(EITHER))
    _, out, _ = run("train", "-n", "ml", *FILES)
    compared, closest = out.partition("CLOSEST")[0], out.partition("CLOSEST")[2]
    full = run("train", "-n", "ml", *FILES, "--node", "t4-1")[1].partition("another result of")[2]
    for text in (compared, closest, full):
        for part in ("labels['gpu'] == 'a100'", "'any' in pod.metadata.labels", "pods.size() > 5"):
            assert part in text
        assert text.count(" or\n") == (4 if text is compared else 2)  # w-1 has no label, which is a reason of its own
    assert "    pods.size() > 5                         1" in full
    found = json.loads(run("train", "-n", "ml", *FILES, "-o", "json")[1])["rules"][0]
    assert [one["text"] for one in found["changes"]] == ["node.metadata.labels['gpu'] == 'a100'"]
    assert [[one["text"] for one in way] for way in found["alternatives"]] == [
        ["pods.size() > 5"],
        ["'any' in pod.metadata.labels"],
    ]


def test_a_size_of_nothing_is_shown(run: Run) -> None:
    Path("p.yaml").write_text(_with_filter("pods.size() > 0"))
    assert "    pods.size() > 0   0" in run("train", "-n", "ml", *FILES)[1]


def test_a_rule_that_cannot_be_decided_says_why(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.yaml").write_text(_with_filter("pod.metadata.labels['nope'] == 'b'", "double(node.metadata.labels['no'])"))
    _, out, _ = run("train", "-n", "ml", *FILES)
    assert "p/f: rule f cannot be decided (no such key: 'nope'), on 5 nodes, such as t4-1" in out
    assert "pod.metadata.labels['nope'] == 'b'   cannot be evaluated" in out
    simulate = ["simulate", *FILES, "--pods", "c.json"]
    assert main(simulate) == 0
    said = "p/f cannot be decided for ml/web on t4-1: no such key: 'nope'"
    assert f"Note: {said}." in capsys.readouterr().out
    assert main([*simulate, "-o", "json"]) == 0
    assert said in json.loads(capsys.readouterr().out)["notes"]


def test_a_score_that_has_no_value_on_any_node_is_noted(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    Path("p.yaml").write_text(_with_filter("true", "double(node.metadata.labels['no'])"))
    why = "has no value on any of 3 nodes for ml/train (on t4-1: no such key: 'no'): all nodes get 0 points from it"
    assert f"Note: score p/s {why}." in run("train", "-n", "ml", *FILES)[1]
    assert main(["simulate", *FILES, "--pods", "c.json"]) == 0
    assert "Note: score p/s has no value on any of 3 nodes for ml/web" in capsys.readouterr().out
    Path("p.yaml").write_text(_with_filter("true", "double(node.metadata.labels['gpu'].size())"))  # w-1 has none
    assert "has no value" not in run("train", "-n", "ml", *FILES)[1]


def test_numbers_that_json_does_not_have_are_texts(run: Run) -> None:
    numbers = ["NaN", "Infinity", "-Infinity"]
    Path("p.yaml").write_text(_with_filter(" || ".join(f"double('{one}') == 1.0" for one in numbers)))

    def refuse(constant: str) -> object:
        raise AssertionError(constant)

    asked = ("train", "-n", "ml", *FILES, "--now", "2027-01-15T08:00:00Z", "-o")
    found = json.loads(run(*asked, "json")[1], parse_constant=refuse)
    rule = found["rules"][0]
    assert {*numbers} <= {one["value"] for one in rule["steps"]}
    assert {one["left"] for one in rule["changes"]} <= {*numbers}
    assert yaml.safe_load(run(*asked, "yaml")[1]) == found


def test_bytes_are_written_as_kubernetes_writes_them(run: Run) -> None:
    Path("p.yaml").write_text(_with_filter("free['memory'] - 1073741824.0 >= 137438953472.0", "free['memory']"))
    _, out, _ = run("train", "-n", "ml", *FILES)
    assert "free['memory'] - 1073741824.0 >= 137438953472.0   31Gi" in out
    assert "e+" not in out
    found = json.loads(run("train", "-n", "ml", *FILES, "-o", "json")[1])["rules"][0]["changes"][0]
    assert (found["left"], found["unit"]) == (31 * 1024.0**3, "bytes")
    one = run("train", "-n", "ml", *FILES, "--node", "t4-1")[1]
    assert "p/s: 32Gi" in one
    named = _with_filter("variables.room >= 137438953472.0")
    Path("v.yaml").write_text(
        named.replace("spec:", "spec:\n  variables: [{name: room, expression: \"free['memory']\"}]")
    )
    assert "variables.room >= 137438953472.0   32Gi" in run("train", "-n", "ml", "--policies", "v.yaml", *FILES[2:])[1]
    assert "    free['memory']   32Gi" in one


PROTECT = """
spec:
  preemption:
    protect:
    - name: kept
      expression: "'keep' in victim.metadata.labels && victim.spec.priority < pod.spec.priority"
"""


def test_pods_that_policies_protect_from_eviction_are_named(run: Run) -> None:
    Path("p.yaml").write_text(HEAD.replace("some", "keep") + PROTECT.lstrip())
    room = {"cpu": "4"}
    there = [
        *(node(name, room=room) for name in ("a", "b", "c", "d")),
        pod("a1", on="a", asks={"cpu": "4"}, labels={"keep": ""}, priority=1),
        pod("b1", on="b", asks={"cpu": "2"}, labels={"keep": ""}, priority=3),
        pod("b2", on="b", asks={"cpu": "2"}, priority=2),
        pod("c1", on="c", asks={"cpu": "4"}, priority=2000),
        pod("d1", on="d", asks={"cpu": "2"}, priority=1),
        pod("d2", on="d", asks={"cpu": "2"}, priority=2000),
        pod("hi", asks={"cpu": "2"}, priority=1000),
        pod("big", asks={"cpu": "4"}, priority=1000),
    ]
    Path("c.json").write_text(json.dumps(listed(*there)))
    _, out, _ = run("hi", *FILES)
    assert out.partition("PREEMPTION\n")[2].partition("\n\n")[0].splitlines() == [
        "NODE   LOWER PRIORITY   WOULD BE EVICTED   OUTCOME",
        "b      2                ml/b2              makes room",
        "d      1                ml/d1              makes room",
        "a      1                ml/a1              given up: keep/kept: a victim is protected",
        "keep/kept protects from this pod: ml/a1 on a, ml/b1 on b",
    ]
    assert "the scheduler's own scores." in out  # preemption is simulated
    again = "The scheduler tries it again when a pod leaves any node, or after five minutes"
    assert again not in out, "it was never tried"
    Path("c.json").write_text(json.dumps(listed(*there[:-2], _refused(pod("hi", asks={"cpu": "2"}, priority=1000)))))
    assert f"{again}, but not when a policy changes." in run("hi", *FILES)[1].splitlines()
    Path("c.json").write_text(json.dumps(listed(*there)))
    _, out, _ = run("big", *FILES)
    assert "b      2                ml/b1, ml/b2       given up: keep/kept: a victim is protected" in out
    assert "d      1                -                  without all of them there is still no room" in out
    found = json.loads(run("big", *FILES, "-o", "json")[1])["evictions"]
    assert [(one["node"], one["possible"]) for one in found] == [("a", False), ("b", False), ("d", False)]
    assert found[0]["protected"] == [{"pod": "ml/a1", "policy": "keep", "rule": "kept"}]
    Path("c.json").write_text(
        json.dumps(listed(*there[:-2], pod("hi", asks={"cpu": "2"}, priority=1000, preemptionPolicy="Never")))
    )
    assert "PREEMPTION" not in run("hi", *FILES)[1]


def _refused(one: Object) -> Object:
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "2 Insufficient cpu"}
    return one | {"status": {**one.get("status", {}), "conditions": [said]}}


READY = """
spec:
  filters: [{name: ready, nodeReadiness: {conditions: [{type: NetworkReady, status: "True"}], holdOff: 20s}}]
"""


def test_programs_read_times_as_people_do(run: Run) -> None:
    Path("r.yaml").write_text(HEAD.replace("some", "ready") + READY.lstrip())
    new = node("new")
    said = {"type": "NetworkReady", "status": "True", "lastTransitionTime": "2027-01-15T21:59:50Z"}
    new["status"]["conditions"] = [said]
    Path("n.json").write_text(json.dumps(listed(new, TRAIN)))
    asked = ("train", "-n", "ml", "--policies", "r.yaml", "--snapshot", "n.json", "--now", "2027-01-15T22:00:00Z")
    whole = {
        "values": {
            "now": "2027-01-15T22:00:00Z",
            "holdOff": "20s",
            "since": "2027-01-15T21:59:50Z",
            "until": "2027-01-15T22:00:10Z",
        },
        "items": [["NetworkReady", {"status": "True", "wanted": "True", "since": "2027-01-15T21:59:50Z"}]],
    }
    found = json.loads(run(*asked, "-o", "json")[1])
    assert [one["noted"] for one in (*found["rules"], *found["closest"]["rules"])] == [whole, whole]
    (rule,) = json.loads(run(*asked, "-o", "json", "--node", "new")[1])["node"]["filters"]
    assert rule["noted"] == whole


def test_a_pod_that_runs_is_judged_as_if_it_did_not(run: Run) -> None:
    _, out, _ = run("web", *FILES)
    assert "It is on t4-1; this shows where it could go now, with its own capacity there free." in out
    assert "3 of 5 nodes are possible" in out


def test_a_pod_of_another_scheduler_is_nobodys(run: Run) -> None:
    Path("c.json").write_text(
        json.dumps(listed(*NODES, pod("x", schedulerName="default-scheduler", schedulingGates=[{"name": "g"}])))
    )
    _, out, _ = run("x", *FILES)
    assert "No policy matches this pod." in out
    assert "It waits for its scheduling gates, g: until then no scheduler tries it." in out
    assert "No match: 2 policies of the scheduler fairlead" in out


@pytest.mark.parametrize(
    ("asked", "said"),
    {
        "no such pod": (("pod/trian", "-n", "ml"), "there is no pod ml/trian in c.json: did you mean train?"),
        "elsewhere": (("web", "-n", "web"), "there is no pod web/web in c.json; there is one in ml: select it with -n"),
        "in two namespaces": (("train",), "there is a pod train in ml, web: select one with -n"),
        "no such node": (("web", "--node", "t4_1"), "there is no node 't4_1': did you mean t4-1?"),
        "no pod": (
            ("node/t4-1",),
            "'node/t4-1' is neither a pod nor a workload: write pod/NAME, deploy/NAME, ",
        ),
        "no name": (("pod/",), "'pod/' is neither a pod nor a workload: write pod/NAME"),
    }.values(),
)
def test_what_is_asked_wrongly_is_one_line(run: Run, asked: tuple[str, ...], said: str) -> None:
    code, out, err = run(*asked, *FILES)
    assert (code, out) == (2, "")
    assert err.startswith(f"fairlead explain: {said}")
    assert err.count("\n") == 1


def test_files_need_policies_and_ended_pods_are_not_explained(run: Run) -> None:
    code, _, err = run("web", "--snapshot", "c.json")
    assert (code, err) == (
        2,
        "fairlead explain: --snapshot files hold no policies: also give --policies FILE, or --policies live\n",
    )
    Path("c.json").write_text(json.dumps(listed(*NODES, pod("x", status={"phase": "Failed"}))))
    code, _, err = run("x", *FILES)
    assert (code, err) == (2, "fairlead explain: the pod ml/x has ended (Failed) and is not placed any more\n")


@pytest.mark.parametrize("asked", [("--policies", "p.yaml", "pod/train"), ("--snapshot", "c.json", "po/train")])
def test_a_pod_may_stand_after_the_files_of_an_option(run: Run, asked: tuple[str, ...]) -> None:
    code, out, err = run("-n", "ml", *FILES, *asked)
    assert (code, err) == (0, "")
    assert out.startswith("pod ml/train, ")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("last", ["q.yaml", "node/x"])
def test_what_is_no_pod_after_files_is_a_file(last: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["explain", "-n", "ml", "--snapshot", "c.json", "--policies", "p.yaml", last])
    assert "the following arguments are required: pod/NAME, or -f FILE, or --pending" in capsys.readouterr().err


BAD_POD = {"name": "bad", "namespace": "ml", "uid": "u"}
OF_ANOTHER_TYPE: dict[str, tuple[Object, str]] = {
    "a pod's status": (
        {"metadata": BAD_POD, "status": None},
        "pod ml/bad cannot be read: Expected `object`, got `null`",
    ),
    "a pod's spec": ({"metadata": BAD_POD, "spec": None}, "pod ml/bad cannot be read: Expected `object`, got `null`"),
    "a pod's scheduler": ({"metadata": BAD_POD, "spec": {"schedulerName": 7}}, "- at `$.spec.schedulerName`"),
    "a pod's labels": ({"metadata": BAD_POD | {"labels": 7}}, "- at `$.metadata.labels`"),
    "a pod's conditions": ({"metadata": BAD_POD, "status": {"conditions": 7}}, "- at `$.status.conditions`"),
    "a pod's time": ({"metadata": BAD_POD | {"creationTimestamp": 7}}, "- at `$.metadata.creationTimestamp`"),
}


@pytest.mark.parametrize("target", [("pod/bad",), ("deploy/web",), ("--pending",)], ids=lambda target: target[0])
@pytest.mark.parametrize(("written", "said"), OF_ANOTHER_TYPE.values(), ids=OF_ANOTHER_TYPE)
def test_a_pod_with_a_field_of_another_type_is_named(
    run: Run, written: Object, said: str, target: tuple[str, ...]
) -> None:
    spec = {"schedulerName": "fairlead", "containers": [{"name": "c"}]}
    bad = {"apiVersion": "v1", "kind": "Pod", "spec": spec, **written}
    owner = {"kind": "ReplicaSet", "name": "web-x", "controller": True}
    labels = {"pod-template-hash": "x"}
    bad["metadata"] = {"ownerReferences": [owner], "labels": labels, **written["metadata"]}
    Path("b.json").write_text(json.dumps(listed(node("n1"), bad)))
    code, out, err = run(*target, "-n", "ml", "--policies", "p.yaml", "--snapshot", "b.json")
    assert (code, out) == (2, "")
    assert "pod ml/bad cannot be read: " in err
    assert said in err


@pytest.mark.parametrize(
    ("metadata", "field"),
    [({"labels": {"a": True}}, "labels[...]"), ({"uid": 7}, "uid"), ({"creationTimestamp": 7}, "creationTimestamp")],
)
def test_a_node_with_a_field_of_another_type_is_named(run: Run, metadata: Object, field: str) -> None:
    bad = node("n1")
    bad["metadata"] |= {"uid": "u", **metadata}
    Path("b.json").write_text(json.dumps(listed(bad, TRAIN)))
    code, out, err = run("train", "-n", "ml", "--policies", "p.yaml", "--snapshot", "b.json")
    assert (code, out) == (2, "")
    assert "b.json: node n1 cannot be read: Expected " in err
    assert f"- at `$.metadata.{field}`" in err
