"""Decisions of a replica: what can be read of them, and what of another version cannot."""

import json

import pytest

from fairlead.cli.inputs.replica_decisions import _parsed
from fairlead.cli.main import main

HEAD = {"replica": "r-0", "since": "2027-01-15T08:00:00.000Z"}
LINE = {
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


def test_what_it_knows_and_what_a_newer_version_adds() -> None:
    read = _parsed("r-0", _body(HEAD, LINE, LINE | {"more": 1}))
    assert (read.unread, read.since, len(read.decisions)) == ("", HEAD["since"], 2)


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
