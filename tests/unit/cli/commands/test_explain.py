"""`fairlead explain`, of files and of an API server that says what it is told to."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.cli.main import main
from fairlead.webhook.serving.last_good import revision_of
from fairlead.webhook.serving.policy_status import CompiledGeneration
from support.cli import status
from support.cli.status_api import api_server, items
from support.policy.lint import HEAD
from support.simulation.snapshot import Object, listed, namespace, node, pod

SPEC = """
spec:
  variables:
  - {name: wants, expression: "pod.metadata.labels[?'gpu'].orValue('any')"}
  filters:
  - name: class
    expression: variables.wants == 'any' || node.metadata.labels[?'gpu'].orValue('') == variables.wants
    reason: wrong class
  - {name: room, expression: "free['cpu'] >= 2.0", reason: too full}
  scores:
  - {name: roomy, weight: 2, expression: "free['cpu'] * 10.0"}
"""
NIGHT = """
spec:
  match: {conditions: [{name: important, expression: pod.spec.priority > 100}]}
  filters: [{name: night, expression: now.getHours() >= 22}]
"""
POLICY = HEAD.replace("some", "gpu") + SPEC.lstrip()
OTHER = HEAD.replace("some", "night") + NIGHT.lstrip()
T4, V100 = {"gpu": "t4"}, {"gpu": "v100"}
NODES = [
    node("t4-1", labels=T4),
    node("t4-2", labels=T4),
    node("v100-1", labels=V100),
    node("v100-2", labels=V100, room={"cpu": "1"}),
    node("w-1", unschedulable=True),
]
WEB = pod("web", on="t4-1", asks={"cpu": "3"})
TRAIN = pod("train", labels=T4, asks={"cpu": "2", "memory": "4Gi"})
LOST = pod("lost", labels={"gpu": "a100"}, asks={"cpu": "2"})
Run = Callable[..., tuple[int, str, str]]
NOT_SIMULATED = (
    "Not simulated: affinity between pods, topology spread, volumes, resource claims, other pods of a group, "
    "the scheduler's own scores, preemption"
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(f"{POLICY}---\n{OTHER}")
    Path("c.json").write_text(json.dumps(listed(*NODES, WEB, TRAIN, LOST, pod("train", namespace="web"))))
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], here: Path) -> Run:
    def run(*asked: str) -> tuple[int, str, str]:
        code = main(["explain", *asked])
        out, err = capsys.readouterr()
        return code, out, err

    return run


FILES = ("--policies", "p.yaml", "--snapshot", "c.json")


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
    assert found["nodes"][3]["unfit"] == [{"what": "Insufficient cpu", "detail": "requests 2, 1 is free"}]
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
    again = "The scheduler tries it again when a pod leaves any node, or after five minutes: "
    assert again not in out, "it was never tried"
    Path("c.json").write_text(json.dumps(listed(*there[:-2], _refused(pod("hi", asks={"cpu": "2"}, priority=1000)))))
    assert f"{again}a changed policy does not make it." in run("hi", *FILES)[1].splitlines()
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


# What follows asks an API server.

PODS, NAMESPACE, LISTED = (
    "/api/v1/pods",
    "/api/v1/namespaces/ml",
    "/apis/fairlead.dev/v1alpha1/schedulerextenderpolicies",
)


def _live(text: str = POLICY, *, generation: int = 3, serving: int | None = 3) -> Object:
    made: Object = yaml.safe_load(text)
    made["metadata"] |= {"generation": generation, "uid": "u"}
    return made | {"status": {} if serving is None else {"servingGeneration": serving}}


def _unkinded(obj: Object) -> Object:
    """As in a list of the API server."""
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}


SYSTEM = "fairlead-system"
OPERATOR_PODS = f"/api/v1/namespaces/{SYSTEM}/pods"
SCHEDULER = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/kube-scheduler-fairlead"
REVISIONS = f"/apis/apps/v1/namespaces/{SYSTEM}/controllerrevisions"


def _of_scheduler(name: str) -> Object:
    return status.pod(name, scheduler="fairlead")


def _cluster(**changes: object) -> dict[str, object]:
    there: dict[str, object] = {
        OPERATOR_PODS: items(status.pod("fairlead-a"), _of_scheduler("s-1"), _of_scheduler("s-2")),
        SCHEDULER: status.deployment("fairlead"),
        f"{status.LEASES}/kube-scheduler-fairlead": status.lease("kube-scheduler-fairlead", "s-1"),
        REVISIONS: items(),
        "/version": {"gitVersion": "v1.37.1"},
        "/api/v1/nodes": items(*map(_unkinded, NODES)),
        PODS: items(_unkinded(WEB), _unkinded(TRAIN), status.pod("fairlead-a")),
        "/api/v1/configmaps": items(),
        f"{NAMESPACE}/pods/train": TRAIN,
        NAMESPACE: namespace("ml", team="x"),
        "/api/v1/namespaces": items(namespace("ml", team="x")),
        LISTED: items(_live()),
    }
    return there | {globals().get(name, name): value for name, value in changes.items()}


@pytest.fixture
def ask(run: Run, tmp_path: Path) -> Callable[..., tuple[int, str, str]]:
    def ask(answers: dict[str, object], *more: str, pod: str = "train") -> tuple[int, str, str]:
        with api_server(answers, tmp_path) as file:
            return run(pod, "-n", "ml", "--kubeconfig", str(file), *more)

    return ask


Ask = Callable[..., tuple[int, str, str]]


def test_a_live_pod_is_explained_by_the_policies_of_the_cluster(ask: Ask) -> None:
    code, out, err = ask(_cluster())
    assert (code, err) == (0, "")
    assert "2 of 5 nodes are possible" in out
    assert "Serving: gpu: generation 3, which replicas serve" in out


@pytest.mark.parametrize(
    ("policy", "want"),
    {
        "an older one serves": (_live(serving=2), "gpu: generation 3; replicas still serve generation 2"),
        "nobody has said": (
            _live(serving=None),
            "gpu: generation 3; its status does not say yet which generation is served",
        ),
        "it does not compile": (
            _live(POLICY.replace("free['cpu'] * 10.0", "fre['cpu']"), serving=2),
            "gpu: generation 3 does not compile, replicas still serve generation 2: spec.scores[0].expression",
        ),
        "nor has it ever": (
            _live(POLICY.replace("free['cpu'] * 10.0", "fre['cpu']"), serving=None),
            "gpu: generation 3 does not compile, its failurePolicy applies: spec.scores[0].expression",
        ),
    }.values(),
)
def test_which_generation_serves_is_said(ask: Ask, policy: Object, want: str) -> None:
    code, out, _ = ask(_cluster(LISTED=items(policy)))
    assert f"Serving: {want}" in out
    assert code == int("2: spec.scores" in want)  # what serves is not known then


BROKEN = POLICY.replace("free['cpu'] * 10.0", "fre['cpu']")
STRICT = POLICY.replace("reason: wrong class", "reason: of generation 2")


def _revision(text: str, generation: int) -> Object:
    made = _live(text, generation=generation)
    good = CompiledGeneration("gpu", "u", str(generation), made)
    return revision_of(good, generation, "cluster")


def test_a_policy_that_never_compiled_refuses(ask: Ask) -> None:
    code, out, _ = ask(_cluster(LISTED=items(_live(BROKEN, serving=None))))
    assert code == 0
    assert "gpu: policy gpu does not compile" in out
    assert "UNSCHEDULABLE: none of 5 nodes is possible" in out


def test_the_last_good_generation_is_read_where_it_is_stored(ask: Ask) -> None:
    code, out, _ = ask(_cluster(LISTED=items(_live(BROKEN, serving=2)), REVISIONS=items(_revision(STRICT, 2))))
    assert code == 0
    assert "policies: gpu\n2 of 5 nodes are possible" in out
    assert "gpu/class: of generation 2" in out
    assert "Serving: gpu: generation 3 does not compile, replicas still serve generation 2: spec.scores[0]" in out


def test_the_newest_object_says_whether_the_last_good_generation_is_in_force(ask: Ask) -> None:
    off = _live(BROKEN.replace("spec:", "spec:\n  mode: Disabled", 1), serving=2)
    _, out, _ = ask(_cluster(LISTED=items(off), REVISIONS=items(_revision(STRICT, 2))))
    assert "No policy matches this pod.\n3 of 5 nodes are possible" in out


def test_replicas_that_refuse_what_compiles_here_serve_what_they_have_stored(ask: Ask) -> None:
    slow = _live(generation=3, serving=2)
    slow["status"]["observedGeneration"] = 3
    _, out, _ = ask(_cluster(LISTED=items(slow), REVISIONS=items(_revision(STRICT, 2))))
    assert "gpu/class: of generation 2" in out


def test_a_policy_of_which_replicas_serve_nothing_is_not_evaluated_because_it_compiles_here(ask: Ask) -> None:
    beyond = _live(serving=None)
    why = {
        "type": "Compiled",
        "status": "False",
        "reason": "NothingServes",
        "message": "there are more than 500 policies",
    }
    beyond["status"] = {"observedGeneration": 3, "conditions": [why]}
    _, out, _ = ask(_cluster(LISTED=items(beyond)))
    assert "gpu: policy gpu does not compile" in out
    assert "Serving: gpu: generation 3 does not compile, its failurePolicy applies: there are more than 500 pol" in out
    beyond["status"]["observedGeneration"] = 2
    assert "2 of 5 nodes are possible" in ask(_cluster(LISTED=items(beyond)))[1]


@pytest.mark.parametrize("revisions", [403, items(), items(_revision(STRICT, 1))], ids=["forbidden", "none", "older"])
def test_a_generation_that_is_not_known_is_not_guessed(ask: Ask, revisions: object) -> None:
    there = _cluster(LISTED=items(_live(BROKEN, serving=2))) | {REVISIONS: revisions}
    code, out, _ = ask(there)
    assert code == 1
    assert "It is not known whether gpu matches this pod.\nUNKNOWN: 3 of 5 nodes cannot be judged, as gpu was" in out
    assert "3       unknown" in out
    assert "Note: not evaluated: gpu as a whole: replicas serve generation 2, which is not known here: " in out
    found = json.loads(ask(there, "-o", "json")[1])
    assert {one["verdict"] for one in found["nodes"]} == {"Unknown", "DoesNotFit"}
    assert [one["passed"] for one in found["nodes"]] == [None] * 5
    assert (found["preferred"], found["notEvaluated"]) == ([], [{"policy": "gpu", "rule": "", "data": []}])


def test_what_runs_on_nodes_is_named_where_it_may_not_be_read_and_not_guessed(ask: Ask) -> None:
    code, out, _ = ask(_cluster(PODS=403))
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
    no_room = _live(POLICY.replace("  - {name: room, expression: \"free['cpu'] >= 2.0\", reason: too full}\n", ""))
    code, out, _ = ask(_cluster(PODS=403, LISTED=items(no_room)))
    assert code == 1
    assert "2 of 5 nodes are possible; preferred ones are not known, as gpu/roomy was not evaluated" in out
    assert "2       possible   t4-1, t4-2   not evaluated: gpu/roomy" in out


def test_a_namespace_that_may_not_be_read_leaves_out_what_asks_for_it(ask: Ask) -> None:
    by_namespace = POLICY.replace("spec:", "spec:\n  match: {namespaceSelector: {matchLabels: {team: x}}}", 1)
    assert "policies: gpu" in ask(_cluster(LISTED=items(_live(by_namespace))))[1]
    code, out, _ = ask(_cluster(LISTED=items(_live(by_namespace)), NAMESPACE=403))
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
    code, out, _ = ask(_cluster(LISTED=items(_live(HEAD.replace("some", "gpu") + (MEASURED % "t4").lstrip()))))
    assert code == 1
    assert "UNKNOWN: 3 of 5 nodes cannot be judged, as gpu/not-hot was not evaluated" in out
    assert "preferred" not in out
    how = "give it with --prometheus main=URL or --data FILE"
    assert f"Note: not evaluated: gpu/not-hot: it reads data.load, which is not known: {how}." in out
    assert "Note: the replicas' own values cannot be asked: " in out


def test_what_does_not_match_the_pod_is_not_noted_for_it(ask: Ask) -> None:
    code, out, _ = ask(_cluster(LISTED=items(_live(HEAD.replace("some", "gpu") + (MEASURED % "other").lstrip()))))
    assert code == 0
    assert "3 of 5 nodes are possible" in out
    assert "Note: " not in out


UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/5 nodes are available: 5 nope.",
    "lastTransitionTime": "2027-01-15T21:58:00Z",
}


def test_what_the_scheduler_said_and_who_is_alive_stand_first(ask: Ask) -> None:
    tried = TRAIN | {"status": {"conditions": [UNSCHEDULABLE]}}
    there = _cluster(PODS=items(WEB, tried, status.pod("fairlead-a")))
    _, out, _ = ask(there, "--now", "2027-01-15T22:00:00Z")
    assert out.splitlines()[1:5] == [
        "PodScheduled: Unschedulable for 2m: 0/5 nodes are available: 5 nope.",
        "scheduler fairlead: ready: 2 of 2 pods ready",
        "operator: 1 of 1 replica ready in fairlead-system",
        "policies: gpu",
    ]
    assert "2 of 5 nodes are possible\nThe message above is of the scheduler's last try: it tries again when" in out
    said = json.loads(ask(there, "-o", "json")[1])["scheduling"]
    assert said["podScheduled"]["message"] == "0/5 nodes are available: 5 nope."
    assert (said["scheduler"]["ready"], said["operator"]["ready"], said["answered"]) == (True, 1, True)
    bare = _cluster()
    assert "PodScheduled: no scheduler has reported on this pod." in ask(bare)[1]
    lost = ask(bare | {OPERATOR_PODS: 403, SCHEDULER: 403})[1]
    assert "scheduler fairlead: not known: " in lost
    assert "operator: not known: " in lost


@pytest.mark.parametrize("gone", [items(), items(status.pod("fairlead-a", ready=False))], ids=["none", "not ready"])
def test_without_a_replica_that_answers_pods_wait_and_nothing_is_possible(ask: Ask, gone: Object) -> None:
    there = _cluster() | {OPERATOR_PODS: items(_of_scheduler("s-1"), _of_scheduler("s-2"), *gone["items"])}
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
    ignored = _live(POLICY.replace("spec:", "spec:\n  failurePolicy: Ignore", 1))
    there = _cluster(LISTED=items(ignored)) | {OPERATOR_PODS: items(_of_scheduler("s-1"), _of_scheduler("s-2"))}
    code, out, _ = ask(there)
    assert code == 0
    assert "Policies are passed over while no replica answers." in out
    assert "3 of 5 nodes are possible: no replica answers, and all policies of this scheduler have failurePolicy" in out
    ignored["spec"]["binding"] = {"annotations": [{"key": "fairlead.dev/a", "expression": "'b'"}]}
    _, out, _ = ask(there)
    assert "UNSCHEDULABLE: no replica answers scheduler fairlead, and all its pods wait (gpu binds pods)" in out


def test_a_scheduler_that_is_not_ready_is_said_before_nodes_are_called_possible(ask: Ask) -> None:
    pods = [status.pod(name, scheduler="fairlead", ready=False) for name in ("s-1", "s-2")]
    there = _cluster() | {SCHEDULER: status.deployment("fairlead", ready=0)}
    code, out, _ = ask(there | {OPERATOR_PODS: items(status.pod("fairlead-a"), *pods)})
    assert code == 0
    assert "scheduler fairlead: NOT READY: 0 of 2 pods are ready" in out
    assert "NOT SCHEDULED: scheduler fairlead is not ready. Otherwise 2 of 5 nodes would be possible" in out
    half = [_of_scheduler("s-1"), pods[1]]  # one is enough
    _, out, _ = ask(there | {OPERATOR_PODS: items(status.pod("fairlead-a"), *half)})
    assert "scheduler fairlead: ready: 1 of 2 pods are ready" in out
    assert "\n2 of 5 nodes are possible" in out


LEASES, WORKLOADS = (
    "/apis/coordination.k8s.io/v1/leases",
    {f"/apis/apps/v1/{plural}": items() for plural in ("deployments", "statefulsets", "daemonsets")},
)
TYPO = pod("train", labels=T4, asks={"cpu": "2"}, schedulerName="fairleed")


def _typo(placed: Object | None = None, **changes: object) -> dict[str, object]:
    there = _cluster(PODS=items(WEB, TYPO, status.pod("fairlead-a")), **changes)
    there |= {f"{NAMESPACE}/pods/train": TYPO, LEASES: items(), **WORKLOADS}
    placed_by = "spec.nodeName!=,spec.schedulerName=fairleed"
    return there | {f"{PODS}?{placed_by}": items(*[placed] if placed else [])}


def test_a_name_that_no_scheduler_has_is_named(ask: Ask) -> None:
    code, out, _ = ask(_typo())
    assert code == 0
    assert (
        "scheduler fairleed: no policy and no scheduler has this name: did you mean fairlead? "
        "schedulerName cannot be changed, create the pod again." in out
    )
    assert "NOT SCHEDULED: there is no scheduler fairleed: did you mean fairlead?. Otherwise" not in out
    assert "NOT SCHEDULED: there is no scheduler fairleed (did you mean fairlead?). Otherwise 3 of 5 nodes would" in out
    said = json.loads(ask(_typo(), "-o", "json")[1])["scheduling"]["scheduler"]
    assert (said["exists"], said["meant"]) == (False, "fairlead")
    managed = {status.DEPLOYMENTS: items(status.deployment("fairleeds"))}  # no policy names it
    assert "did you mean fairleeds?" in ask(_typo() | managed)[1]


@pytest.mark.parametrize(
    ("there", "said"),
    {
        "it has placed pods": (_typo(WEB), "another scheduler named fairleed has placed pods"),
        "it holds a Lease": (
            _typo()
            | {
                LEASES: items(
                    {
                        "metadata": {"name": "fairleed", "namespace": "x"},
                        "spec": {
                            "holderIdentity": "a",
                            "leaseDurationSeconds": 15,
                            "renewTime": "2999-01-01T00:00:00.000000Z",
                        },
                    }
                )
            },
            "another scheduler named fairleed holds Lease x/fairleed",
        ),
        "it has tried the pod": (
            _typo() | {PODS: items(WEB, TYPO | {"status": {"conditions": [UNSCHEDULABLE]}})},
            "it has tried this pod",
        ),
    }.values(),
)
def test_a_scheduler_of_others_is_no_typo(ask: Ask, there: dict[str, object], said: str) -> None:
    _, out, _ = ask(there)
    assert f"scheduler fairleed: not known: no policy names it; {said}" in out
    assert "did you mean" not in out
    assert "3 of 5 nodes are possible" in out


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
    code, out, err = ask({**_cluster(), **changes})
    assert (code, out) == (2, "")
    assert err.startswith(f"fairlead explain: {said}")
    assert err.count("\n") == 1


def test_policies_from_files_are_asked_about_a_live_pod(ask: Ask) -> None:
    code, out, _ = ask({**_cluster(), LISTED: 403}, "--policies", "p.yaml")
    assert code == 0
    assert "2 of 5 nodes are possible" in out
    assert "Served" not in out


def test_pods_that_wait_in_a_cluster_are_simulated(
    here: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    there = _cluster(PODS=items(*map(_unkinded, (WEB, TRAIN, pod("other", schedulerName="default-scheduler")))))
    with api_server(there, tmp_path) as file:
        live: list[Any] = ["--snapshot", "live", "--pods", "live", "--kubeconfig", str(file), "-o", "json"]
        assert main(["simulate", "--policies", "p.yaml", *live]) == 0
        found = json.loads(capsys.readouterr().out)
        assert [one["name"] for one in found["pods"]] == ["train"]
        files = ["--snapshot", "c.json", *live[2:]]
        assert main(["simulate", "--policies", "p.yaml", *files]) == 0
        assert json.loads(capsys.readouterr().out)["pods"] == found["pods"]
    with api_server({**there, PODS: items(_unkinded(WEB))}, tmp_path) as file:
        live[5] = str(file)
        assert main(["simulate", "--policies", "p.yaml", *live]) == 0
        assert json.loads(capsys.readouterr().out)["pods"] == []
        assert main(["simulate", "--policies", "p.yaml", *live[:-2]]) == 0
        assert "No pod waits for a scheduler that these policies name." in capsys.readouterr().out
    with api_server({**there, PODS: 403}, tmp_path) as file:
        live[5] = str(file)
        assert main(["simulate", "--policies", "p.yaml", *live]) == 2
        assert "you may not list pods of all namespaces: " in capsys.readouterr().err


@pytest.mark.parametrize("source", ["snapshot", "file"])
def test_a_misspelt_scheduler_is_named_without_a_cluster(run: Run, source: str) -> None:
    named = pod("lone", labels=T4)
    named["spec"]["schedulerName"] = "fairlaed"
    Path("one.json").write_text(json.dumps(named))
    Path("c2.json").write_text(json.dumps(listed(*NODES, named)))
    asked = ("lone", "-n", "ml") if source == "snapshot" else ("-f", "one.json")
    code, out, _ = run(*asked, "--policies", "p.yaml", "--snapshot", "c2.json" if source == "snapshot" else "c.json")
    again = "schedulerName cannot be changed, create the pod again" if source == "snapshot" else "correct schedulerName"
    lines = out.splitlines()
    assert f"scheduler fairlaed: no policy here has this name: did you mean fairlead? {again}." in lines
    said = "NOT SCHEDULED: no policy here is for scheduler fairlaed (did you mean fairlead?). Otherwise 4 of 5 nodes"
    assert f"{said} would be possible" in lines
    assert "No match: 2 policies of the scheduler fairlead" in lines
    assert code == 0
    data = json.loads(run(*asked, *FILES[:2], "--snapshot", "c2.json", "-o", "json")[1])
    assert data["scheduling"]["scheduler"]["meant"] == "fairlead"
    assert data["scheduling"]["scheduler"]["exists"] is None


def test_a_scheduler_of_others_is_not_taken_for_a_mistake_and_nothing_is_preferred(run: Run) -> None:
    named = pod("lone", labels=T4)
    named["spec"]["schedulerName"] = "volcano"
    Path("one.json").write_text(json.dumps(named))
    code, out, _ = run("-f", "one.json", *FILES)
    assert code == 0
    assert "scheduler volcano: not known: no policy here has this name" in out.splitlines()
    assert "4 of 5 nodes are possible" in out.splitlines()
    assert "preferred" not in out
    assert "0 points" not in out
    rows = [line.split() for line in out.splitlines() if "t4-1" in line]
    assert rows == [["4", "possible", "t4-1,", "t4-2,", "v100-1,", "v100-2", "no", "policy", "applies"]]
    assert json.loads(run("-f", "one.json", *FILES, "-o", "json")[1])["preferred"] == []
