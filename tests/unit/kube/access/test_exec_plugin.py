"""Programs that say who we are: what they are told, what they may answer, and when they are asked."""

import asyncio
import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fairlead.kube.access import exec_plugin
from fairlead.kube.access.credentials import Credentials, ExecCredentials
from fairlead.kube.access.exec_plugin import Plugin, plugin
from fairlead.kube.access.kubeconfig import Cluster, ConfigLocation, Exec, Extension, Variable
from fairlead.kube.access.secret_files import InlineSecret
from fairlead.kube.errors import AccessError
from scripted.loop import in_loop

V1 = "client.authentication.k8s.io/v1"
V1BETA1 = "client.authentication.k8s.io/v1beta1"
Make = Callable[..., Plugin]


def credential(version: str = V1, /, **status: object) -> str:
    return json.dumps({"kind": "ExecCredential", "apiVersion": version, "status": status})


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A plugin that is this shell script, and leaves in `log` what it was told."""

    def make(script: str, *, version: str = V1, cluster: Cluster | None = None, **fields: Any) -> Plugin:
        file = tmp_path / "bin" / "me"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f'#!/bin/sh\necho "$@ $GIVEN $KUBERNETES_EXEC_INFO" >> {tmp_path}/log\n{script}\n')
        file.chmod(0o755)
        mode = fields.pop("interactive_mode", "Never")
        wanted = Exec(command="bin/me", api_version=version, interactive_mode=mode, **fields)
        authority = InlineSecret("f", "ca", b"PEM")
        return plugin(wanted, ConfigLocation("config", "users[me].user", tmp_path), cluster or Cluster(), authority)

    return make


def told(tmp_path: Path) -> list[str]:
    return (tmp_path / "log").read_text().splitlines()


def test_a_program_is_told_what_it_asked_for(make: Make, tmp_path: Path) -> None:
    cluster = Cluster(
        server="https://x", extensions=[Extension("client.authentication.k8s.io/exec", {"a": 1}), Extension("other", 2)]
    )
    told_cluster = {"server": "https://x", "certificate-authority-data": "UEVN", "config": {"a": 1}}
    answers = f"echo '{credential(token='t')}'"
    asking = make(
        answers, cluster=cluster, args=["get", "token"], env=[Variable("GIVEN", "v")], provide_cluster_info=True
    )
    assert asyncio.run(asking.ask()).token == "t"
    (line,) = told(tmp_path)
    given, info = line.split(" {", 1)
    assert given == "get token v"
    assert json.loads("{" + info) == {
        "kind": "ExecCredential",
        "apiVersion": V1,
        "spec": {"interactive": False, "cluster": told_cluster},
    }


def test_of_the_cluster_it_is_told_nothing_that_it_did_not_ask_for(make: Make, tmp_path: Path) -> None:
    asyncio.run(make(f"echo '{credential(V1BETA1, token='t')}'", version=V1BETA1, interactive_mode="").ask())
    assert told(tmp_path)[0].endswith('"spec":{"interactive":false}}')


def test_there_is_nobody_to_ask(make: Make) -> None:
    answers = f"read line && exit 1; echo '{credential(token='t')}'"
    assert asyncio.run(make(answers, interactive_mode="IfAvailable").ask()).token == "t"


WRONG = {
    "fails": ("echo 'log in first' >&2; exit 3", "/bin/me failed with 3: log in first; run it by hand"),
    "says nothing": ("true", "/bin/me did not print JSON; it must print an ExecCredential of " + V1),
    "prints a secret that is not JSON": ("echo s3cret", "/bin/me did not print JSON; it must"),
    "prints another version": (
        f"echo '{credential(V1BETA1, token='s3cret')}'",
        "printed a ExecCredential of '" + V1BETA1,
    ),
    "prints another kind": ('echo \'{"kind": "Pod"}\'', "/bin/me printed a Pod of ''; it must"),
    "prints no status": (
        f'echo \'{{"kind":"ExecCredential","apiVersion":"{V1}"}}\'',
        "neither a token nor a certificate",
    ),
    "prints a wrong type": (f"echo '{credential(token=5)}'", "printed something else: Expected `str"),
    "prints two lines for a token": (
        f"printf %s '{credential(token='s3' + chr(10) + 'cret')}'",
        "printed a token with more than one line; it must",
    ),
    "prints half a pair": (f"echo '{credential(clientKeyData='s3cret')}'", "a certificate or a key without the other"),
}


@pytest.mark.parametrize(("script", "want"), WRONG.values(), ids=WRONG)
def test_a_program_that(make: Make, script: str, want: str) -> None:
    with pytest.raises(AccessError) as error:
        asyncio.run(make(script).ask())
    assert str(error.value).startswith("config: users[me].user.exec: ")
    assert want in str(error.value)
    assert "s3cret" not in str(error.value)


def test_a_program_that_is_not_there_is_told_how_to_be_had(make: Make, tmp_path: Path) -> None:
    asking = make("true", install_hint="brew install me\n")
    shutil.rmtree(tmp_path / "bin")
    with pytest.raises(AccessError, match=r"/bin/me: no such file or directory; brew install me$"):
        asyncio.run(asking.ask())


def test_a_program_that_does_not_end_is_ended_with_what_it_has_started(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exec_plugin, "_WITHIN_S", 0.2)
    monkeypatch.setattr(exec_plugin, "_ENDED_S", 3600)

    @in_loop
    async def ask() -> None:
        await make("sleep 600; true").ask()

    with pytest.raises(AccessError, match=r"/bin/me did not end within 0.2 s; run it by hand$"):
        ask()


def _counting(tmp_path: Path, **status: str) -> str:
    """Answers with the number of the call."""
    return f"""echo '{credential(token="N", **status)}' | sed "s/N/$(wc -l < {tmp_path}/log | tr -d ' ')/" """


async def _shown(credentials: Credentials) -> str:
    return (await credentials.current()).authorization


@in_loop
async def test_an_answer_is_kept_until_it_runs_out(make: Make, tmp_path: Path) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    time = [start]
    asked = ExecCredentials(make(_counting(tmp_path, expirationTimestamp="2026-01-01T01:00:00Z")), now=lambda: time[0])
    assert [await _shown(asked), await _shown(asked)] == ["Bearer 1"] * 2
    time[0] = start + timedelta(minutes=59)
    assert await _shown(asked) == "Bearer 1"
    time[0] = start + timedelta(minutes=60)
    assert await _shown(asked) == "Bearer 2"


@in_loop
async def test_an_answer_without_an_end_is_kept_until_it_is_refused(make: Make, tmp_path: Path) -> None:
    asked = ExecCredentials(make(_counting(tmp_path)))
    first = await asked.current()
    assert asked.renew(first)
    second = await asked.current()
    assert asked.renew(first), "somebody else was refused with the old one, and is late to say so"
    assert [first.authorization, second.authorization, await _shown(asked)] == ["Bearer 1", "Bearer 2", "Bearer 2"]


@in_loop
async def test_all_who_need_an_answer_wait_for_the_same_run(make: Make, tmp_path: Path) -> None:
    asked = ExecCredentials(make(_counting(tmp_path)))
    assert {*await asyncio.gather(*(_shown(asked) for _ in range(20)))} == {"Bearer 1"}
    assert len(told(tmp_path)) == 1


@in_loop
async def test_who_cannot_wait_does_not_end_the_run_of_the_others(make: Make, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    asked = ExecCredentials(make(f"read line < {gate}; {_counting(tmp_path)}"))
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
    asked = ExecCredentials(make(f"test -e {tmp_path}/in || exit 1; {_counting(tmp_path)}"))
    failed = await asyncio.gather(*(asked.current() for _ in range(3)), return_exceptions=True)
    assert [type(one) for one in failed] == [AccessError] * 3
    (tmp_path / "in").touch()
    assert await _shown(asked) == "Bearer 2"
