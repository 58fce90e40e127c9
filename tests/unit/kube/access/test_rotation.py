"""Credentials and authorities that are replaced while a client uses them."""

import asyncio
import base64
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from fairlead.kube.access.login import Login, log_in
from fairlead.kube.errors import RequestError, UntrustedServerError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import PODS
from scripted.clock import Wound
from scripted.loop import in_loop
from scripted.server import Step
from scripted.steps import refuse
from scripted.tls_server import access, caller, pair_as_data, pair_as_files, serving
from testbed.certs import Authority, Pair

BINDING = PODS.named("default", "web-1", "binding")
Object = dict[str, Any]
Renewed = Callable[[Path, Authority], tuple[Object, Callable[[], None]]]
"""Returns a user of a kubeconfig, and what renews its credentials."""
V1 = "client.authentication.k8s.io/v1"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "pki")


def in_pod(folder: Path, authority: Authority, port: int) -> Login:
    folder.mkdir()
    (folder / "token").write_text("t")
    (folder / "ca.crt").write_bytes(authority.certificate.read_bytes())
    environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port)}
    return log_in(environment=environment, service_account=folder)


@in_loop
async def test_an_authority_of_the_pod_that_was_replaced_is_trusted_by_the_same_request(tmp_path: Path) -> None:
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
    async with serving(new, "127.0.0.1") as server:
        login = in_pod(tmp_path / "account", old, server.port)
        async with Client(login, clock=Wound().clock) as client:
            with pytest.raises(UntrustedServerError, match="is not trusted") as error:
                await client.post(BINDING, {}, within_s=5)
            assert error.value.not_sent
            (tmp_path / "account" / "ca.crt").write_bytes(new.certificate.read_bytes())
            await client.post(BINDING, {}, within_s=5)
            (tmp_path / "account" / "ca.crt").write_bytes(old.certificate.read_bytes())
            await client.get(BINDING, msgspec.json.decode)
        assert [seen.method for seen in server.seen] == ["POST", "GET"]


def plugin(folder: Path) -> Object:
    """A plugin that prints `answer`."""
    command = {"command": "cat", "args": [str(folder / "answer")]}
    return {"exec": command | {"apiVersion": V1, "interactiveMode": "Never"}}


def answers(folder: Path, pair: Pair | None = None, **status: str) -> None:
    if pair is not None:
        status |= {"clientCertificateData": pair.certificate.read_text(), "clientKeyData": pair.key.read_text()}
    credential = {"kind": "ExecCredential", "apiVersion": V1, "status": status}
    (folder / "answer").write_bytes(msgspec.json.encode(credential))


@in_loop
async def test_a_certificate_of_a_plugin_is_renewed_when_it_expires(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = [datetime(2026, 1, 1, tzinfo=UTC)]
    cluster = {"certificate-authority": "pki/ca.crt"}
    answers(tmp_path, authority.issue("first", "first"), expirationTimestamp="2026-01-01T01:00:00Z")
    async with serving(authority, "127.0.0.1") as server:
        login = access(tmp_path, server.url, cluster, plugin(tmp_path))
        monkeypatch.setattr(login, "_now", lambda: time[0])
        async with Client(login) as client:
            names = [await client.get(PODS, msgspec.json.decode)]
            answers(tmp_path, authority.issue("second", "second"), expirationTimestamp="2026-01-01T02:00:00Z")
            for minutes in (59, 2):
                time[0] += timedelta(minutes=minutes)
                names.append(await client.get(PODS, msgspec.json.decode))
    assert names == ["first", "first", "second"], "it is presented on a connection of its own"


def _files(folder: Path, authority: Authority) -> tuple[Object, Callable[[], None]]:
    first, second = authority.issue("first", "first"), authority.issue("second", "second")

    def replace() -> None:
        for before, after in ((first.key, second.key), (first.certificate, second.certificate)):
            before.write_bytes(after.read_bytes())

    return pair_as_files(first), replace


def _token_file(folder: Path, authority: Authority) -> tuple[Object, Callable[[], None]]:
    (folder / "token").write_text("first\n")

    def replace() -> None:
        (folder / "token").write_text("second\n")

    return {"tokenFile": "token"}, replace


def _plugin_token(folder: Path, authority: Authority) -> tuple[Object, Callable[[], None]]:
    answers(folder, token="first")
    return plugin(folder), lambda: answers(folder, token="second")


def _plugin_pair(folder: Path, authority: Authority) -> tuple[Object, Callable[[], None]]:
    answers(folder, authority.issue("first", "first"))
    return plugin(folder), lambda: answers(folder, authority.issue("second", "second"))


def _presented(request: web.BaseRequest) -> str:
    return caller(request) or request.headers.get("Authorization", "").removeprefix("Bearer ")


def admits(name: str) -> Step:
    """A server that knows one name only."""

    async def step(request: web.BaseRequest) -> web.StreamResponse:
        presented = _presented(request)
        return web.json_response(presented) if presented == name else await refuse(401, "Unauthorized")(request)

    return step


@pytest.mark.parametrize("renewed", [_files, _token_file, _plugin_token, _plugin_pair])
@in_loop
async def test_credentials_that_were_renewed_are_presented_after_a_401(
    authority: Authority, tmp_path: Path, renewed: Renewed
) -> None:
    cluster = {"certificate-authority": "pki/ca.crt"}
    async with serving(authority, "127.0.0.1", handler=admits("first")) as server:
        user, replace = renewed(tmp_path, authority)
        async with Client(access(tmp_path, server.url, cluster, user), clock=Wound().clock) as client:
            await client.post(BINDING, {"a": 1}, within_s=5)
            replace()
            server.handler = admits("second")
            assert await client.post(BINDING, {"a": 1}, within_s=5) == b'"second"'
            assert len(server.seen) == 3, "the one that was refused is sent again, and once"
            server.handler = admits("third")
            with pytest.raises(RequestError, match="401"):
                await client.post(BINDING, {}, within_s=5)


@in_loop
async def test_no_answer_is_lost_when_a_certificate_is_replaced(authority: Authority, tmp_path: Path) -> None:
    release, arrived = asyncio.Event(), asyncio.Event()
    first, second = authority.issue("first", "first"), authority.issue("second", "second")

    async def slow(request: web.BaseRequest) -> web.StreamResponse:
        name = caller(request)
        response = web.StreamResponse()
        await response.prepare(request)
        if name == "first":
            arrived.set()
            await release.wait()
        await response.write(f'"{name}"\n'.encode())
        return response

    async with serving(authority, "127.0.0.1", handler=slow) as server:
        login = access(tmp_path, server.url, {"certificate-authority": "pki/ca.crt"}, pair_as_files(first))
        before = await login.connection()
        async with Client(login) as client:
            asked = asyncio.create_task(client.post(BINDING, {}, within_s=5))
            await arrived.wait()
            arrived.clear()
            lines = client.watch(PODS, {})
            watched = asyncio.create_task(anext(lines))
            await arrived.wait()
            for path, new in ((first.key, second.key), (first.certificate, second.certificate)):
                path.write_bytes(new.read_bytes())
            assert login.renew(before)
            assert await client.get(PODS, msgspec.json.decode) == "second"
            release.set()
            async with aclosing(lines):
                assert (await asked, await watched) == (b'"first"\n', b'"first"')
            assert await client.get(PODS, msgspec.json.decode) == "second", "the old connections are closed alone"


_INLINE = """
import asyncio, os, sys
from pathlib import Path
from stat import S_IMODE
from fairlead.kube.access.login import from_kubeconfig
async def main():
    login = from_kubeconfig([Path(sys.argv[1])])
    for _ in range(3):
        connection = await login.connection()
        connection.api_client()
        login.renew(connection)
    for file in Path(os.environ["TMPDIR"]).iterdir():
        print(oct(S_IMODE(file.stat().st_mode)))
asyncio.run(main())
"""


def test_keys_of_a_kubeconfig_are_in_files_that_only_the_user_reads_and_that_go_with_the_process(
    authority: Authority, tmp_path: Path
) -> None:
    (folder := tmp_path / "temporary").mkdir()
    cluster = {"certificate-authority-data": base64.b64encode(authority.certificate.read_bytes()).decode()}
    access(tmp_path, "https://x", cluster, pair_as_data(authority.issue("me", "me")))
    command = [sys.executable, "-c", _INLINE, str(tmp_path / "config")]
    environment = {**os.environ, "TMPDIR": str(folder)}
    shown = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    assert shown.split() == ["0o600"] * 3, "one for the authority, the certificate and the key, however often read"
    assert [*folder.iterdir()] == []
