"""Measured values that `--data` gives to simulations."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from fairlead.cli.console.exits import CommandError
from fairlead.cli.inputs.data_file import file_values, read_data_file
from fairlead.cli.main import main
from fairlead.policy.nodes.polls import PrometheusPoll
from fairlead.simulation.visibility import judgeable
from support.policy import NOW, policy
from support.simulation.snapshot import listed, node, pod

QUERY: Final = {"prometheus": {"query": "load"}}
POLL: Final = PrometheusPoll("default", "load", "instance", None, 15)


def test_the_values_of_a_file_are_those_of_its_polls(tmp_path: Path) -> None:
    file = tmp_path / "d.yaml"
    file.write_text("p: {load: {at: '2027-01-15T12:00:00Z', values: {a: 0.4}}}")
    values = file_values([str(file)], [policy(data={"load": QUERY})])
    found = read_data_file(values, ["a", "b"], NOW)
    assert found.readings[POLL].values == {"a": 0.4}
    assert found.readings[POLL].times == {"a": 1800014400 * 10**9}
    assert found.notes == [f"{file}: p.load has no value for b"]
    notes = read_data_file(values, ["A"], NOW).notes
    assert notes == [
        f"{file}: p.load has no value for A",
        f"{file}: p.load has values for a, and no node has such a name",
    ]
    assert file_values([], []) == []


WRONG: Final = {
    "q: {}": "q: there is no such policy; there are p",
    "p: {laod: {}}": "p.laod: the policy has no such entry of data; did you mean load?",
    "p: {load: {value: 1}}": 'p.load: has the unknown field "value": write "at" and "values" only',
    "p: {load: {}}": 'p.load: has no "values": write a document such as',
    "p: {load: {values: [1]}}": "p.load.values: is not a map from names",
    "p: {load: {values: {a: x}}}": "is not a number; write one such as 0.4, and leave out nodes without a value",
    "p: {load: {values: {a: 1, a: 2}}}": "'a' is already set in line 1: remove one of them",
    "p: {load: {values: {a: !!bool x}}}": "'x' does not match its tag: remove the tag",
    "p: {load: {values: {a: .inf}}}": "p.load.values.a: is not a number",
    "p: {load: {at: noon, values: {}}}": 'p.load: has an unreadable "at": write the time of the values in RFC 3339',
    "p: {own: {values: {}}}": "p.own: is read from the node itself",
    "[]": "is not a map from names",
}


@pytest.mark.parametrize(("text", "want"), WRONG.items())
def test_an_error_names_the_field(tmp_path: Path, text: str, want: str) -> None:
    (file := tmp_path / "d.yaml").write_text(text)
    data: dict[str, Any] = {"load": QUERY, "own": {"nodeLabel": {"key": "example.com/own"}}}
    with pytest.raises(CommandError, match=r"d\.yaml: ") as raised:
        file_values([str(file)], [policy(data=data)])
    assert want in str(raised.value)


def test_a_rule_whose_values_are_not_given_is_left_out() -> None:
    one = policy(data={"load": QUERY}, filters={"idle": "data.load < 0.5", "any": "true"}, scores={"s": "data.load"})
    [kept], left_out = judgeable([one], [])
    assert [rule.name for rule in kept.filters] == ["any"]
    assert not kept.scores
    cure = "give it with --prometheus default=URL or --data FILE"
    assert [rule.describe() for rule in left_out] == [
        f"p/{name}: it reads data.load, which is not known: {cure}" for name in ("idle", "s")
    ]
    assert [rule.filters for rule in left_out] == [True, False]
    assert judgeable([one], [], [POLL]) == ([one], [])


def test_all_three_commands_take_the_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = {"data": [{"name": "load", **QUERY}], "filters": [{"name": "f", "expression": "data.load < 0.5"}]}
    kind = {"apiVersion": "fairlead.dev/v1alpha1", "kind": "SchedulerExtenderPolicy"}
    written = {"p": {**kind, "metadata": {"name": "p"}, "spec": rules}, "now": listed(node("a"), node("b"), pod())}
    written["d"] = {"p": {"load": {"values": {"a": 0.4, "b": 0.9}}}}
    for name, one in written.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(one))
    policies, now, values = (str(tmp_path / f"{name}.json") for name in written)

    def run(*arguments: str) -> Any:
        main([*arguments, "--snapshot", now, "-o", "json"])
        return json.loads(capsys.readouterr().out)

    simulate, explain = (
        ("simulate", "--pods", now, "--policies", policies),
        ("explain", "pod/p", "--policies", policies),
    )
    [found] = run(*simulate, "--data", values)["pods"]
    assert [one["passed"] for one in found["nodes"]] == [True, False]
    blind = run(*simulate)
    assert [one["passed"] for one in blind["pods"][0]["nodes"]] == [None, None]
    assert blind["pods"][0]["preferred"] == []
    [skipped] = [note for note in blind["notes"] if note.startswith("not evaluated: p/f: it reads data.load, which")]
    assert skipped.endswith("is not known: give it with --prometheus default=URL or --data FILE")
    assert [one["passed"] for one in run(*explain, "--data", values)["nodes"]] == [True, False]
    loose = (tmp_path / "p.json").read_text().replace("0.5", "0.95").replace("'", "")
    (tmp_path / "after.json").write_text(loose)
    diff = ("diff", "--from", policies, "--to", str(tmp_path / "after.json"), "--pods", now)
    [moved] = run(*diff, "--data", values)["pods"]
    assert [one["node"] for one in moved["gained"]] == ["b"]
