"""Results of enforced rules, and beside them what those in shadow would change."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead.cli.main import main
from support.policy.lint import HEAD
from support.simulation.snapshot import listed, node, pod

T4 = {"gpu": "t4"}
CLASS = "{name: class, expression: \"node.metadata.labels[?'gpu'].orValue('') == 't4'\", reason: wrong class}"
NODES = [node("n1", labels=T4), node("n2", labels=T4, room={"cpu": "6"}), node("n3")]
PODS = [pod("a"), pod("web", labels={"app": "web"})]
Run = Callable[..., tuple[int, str, str]]


def written(name: str = "gpu", mode: str = "", **rules: str) -> str:
    said = f"  mode: {mode}\n" if mode else ""
    return f"{HEAD.replace('some', name)}spec:\n{said}" + "".join(f"  {kind}: [{one}]\n" for kind, one in rules.items())


def room(least: float, mode: str = "Shadow") -> str:
    said = f"mode: {mode}, " if mode else ""
    return f"{{name: room, {said}expression: \"free['cpu'] >= {least}\", reason: too full}}"


def roomy(mode: str = "Shadow") -> str:
    return f"{{name: roomy, mode: {mode}, expression: \"free['cpu'] == 6.0 ? 100.0 : 0.0\"}}"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("c.json").write_text(json.dumps(listed(*NODES, *PODS)))

    def run(policies: str, command: str, *more: str, before: str = "") -> tuple[int, str, str]:
        Path("p.yaml").write_text(policies)
        Path("before.yaml").write_text(before or policies)
        options = ["--from", "before.yaml", "--to", "p.yaml"] if command == "diff" else ["--policies", "p.yaml"]
        code = main([command, *more, *options, "--snapshot", "c.json", "--now", "2027-01-15T08:00:00Z"])
        out, err = capsys.readouterr()
        return code, out, err

    return run


FIRST = "{name: first, expression: \"node.metadata.name == 'n1' ? 9.0 : 0.0\"}"
RAISES = "{name: bad, mode: Shadow, expression: \"node.metadata.labels['no'] == 'x'\"}"
EFFECTS: dict[str, tuple[str, str, str, str]] = {
    "nothing": (
        written(filters=f"{CLASS}, {room(1.0)}"),
        written(filters=CLASS),
        "gpu/room",
        "If enforced, what is in shadow would change nothing for this pod.",
    ),
    "some nodes": (
        written(filters=f"{CLASS}, {room(7.0)}"),
        written(filters=CLASS),
        "gpu/room",
        """If enforced, what is in shadow would take away 1 of 2 possible nodes: n2.
    gpu/room would reject it: too full, on n2
""",
    ),
    "all nodes": (
        written(filters=f"{CLASS}, {room(9.0)}"),
        written(filters=CLASS),
        "gpu/room",
        """If enforced, what is in shadow would leave none of 2 possible nodes.
    gpu/room would reject it: too full, on 3 nodes, such as n1
""",
    ),
    "other nodes are the best": (
        written(filters=CLASS, scores=f"{FIRST}, {roomy()}"),
        written(filters=CLASS, scores=FIRST),
        "gpu/roomy",
        "If enforced, what is in shadow would prefer n2.\n",
    ),
    "a policy as a whole": (
        written("all", mode="Shadow", filters=room(9.0, "")),
        written("all", mode="Disabled", filters=room(9.0, "")),
        "all/room",
        """If enforced, what is in shadow would leave none of 3 possible nodes.
    all/room would reject it: too full, on 3 nodes, such as n1
""",
    ),
    "a rule that raises": (
        written(filters=f"{CLASS}, {RAISES}"),
        written(filters=CLASS),
        "gpu/bad",
        """If enforced, what is in shadow would leave none of 2 possible nodes.
    gpu/bad would reject it: rule bad cannot be decided, on 3 nodes, such as n1
""",
    ),
}


@pytest.mark.parametrize(("policies", "_", "rules", "want"), EFFECTS.values(), ids=EFFECTS)
def test_explain_says_it_beside_the_result(run: Run, policies: str, _: str, rules: str, want: str) -> None:
    code, out, _ = run(policies, "explain", "a", "-n", "ml")
    assert code == 0
    assert f"\nin shadow: {rules}\n" in out
    assert f"\nIN SHADOW\n{want}" in out


@pytest.mark.parametrize(("policies", "without", "_rules", "_want"), EFFECTS.values(), ids=EFFECTS)
def test_what_decides_is_as_without_it(run: Run, policies: str, without: str, _rules: str, _want: str) -> None:
    found, plain = (json.loads(run(text, "explain", "a", "-n", "ml", "-o", "json")[1]) for text in (policies, without))
    assert found.pop("shadow")["rules"]
    assert plain.pop("shadow") is None
    for one in (*found["nodes"], *plain["nodes"]):
        one.pop("shadow")
    plain["notFor"] = [one for one in plain["notFor"] if "Disabled" not in one["why"]]
    assert found == plain


def test_a_policy_in_shadow_matches_in_shadow(run: Run) -> None:
    _, matching, _ = run(OF_WEB, "explain", "web", "-n", "ml")
    _, other, _ = run(OF_WEB, "explain", "a", "-n", "ml")
    assert "No policy decides for this pod.\nin shadow: web/room\n" in matching
    assert "No match" not in matching
    assert "in shadow" not in other
    assert "No match: web: its podSelector does not match the pod's labels" in other


def test_each_node_has_what_would_reject_it(run: Run) -> None:
    policies = written(filters=f"{CLASS}, {room(7.0)}")
    _, wide, _ = run(policies, "explain", "a", "-n", "ml", "-o", "wide")
    assert "n2     preferred   0       in shadow: gpu/room would reject it: too full\n" in wide
    found = json.loads(run(policies, "explain", "a", "-n", "ml", "-o", "json")[1])
    assert {one["name"]: one["shadow"] for one in found["nodes"]} == {
        "n1": [],
        "n2": [{"policy": "gpu", "rule": "room", "kind": "Filter", "reason": "too full"}],
        "n3": [],
    }
    assert found["shadow"] == {
        "rules": [{"policy": "gpu", "rule": "room", "kind": "Filter"}],
        "effects": ["restricted"],
        "unknown": [],
        "lost": ["n2"],
        "preferred": ["n1"],
    }


def test_a_node_in_full_has_what_rules_in_shadow_compared(run: Run) -> None:
    policies = written(filters=f"{CLASS}, {room(7.0)}", scores=roomy())
    _, out, _ = run(policies, "explain", "a", "-n", "ml", "--node", "n2")
    assert "\nIN SHADOW\ngpu/room: would reject it: too full\n    COMPARED             VALUE\n" in out
    assert "\ngpu/roomy: 100\n" in out
    assert "room" not in out.partition("IN SHADOW")[0].partition("FILTERS")[2]
    found = json.loads(run(policies, "explain", "a", "-n", "ml", "--node", "n2", "-o", "json")[1])["node"]
    assert [one["rule"] for one in found["filters"]] == ["class"]
    assert [one["rule"] for one in found["shadow"]] == ["room"]


OF_WEB = written("web", mode="Shadow", match="@", filters=room(9.0, "")).replace(
    "match: [@]", "match: {podSelector: {matchLabels: {app: web}}}"
)
SUMMARIES: dict[str, tuple[str, str, tuple[int, ...]]] = {
    "no pod": (
        written(filters=f"{CLASS}, {room(1.0)}"),
        "gpu/room. If enforced, that would change nothing for 2 pods.",
        (2, 0, 0, 0),
    ),
    "lost": (
        written(filters=f"{CLASS}, {room(9.0)}"),
        "gpu/room. If enforced, 2 pods would be left without a node",
        (2, 2, 2, 0),
    ),
    "fewer": (
        written(filters=f"{CLASS}, {room(7.0)}"),
        "gpu/room. If enforced, 2 pods would lose nodes",
        (2, 0, 2, 0),
    ),
    "others": (
        written(filters=CLASS, scores=f"{FIRST}, {roomy()}"),
        "gpu/roomy. If enforced, 2 pods would prefer others",
        (2, 0, 0, 2),
    ),
    "some": (
        f"{OF_WEB}---\n{written(filters=f'{CLASS}, {room(7.0)}')}",
        "gpu/room, web/room. If enforced, 1 pod would be left without a node, 1 pod would lose nodes",
        (2, 1, 2, 0),
    ),
}


@pytest.mark.parametrize("command", ["simulate", "diff", "explain"])
@pytest.mark.parametrize(("policies", "want", "counts"), SUMMARIES.values(), ids=SUMMARIES)
def test_of_many_pods_they_are_counted(
    run: Run, command: str, policies: str, want: str, counts: tuple[int, ...]
) -> None:
    which = ("--pending", "-A") if command == "explain" else ()
    _, out, _ = run(policies, command, *which)
    assert f"\nIn shadow: {want}" in out
    found = json.loads(run(policies, command, *which, "-o", "json")[1])["shadow"]
    assert tuple(found[one] for one in ("pods", "unschedulable", "restricted", "reordered")) == counts


@pytest.mark.parametrize("command", ["simulate", "diff", "explain"])
@pytest.mark.parametrize(("policies", "_want", "_counts"), SUMMARIES.values(), ids=SUMMARIES)
def test_as_enforced_nothing_is_in_shadow(
    run: Run, command: str, policies: str, _want: str, _counts: tuple[int, ...]
) -> None:
    which = ("a", "-n", "ml") if command == "explain" else ()
    enforced = policies.replace("mode: Shadow, ", "").replace("  mode: Shadow\n", "")
    found = run(policies, command, *which, "--as-enforced", "-o", "json")
    assert found == run(enforced, command, *which, "-o", "json")
    assert json.loads(found[1])["shadow"] is None


def test_what_is_not_known_is_said_of_rules_in_shadow_without_a_failure(run: Run) -> None:
    data = "{name: load, prometheus: {query: load}}"
    policies = written(data=data, filters=f"{CLASS}, {{name: cool, mode: Shadow, expression: 'data.load < 0.5'}}")
    code, out, _ = run(policies, "explain", "a", "-n", "ml")
    assert code == 0
    assert "2 of 3 nodes are possible\n" in out
    assert "Note: in shadow, not evaluated: gpu/cool: it reads data.load, which is not known" in out
    assert run(policies, "explain", "a", "-n", "ml", "--as-enforced")[0] == 1


LOAD = "{name: load, prometheus: {query: load}}"
COOL = "{name: cool, mode: Shadow, expression: 'data.load < 0.5'}"
IDLE = "{name: idle, mode: Shadow, expression: '-data.load'}"
HOT = "{name: hot, expression: 'data.load > 0.5'}"
UNKNOWN: dict[str, tuple[str, list[str], list[str], str, str]] = {
    "a filter": (
        written(data=LOAD, filters=COOL),
        [],
        ["restricted", "unschedulable"],
        "It is not known what it would change for this pod, if enforced: not evaluated: gpu/cool.",
        "It is not known what that would change for 2 pods, if enforced.",
    ),
    "a score": (
        written(data=LOAD, scores=IDLE),
        [],
        ["reordered"],
        "It is not known what it would change for this pod, if enforced: not evaluated: gpu/idle.",
        "It is not known what that would change for 2 pods, if enforced.",
    ),
    "more than what is known": (
        written(data=LOAD, filters=f"{CLASS}, {COOL}, {room(7.0)}", scores=IDLE),
        ["restricted"],
        ["unschedulable", "reordered"],
        "It is not known what else it would change: not evaluated: gpu/cool, gpu/idle.",
        "If enforced, 2 pods would lose nodes, and not all is known for 2 pods",
    ),
    "not more than all nodes": (
        written(data=LOAD, filters=f"{CLASS}, {COOL}, {room(9.0)}", scores=IDLE),
        ["restricted", "unschedulable"],
        [],
        "would leave none of 2 possible nodes.",
        "If enforced, 2 pods would be left without a node",
    ),
    "what decides is not evaluated, and what is in shadow changes nothing": (
        written(data=LOAD, filters=f"{HOT}, {room(1.0)}"),
        [],
        [],
        "If enforced, what is in shadow would change nothing for this pod.",
        "If enforced, that would change nothing for 2 pods.",
    ),
    "what decides is not evaluated, and may leave only what would be lost": (
        written(data=LOAD, filters=f"{HOT}, {room(7.0)}"),
        ["restricted"],
        ["unschedulable"],
        "It is not known what else it would change: not evaluated: gpu/hot.",
        "If enforced, 2 pods would lose nodes, and not all is known for 2 pods",
    ),
}


@pytest.mark.parametrize(("policies", "effects", "unknown", "explained", "counted"), UNKNOWN.values(), ids=UNKNOWN)
def test_what_is_not_evaluated_in_shadow_is_not_known(
    run: Run, policies: str, effects: list[str], unknown: list[str], explained: str, counted: str
) -> None:
    found = json.loads(run(policies, "explain", "a", "-n", "ml", "-o", "json")[1])["shadow"]
    assert (found["effects"], found["unknown"]) == (effects, unknown)
    assert explained in run(policies, "explain", "a", "-n", "ml")[1]
    for command in ("simulate", "diff"):
        assert counted in run(policies, command)[1]
        assert json.loads(run(policies, command, "-o", "json")[1])["shadow"]["unknown"] == 2 * bool(unknown)


def test_a_rule_that_goes_to_shadow_unevaluated_may_change_each_pod(run: Run) -> None:
    after = written(data=LOAD, filters=f"{CLASS}, {COOL}")
    before = after.replace("mode: Shadow, ", "")
    code, out, _ = run(after, "diff", before=before)
    assert code == 1
    assert out.startswith("ml/a\n    it is not known what changes: not evaluated: gpu/cool\n")
    assert "\nIt is not known whether 2 of 2 pods change.\n" in out
    found = json.loads(run(after, "diff", "-o", "json", before=before)[1])
    assert [one["unknown"] for one in found["pods"]] == [["gpu/cool"], ["gpu/cool"]]


def test_a_protection_in_shadow_would_keep_a_node(run: Run) -> None:
    full = [node("n1", room={"cpu": "4"}), pod("old", on="n1", asks={"cpu": "4"}, priority=1)]
    Path("c.json").write_text(json.dumps(listed(*full, pod("a", asks={"cpu": "4"}, priority=9))))
    policies = written(preemption="@").replace(
        "preemption: [@]", "preemption: {protect: [{name: old, mode: Shadow, expression: 'victim.spec.priority == 1'}]}"
    )
    _, out, _ = run(policies, "explain", "a", "-n", "ml")
    assert "makes room" in out
    assert "gpu/old would reject it: " in out
    [found] = json.loads(run(policies, "explain", "a", "-n", "ml", "-o", "json")[1])["nodes"]
    assert [(one["rule"], one["kind"]) for one in found["shadow"]] == [("old", "Protection")]


def test_hostile_reasons_are_escaped(run: Run) -> None:
    bad = '{name: room, mode: Shadow, expression: "false", reason: "\\e[31mred\\u202e"}'
    for command in (
        ("explain", "a", "-n", "ml"),
        ("explain", "a", "-n", "ml", "-o", "wide"),
        ("explain", "a", "-n", "ml", "--node", "n1"),
    ):
        _, out, _ = run(written(filters=bad), *command)
        assert "\\x1b[31mred\\u202e" in out
        assert "\x1b" not in out
