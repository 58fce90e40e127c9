import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.engine import runc

_LACKING = "Name:\trunc\nCapBnd:\t000001fffeffffff\n"
_FULL = "Name:\trunc\nCapBnd:\t000001ffffffffff\n"


@pytest.mark.parametrize(("status", "wanted"), [(_LACKING, True), (_FULL, False)], ids=["lacking", "full"])
def test_a_capability_is_lacking_when_it_is_not_in_the_bounding_set(status: str, *, wanted: bool) -> None:
    assert runc.is_lacking(status) is wanted


_FILES = {
    "create": (["--log", "l", "create", "--bundle", "/b", "--pid-file", "p", "id"], Path("/b/config.json")),
    "create, briefly": (["create", "-b", "/b", "id"], Path("/b/config.json")),
    "run here": (["run", "id"], Path("config.json")),
    "exec": (["--root", "r", "exec", "--process", "/p.json", "--detach", "id"], Path("/p.json")),
    "exec, in one word": (["exec", "--process=/p.json", "id"], Path("/p.json")),
    "exec of a command": (["exec", "id", "sh"], None),
    "start": (["start", "id"], None),
    "delete": (["delete", "--force", "id"], None),
}


@pytest.mark.parametrize(("arguments", "wanted"), _FILES.values(), ids=_FILES)
def test_what_gives_capabilities_is_found_in_the_arguments(arguments: list[str], wanted: Path | None) -> None:
    assert runc.file_of(arguments) == wanted


_CAPABILITIES = {"bounding": ["CAP_CHOWN", "CAP_SYS_RESOURCE"], "effective": ["CAP_SYS_RESOURCE"]}
_DOCUMENTS = {
    "a container": {"process": {"args": ["sh"], "capabilities": _CAPABILITIES}},
    "a process": {"args": ["sh"], "capabilities": _CAPABILITIES},
}


@pytest.mark.parametrize("document", _DOCUMENTS.values(), ids=_DOCUMENTS)
def test_only_the_lacking_capability_is_taken_out(document: dict[str, object]) -> None:
    kept = json.loads(runc.without(json.dumps(document)))
    assert kept.get("process", kept) == {"args": ["sh"], "capabilities": {"bounding": ["CAP_CHOWN"], "effective": []}}


def test_what_has_no_capabilities_stays_as_it_is() -> None:
    assert json.loads(runc.without('{"process": {"args": ["sh"]}}')) == {"process": {"args": ["sh"]}}


def test_it_becomes_runc_with_the_same_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text(json.dumps(_DOCUMENTS["a container"]))
    called: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(os, "execv", lambda *call: called.append(call))
    monkeypatch.setattr(runc, "is_lacking", lambda _: True)
    runc.main("/usr/sbin/runc", ["create", "--bundle", str(tmp_path), "id"])
    assert called == [("/usr/sbin/runc", ["/usr/sbin/runc", "create", "--bundle", str(tmp_path), "id"])]
    assert runc.LACKING not in (tmp_path / "config.json").read_text()


def test_it_needs_nothing_but_the_interpreter() -> None:
    command = [sys.executable, "-I", "-S", runc.__file__, "/bin/echo", "start", "id"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "start id\n"
