"""`fairlead diff`: whose placement changes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from fairlead.cli.main import main
from support.policy.lint import HEAD
from support.simulation.snapshot import Object, listed, node, pod

BEFORE = (
    HEAD.replace("some", "gpu")
    + """spec:
  filters:
  - {name: class, expression: "node.metadata.labels[?'gpu'].orValue('') == 't4'", reason: wrong class}
  scores:
  - {name: room, expression: "free['cpu'] * 10.0"}
"""
)
NODES = [
    node("n1", labels={"gpu": "t4"}),
    node("n2", labels={"gpu": "t4"}, room={"cpu": "6"}),
    node("n3", room={"cpu": "4"}),
]
MOVE = "1 pod names other, for which there is no policy here: to simulate them, set schedulerName to fairlead"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("c.json").write_text(json.dumps(listed(*NODES, pod("web", on="n3"))))

    def run(
        after: str, *more: str, before: str = BEFORE, pods: tuple[Object, ...] = (pod("a"),)
    ) -> tuple[int, str, str]:
        Path("from.yaml").write_text(before)
        Path("to.yaml").write_text(after)
        Path("p.json").write_text(json.dumps(listed(*pods)))
        code = main(
            ["diff", "--from", "from.yaml", "--to", "to.yaml", "--snapshot", "c.json", "--pods", "p.json", *more]
        )
        out, err = capsys.readouterr()
        return code, out, err

    return run


def _said(out: str) -> list[str]:
    return [line for line in out.splitlines() if line and not line.startswith("Not simulated: ")]


@pytest.mark.parametrize(
    ("after", "want"),
    {
        "nothing": (BEFORE.replace("'t4'", "('t4')"), ["Nothing changes for the pod."]),
        "another class": (
            BEFORE.replace("'t4'", "''"),
            [
                "ml/a",
                "    loses n1, n2: wrong class (gpu/class)",
                "    gains n3: no longer wrong class (gpu/class)",
                "1 of 1 pod changes.",
            ],
        ),
        "no class at all": (
            BEFORE.replace("'t4'", "'v100'"),
            [
                "ml/a",
                "    has no node left",
                "    loses n1, n2: wrong class (gpu/class)",
                "1 of 1 pod changes, 1 of them has no node left.",
            ],
        ),
        "other scores": (
            BEFORE.replace("free['cpu'] * 10.0", "100.0 - free['cpu']"),
            ["ml/a", "    prefers n2 instead of n1 by gpu/room", "1 of 1 pod changes."],
        ),
        "it is off": (
            BEFORE.replace("spec:", "spec:\n  mode: Disabled"),
            [
                "ml/a",
                "    gains n3: no longer wrong class (gpu/class)",
                "    prefers n1, n2, n3 instead of n1 by gpu/room",
                "1 of 1 pod changes.",
            ],
        ),
    }.values(),
)
def test_what_changes_is_said_with_the_rule(run: Run, after: str, want: list[str]) -> None:
    code, out, err = run(after)
    assert (code, err) == (0 if len(want) == 1 else 1, "")
    assert _said(out) == want


def test_pods_that_lose_their_last_node_come_first_and_copies_once(run: Run) -> None:
    def copy(name: str, **labels: str) -> Object:
        made = pod(name, labels=labels)
        made["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}]
        return made

    after = BEFORE.replace(
        "== 't4'", "== 't4' && (pod.metadata.labels[?'x'].orValue('') == '' || node.metadata.name == 'n9')"
    )
    after = after.replace("free['cpu'] * 10.0", "-free['cpu'] + 100.0")
    code, out, _ = run(after, pods=(copy("a"), copy("b"), copy("c", x="1"), pod("d", schedulerName="other")))
    assert code == 1
    assert _said(out) == [
        "ml/c",
        "    has no node left",
        "    loses n1, n2: wrong class (gpu/class)",
        "ml/a and 1 alike",
        "    prefers n2 instead of n1 by gpu/room",
        "3 of 4 pods change, 1 of them has no node left.",
        f"Note: {MOVE}.",
    ]


def test_programs_read_the_pods_that_change(run: Run) -> None:
    code, out, _ = run(BEFORE.replace("'t4'", "''"), "-o", "json", pods=(pod("a"), pod("b", schedulerName="x")))
    found = json.loads(out)
    by = [{"policy": "gpu", "rule": "class", "reason": "wrong class"}]
    assert code == 1
    assert found["pods"] == [
        {
            "namespace": "ml",
            "name": "a",
            "policies": {"from": ["gpu"], "to": ["gpu"]},
            "lost": [{"node": name, "rules": by, "publishedBy": []} for name in ("n1", "n2")],
            "gained": [{"node": "n3", "rules": by, "publishedBy": []}],
            "preferred": {"from": ["n1"], "to": ["n3"]},
            "group": {"from": None, "to": None},
            "rules": ["gpu/class"],
            "unknown": [],
            "publishedAffinity": None,
        }
    ]
    assert (found["unchanged"], found["notes"]) == (1, [MOVE.replace("other", "x")])
    assert (
        yaml.safe_load(run(BEFORE.replace("'t4'", "''"), "-o", "yaml", pods=(pod("a"), pod("b", schedulerName="x")))[1])
        == found
    )
    assert json.loads(run(BEFORE, "-o", "json")[1])["pods"] == []


UNEVALUATED = (
    HEAD.replace("some", "gpu")
    + """spec:
  data:
  - {name: load, prometheus: {query: load}}
  - {name: other, prometheus: {query: other}}
  variables:
  - {name: least, expression: "0.5"}
  - {name: unused, expression: "0.5"}
  filters:
  - {name: class, expression: "node.metadata.labels[?'gpu'].orValue('') == 't4'", reason: wrong class}
  - {name: cool, expression: "data.load < variables.least", reason: hot}
  scores:
  - {name: idle, weight: 2, telemetry: {value: load, prefer: Lowest}}
"""
)
COOL, IDLE = ["gpu/cool"], ["gpu/idle"]


@pytest.mark.parametrize(
    ("old", "new", "unknown"),
    {
        "nothing": ("", "", []),
        "an expression": ("data.load < var", "data.load <= var", COOL),
        "a variable that it uses": ('least, expression: "0.5"', 'least, expression: "0.7"', COOL),
        "a variable that it does not use": ('unused, expression: "0.5"', 'unused, expression: "0.7"', []),
        "an entry that they read": ("query: load", "query: load1", [*COOL, *IDLE]),
        "an entry that they do not read": ("query: other", "query: other1", []),
        "what an error means": ("reason: hot", "reason: hot, onError: Pass", COOL),
        "the reason of a rejection": ("reason: hot", "reason: warm", []),
        "a weight": ("weight: 2", "weight: 3", IDLE),
        "a parameter": ("Lowest", "Highest", IDLE),
        "the name": ("name: idle", "name: calm", [*IDLE, "gpu/calm"]),
    }.values(),
)
def test_an_edited_rule_that_is_not_evaluated_may_change_each_pod(
    run: Run, old: str, new: str, unknown: list[str]
) -> None:
    after = UNEVALUATED.replace(old, new)
    code, out, _ = run(after, "-o", "json", before=UNEVALUATED)
    assert [one["unknown"] for one in json.loads(out)["pods"]] == ([unknown] if unknown else [])
    assert code == bool(unknown)
    said = run(after, before=UNEVALUATED)[1].splitlines()
    assert ("It is not known whether 1 of 1 pod changes." in said) == bool(unknown)
    assert ("Nothing changes for the pod." in said) == (not unknown)


def test_a_rule_that_is_not_evaluated_changes_nothing_for_a_pod_without_a_node(run: Run) -> None:
    nowhere = UNEVALUATED.replace("'t4'", "'v100'")
    code, out, _ = run(nowhere.replace("<", "<="), before=nowhere)
    assert (code, _said(out)[0]) == (0, "Nothing changes for the pod.")


def test_a_mistake_in_either_is_one_line(run: Run) -> None:
    broken = BEFORE.replace("free['cpu'] * 10.0", "fre['cpu']")
    for code, out, err in (run(broken), run(BEFORE, before=broken)):
        assert (code, out) == (1, "")
        assert err.startswith("fairlead diff: ")
        assert err.count("\n") == 1
    code, out, err = run("kind: Pod\n")
    assert (code, out) == (2, "")
    assert err == "fairlead diff: no SchedulerExtenderPolicy found in to.yaml; name the files that hold policies\n"


@pytest.mark.parametrize("command", ["diff", "simulate"])
def test_pods_that_all_name_another_scheduler_are_counted_and_not_called_unaffected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(BEFORE)
    others = [pod(f"web-{at}", schedulerName="default-scheduler") for at in range(3)]
    Path("c.json").write_text(json.dumps(listed(*NODES, *others)))
    policies = ["--from", "p.yaml", "--to", "p.yaml"] if command == "diff" else ["--policies", "p.yaml"]
    assert main([command, *policies, "--snapshot", "c.json"]) == 0
    out = capsys.readouterr().out
    verb = "compared" if command == "diff" else "simulated"
    assert f"Nothing is {verb}: none of these pods has a scheduler that the policies name.\n" in out
    cure = "for which there is no policy here: to simulate them, set schedulerName to fairlead"
    assert f"Note: 3 pods name default-scheduler, {cure}.\n" in out
    assert "waits" not in out
