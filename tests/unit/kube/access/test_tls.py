"""Whom we believe, what we show, and by which way we go."""

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from cryptography import x509

from fairlead.kube.access import kubeconfig
from fairlead.kube.access.login import Login
from fairlead.kube.errors import AccessError, ClusterError, UnreachableError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import PODS
from scripted.clock import Wound
from scripted.loop import in_loop
from scripted.tls_server import access, data, pair_as_data, pair_as_files, serving
from support.webhook.tls import signed_by_another
from testbed.certs import Authority, Pair

Object = dict[str, Any]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "pki")


async def name(access: Login) -> str:
    async with Client(access, clock=Wound().clock, deadline_s=0.2) as client:
        return str(await client.get(PODS, msgspec.json.decode))


@pytest.mark.parametrize("user", [pair_as_data, pair_as_files])
@in_loop
async def test_a_certificate_is_shown(authority: Authority, tmp_path: Path, user: Callable[[Pair], Object]) -> None:
    cluster = {"certificate-authority-data": data(authority.certificate)}
    pair = authority.issue("me", "me")
    async with serving(authority, "127.0.0.1") as server:
        reached = access(tmp_path, server.url, cluster, user(pair))
        assert await name(reached) == "me"
        assert "PRIVATE" not in repr(reached) + repr(await reached.connection()), "nor to whoever prints it"
        assert await name(access(tmp_path, server.url, {"certificate-authority": "pki/ca.crt"})) == ""


@in_loop
async def test_a_certificate_that_was_replaced_is_shown_without_a_new_start(
    authority: Authority, tmp_path: Path
) -> None:
    first, second = authority.issue("first", "first"), authority.issue("second", "second")
    cluster = {"certificate-authority": str(authority.certificate)}
    async with serving(authority, "127.0.0.1") as server:
        reached = access(tmp_path, server.url, cluster, pair_as_files(first))
        assert await name(reached) == "first"
        for path, by in ((first.key, second.key), (first.certificate, second.certificate)):
            path.unlink()
            path.write_bytes(by.read_bytes())
        assert await name(reached) == "second"


@in_loop
async def test_an_authority_that_was_replaced_is_believed_without_a_new_start(tmp_path: Path) -> None:
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
    file = tmp_path / "ca.crt"
    file.write_bytes(old.certificate.read_bytes())
    comment = "# Főtanúsítvány\n".encode()
    async with serving(new, "127.0.0.1") as server:
        reached = access(tmp_path, server.url, {"certificate-authority": "ca.crt"})
        with pytest.raises(UnreachableError, match=r"is not trusted: .*CERTIFICATE_VERIFY_FAILED"):
            await name(reached)
        file.unlink()
        file.write_bytes(comment + new.certificate.read_bytes())
        assert await name(reached) == ""


BELIEVED: dict[str, tuple[Object, bool]] = {
    "the authority, another name": ({"certificate-authority": "pki/ca.crt"}, False),
    "the authority, the name that is expected": (
        {"certificate-authority": "pki/ca.crt", "tls-server-name": "api.example"},
        True,
    ),
    "the authority, not the name that is expected": (
        {"certificate-authority": "pki/ca.crt", "tls-server-name": "other.example"},
        False,
    ),
    "the authority, and not who has signed it": (
        {"certificate-authority": "pki/below.crt", "tls-server-name": "api.example"},
        True,
    ),
    "the machine's authorities": ({"tls-server-name": "api.example"}, False),
    "anybody": ({"insecure-skip-tls-verify": True}, True),
}


@pytest.mark.parametrize(("cluster", "want"), BELIEVED.values(), ids=BELIEVED)
@in_loop
async def test_who_is_believed(authority: Authority, tmp_path: Path, cluster: Object, want: bool) -> None:
    (tmp_path / "pki" / "below.crt").write_bytes(signed_by_another(authority.certificate.read_bytes()))
    async with serving(authority, "api.example") as server:
        asked = name(access(tmp_path, server.url, cluster))
        if want:
            assert await asked == ""
        else:
            with pytest.raises(UnreachableError, match="is not trusted") as error:
                await asked
            assert error.value.not_sent


@in_loop
async def test_an_authority_without_a_key_identifier_is_trusted_on_every_python(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python 3.13 made its default contexts strict, and then such an authority counts for nothing."""
    pem = x509.load_pem_x509_certificate(authority.certificate.read_bytes())
    with pytest.raises(x509.ExtensionNotFound):
        pem.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    default = ssl.create_default_context

    def strict(*args: Any, **options: Any) -> ssl.SSLContext:
        context = default(*args, **options)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    async with serving(authority, "127.0.0.1") as server:
        monkeypatch.setattr(ssl, "create_default_context", strict)
        login = access(tmp_path, server.url, {"certificate-authority": "pki/ca.crt"})
        flags = (await login.connection()).api_client().rest_client.ssl_context.verify_flags
        assert not flags & ssl.VERIFY_X509_STRICT
        assert await name(login) == ""
        unchanged = strict(cafile=str(authority.certificate))
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientConnectorCertificateError, match="Missing Authority Key Identifier"):
                await session.get(server.url, ssl=unchanged)


NO_GOOD = {
    "no certificate in the authority": (
        {"certificate-authority-data": base64.b64encode(b"x").decode()},
        False,
        "config: clusters[x].cluster.certificate-authority-data: holds no certificate; it must be PEM",
    ),
    "nothing but what stands between certificates": (
        {"certificate-authority-data": base64.b64encode("ő".encode()).decode()},
        False,
        "config: clusters[x].cluster.certificate-authority-data: holds no certificate; it must be PEM",
    ),
    "a key of another": ({}, True, "config: users[x].user: the certificate and the key do not match: "),
}


@pytest.mark.parametrize(("cluster", "mixed", "want"), NO_GOOD.values(), ids=NO_GOOD)
@in_loop
async def test_keys_that_are_no_good(
    authority: Authority, tmp_path: Path, cluster: Object, mixed: bool, want: str
) -> None:
    one, other = authority.issue("one", "one"), authority.issue("other", "other")
    user = pair_as_files(Pair(one.certificate, other.key)) if mixed else {}
    with pytest.raises(AccessError) as error:
        await name(access(tmp_path, "https://127.0.0.1:1", cluster, user))
    assert str(error.value).replace(f"{tmp_path}/", "").startswith(want)


@in_loop
async def test_a_plugin_may_say_who_we_are_with_a_certificate(authority: Authority, tmp_path: Path) -> None:
    pair = authority.issue("me", "me")
    status = {"clientCertificateData": pair.certificate.read_text(), "clientKeyData": pair.key.read_text()}
    version = "client.authentication.k8s.io/v1"
    answer = msgspec.json.encode({"kind": "ExecCredential", "apiVersion": version, "status": status})
    (tmp_path / "answer").write_bytes(answer)
    command = {"command": "cat", "args": [str(tmp_path / "answer")]}
    user = {"exec": command | {"apiVersion": version, "interactiveMode": "Never"}}
    async with serving(authority, "127.0.0.1") as server:
        assert await name(access(tmp_path, server.url, {"certificate-authority": "pki/ca.crt"}, user)) == "me"


@asynccontextmanager
async def proxy(*, refuse: bool = False) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A proxy that tunnels, and remembers what it was asked for."""
    asked: list[bytes] = []
    going: set[asyncio.Task[None]] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while chunk := await reader.read(65536):
                writer.write(chunk)
                await writer.drain()
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.split(b"\r\n")[0])
        if refuse:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            writer.close()
            return
        host, _, port = head.split()[1].decode().rpartition(":")
        onwards = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        going.update({asyncio.create_task(pump(reader, onwards[1])), asyncio.create_task(pump(onwards[0], writer))})

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    await asyncio.gather(*going, return_exceptions=True)


@in_loop
async def test_the_proxy_of_a_kubeconfig_is_used(authority: Authority, tmp_path: Path) -> None:
    async with serving(authority, "127.0.0.1") as server, proxy() as (url, asked):
        cluster = {"certificate-authority": "pki/ca.crt", "proxy-url": url}
        pair = authority.issue("me", "me")
        assert await name(access(tmp_path, server.url, cluster, pair_as_files(pair))) == "me"
        assert asked == [f"CONNECT 127.0.0.1:{server.port} HTTP/1.1".encode()]


@in_loop
async def test_a_proxy_that_refuses_is_told_of(authority: Authority, tmp_path: Path) -> None:
    async with proxy(refuse=True) as (url, _):
        cluster = {"certificate-authority": "pki/ca.crt", "proxy-url": url}
        with pytest.raises(UnreachableError, match="407") as error:
            await name(access(tmp_path, "https://127.0.0.1:1", cluster))
        assert error.value.not_sent


@in_loop
async def test_a_proxy_of_the_environment_is_not(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:1")
        monkeypatch.setenv(variable.lower(), "http://127.0.0.1:1")
    async with serving(authority, "127.0.0.1") as server:
        assert await name(access(tmp_path, server.url, {"certificate-authority": "pki/ca.crt"})) == ""


SECRET = {
    "a token": {"token": "s3cret"},
    "a password": {"username": "u", "password": "s3cret"},
    "a key": {"client-certificate-data": "AAAA", "client-key-data": base64.b64encode(b"s3cret").decode()},
    "a plugin": {
        "exec": {
            "command": "x",
            "apiVersion": "client.authentication.k8s.io/v1",
            "interactiveMode": "Never",
            "args": ["s3cret"],
            "env": [{"name": "A", "value": "s3cret"}],
        }
    },
}


@pytest.mark.parametrize("user", SECRET.values(), ids=SECRET)
def test_nothing_shows_a_secret_that_is_not_asked_for_it(tmp_path: Path, user: Object) -> None:
    got = access(tmp_path, "https://x", {}, user)
    shown = [repr(got), repr(vars(got)), repr(kubeconfig.choose([tmp_path / "config"]))]
    if "exec" not in user and "client-key-data" not in user:
        connection = asyncio.run(got.connection())
        assert connection.authorization
        shown.append(repr(connection))
    assert [text for text in shown if "s3cret" in text or "czNjcmV0" in text] == []


def test_all_errors_are_of_one_family() -> None:
    assert issubclass(AccessError, ClusterError)
    assert issubclass(UnreachableError, ClusterError)
