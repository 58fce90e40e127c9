"""`fairlead simulate`, from its options to what it prints."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.cli.console.output import with_progress
from fairlead.cli.main import main
from fairlead.simulation.simulation import Simulation
from support.policy.lint import HEAD
from support.simulation.snapshot import Object, listed, namespace, node, pod

_ROOT = Path(__file__).parents[4]
SPEC = """
spec:
  filters:
  - {name: class, expression: "node.metadata.labels[?'gpu'].orValue('') == 't4'", reason: wrong class}
  scores:
  - {name: room, expression: "free['cpu'] * 10.0"}
"""
POLICY = HEAD.replace("some", "gpu") + SPEC.lstrip()
BEYOND = "affinity between pods, topology spread, volumes, resource claims, other pods of a group, "
NOT_SIMULATED = f"Not simulated: {BEYOND}the scheduler's own scores, preemption"
MOVE = (
    "1 pod names default-scheduler, for which there is no policy here: to simulate them, set schedulerName to fairlead"
)
GATES = "waits for its scheduling gates"
T4 = {"gpu": "t4"}
CLUSTER = [
    node("n1", labels=T4),
    node("n2", labels=T4, room={"cpu": "1"}),
    node("n3"),
    pod("web", on="n1", asks={"cpu": "3"}),
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(POLICY)
    _write("c.json", *CLUSTER)
    return tmp_path


def _write(name: str, *objects: Object) -> None:
    Path(name).write_text(json.dumps(listed(*objects)))


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], here: Path) -> Run:
    def run(
        *more: str, policies: str = "p.yaml", cluster: str = "c.json", pods: str = "q.json"
    ) -> tuple[int, str, str]:
        asked = ["--policies", policies, "--snapshot", *cluster.split(), "--pods", pods, *more]
        code = main(["simulate", *asked])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def _owned(name: str, **more: Any) -> Object:
    made = pod(name, **more)
    made["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}]
    return made


def test_people_read_who_goes_nowhere_first_and_copies_once(run: Run) -> None:
    copies = [_owned(f"copy-{at}", asks={"cpu": "2"}) for at in range(3)]
    _write("q.json", *copies, pod("big", asks={"cpu": "6"}), pod("gated", schedulingGates=[{"name": "x"}]))
    code, out, err = run()
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "POD                     POLICIES   NODES    PREFERRED   SCORE   OTHER NODES",
        "ml/big                  gpu        none     -           -       2 Insufficient cpu, 1 wrong class",
        "ml/copy-0 and 2 alike   gpu        1 of 3   n1          50      1 Insufficient cpu, 1 wrong class",
        f"ml/gated                gpu        2 of 3   n1          50      1 wrong class; {GATES}: x",
        "",
        "5 pods on 3 nodes: 4 can be placed, 1 cannot.",
        "Each pod is simulated by itself: none is placed, and none takes capacity from another.",
        f"{NOT_SIMULATED}.",
    ]


SCORED = """
spec:
  scores:
  - {name: it, expression: "EXPRESSION"}
"""
FLAT: dict[str, tuple[str, str]] = {
    "bytes": ("free['memory']", "all of the 3 possible nodes of ml/a get 100 of 100"),
    "fractions of 1": (
        "free['cpu'] / allocatable['cpu']",
        "the 3 possible nodes of ml/a get 0.625 to 1 of 100, which the scheduler rounds to the same",
    ),
}


@pytest.mark.parametrize(("expression", "said"), FLAT.values(), ids=FLAT)
def test_a_score_that_tells_no_node_from_another_is_noted(run: Run, expression: str, said: str) -> None:
    Path("p.yaml").write_text(HEAD.replace("some", "flat") + SCORED.lstrip().replace("EXPRESSION", expression))
    _write("q.json", pod("a"), pod("b"))
    code, out, _ = run()
    assert (code, out.splitlines()[-1]) == (0, f"Note: flat/it tells no node from another: {said}.")
    code, out, _ = run("-o", "json")
    assert json.loads(out)["notes"] == [f"flat/it tells no node from another: {said}"]


def test_a_score_that_tells_nodes_apart_is_not_noted(run: Run) -> None:
    Path("p.yaml").write_text(HEAD.replace("some", "flat") + SCORED.lstrip().replace("EXPRESSION", "free['cpu'] * 9.0"))
    _write("q.json", pod("a"), pod("b"))
    assert "tells no node" not in run()[1]


def test_programs_read_each_pod_on_each_node(run: Run) -> None:
    _write("q.json", pod("a", asks={"cpu": "2"}), pod("other", schedulerName="default-scheduler"))
    code, out, err = run("-o", "json")
    found = json.loads(out)
    assert (code, err) == (0, f"fairlead simulate: {MOVE}\n")
    assert found["pods"][0] == {
        "namespace": "ml",
        "name": "a",
        "policies": ["gpu"],
        "nodes": [
            {"name": "n1", "fits": True, "passed": True, "resolvable": None, "reasons": [], "score": 50.0},
            {
                "name": "n2",
                "fits": False,
                "passed": True,
                "resolvable": None,
                "reasons": ["does not fit: Insufficient cpu"],
                "score": None,
            },
            {
                "name": "n3",
                "fits": True,
                "passed": False,
                "resolvable": False,
                "reasons": ["wrong class"],
                "score": None,
            },
        ],
        "group": None,
        "publishedAffinity": None,
        "preferred": ["n1"],
    }
    assert (found["pods"][1]["policies"], found["pods"][1]["preferred"]) == ([], ["n1", "n2", "n3"])
    assert found["notSimulated"] == NOT_SIMULATED.removeprefix("Not simulated: ").split(", ")
    assert found["notes"] == [MOVE]
    assert yaml.safe_load(run("-o", "yaml")[1]) == found


def test_pods_of_schedulers_that_no_policy_is_for_are_told_with_what_to_write(run: Run) -> None:
    other, none = pod("a", schedulerName="b"), pod("c")
    del none["spec"]["schedulerName"]
    _write("q.json", other, none, pod("d"))
    want = "Note: 2 pods name b, default-scheduler, for which there is no policy here: to simulate them, set "
    assert f"{want}schedulerName to fairlead." in run()[1].splitlines()
    _write("q.json", pod("d"))
    assert "Note: " not in run()[1]


def test_the_time_that_rules_see_is_given(run: Run) -> None:
    Path("p.yaml").write_text(POLICY.replace("node.metadata.labels[?'gpu'].orValue('') == 't4'", "now.getHours() == 3"))
    _write("q.json", pod("a"))
    passed = {
        hour: json.loads(run("-o", "json", "--now", f"2027-01-15T0{hour}:00:00Z")[1])["pods"][0]["nodes"][0]["passed"]
        for hour in (2, 3)
    }
    assert passed == {2: False, 3: True}


def test_what_is_asked_for_and_not_simulated_is_counted(run: Run) -> None:
    _write("q.json", pod("a", resourceClaims=[{"name": "x"}]), pod("b", resourceClaims=[{"name": "x"}]), pod("c"))
    assert f"{NOT_SIMULATED} (used: resource claims by 2 pods)." in run()[1].splitlines()


def test_a_pod_that_is_asked_about_may_be_in_the_cluster_and_ended_ones_are_left_out(run: Run) -> None:
    _write("c.json", *CLUSTER, pod("done", on="n1", status={"phase": "Succeeded"}))
    code, out, _ = run("-o", "json", pods="c.json")
    assert code == 0
    assert [(one["name"], one["nodes"][0]["score"]) for one in json.loads(out)["pods"]] == [("web", 80.0)]


def test_folders_and_several_files_are_taken_together(run: Run) -> None:
    Path("d").mkdir()
    _write("d/nodes.json", node("n1", labels=T4))
    Path("d/pods.yml").write_text(yaml.safe_dump(listed(pod("web", on="n1", asks={"cpu": "8"}))))
    _write("q.json", pod("a", asks={"cpu": "1"}))
    (one,) = json.loads(run("-o", "json", cluster="d")[1])["pods"]
    assert one["nodes"][0]["reasons"] == ["does not fit: Insufficient cpu"]
    _write("more.json", node("n9"))
    (one,) = json.loads(run("-o", "json", cluster="d more.json")[1])["pods"]
    assert [each["name"] for each in one["nodes"]] == ["n1", "n9"]


def test_a_cluster_without_pods_is_said_to_be_taken_as_empty(run: Run) -> None:
    _write("c.json", node("n1", labels=T4))
    _write("q.json", pod("a"))
    note = "c.json holds no pods, so its nodes count as empty: `kubectl get nodes,pods,namespaces -A -o json`"
    code, out, err = run("-o", "json")
    assert (code, json.loads(out)["notes"]) == (0, [f"{note} writes both"])
    assert err == f"fairlead simulate: {note} writes both\n"
    assert f"Note: {note} writes both." in run()[1].splitlines()


def test_a_namespace_that_policies_ask_for_and_the_snapshot_lacks_is_named(run: Run) -> None:
    Path("p.yaml").write_text(POLICY.replace("spec:", "spec:\n  match: {namespaceSelector: {matchLabels: {team: x}}}"))
    _write("q.json", pod("a"))
    assert "policies read the namespace ml, not in c.json: `kubectl get" in run()[1]
    _write("c.json", *CLUSTER, namespace("ml", team="x"))
    assert "policies ask" not in run()[1]


GET = "`kubectl get nodes,pods,namespaces -A -o json`"
BAD: dict[str, tuple[dict[str, str], dict[str, str], int, str]] = {
    "a policy that does not compile": (
        {"p.yaml": POLICY.replace("free['cpu'] * 10.0", "fre['cpu']")},
        {},
        1,
        "p.yaml:8:31: spec.scores[0].expression: ",
    ),
    "several mistakes": (
        {"p.yaml": POLICY.replace("free['cpu'] * 10.0", "fre['cpu']").replace("node.meta", "nod.meta")},
        {},
        1,
        "(`fairlead lint` finds 1 more)",
    ),
    "one name twice": ({"p.yaml": f"{POLICY}---\n{POLICY}"}, {}, 1, "another policy has the name 'gpu': p.yaml:3"),
    "no policies": ({"p.yaml": "kind: Pod\n"}, {}, 2, "no SchedulerExtenderPolicy found in p.yaml; name the files"),
    "no such policies": ({}, {"policies": "x.yaml"}, 2, "x.yaml: cannot be read: no such file or directory"),
    "no such cluster": ({}, {"cluster": "x.json"}, 2, "x.json: cannot be read: no such file or directory"),
    "an empty folder": (
        {},
        {"cluster": "empty"},
        2,
        "empty: this directory has no file that ends in .yaml, .yml or .json",
    ),
    "no nodes": ({"c.json": json.dumps(pod("a"))}, {}, 2, f"c.json has no nodes; export them with {GET}"),
    "no pods": ({"q.json": json.dumps(node("n1"))}, {}, 2, "q.json has no pods to simulate, only 1 Node"),
    "a workload without a template": (
        {"q.json": '{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web"}}'},
        {},
        2,
        "q.json: deployment default/web: has no spec.template with a spec",
    ),
    "a pod that ended": (
        {"q.json": json.dumps(pod("a", status={"phase": "Failed"}))},
        {},
        2,
        "q.json has no pods to simulate",
    ),
    "cut off": ({"c.json": json.dumps(node("n1"))[:-9]}, {}, 2, "c.json: the JSON ends early, in line 1: "),
    "one node twice": (
        {"c.json": json.dumps(listed(node("n1"), node("n1")))},
        {},
        2,
        "node n1 is twice in c.json; keep",
    ),
    "live and a file": ({}, {"cluster": "live c.json"}, 2, "--snapshot live c.json: give either files or live"),
    "no time": ({}, {"more": "--now=noon"}, 2, "--now 'noon' is not a time; write it as 20"),
    "nowhere": ({}, {"cluster": "live", "more": "--kubeconfig=no.config"}, 2, "no.config: no such file or directory; "),
    "nobody there": ({}, {"cluster": "live", "more": "--kubeconfig=dead.config"}, 2, "http://127.0.0.1:1 cannot be"),
    "a pod that is none": (
        {"q.json": '{"kind":"Pod","metadata":{"name":"a"},"spec":3}'},
        {},
        2,
        "q.json: pod default/a",
    ),
}
DEAD = """
current-context: a
clusters: [{name: a, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: a, context: {cluster: a}}]
"""


@pytest.mark.parametrize(("files", "options", "want", "said"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_one_line(
    run: Run, files: dict[str, str], options: dict[str, str], want: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.cli.inputs.cluster_access.REACHED_S", 1.0)
    _write("q.json", pod("a"))
    Path("empty").mkdir()
    Path("dead.config").write_text(DEAD)
    for name, text in files.items():
        Path(name).write_text(text)
    more = [options.pop("more")] if "more" in (options := dict(options)) else []
    code, out, err = run("-o", "json", *more, **options)
    assert (code, out) == (want, "")
    assert err.startswith("fairlead simulate: ")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("output", ["table", "json", "yaml"])
def test_interrupted_it_leaves_nothing_half_written(run: Run, monkeypatch: pytest.MonkeyPatch, output: str) -> None:
    _write("q.json", pod("a"), pod("b"))
    judge, asked = Simulation.judge, []

    def interrupted(self: Simulation, *args: Any) -> Any:
        asked.append(args)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return judge(self, *args)

    monkeypatch.setattr(Simulation, "judge", interrupted)
    code, out, err = run("-o", output)
    assert (code, out) == (130, "")
    assert "Traceback" not in err


def test_a_closed_pipe_is_no_fault(here: Path) -> None:
    _write("q.json", *(pod(f"p{at}") for at in range(3)))
    asked = ["simulate", "--policies", "p.yaml", "--snapshot", "c.json", "--pods", "q.json", "-o", "json"]
    environment = {**os.environ, "PYTHONPATH": str(_ROOT / "operator")}
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "fairlead", *asked],
            stdout=closed,
            stderr=subprocess.PIPE,
            env=environment,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, b"")


class _Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_at_a_terminal_a_line_says_how_far_it_is_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(range(100))
    monkeypatch.setattr("fairlead.cli.console.output.time.monotonic", lambda: float(next(times)))
    err = _Terminal()
    assert [*with_progress("pods", [1, 2, 3, 4], err)] == [1, 2, 3, 4]
    said = err.getvalue().split("\r")
    assert said[2] == "[#######.......................] 1 of 4 pods, 6 s to go\x1b[K"
    assert said[-1] == "\x1b[K"


def test_what_is_quick_is_not_commented(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.cli.console.output.time.monotonic", lambda: 0.0)
    err = _Terminal()
    assert [*with_progress("pods", [1, 2], err)] == [1, 2]
    assert err.getvalue() == ""


def test_without_a_terminal_there_is_a_line_each_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(range(0, 600, 6))
    monkeypatch.setattr("fairlead.cli.console.output.time.monotonic", lambda: float(next(times)))
    err = StringIO()
    assert [*with_progress("pods", [*range(6)], err)] == [*range(6)]
    assert err.getvalue().splitlines() == [
        "fairlead: 1 of 6 pods, 60 s to go",
        "fairlead: 3 of 6 pods, 24 s to go",
        "fairlead: 5 of 6 pods, 7 s to go",
    ]
    err = StringIO()
    assert [*with_progress("files", iter("abcd"), err)] == [*"abcd"]
    assert err.getvalue().splitlines() == ["fairlead: 1 files", "fairlead: 3 files"]


@pytest.mark.parametrize("out", [StringIO, _Terminal])
def test_work_without_a_known_length_says_how_much_is_done(
    out: type[StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter(range(0, 600, 20))
    monkeypatch.setattr("fairlead.cli.console.output.time.monotonic", lambda: float(next(times)))
    err = out()
    assert [*with_progress("files", iter("abc"), err)] == [*"abc"]
    assert "2 files" in err.getvalue()
    assert " of " not in err.getvalue()


def test_the_line_goes_when_it_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(range(100))
    monkeypatch.setattr("fairlead.cli.console.output.time.monotonic", lambda: float(next(times)))
    err = _Terminal()
    going = with_progress("pods", [1, 2, 3], err)
    next(going)
    next(going)
    going.close()  # type: ignore[attr-defined]
    assert err.getvalue().endswith("\r\x1b[K")
