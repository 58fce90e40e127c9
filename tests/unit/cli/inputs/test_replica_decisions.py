"""Decisions of a replica: what can be read of them, and what of another version cannot."""

import json
from typing import Any, Final

import pytest

from fairlead.cli.commands import decisions
from fairlead.cli.inputs.replica_decisions import ReplicaDecisions, _parsed
from fairlead.cli.main import main

HEAD = {"replica": "r-0", "since": "2027-01-15T08:00:00.000Z"}
LINE: Final[dict[str, Any]] = {
    "time": "2027-01-15T08:00:00.000Z",
    "scheduler": "fairlead",
    "pod": {"namespace": "ml", "name": "x", "uid": "u"},
    "policies": [{"name": "p", "generation": "1"}],
    "result": "passed",
    "candidates": 1,
    "passed": 1,
    "rules": [],
    "error": None,
    "best": [],
    "node": None,
    "waits": False,
    "attempts": 1,
    "effects": [],
    "milliseconds": 0.5,
}


def _body(*lines: object) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in lines)


@pytest.mark.parametrize(
    "newer",
    [
        {"more": 1},
        {"pod": LINE["pod"] | {"more": [1]}},
        {"policies": [{"name": "p", "generation": "1", "more": None}]},
        {"rules": [{"policy": "p", "rule": "f", "reason": "r", "nodes": 1, "examples": ["a"], "more": {}}]},
        {"best": [{"node": "a", "points": 1, "more": 1}]},
        {"effects": [{"policy": "p", "effects": ["restricted"], "rules": [], "more": 1}]},
    ],
)
def test_what_it_knows_and_what_a_newer_version_adds(newer: dict[str, object]) -> None:
    read = _parsed("r-0", _body(HEAD, LINE, LINE | newer))
    assert (read.unread, read.unreadable, read.since) == ("", 0, HEAD["since"])
    assert [*read.decisions] == [LINE, LINE | newer]


def test_records_of_another_form_are_counted_and_the_others_are_kept() -> None:
    read = _parsed("r-0", _body(HEAD, LINE | {"passed": "none"}, LINE, "x"))
    assert (read.unread, read.unreadable, read.since, [*read.decisions]) == ("", 2, HEAD["since"], [LINE])


@pytest.mark.parametrize(
    "lines", [(), ({},), (None,), (HEAD, None), (HEAD, {}), (HEAD, LINE | {"pod": {}, "rules": [{}]}), (HEAD, "x")]
)
def test_an_answer_of_another_form_is_unread_and_names_its_replica(lines: tuple[object, ...]) -> None:
    read = _parsed("r-0", _body(*lines))
    assert (read.replica, read.decisions) == ("r-0", ())
    assert read.unread.startswith("its answer cannot be read: ")


def test_a_wrong_duration_or_pod_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in ((["--since", "abc"], "--since 'abc' is not a duration"), (["deploy/x"], "is no pod")):
        assert main(["decisions", *arguments]) == 2
        assert said in capsys.readouterr().err


def test_the_command_says_how_many_records_are_left_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read(_: object) -> list[ReplicaDecisions]:
        return [_parsed("r-0", _body(HEAD, LINE, {}))]

    monkeypatch.setattr(decisions, "_read", read)
    assert main(["decisions"]) == 1
    said = capsys.readouterr()
    assert said.err == "fairlead decisions: r-0: 1 record cannot be read by this version\n"
    assert "ml/x" in said.out
