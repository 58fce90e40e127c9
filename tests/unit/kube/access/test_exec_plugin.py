"""Programs that say who we are: what they are told, what they may answer, and when they are asked."""

import asyncio
import json
import os
import pty
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairlead.kube.access import login
from fairlead.kube.access.login import Login, from_kubeconfig
from fairlead.kube.errors import AccessError
from scripted.loop import in_loop

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"
Make = Callable[..., Login]


def credential(version: str = V1, /, **status: object) -> str:
    return json.dumps({"kind": "ExecCredential", "apiVersion": version, "status": status})


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A login with a plugin that is this shell script, and leaves in `log` what it was told."""

    def make(script: str, *, cluster: dict[str, Any] | None = None, **fields: Any) -> Login:
        file = tmp_path / "bin" / "me"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f'#!/bin/sh\necho "$@ $GIVEN $KUBERNETES_EXEC_INFO" >> {tmp_path}/log\n{script}\n')
        file.chmod(0o755)
        plugin = {"command": "bin/me", "apiVersion": V1, "interactiveMode": "Never"} | fields
        document = {
            "clusters": [{"name": "x", "cluster": {"server": "https://x"} | (cluster or {})}],
            "users": [{"name": "me", "user": {"exec": plugin}}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "me"}}],
            "current-context": "x",
        }
        config = tmp_path / "config"
        config.write_text(yaml.safe_dump(document))
        return from_kubeconfig([config])

    return make


async def _shown(asked: Login) -> str:
    return (await asked.connection()).authorization


def told(tmp_path: Path) -> list[str]:
    return (tmp_path / "log").read_text().splitlines()


def test_a_program_is_told_what_it_asked_for(make: Make, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("PEM")
    extensions = [{"name": "client.authentication.k8s.io/exec", "extension": {"a": 1}}]
    asking = make(
        f"echo '{credential(token='t')}'",
        cluster={"certificate-authority": "ca.crt", "extensions": extensions},
        args=["get", "token"],
        env=[{"name": "GIVEN", "value": "v"}],
        provideClusterInfo=True,
    )
    assert asyncio.run(_shown(asking)) == "Bearer t"
    (line,) = told(tmp_path)
    given, info = line.split(" {", 1)
    assert given == "get token v"
    spec = json.loads("{" + info)["spec"]
    assert spec["interactive"] is False
    shown = spec["cluster"]
    assert (shown["server"], shown["certificate-authority-data"], shown["config"]) == ("https://x", "UEVN", {"a": 1})


def test_of_the_cluster_it_is_told_nothing_that_it_did_not_ask_for(make: Make, tmp_path: Path) -> None:
    asking = make(f"echo '{credential(V1BETA1, token='t')}'", apiVersion=V1BETA1, interactiveMode="")
    assert asyncio.run(_shown(asking)) == "Bearer t"
    assert json.loads(told(tmp_path)[0])["spec"] == {"interactive": False}


WRONG = {
    "fails": ("echo 'log in first' >&2; exit 3", "/bin/me: returned 3. log in first; run it by hand"),
    "says nothing": ("true", "/bin/me: failed to decode"),
    "prints a secret that is not JSON": ("echo s3cret", "/bin/me: failed to decode"),
    "prints another version": (f"echo '{credential(V1BETA1, token='s3cret')}'", "does not match " + V1),
    "prints no status": (f'echo \'{{"kind":"ExecCredential","apiVersion":"{V1}"}}\'', "missing key 'status'"),
    "prints a wrong type": (f"echo '{credential(token=5)}'", "printed something else; it must print"),
    "prints a list": ("echo '[1]'", "malformed response"),
    "prints two lines for a token": (
        f"printf %s '{credential(token='s3' + chr(10) + 'cret')}'",
        "printed a token with more than one line; it must",
    ),
    "prints nothing of use": (f"echo '{credential()}'", "neither a token nor a certificate"),
    "prints half a pair": (f"echo '{credential(clientKeyData='s3cret')}'", "a certificate or a key without the other"),
    "prints no time": (f"echo '{credential(token='t', expirationTimestamp='soon')}'", "that is no time"),
}


@pytest.mark.parametrize(("script", "want"), WRONG.values(), ids=WRONG)
def test_a_program_that_fails_is_an_error_and_nobody_goes_on_without(make: Make, script: str, want: str) -> None:
    with pytest.raises(AccessError) as error:
        asyncio.run(_shown(make(script)))
    assert "config: users[me].user.exec: " in str(error.value)
    assert want in str(error.value)
    assert "s3cret" not in str(error.value)


def test_a_program_that_is_not_there_is_told_how_to_be_had(make: Make, tmp_path: Path) -> None:
    asking = make("true", installHint="brew install me\n")
    shutil.rmtree(tmp_path / "bin")
    with pytest.raises(AccessError, match=r"/bin/me: no such file or directory; brew install me$"):
        asyncio.run(_shown(asking))


def test_a_program_that_must_ask_needs_a_terminal(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    with Path(os.devnull).open() as nothing:
        for stdin in (nothing, None):
            monkeypatch.setattr(sys, "stdin", stdin)
            with pytest.raises(AccessError, match="interactiveMode: is Always, and there is no terminal"):
                asyncio.run(_shown(make("true", interactiveMode="Always")))


_AT_A_TERMINAL = """
import asyncio, sys
from pathlib import Path
from fairlead.kube.access.login import from_kubeconfig
async def main():
    print((await from_kubeconfig([Path(sys.argv[1])]).connection()).authorization)
asyncio.run(main())
"""


@pytest.mark.parametrize("mode", ["Always", "IfAvailable"])
def test_a_program_may_ask_at_a_terminal_though_the_output_goes_elsewhere(
    make: Make, tmp_path: Path, mode: str
) -> None:
    answers = credential(token="N")
    make(f"echo 'enter code' >&2; read line; echo '{answers}' | sed s/N/$line/", interactiveMode=mode)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", _AT_A_TERMINAL, str(tmp_path / "config")]
    with subprocess.Popen(command, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE, text=True) as process:
        os.close(theirs)
        shown = b""
        while b"enter code" not in shown:
            shown += os.read(ours, 1024)
        os.write(ours, b"1234\n")
        output, _ = process.communicate(timeout=60)
        with suppress(OSError):
            os.read(ours, 1024)
        os.close(ours)
    assert output == "Bearer 1234\n"


def _counting(tmp_path: Path, **status: str) -> str:
    """Answers with the number of the call."""
    return f"""echo '{credential(token="N", **status)}' | sed "s/N/$(wc -l < {tmp_path}/log | tr -d ' ')/" """


@in_loop
async def test_an_answer_is_kept_until_it_runs_out(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    asked = make(_counting(tmp_path, expirationTimestamp="2026-01-01T01:00:00Z"))
    time = [start]
    monkeypatch.setattr(asked, "_now", lambda: time[0])
    assert [await _shown(asked), await _shown(asked)] == ["Bearer 1"] * 2
    time[0] = start + timedelta(minutes=59)
    assert await _shown(asked) == "Bearer 1"
    time[0] = start + timedelta(minutes=60)
    assert await _shown(asked) == "Bearer 2"


@in_loop
async def test_an_answer_without_an_end_is_kept_until_it_is_refused(make: Make, tmp_path: Path) -> None:
    asked = make(_counting(tmp_path))
    first = await asked.connection()
    assert asked.renew(first)
    second = await asked.connection()
    assert asked.renew(first), "somebody else was refused with the old one, and is late to say so"
    assert [first.authorization, second.authorization, await _shown(asked)] == ["Bearer 1", "Bearer 2", "Bearer 2"]


@in_loop
async def test_all_who_need_an_answer_wait_for_the_same_run(make: Make, tmp_path: Path) -> None:
    asked = make(_counting(tmp_path))
    assert {*await asyncio.gather(*(_shown(asked) for _ in range(20)))} == {"Bearer 1"}
    assert len(told(tmp_path)) == 1


@in_loop
async def test_who_cannot_wait_does_not_end_the_run_of_the_others(make: Make, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    asked = make(f"read line < {gate}; {_counting(tmp_path)}")
    impatient = asyncio.create_task(_shown(asked))
    while not (tmp_path / "log").exists():
        await asyncio.sleep(0.01)
    impatient.cancel()
    await asyncio.wait({impatient})
    patient = asyncio.create_task(_shown(asked))
    await asyncio.to_thread(gate.write_text, "go\n")
    assert await patient == "Bearer 1"
    assert len(told(tmp_path)) == 1


@in_loop
async def test_a_program_that_failed_is_asked_again(make: Make, tmp_path: Path) -> None:
    asked = make(f"test -e {tmp_path}/in || exit 1; {_counting(tmp_path)}")
    failed = await asyncio.gather(*(asked.connection() for _ in range(3)), return_exceptions=True)
    assert [type(one) for one in failed] == [AccessError] * 3
    (tmp_path / "in").touch()
    assert await _shown(asked) == "Bearer 2"


def test_the_library_does_not_renew_beside_us(make: Make) -> None:
    connection = asyncio.run(make(f"echo '{credential(token='t')}'").connection())
    assert connection.configuration.refresh_api_key_hook is None
    assert login.utc_now() < connection.expires
