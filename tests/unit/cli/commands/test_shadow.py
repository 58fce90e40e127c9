"""`fairlead shadow` of an API server that says what it is told to: what it prints, and how it ends."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead.cli.inputs.shadow_counts import counts_data, policy_in_shadow
from fairlead.cli.main import main
from fairlead.cli.reports.shadow_counts_text import counts_lines
from support.cli.status_api import api_server, items
from support.kube.crd import POLICIES
from support.simulation.snapshot import node, pod

KIND = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy"}
CLASS: dict[str, Any] = {
    "name": "class",
    "expression": "node.metadata.labels[?'gpu'].orValue('') == 't4'",
    "reason": "wrong class",
}
NAMED: dict[str, Any] = {"name": "named", "expression": "node.metadata.name != 'n2'", "reason": "not that one"}
SCORE: dict[str, Any] = {"name": "first", "expression": "node.metadata.name == 'n1' ? 9.0 : 0.0"}
SHADOW: dict[str, Any] = {"mode": "Shadow"}
COUNTS: dict[str, Any] = {
    "generation": 4,
    "since": "2026-01-01T00:00:00Z",
    "calls": 20_440,
    "skipped": 21,
    "unknown": 10,
    "pods": 812,
    "restricted": 31,
    "unschedulable": 0,
    "reordered": 4,
    "evictions": 1,
    "tooSlow": 2,
    "rules": [
        {"kind": "Filter", "name": "class", "pods": 3},
        {"kind": "Filter", "name": "named", "pods": 30, "unschedulable": 2},
    ],
    "replicas": [{"process": "x", "counts": "packed"}],
}
Run = Callable[..., tuple[int, str, str]]


def stored(
    name: str = "gpu", counts: dict[str, Any] | None = None, *, generation: int = 4, **spec: Any
) -> dict[str, Any]:
    """Return a policy as the API server returns it."""
    metadata = {"name": name, "uid": f"u-{name}", "generation": generation}
    status = {"servingGeneration": generation} | ({} if counts is None else {"shadow": counts})
    return {**KIND, "metadata": metadata, "spec": spec, "status": status}


def shadowed(**changes: Any) -> dict[str, Any]:
    return stored(counts=COUNTS | changes, filters=[CLASS, NAMED], **SHADOW)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(answers: object, *more: str) -> tuple[int, str, str]:
        found = answers if isinstance(answers, dict) and POLICIES in answers else {POLICIES: answers, "/version": {}}
        with api_server(found, tmp_path) as file:
            code = main(["shadow", *more, "--kubeconfig", str(file)])
        out, err = capsys.readouterr()
        return code, out, err

    return run


RACK: dict[str, Any] = {"name": "job", "topology": {"levels": ["rack"], "require": "rack"}}
GANG: dict[str, Any] = {"gang": [{"name": "job", "group": "'a'", "size": "2", "holdFor": "1m"}]}
NEVER = (
    "Not yet: nothing of it is ever compared, as it depends on what it holds or writes: "
    "`fairlead simulate --as-enforced` shows what it would do to the pods of now.\n"
)
ENDS: dict[str, tuple[object, tuple[str, ...], int, str]] = {
    "enough was compared": ([shadowed()], (), 0, "No pod would have been left without a node."),
    "just enough": ([shadowed()], ("--min-pods", "812"), 0, "No pod would have been left without a node."),
    "too few": ([shadowed()], ("--min-pods", "813"), 1, "Not yet: 812 pods of at least 813 were compared."),
    "a pod would have had no node": (
        [shadowed(unschedulable=1)],
        (),
        1,
        "Not yet: 1 pod would have been left without a node.",
    ),
    "too few, and one without a node": (
        [shadowed(pods=1, unschedulable=1)],
        ("--min-pods", "2"),
        1,
        "Not yet: 1 pod of at least 2 was compared.\nNot yet: 1 pod would have been left without a node.",
    ),
    "no call": ([shadowed(calls=0, pods=0, skipped=0, unknown=0)], (), 1, "Not yet: no call was seen."),
    "no call, and none is asked for": (
        [shadowed(calls=0, pods=0, skipped=0, unknown=0)],
        ("--min-pods", "0"),
        1,
        "Not yet: no call was seen.",
    ),
    "all calls were skipped": (
        [shadowed(calls=9, skipped=9, unknown=0, pods=0)],
        (),
        1,
        "coverage: 0 of 9 calls compared (9 skipped)\n",
    ),
    "another generation": (
        [shadowed(generation=3)],
        (),
        1,
        "Not yet: generation 4 has no counts yet: these are of generation 3.",
    ),
    "no counts": (
        [stored(filters=[CLASS], **SHADOW)],
        (),
        1,
        "Not yet: its status has no counts: the operator is older",
    ),
    "only a group": ([stored(binding=GANG, **SHADOW)], (), 1, NEVER),
    "only a domain": ([stored(filters=[CLASS, RACK | SHADOW])], (), 1, NEVER),
    "a group and a domain of its name": ([stored(filters=[RACK], binding=GANG, **SHADOW)], (), 1, NEVER),
    "a group, and a filter of its name": (
        [stored(filters=[CLASS | {"name": "job"}], binding=GANG, **SHADOW)],
        (),
        1,
        "Not yet: its status has no counts",
    ),
    "nothing in shadow": ([stored(filters=[CLASS])], (), 1, "Not yet: nothing of it is in shadow."),
    "counts of what was in shadow": ([stored(counts=COUNTS, filters=[CLASS])], (), 1, "nothing of it is in shadow."),
    "disabled": (
        [stored(counts=COUNTS, filters=[CLASS | SHADOW], mode="Disabled")],
        (),
        1,
        "Not yet: its mode is Disabled: none of its rules is evaluated.",
    ),
    "unknown": ([shadowed()], ("gpus",), 2, "fairlead shadow: there is no policy 'gpus': did you mean gpu?"),
    "unknown, with none that is like it": ([], ("x",), 2, "there is no policy 'x'; `kubectl get sep` lists them"),
    "not allowed": (403, (), 2, "fairlead shadow: "),
    "not installed": (404, (), 2, "this cluster has no CustomResourceDefinition of policies"),
    "a number that is none": ([shadowed()], ("--min-pods", "-1"), 2, "--min-pods -1: give a number of pods"),
}


@pytest.mark.parametrize(("policies", "more", "code", "said"), ENDS.values(), ids=ENDS)
def test_how_it_ends(run: Run, policies: Any, more: tuple[str, ...], code: int, said: str) -> None:
    answer = items(*policies) if isinstance(policies, list) else policies
    named = () if more and not more[0].startswith("-") else ("gpu",)
    found, out, err = run(answer, *named, *more)
    assert said in out + err
    assert found == code


def test_no_cluster_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shadow", "gpu", "--kubeconfig", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.startswith("fairlead shadow: ")


def test_the_text_of_a_policy(run: Run) -> None:
    _, out, _ = run(items(shadowed()), "gpu")
    lines = out.splitlines()
    assert lines[:2] == ["policy gpu, scheduler fairlead, mode Shadow", "in shadow: 2 filters"]
    assert lines[2].startswith("counted: generation 4, since 2026-01-01T00:00:00Z (")
    assert lines[3:] == [
        "coverage: 20,409 of 20,440 calls compared (21 skipped, 10 unknown)",
        "",
        "       0 of 812 pods would have been left without a node",
        "      31 of 812 pods would have lost some or all of their nodes",
        "       4 of 812 pods would have preferred other nodes",
        "       1 of 812 pods would have been offered fewer nodes for preemption",
        "2 times the rules took too long for a class of pods, which rested for 5 minutes",
        "",
        "KIND     RULE    PODS   UNSCHEDULABLE",
        "Filter   named   30     2",
        "Filter   class   3      0",
        "",
        "Enforcing it rolls scheduler fairlead: then its pods wait while no replica of the operator answers.",
        "No pod would have been left without a node.",
    ]


def test_without_a_policy_each_has_a_line(run: Run) -> None:
    some = stored("some", COUNTS | {"unschedulable": 5}, filters=[CLASS, NAMED | SHADOW], scores=[SCORE | SHADOW])
    new = stored("new", filters=[CLASS], **SHADOW)
    code, out, _ = run(items(some, shadowed(), new, stored("plain", filters=[CLASS])))
    head, *rows, first, second = [" ".join(line.split()) for line in out.splitlines() if line]
    assert head == ("POLICY IN SHADOW CALLS COMPARED PODS UNSCHEDULABLE RESTRICTED REORDERED EVICTIONS ROLLS SINCE")
    assert [row.rpartition(" ")[0] for row in rows] == [
        "gpu 2 filters 20,409 of 20,440 812 0 31 4 1 no",
        "new 1 filter - - - - - - no",
        "some 1 filter, 1 score 20,409 of 20,440 812 5 31 4 1 yes",
    ]
    assert first.startswith("new: its status has no counts")
    assert (second, code) == ("some: 5 pods would have been left without a node", 1)
    assert run(items(shadowed()))[0] == 0
    assert run(items(stored(filters=[CLASS]))) == (1, "No policy has anything in shadow.\n", "")


ROLLS: dict[str, tuple[dict[str, Any], list[dict[str, Any]], list[str] | None]] = {
    "the first that fails": (
        {"filters": [CLASS], **SHADOW},
        [],
        ["its pods wait while no replica of the operator answers"],
    ),
    "beside another one": ({"filters": [CLASS], **SHADOW}, [stored("other", filters=[CLASS])], []),
    "beside one of another scheduler": (
        {"filters": [CLASS], **SHADOW},
        [stored("other", filters=[CLASS], schedulerName="x")],
        ["its pods wait while no replica of the operator answers"],
    ),
    "beside one in shadow": (
        {"filters": [CLASS], **SHADOW},
        [stored("other", filters=[CLASS], **SHADOW)],
        ["its pods wait while no replica of the operator answers"],
    ),
    "a filter of a policy": ({"filters": [CLASS, NAMED | SHADOW]}, [], []),
    "the first score": ({"filters": [CLASS], "scores": [SCORE | SHADOW]}, [], ["it calls prioritize"]),
    "a score beside another": ({"scores": [SCORE, SCORE | {"name": "x"} | SHADOW]}, [], []),
    "an annotation": (
        {"filters": [CLASS], "binding": {"annotations": [{"key": "fairlead.dev/a", "expression": "'x'"} | SHADOW]}},
        [],
        ["it calls bind"],
    ),
    "the only rule of a policy": (
        {"filters": [CLASS | SHADOW]},
        [],
        ["its pods wait while no replica of the operator answers"],
    ),
    "the only rule of a policy, beside another policy": (
        {"filters": [CLASS | SHADOW]},
        [stored("other", filters=[CLASS])],
        [],
    ),
    "beside one with nothing but rules in shadow": (
        {"filters": [CLASS | SHADOW]},
        [stored("other", filters=[NAMED | SHADOW])],
        ["its pods wait while no replica of the operator answers"],
    ),
    "beside what is off and cannot be read": (
        {"filters": [CLASS], **SHADOW},
        [stored("other", filters=3, mode="Disabled")],
        ["its pods wait while no replica of the operator answers"],
    ),
    "the first that ignores": (
        {"filters": [CLASS | SHADOW], "failurePolicy": "Ignore"},
        [],
        ["it calls filter and preempt for policies with failurePolicy Ignore"],
    ),
    "what cannot be read": ({"filters": [CLASS | {"bad": 1}], **SHADOW}, [], None),
    "beside what cannot be read": ({"filters": [CLASS], **SHADOW}, [stored("other", filters=3)], []),
}


@pytest.mark.parametrize(("spec", "others", "want"), ROLLS.values(), ids=ROLLS)
def test_what_enforcing_would_roll(
    run: Run, spec: dict[str, Any], others: list[dict[str, Any]], want: list[str] | None
) -> None:
    _, out, _ = run(items(stored(counts=COUNTS, **spec), *others), "gpu", "-o", "json")
    [found] = json.loads(out)["policies"]
    assert (found["rolls"], found["rollsFor"]) == (None if want is None else bool(want), want or [])


def answers(*policies: dict[str, Any], **changes: object) -> dict[str, object]:
    there: dict[str, object] = {
        "/version": {},
        POLICIES: items(*policies),
        "/api/v1/nodes": items(node("n1", labels={"gpu": "t4"}), node("n2", labels={"gpu": "t4"})),
        "/api/v1/pods": items(pod("a"), pod("placed", on="n2"), pod("other") | {"spec": {"schedulerName": "x"}}),
        "/api/v1/namespaces": items({"metadata": {"name": "ml"}}),
        "/api/v1/configmaps": items(),
    }
    return there | changes


def test_present_pods_are_told_apart_by_what_they_would_lose(run: Run) -> None:
    code, out, _ = run(answers(shadowed()), "gpu", "--pods")
    assert code == 0
    assert "\nIf it were enforced now:\n" in out
    for name in ("a", "placed"):
        assert f"ml/{name}\n    loses n2: not that one (gpu/named)\n" in out
    assert "2 of 2 pods change." in out
    _, out, err = run(answers(shadowed()), "gpu", "--pods", "-o", "json")
    found = json.loads(out)
    assert [one["name"] for one in found["pods"]] == ["a", "placed"]
    assert found["unchanged"] == 0
    assert err == "" or "Note" not in err


def test_only_what_is_in_shadow_of_this_policy_is_enforced(run: Run) -> None:
    other = stored("other", COUNTS, filters=[CLASS | {"expression": "false"}], **SHADOW)
    mixed = stored(counts=COUNTS, filters=[CLASS, NAMED | SHADOW])
    _, out, _ = run(answers(mixed, other), "gpu", "--pods")
    assert "loses n2: not that one (gpu/named)" in out
    assert "no node left" not in out
    _, out, _ = run(answers(mixed, other), "--pods")
    assert "2 of 2 pods change, 2 of them have no node left." in out


def test_pods_that_may_not_be_read_end_with_2(run: Run) -> None:
    code, _, err = run(answers(shadowed(), **{"/api/v1/pods": 403}), "gpu", "--pods")
    assert code == 2
    assert "you may not list pods" in err


def test_nothing_is_simulated_if_nothing_is_in_shadow(run: Run) -> None:
    code, out, _ = run(answers(stored(filters=[CLASS])), "gpu", "--pods")
    assert (code, "If it were" in out) == (1, False)


ODD: list[dict[str, Any]] = [
    {},
    {"metadata": None, "spec": None, "status": None},
    {"spec": [], "status": {"shadow": []}},
    {"spec": {"mode": "Shadow", "filters": {"a": 1}, "scores": [3], "preemption": [], "binding": {"gang": 3}}},
    {"spec": {"filters": [{"mode": "Shadow", "name": 3}]}, "status": {"shadow": {"generation": "x", "calls": None}}},
    {"spec": {"mode": "Shadow"}, "status": {"shadow": {"rules": [3, {}], "since": 7, "pods": -4, "calls": "12"}}},
    {"spec": {"mode": "Later", "filters": [{"mode": "Later", "name": "a"}]}},
]


@pytest.mark.parametrize("odd", ODD)
def test_what_another_version_wrote_is_read_as_far_as_it_can_be(odd: dict[str, Any]) -> None:
    from datetime import UTC, datetime

    found = policy_in_shadow(odd)
    assert [*counts_lines(found, 1, datetime.now(UTC), colour=False)]
    assert json.dumps(counts_data(found, 1))
    assert [*found.problems(1)]


def test_names_are_escaped(run: Run) -> None:
    bad = "\x1b[31m\u202e"
    counts = COUNTS | {"since": bad, "rules": [{"kind": bad, "name": bad, "pods": 1}]}
    policy = stored(counts=counts, filters=[CLASS], schedulerName=bad, **SHADOW)
    policy["spec"]["binding"] = {"gang": [{"name": bad}]}
    for more in (("gpu",), ()):
        _, out, err = run(items(policy), *more)
        assert "\x1b" not in out + err
        assert "\u202e" not in out + err
