"""`fairlead learned`: what rules have learned, the lowest score first, and the same read back as `--learned FILE`."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.api.parse import parse_policy
from fairlead.cli.main import main
from fairlead.learned.published import MEANING, Publication
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
    known = published(COMPILED, LEARNED, Publication(AT - 90, 2))
    Path("c.json").write_text(json.dumps(listed(node("good"), node("bad"), waits, *known)))
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
    there = json.loads(Path("c.json").read_text())["items"]
    size = sum(len(one["data"]["pairs"]) for one in there if one["kind"] == "ConfigMap")
    assert out.splitlines()[4:] == [
        "",
        f"some/works: 3 ConfigMaps of {size} bytes, written last 1m ago, 6 outcomes came too late to count",
        "1 pair of nodes that are gone: they fade, and are forgotten",
    ]


def test_the_same_for_programs(run: Run) -> None:
    report = json.loads(run("learned", "some", "--rule", "works", "-o", "json")[1])
    (rule,) = report["rules"]
    assert (rule["policy"], rule["rule"], rule["readable"]) == ("some", "works", True)
    assert (rule["configMaps"], rule["lastPublicationSeconds"], rule["late"]) == (3, 90, 6)
    assert [(one["node"], one["score"], one["lastOutcomeSeconds"]) for one in rule["pairs"]] == [
        ("bad", 22, 7200),
        ("", 78, 172_800),
        ("good", 99, 40),
    ]
    assert (report["time"], report["learned"]) == (
        NOW,
        {
            "some/works": [
                {"type": "ml/serve", "node": "", "value": 0.65, "count": 1.0, "age": "48h", "prior": 0.8},
                {"type": "ml/train", "node": "bad", "value": 0.2, "count": 3.0, "age": "2h", "prior": 0.8},
                {"type": "ml/train", "node": "good", "value": 20.8 / 21, "count": 20.0, "age": "40s", "prior": 0.8},
            ]
        },
    )


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
    why = "the snapshot has no such ConfigMaps"
    code, out, err = run("learned", snapshot="bare.json")
    assert (code, out) == (1, f"some/works: what it has learned is unknown: {why}\n")
    assert f"what rules have learned is unknown: {why}" in err


def test_what_is_not_known_is_not_written_as_empty(run: Run) -> None:
    code, out, _ = run("learned", "-o", "json", snapshot="bare.json")
    report = json.loads(out)
    (rule,) = report["rules"]
    assert (code, report["learned"], rule["readable"]) == (1, {}, False)
    assert rule["faults"] == ["the snapshot has no such ConfigMaps"]
    assert (rule["configMaps"], "pairs" in rule) == (None, False)
    Path("learned.json").write_text(out)
    code, _, err = run("explain", "waits", "--learned", "learned.json", snapshot="bare.json")
    assert (code, "learned.json: learned: must not be empty" in err) == (2, True)


def test_one_that_cannot_be_read_is_named(run: Run) -> None:
    cluster: Any = json.loads(Path("c.json").read_text())
    name = ""
    for one in cluster["items"]:
        if one["kind"] == "ConfigMap":
            one["data"] = {"pairs": "{"}
            name = one["metadata"]["name"]
    cluster["items"].append(
        {"kind": "ConfigMap", "metadata": {"name": "stray", "labels": {"fairlead.dev/learned": ""}}, "data": {}}
    )
    Path("c.json").write_text(json.dumps(cluster))
    code, out, _ = run("learned")
    assert code == 1
    assert f"some/works adds nothing: ConfigMap {name}, what a rule has learned, cannot be read: " in out
    assert "ConfigMap stray does not say which rule it belongs to, and is left alone: delete it" in out
    code, out, _ = run("learned", "-o", "json")
    assert (code, json.loads(out)["learned"], json.loads(out)["unclaimed"]) == (1, {}, ["stray"])


def test_explain_and_simulate_score_by_what_was_learned(run: Run) -> None:
    (score,) = json.loads(run("explain", "waits", "--node", "bad", "-o", "json")[1])["node"]["scores"]
    assert (score["value"], score["noted"]["values"]["outcomes"], score["noted"]["values"]["age_s"]) == (22, 3, 7200)
    simulated = json.loads(run("simulate", "-o", "json")[1])
    assert "not evaluated" not in json.dumps(simulated)


def test_without_its_config_maps_a_rule_is_named_as_not_evaluated(run: Run) -> None:
    _, out, err = run("explain", "waits", "--node", "bad", snapshot="bare.json")
    assert "some/works: it reads what it has learned" in out + err


PACKS = policy(scores=[{"name": "packs", "pigeon": {"resources": ["cpu"], "minSamples": 2, "samples": 4}}])
PACKING = compile_policy(parse_policy(PACKS, MODEL), CompileOptions(INSTALLED))


def packs(*cpu: float) -> None:
    """Write a cluster of which one node is half full, and a policy that has learned these requests."""
    requests = {(AT + at, f"u-{at}"): (each,) for at, each in enumerate(cpu)}
    Path("p.yaml").write_text(yaml.safe_dump(PACKS))
    waits = pod("waits", asks={"cpu": "1"})
    waits["spec"]["schedulerName"] = "fairlead"
    there = [node("good", room={"cpu": "8"}), node("bad", room={"cpu": "8"}), pod("x", on="bad", asks={"cpu": "4"})]
    known = published_requests(PACKING, requests, Publication(AT - 7200))
    Path("c.json").write_text(json.dumps(listed(*there, waits, known)))
    Path("bare.json").write_text(json.dumps(listed(*there, waits)))


@pytest.mark.parametrize(
    ("cpu", "shown", "now"),
    [
        # The nodes are at 0 and 0.5: their gamma is 1.
        ((1.0, 1.0, 1.0), ["some", "packs", "3", "cpu 1", "0.000", "1.000", "spreads"], "Spreads"),
        ((0.1, 0.1, 0.1, 8.0), ["some", "packs", "4", "cpu 2.075", "1.649", "1.000", "packs"], "Packs"),
        ((0.0, 2.0), ["some", "packs", "2", "cpu 1", "1.000", "1.000", "neither"], "Level"),
        ((0.5,), ["some", "packs", "1", "cpu 500m", "0.000", "1.000", "adds nothing: it knows fewer than 2 pods"],
         "TooFewPods"),
    ],
)  # fmt: skip
def test_requests_of_pods_and_what_a_rule_makes_of_them(
    run: Run, cpu: tuple[float, ...], shown: list[str], now: str
) -> None:
    packs(*cpu)
    code, out, _ = run("learned")
    head, row, _, of_rule = out.splitlines()
    assert (code, head.split("   ")[0], re.split(r"\s{3,}", row)) == (0, "POLICY", shown)
    assert of_rule.startswith("some/packs: 1 ConfigMap of ")
    assert of_rule.endswith(" bytes, written last 2h ago")
    (rule,) = json.loads(run("learned", "-o", "json")[1])["rules"]
    assert (rule["requests"]["now"], rule["requests"]["nodes"], rule["requests"]["pods"]) == (now, 2, len(cpu))


def test_of_a_rule_in_shadow_all_is_said_too(run: Run) -> None:
    packs(1.0, 1.0, 1.0)
    enforced = json.loads(run("learned", "-o", "json")[1])
    (score,) = PACKS["spec"]["scores"]
    Path("p.yaml").write_text(yaml.safe_dump(policy(scores=[{**score, "mode": "Shadow"}])))
    assert json.loads(run("learned", "-o", "json")[1]) == enforced


def test_a_system_without_nodes(run: Run) -> None:
    packs(1.0, 1.0)
    elsewhere = {"resources": ["cpu"], "minSamples": 2, "system": {"matchLabels": {"pool": "none"}}}
    Path("p.yaml").write_text(yaml.safe_dump(policy(scores=[{"name": "packs", "pigeon": elsewhere}])))
    assert "adds nothing: no node is in its system" in run("learned")[1]
    requests = json.loads(run("learned", "-o", "json")[1])["rules"][0]["requests"]
    assert (requests["gammaDemand"], requests["gammaSystem"], requests["now"]) == (None, None, "NoNodes")


def explained(run: Run, *learned: str, snapshot: str = "bare.json") -> Any:
    given = [part for name in learned for part in ("--learned", name)]
    code, out, err = run("explain", "waits", "-o", "json", *given, snapshot=snapshot)
    assert code == 0, out + err
    return json.loads(out)["nodes"]


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_what_is_printed_can_be_read_back(run: Run, output: str) -> None:
    for requests in ((), (0.1, 0.1, 8.0, 0.1)):
        if requests:
            packs(*requests)
        Path(f"l.{output}").write_text(run("learned", "-o", output)[1])
        assert explained(run, f"l.{output}") == explained(run, snapshot="c.json")


@pytest.mark.parametrize("form", ["yaml", "json", "documents", "appended"])
def test_config_maps_can_be_read_wherever_they_are_from(run: Run, form: str) -> None:
    known = published(COMPILED, LEARNED)
    for one in known:
        one["metadata"]["annotations"]["fairlead.dev/policy-uid"] = "of another cluster"
    texts = {
        "yaml": yaml.safe_dump(listed(*known)),
        "json": json.dumps(listed(*known)),
        "documents": yaml.safe_dump_all(known),
        "appended": "\n".join(map(json.dumps, known)),
    }
    Path(f"known.{form}").write_text(texts[form])
    assert explained(run, f"known.{form}") == explained(run, snapshot="c.json")


def test_what_is_given_comes_before_what_the_cluster_says(run: Run) -> None:
    pair = {"type": "ml/train", "node": "bad", "value": 0.9, "count": 1}
    Path("l.yaml").write_text(yaml.safe_dump({"learned": {"works": [pair]}}))
    scores = {one["name"]: one["score"] for one in explained(run, "l.yaml", snapshot="c.json")}
    assert scores == {"bad": 450, "good": 400}


def test_a_rule_that_no_file_names_is_named_as_not_evaluated(run: Run) -> None:
    both = policy(scores=[*WORKS["spec"]["scores"], *PACKS["spec"]["scores"]])
    Path("p.yaml").write_text(yaml.safe_dump(both))
    Path("l.yaml").write_text("learned: {some/works: []}")
    _, out, err = run("simulate", "--learned", "l.yaml", snapshot="bare.json")
    assert "some/packs: it reads what it has learned" in out + err
    assert "some/works: it reads" not in out + err


def test_what_was_learned_with_other_parameters_means_nothing(run: Run) -> None:
    known = published(COMPILED, LEARNED)
    for one in known:
        one["metadata"]["annotations"][MEANING] = "another"
    Path("known.json").write_text(json.dumps(listed(*known)))
    _, out, err = run("simulate", "--learned", "known.json", snapshot="c.json")
    assert "some/works has learned this with another type, settle, halfLife or resources" in out + err
    assert {one["score"] for one in explained(run, "known.json", snapshot="c.json")} == {400}


def test_two_versions_of_a_policy_read_the_same(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    # What is worth more than one prior is worth less than another.
    edited = json.loads(json.dumps(WORKS))
    edited["spec"]["scores"][0]["kubeRL"]["priorPercent"] = 30
    Path("edited.yaml").write_text(yaml.safe_dump(edited))
    there = [one for one in json.loads(Path("c.json").read_text())["items"] if one["kind"] != "ConfigMap"]
    known = published(COMPILED, [("ml/train", "u-bad", 0.5, 1.0, AT)])
    Path("c.json").write_text(json.dumps(listed(*there, *known)))
    Path("l.yaml").write_text(run("learned", "-o", "yaml")[1])
    found = []
    for given in (("--snapshot", "c.json"), ("--snapshot", "bare.json", "--learned", "l.yaml")):
        code = main(["diff", "--from", "p.yaml", "--to", "edited.yaml", *given, "--now", NOW, "-o", "json"])
        found.append((code, capsys.readouterr().out))
    assert found[0] == found[1]
    assert found[0][0] == 1


PAIR = {"type": "ml/train", "node": "bad", "value": 0.5, "count": 1}
_BAD: dict[str, tuple[Any, str]] = {
    "a comment": ("# nothing", "the file is empty; write it with `fairlead learned POLICY -o yaml`"),
    "nothing": ("", "the file is empty; write it with `fairlead learned POLICY -o yaml`"),
    "no YAML": ("learned: [", "this is neither JSON nor YAML"),
    "a list": ([], "must be a map of fields, not a list"),
    "no rule": ({"learned": {}}, "learned: must not be empty"),
    "nothing learned": ({"rules": []}, "learned: is missing; what rules have learned, by rule"),
    "another field": (
        {"learned": {"works": []}, "lerned": {}},
        "lerned: there is no such field; did you mean learned?",
    ),
    "another policy": (
        {"learned": {"other/works": []}},
        "learned[other/works]: no policy that is used here has a rule 'other/works' that learns; did you mean some/",
    ),
    "a rule misspelt": (
        {"learned": {"work": []}},
        "no policy that is used here has a rule 'work' that learns; did you mean works?",
    ),
    "a rule twice": ({"learned": {"works": [], "some/works": []}}, "is the rule some/works, which is there already"),
    "a node misspelt": (
        {"learned": {"works": [{**PAIR, "node": "bat"}]}},
        "learned.works[0].node: there is no node 'bat' in c.json; did you mean bad?",
    ),
    "a pair twice": ({"learned": {"works": [PAIR, PAIR]}}, "learned.works[1]: ml/train on bad is there already"),
    "a text for a number": (
        {"learned": {"works": [{**PAIR, "count": "many"}]}},
        "learned.works[0].count: must be a number, not 'many'",
    ),
    "a negative number": (
        {"learned": {"works": [{**PAIR, "count": -1}]}}, "learned.works[0].count: must be at least 0.01, not -1",
    ),
    "a mean that cannot be": (
        {"learned": {"works": [{**PAIR, "value": 0.2}]}},
        "learned.works[0].value: 0.2 is no mean of rewards; with this prior and count it is from 0.4 to 0.9",
    ),
    "requests for outcomes": (
        {"learned": {"works": {"demands": []}}},
        "learned.works: the rule works learns no requests; write a list of {type, node, value, count}",
    ),
    "no time": ({"learned": {"works": []}, "time": "noon"}, "time: 'noon' is not a time; write it as 2027-01-15T08:00"),
    "no state": ({"kind": "ConfigMap", "metadata": {"name": "x"}}, "no ConfigMap in it has what a rule of these"),
}  # fmt: skip


@pytest.mark.parametrize(("written", "message"), _BAD.values(), ids=_BAD)
def test_bad_files_are_refused_with_field_and_fix(run: Run, written: Any, message: str) -> None:
    Path("l.yaml").write_text(written if isinstance(written, str) else yaml.safe_dump(written))
    code, out, err = run("simulate", "--learned", "l.yaml")
    assert (code, out) == (2, "")
    assert err.startswith("fairlead simulate: l.yaml: ")
    assert message in err


def test_a_config_map_that_cannot_be_read_is_refused(run: Run) -> None:
    (first, *_) = published(COMPILED, LEARNED)
    first["data"] = {"pairs": '{"v":2}'}
    Path("known.json").write_text(json.dumps(first))
    code, _, err = run("simulate", "--learned", "known.json")
    assert code == 2
    assert "has format '2', and this version of Fairlead reads 1 at most; it is left alone: upgrade Fairlead" in err


def test_a_rule_is_given_once(run: Run) -> None:
    Path("l.yaml").write_text("learned: {works: []}")
    Path("m.yaml").write_text("learned: {some/works: []}")
    Path("known.json").write_text(json.dumps(listed(*published(COMPILED, LEARNED))))
    for other in ("m.yaml", "known.json"):
        code, _, err = run("simulate", "--learned", "l.yaml", "--learned", other)
        assert code == 2
        assert f"{other}: " in err
        assert "l.yaml says what" in err


def test_the_suggested_command_has_the_file(run: Run) -> None:
    Path("l.yaml").write_text("learned: {works: []}")
    assert "--learned l.yaml" in run("explain", "--pending", "-A", "--learned", "l.yaml", snapshot="bare.json")[1]
