"""`fairlead groups`: groups, what each waits for, and the members of one, from a snapshot and from a cluster."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from fairlead.cli.main import main
from fairlead.grants.entry import LedgerEntry
from fairlead.grants.ledger import OF_GROUPS, create_body
from fairlead.groups.group import Group, group_hash
from fairlead.groups.turns import PublishedRest, PublishedTurn, Turns, turns_body
from policies.good import gang, policy
from support.cli.status_api import api_server, items
from support.kube.crd import POLICIES
from support.simulation.snapshot import Object, listed, namespace, node, pod

NOW, NOW_S = "2027-01-15T08:00:00Z", 1_800_000_000
SIZE: Final = "int(pod.metadata.annotations[?'size'].orValue('3'))"
JOBS: Final = policy(binding={"gang": [gang(group="pod.metadata.annotations[?'job'].orValue('')", size=SIZE)]})
ODD: Final = "x\n\x1b[31m$(id)\u202e/y"
UNSCHEDULABLE: Final = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
Run = Callable[..., tuple[int, str, str]]


def member(name: str, job: str, refusal: str = "", **more: Any) -> Object:
    made = pod(name, **more)
    made["metadata"] |= {"annotations": {"job": job}, "creationTimestamp": "2027-01-15T07:50:00Z"}
    if refusal:
        made["status"] = {"conditions": [UNSCHEDULABLE | {"message": refusal}]}
    return made


def hash_of(value: str) -> str:
    return group_hash(Group("fairlead", "ml", value))


def turns(scheduler: str = "fairlead", home: str = "fairlead-system", attempt: int = 3) -> Object:
    """Turns in which red is being placed and rest has failed."""
    made = turns_body(
        scheduler,
        Turns(
            PublishedTurn(
                hash_of("red"), NOW_S - 5, NOW_S + 25, 1, 3, attempt, nodes={str(pod("red-1")["metadata"]["uid"]): "n7"}
            ),
            {hash_of("rests"): PublishedRest(NOW_S + 40, 2)},
        ),
    )
    made["metadata"]["namespace"] = home
    return made


THERE: Final = [
    node("n1"),
    namespace("ml"),
    *(member(f"red-{at}", "red", "0/1 nodes are available: 1 Insufficient cpu." if at == 2 else "") for at in range(3)),
    *(member(f"blue-{at}", "blue") for at in range(3)),
    *(member(f"rests-{at}", "rests") for at in range(3)),
    member("few-0", "few"),
    member("few-1", "few", schedulingGates=[{"name": "example.org/quota"}]),
    member("runs-0", "runs", on="n1"),
    member("ended-0", "ended", on="n1") | {"status": {"phase": "Succeeded"}},
]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(yaml.safe_dump(JOBS))

    def call(*arguments: str, there: list[Object] | None = None, policies: Object = JOBS) -> tuple[int, str, str]:
        Path("p.yaml").write_text(yaml.safe_dump(policies))
        Path("c.json").write_text(json.dumps(listed(*([*THERE, turns()] if there is None else there))))
        code = main(["groups", *arguments, "--policies", "p.yaml", "--snapshot", "c.json", "--now", NOW])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


def cells(line: str) -> list[str]:
    return re.split(r"\s{3,}", line)


def test_groups_and_what_they_wait_for(run: Run) -> None:
    code, out, err = run()
    assert (code, err) == (0, "")
    head, *rows = map(cells, out.splitlines())
    assert head == ["SCHEDULER", "GROUP", "STATE", "HELD", "SIZE", "KNOWN", "SINCE", "WAITS FOR"]
    assert rows == [
        ["fairlead", *row]
        for row in (
            ["ml/red", "Turn", "1", "3", "3", "5s ago", "2 more members to find room, until 08:00:25Z (attempt 3)"],
            ["ml/rests", "Resting", "0", "3", "3", "10m ago", "its rest until 08:00:40Z (attempt 2)"],
            ["ml/blue", "Waiting", "0", "3", "3", "10m ago", "the turn of ml/red"],
            ["ml/few", "Waiting", "0", "3", "1", "10m ago", "2 more members (1 with scheduling gates does not count)"],
            ["ml/runs", "Started", "0", "3", "0", "10m ago"],
        )
    ]


def test_the_domain_that_a_group_shares(run: Run) -> None:
    levels = {"levels": ["block", "rack"], "require": "rack"}
    racks = JOBS | {"spec": JOBS["spec"] | {"filters": [{"name": "racks", "topology": levels}]}}
    entry = LedgerEntry("ml/runs-0", "1", "p", domain={"block": "north", "rack": "a"})
    ledger = create_body("ml/runs", {"u-runs-0": entry}, OF_GROUPS)
    ledger["metadata"]["namespace"] = "fairlead-system"
    code, out, err = run(there=[*THERE, turns(), ledger], policies=racks)
    assert (code, err) == (0, "")
    head, *rows = map(cells, out.splitlines())
    assert head == ["SCHEDULER", "GROUP", "STATE", "HELD", "SIZE", "KNOWN", "DOMAIN", "SINCE", "WAITS FOR"]
    assert rows[-1] == ["fairlead", "ml/runs", "Started", "0", "3", "0", "north/a", "10m ago"]
    report = json.loads(run("ml/runs", "-o", "json", there=[*THERE, turns(), ledger], policies=racks)[1])
    assert [one["domain"] for one in report["groups"]] == [{"block": "north", "rack": "a"}]


def test_one_group_with_its_members(run: Run) -> None:
    code, out, err = run("ml/red")
    assert (code, err) == (0, "")
    _, red, empty, head, *members = out.splitlines()
    assert (cells(red)[1], empty, cells(head)) == ("ml/red", "", ["POD", "STATE", "NODE", "SINCE", "REFUSED WITH"])
    assert [cells(one) for one in members] == [
        ["red-0", "Known", "10m ago"],
        ["red-1", "Known", "n7 (held)", "10m ago"],
        ["red-2", "Known", "10m ago", "0/1 nodes are available: 1 Insufficient cpu."],
    ]
    assert cells(run("ml/runs")[1].splitlines()[-1]) == ["runs-0", "Placed", "n1", "10m ago"]
    assert cells(run("ml/few")[1].splitlines()[-1])[-1] == (
        "not known to the scheduler, because of its scheduling gates: example.org/quota"
    )


def test_the_same_for_programs(run: Run) -> None:
    code, out, _ = run("-o", "json")
    report = json.loads(out)
    assert (code, report["time"], report["undecided"], report["unreadable"]) == (0, NOW, [], [])
    red, *_, runs = report["groups"]
    assert red == {
        "scheduler": "fairlead",
        "namespace": "ml",
        "value": "red",
        "state": "Turn",
        "held": 1,
        "size": 3,
        "placed": 0,
        "known": 3,
        "gated": 0,
        "deleting": 0,
        "attempt": 3,
        "since": "2027-01-15T07:59:55Z",
        "until": "2027-01-15T08:00:25Z",
        "waitsFor": "2 more members to find room, until 08:00:25Z (attempt 3)",
        "domain": None,
    }
    assert (runs["state"], runs["placed"], runs["attempt"], runs["until"], runs["waitsFor"]) == (
        *("Started", 1, None, None, ""),
    )
    (few,) = yaml.safe_load(run("ml/few", "-o", "yaml")[1])["groups"]
    assert few["members"][1] == {
        "name": "few-1",
        "state": "Gated",
        "node": "",
        "heldOn": "",
        "since": "2027-01-15T07:50:00Z",
        "refusal": "",
        "gates": ["example.org/quota"],
    }


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("ml/rad", "there is no group ml/rad: did you mean ml/red?"),
        ("ml/ended", "there is no group ml/ended"),
        ("other/red", "there is no group other/red"),
        ("red", "'red' is no group: write its namespace and value, as ml/train"),
        ("ml/", "'ml/' is no group"),
        ("/red", "'/red' is no group"),
    ],
)
def test_groups_that_there_are_not(run: Run, asked: str, message: str) -> None:
    code, out, err = run(asked)
    assert (code, out) == (2, "")
    assert message in err


def test_a_group_that_cannot_be_decided(run: Run) -> None:
    bad = member("bad-0", "bad")
    bad["metadata"]["annotations"]["size"] = "many\x1b[2J"
    there = [*THERE, bad, turns()]
    said = "ml/bad-0 is refused on every node, as its group cannot be decided: policy some: the size of "
    for asked in ((), ("ml/red",)):
        _, out, _ = run(*asked, there=there)
        assert said in out.splitlines()[-1]
        assert "\x1b" not in out
    assert "there is no group ml/bad; of 1 pod in ml the group cannot be decided" in run("ml/bad", there=there)[2]
    assert json.loads(run("-o", "json", there=there)[1])["undecided"][0]["name"] == "bad-0"


def test_what_pods_say_is_escaped(run: Run) -> None:
    there = [*THERE[:2], member("a", ODD, f"no room {ODD}", schedulingGates=[]), *THERE[2:], turns()]
    for asked in ((), (f"ml/{ODD}",)):
        code, out, err = run(*asked, there=there)
        assert (code, err) == (0, "")
        assert "ml/x\\n\\x1b[31m$(id)\\u202e/y" in out
        assert all(one.isprintable() for line in out.splitlines() for one in line)
    _, out, _ = run("ml/x\\n\\x1b[31m$(id)\\u202e/y", "-o", "json", there=there)
    (odd,) = json.loads(out)["groups"]
    assert (odd["value"], odd["members"][0]["refusal"]) == (ODD, f"no room {ODD}")
    _, _, err = run("ml/none\x1b[2J", there=there)
    assert "\x1b" not in err


def test_the_turn_of_a_group_with_an_odd_name_is_escaped(run: Run) -> None:
    made = turns_body(
        "fairlead", Turns(PublishedTurn(hash_of(ODD), NOW_S, NOW_S + 9, held_members=1, size=3, attempt=1))
    )
    made["metadata"]["namespace"] = "fairlead-system"
    _, out, _ = run(there=[*THERE, member("a", ODD), made])
    assert "the turn of ml/x\\n\\x1b[31m$(id)\\u202e/y" in out


def test_without_published_turns(run: Run) -> None:
    code, out, err = run(there=THERE)
    assert code == 0
    assert "turns and rests are unknown: the snapshot has no such ConfigMaps" in err
    assert {cells(line)[2] for line in out.splitlines()[1:]} == {"Waiting", "Started"}
    assert cells(out.splitlines()[1])[-1] == "unknown: nothing of the turn is published"


@pytest.mark.parametrize("data", [{"turns": "{"}, {}, {"turns": '{"turn": {"group": 7}}'}])
def test_turns_that_cannot_be_read_are_named(run: Run, data: Object) -> None:
    broken = turns() | {"data": data}
    code, out, err = run(there=[*THERE, broken])
    assert code == 1
    assert "ConfigMap fairlead-turns-fairlead, turns of groups, cannot be read" in err
    assert {cells(line)[2] for line in out.splitlines()[1:]} == {"Waiting", "Started"}
    code, out, _ = run("-o", "json", there=[*THERE, broken])
    assert (code, len(json.loads(out)["unreadable"])) == (1, 1)


@pytest.mark.parametrize("annotations", ["x", {"fairlead.dev/format": 7}])
def test_objects_that_are_none_are_refused(run: Run, annotations: Any) -> None:
    broken = turns()
    broken["metadata"]["annotations"] = annotations
    code, _, err = run(there=[*THERE, broken])
    assert code == 2
    assert "c.json: configmap fairlead-system/fairlead-turns-fairlead cannot be read" in err


@pytest.mark.parametrize(
    ("homes", "attempt", "note"),
    [
        (["a", "fairlead-system"], 2, "in the namespaces fairlead-system, a, and only those in fairlead-system"),
        (["b", "a"], 2, "in the namespaces a, b, and only those in a are shown"),
        (["a"], 1, ""),
    ],
)
def test_turns_in_several_namespaces(run: Run, homes: list[str], attempt: int, note: str) -> None:
    published = [turns(home=home, attempt=at) for at, home in enumerate(homes, 1)]
    _, out, err = run("-o", "json", there=[*THERE, *published])
    assert json.loads(out)["groups"][0]["attempt"] == attempt
    assert note in err if note else not err


def test_a_config_map_with_another_name_is_not_the_operators(run: Run) -> None:
    stray = turns()
    stray["metadata"]["name"] = "fairlead-turns-x"
    assert json.loads(run("-o", "json", there=[*THERE, stray])[1])["groups"][0]["state"] == "Waiting"


@pytest.mark.parametrize(
    ("policies", "text"),
    [
        (policy(filters=[{"name": "a", "expression": "true"}]), "no policy has groups\n"),
        (JOBS | {"spec": JOBS["spec"] | {"mode": "Disabled"}}, "no policy has groups\n"),
        (JOBS, "no pod is in a group\n"),
    ],
)
def test_no_groups(run: Run, policies: Object, text: str) -> None:
    code, out, _ = run(there=[node("n1"), pod("a")], policies=policies)
    assert (code, out) == (0, text)


@pytest.mark.parametrize(
    ("asked", "refused", "code", "message"),
    [
        ([], {}, 0, ""),
        (["ml/red"], {}, 0, ""),
        ([], {"/api/v1/pods": 403}, 2, "you may not list pods of all namespaces"),
        (["ml/red"], {"/api/v1/pods": 403}, 0, "groups of other namespaces are unknown: pods is forbidden"),
        ([], {"/api/v1/namespaces": 403}, 0, "labels of namespaces are unknown, by which policies may select pods"),
        ([], {POLICIES: 403}, 2, "you may not list policies"),
        ([], {"/api/v1/configmaps": 403}, 0, ""),
        (
            [],
            {"/api/v1/configmaps": 403, "/api/v1/namespaces/fairlead-system/configmaps": 403},
            *(0, "turns and rests are unknown: configmaps is forbidden"),
        ),
    ],
)
def test_a_cluster_is_read_with_the_rights_of_the_user(
    asked: list[str],
    refused: dict[str, object],
    code: int,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stored = JOBS | {"metadata": {"name": "some", "uid": "u", "generation": 1}}
    pods = [one for one in THERE if one["kind"] == "Pod"]
    answers = {
        "/version": {},
        POLICIES: items(stored),
        "/api/v1/nodes": items(THERE[0]),
        "/api/v1/namespaces": items(THERE[1]),
        "/api/v1/namespaces/ml": THERE[1],
        "/api/v1/pods": items(*pods),
        "/api/v1/namespaces/ml/pods": items(*pods),
        "/api/v1/configmaps": items(turns()),
        "/api/v1/namespaces/fairlead-system/configmaps": items(turns()),
    }
    with api_server(answers | refused, tmp_path) as file:
        assert main(["groups", *asked, "--now", NOW, "--kubeconfig", str(file)]) == code
    out, err = capsys.readouterr()
    assert message in err if message else not err
    if not code:
        state = "Waiting" if "turns" in message else "Turn"
        assert next(cells(line)[2] for line in out.splitlines() if " ml/red " in line) == state
