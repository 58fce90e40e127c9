"""`fairlead learned`: what rules have learned, the lowest score first."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.api.parse import parse_policy
from fairlead.cli.main import main
from fairlead.policy.compile.compiler import CompileOptions, compile_policy
from policies.good import policy
from support.learned.published import Learned, published, published_requests
from support.policy import INSTALLED, MODEL
from support.simulation.snapshot import listed, node, pod

NOW, AT = "2027-01-15T08:00:00Z", 1_800_000_000
WORKS = policy(scores=[{"name": "works", "weight": 5, "kubeRL": {"priorPercent": 80, "halfLife": "12h"}}])
COMPILED = compile_policy(parse_policy(WORKS, MODEL), CompileOptions(INSTALLED))
LEARNED: list[Learned] = [
    ("ml/train", "u-good", 20.0, 20.0, AT - 40),
    ("ml/train", "u-bad", 0.0, 3.0, AT - 7200),
    ("ml/serve", "u-gone", 0.5, 1.0, AT - 86_400 * 2),
]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(yaml.safe_dump(WORKS))
    waits = pod("waits", labels={"app": "train"})
    waits["spec"]["schedulerName"] = "fairlead"
    Path("c.json").write_text(json.dumps(listed(node("good"), node("bad"), waits, *published(COMPILED, LEARNED))))
    Path("bare.json").write_text(json.dumps(listed(node("good"), node("bad"), waits)))

    def call(*arguments: str, snapshot: str = "c.json") -> tuple[int, str, str]:
        code = main([*arguments, "--policies", "p.yaml", "--snapshot", snapshot, "--now", NOW])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


def test_the_lowest_score_comes_first_and_what_is_gone_is_marked(run: Run) -> None:
    code, out, err = run("learned")
    assert (code, err) == (0, "")
    lines = [line.split(maxsplit=6) for line in out.splitlines()]
    assert lines[1:4] == [
        ["some", "works", "ml/train", "bad", "22", "2.67", "2h ago"],
        ["some", "works", "ml/serve", "(gone)", "78", "0.06", "2d ago"],
        ["some", "works", "ml/train", "good", "99", "19.99", "40s ago"],
    ]
    assert out.splitlines()[4] == "1 pair of nodes that are gone: they fade, and are forgotten"


def test_the_same_for_programs(run: Run) -> None:
    (rule,) = json.loads(run("learned", "some", "--rule", "works", "-o", "json")[1])["rules"]
    assert (rule["policy"], rule["rule"], rule["readable"]) == ("some", "works", True)
    assert [(one["node"], one["score"], one["lastOutcomeSeconds"]) for one in rule["pairs"]] == [
        ("bad", 22, 7200),
        ("", 78, 172_800),
        ("good", 99, 40),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("learned", "other"), "there is no policy other; there are some"),
        (("learned", "--rule", "other"), "no rule other learns; those that do are works"),
    ],
)
def test_names_that_there_are_not(run: Run, arguments: tuple[str, ...], message: str) -> None:
    code, _, err = run(*arguments)
    assert code == 2
    assert message in err


def test_without_its_config_maps_nothing_is_known(run: Run) -> None:
    code, out, err = run("learned", snapshot="bare.json")
    assert (code, out) == (0, "nothing is learned yet\n")
    assert "what rules have learned is unknown: the snapshot has no such ConfigMaps" in err


def test_one_that_cannot_be_read_is_named(run: Run) -> None:
    cluster: Any = json.loads(Path("c.json").read_text())
    for one in cluster["items"]:
        if one["kind"] == "ConfigMap":
            one["data"] = {"pairs": "{"}
    Path("c.json").write_text(json.dumps(cluster))
    assert "some/works adds nothing: a ConfigMap with what it has learned cannot be read" in run("learned")[1]


def test_explain_and_simulate_score_by_what_was_learned(run: Run) -> None:
    (score,) = json.loads(run("explain", "waits", "--node", "bad", "-o", "json")[1])["node"]["scores"]
    assert (score["value"], score["noted"]["values"]["outcomes"], score["noted"]["values"]["age_s"]) == (22, 3, 7200)
    simulated = json.loads(run("simulate", "-o", "json")[1])
    assert "not evaluated" not in json.dumps(simulated)


def test_without_its_config_maps_a_rule_is_named_as_not_evaluated(run: Run) -> None:
    _, out, err = run("explain", "waits", "--node", "bad", snapshot="bare.json")
    assert "some/works: it reads what it has learned" in out + err


def test_requests_of_pods_are_counted(run: Run) -> None:
    packs = policy(scores=[{"name": "packs", "pigeon": {"resources": ["cpu"], "minSamples": 2, "samples": 2}}])
    compiled = compile_policy(parse_policy(packs, MODEL), CompileOptions(INSTALLED))
    requests = {(AT + at, f"u-{at}"): (float(at),) for at in range(1, 4)}
    Path("p.yaml").write_text(yaml.safe_dump(packs))
    waits = pod("waits", asks={"cpu": "1"})
    waits["spec"]["schedulerName"] = "fairlead"
    nodes = [node("good", room={"cpu": "8"}), node("bad", room={"cpu": "4"})]
    Path("c.json").write_text(json.dumps(listed(*nodes, waits, published_requests(compiled, requests))))
    assert run("learned")[1] == "some/packs knows the requests of 2 pods, on average cpu 2.5\n"
    assert json.loads(run("learned", "-o", "json")[1])["rules"] == [
        {"policy": "some", "rule": "packs", "readable": True, "requests": {"pods": 2, "mean": {"cpu": 2.5}}}
    ]
    assert "gammaDemand" in run("explain", "waits", "--node", "good")[1]
