"""Certificates of Prometheus servers, and the files that credentials come from."""

import ssl
from base64 import b64encode
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fairlead.pki.issuing import create_authority, issue_leaf
from scripted.loop import in_loop
from scripted.server import Server
from support.webhook.prometheus import GOOD, SECRET, answers, asking, failure, read, write_file
from support.webhook.tls import HOSTS, NOW, YEAR, Ground


@in_loop
async def test_a_token_is_read_again_at_each_poll(tmp_path: Path) -> None:
    async with Server(answers()) as server, asking(tmp_path, server.url, bearerToken=SECRET) as client:
        for token in ("first", "second\n"):
            write_file(tmp_path, "token", token)
            await read(client)
    assert [seen.headers["Authorization"] for seen in server.seen] == ["Bearer first", "Bearer second"]


@in_loop
async def test_a_token_of_the_service_account(tmp_path: Path) -> None:
    write_file(tmp_path, "token", "mine")
    async with Server(answers()) as server, asking(tmp_path, server.url, serviceAccount={}) as client:
        await read(client)
        assert server.seen[0].headers["Authorization"] == "Bearer mine"


@in_loop
async def test_a_user_and_a_password(tmp_path: Path) -> None:
    write_file(tmp_path, "username", "me\n")
    write_file(tmp_path, "password", "pässword: 1")
    async with Server(answers()) as server, asking(tmp_path, server.url, basicAuth={"secret": "s"}) as client:
        await read(client)
        want = b64encode("me:pässword: 1".encode()).decode()
        assert server.seen[0].headers["Authorization"] == f"Basic {want}"


@in_loop
async def test_headers_of_the_settings(tmp_path: Path) -> None:
    headers = [{"name": "X-Scope-OrgID", "value": "ops"}, {"name": "x-other", "value": "a, b"}]
    async with Server(answers()) as server, asking(tmp_path, server.url, headers=headers) as client:
        await read(client)
        seen = {name.lower(): value for name, value in server.seen[0].headers.items()}
        assert (seen["x-scope-orgid"], seen["x-other"]) == ("ops", "a, b")


@in_loop
async def test_a_redirect_takes_nothing_along(tmp_path: Path) -> None:
    write_file(tmp_path, "token", "mine")
    async with Server(answers()) as other, Server() as server:
        for status in (301, 302, 303, 307, 308):
            server.script.append(answers(b"", status, Location=f"{other.url}/api/v1/query?query=up"))
        async with asking(tmp_path, server.url, bearerToken=SECRET) as client:
            for _ in [*server.script]:
                assert f"a redirect to 127.0.0.1:{other.port}, which is not followed" in await failure(client)
        assert (len(server.seen), other.seen) == (5, [])


FILES: Mapping[str, tuple[Mapping[str, Any], Mapping[str, str], str]] = {
    "no token": (
        {"bearerToken": {"secret": "prometheus-token", "key": "my-token"}},
        {},
        (
            "/token: bearerToken: no such file or directory; it is the key my-token of the Secret prometheus-token:"
            " create it, or correct the settings"
        ),
    ),
    "an empty token": ({"bearerToken": SECRET}, {"token": "\n"}, "/token: bearerToken: is empty; it is the key k of"),
    "two tokens": (
        {"bearerToken": SECRET},
        {"token": "a\nX-Injected: b"},
        "/token: bearerToken: has more than one line; it must be one line of text",
    ),
    "no token of ours": (
        {"serviceAccount": {}},
        {},
        "/token: serviceAccount: no such file or directory; the chart mounts a token of its ServiceAccount here",
    ),
    "no password": (
        {"basicAuth": {"secret": "login"}},
        {"username": "me"},
        "/password: basicAuth: no such file or directory; it is the key password of the Secret login: create it, or",
    ),
    "a user with a colon": (
        {"basicAuth": {"secret": "login"}},
        {"username": "me:you", "password": "x"},
        "/username: basicAuth: has a ':'; no user name may have one",
    ),
    "no authority": (
        {"url": "https://127.0.0.1:1", "ca": {"configMap": "service-ca", "key": "service-ca.crt"}},
        {},
        "/ca.crt: ca: no such file or directory; it is the key service-ca.crt of the ConfigMap service-ca: create it,",
    ),
    "no PEM": (
        {"url": "https://127.0.0.1:1", "ca": SECRET},
        {"ca.crt": "MIIB"},
        "/ca.crt: ca: holds no certificate; it must be PEM: -----BEGIN CERTIFICATE-----",
    ),
    "no key": (
        {"url": "https://127.0.0.1:1", "clientCertificate": {"secret": "client"}},
        {"tls.crt": "x"},
        "/tls.key: clientCertificate: no such file or directory; it is the key tls.key of the Secret client: create it",
    ),
    "no certificate": (
        {"url": "https://127.0.0.1:1", "clientCertificate": {"secret": "client"}},
        {"tls.crt": "x", "tls.key": "y"},
        "/tls.crt: clientCertificate: the certificate and the key do not match: ",
    ),
}


@pytest.mark.parametrize("case", FILES)
@in_loop
async def test_files_that_cannot_be_used_are_named_with_where_they_come_from(case: str, tmp_path: Path) -> None:
    fields, files, want = FILES[case]
    for name, content in files.items():
        write_file(tmp_path, name, content)
    async with Server(answers()) as server, asking(tmp_path, **{"url": server.url, **fields}) as client:
        said = await failure(client)
        assert said.startswith(f"{tmp_path}/prometheus/default{want}")
        assert server.seen == []


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    """Certificates, with the authority where the server's settings have it."""
    made = Ground(tmp_path)
    write_file(tmp_path, "ca.crt", made.ca.certificate)
    return made


def serving(ground: Ground, hosts: list[str], *, demands: bool = False, life: timedelta = YEAR) -> ssl.SSLContext:
    """Context of a server with a certificate for these hosts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued = NOW - timedelta(days=30) if life < YEAR else NOW
    context.load_cert_chain(*ground.write("s", issue_leaf(ground.ca, "s", "server", issued, life, hosts)))
    if demands:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=ground.ca.certificate.decode())
    return context


@in_loop
async def test_a_server_with_the_right_certificate(ground: Ground, tmp_path: Path) -> None:
    async with Server(answers(), serving(ground, HOSTS)) as server, asking(tmp_path, server.url, ca=SECRET) as client:
        assert (await read(client)).values == {"a": 0.5}


@in_loop
async def test_a_name_in_the_certificate_that_is_not_the_host(ground: Ground, tmp_path: Path) -> None:
    async with Server(answers(), serving(ground, ["other.example.com"])) as server:
        async with asking(tmp_path, server.url, ca=SECRET) as client:
            said = await failure(client)
        assert said.startswith(f"{server.url} is not trusted: IP address mismatch, certificate is not valid for")
        assert said.endswith("; see ca and serverName of the server in the settings")
        async with asking(tmp_path, server.url, ca=SECRET, serverName="other.example.com") as client:
            assert (await read(client)).values == {"a": 0.5}
        async with asking(tmp_path, server.url, ca=SECRET, serverName="another.example.com") as client:
            assert "Hostname mismatch, certificate is not valid for 'another.example.com'" in await failure(client)


@in_loop
async def test_a_certificate_of_nobody_we_know(ground: Ground, tmp_path: Path) -> None:
    write_file(tmp_path, "token", "mine")
    async with Server(answers(), serving(ground, HOSTS)) as server:
        async with asking(tmp_path, server.url, bearerToken=SECRET) as client:  # the authorities of the system
            assert "is not trusted: unable to get local issuer certificate" in await failure(client)
        write_file(tmp_path, "ca.crt", create_authority("ca", NOW, YEAR).certificate)
        async with asking(tmp_path, server.url, ca=SECRET, bearerToken=SECRET) as client:
            assert f"{server.url} is not trusted: " in await failure(client)
        assert server.seen == []


@in_loop
async def test_a_certificate_that_has_expired(ground: Ground, tmp_path: Path) -> None:
    tls = serving(ground, HOSTS, life=timedelta(days=2))
    async with Server(answers(), tls) as server, asking(tmp_path, server.url, ca=SECRET) as client:
        assert f"{server.url} is not trusted: certificate has expired" in await failure(client)


@in_loop
async def test_an_authority_is_read_again_at_each_poll(ground: Ground, tmp_path: Path) -> None:
    other = create_authority("other", NOW, YEAR)
    async with Server(answers(), serving(ground, HOSTS)) as server, asking(tmp_path, server.url, ca=SECRET) as client:
        write_file(tmp_path, "ca.crt", other.certificate)
        assert "is not trusted" in await failure(client)
        write_file(tmp_path, "ca.crt", other.certificate + ground.ca.certificate)
        assert (await read(client)).values == {"a": 0.5}
        write_file(tmp_path, "ca.crt", other.certificate)
        assert "is not trusted" in await failure(client)  # no connection of before is used


@in_loop
async def test_a_client_certificate_is_shown_and_read_again(ground: Ground, tmp_path: Path) -> None:
    names = list[object]()

    async def who(request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        names.append(dict(one[0] for one in request.transport.get_extra_info("peercert")["subject"])["commonName"])
        return web.Response(body=GOOD)

    fields = {"ca": SECRET, "clientCertificate": {"secret": "client"}}
    async with Server(who, serving(ground, HOSTS, demands=True)) as server:
        async with asking(tmp_path, server.url, **fields) as client:
            for name in ("first", "second"):
                pair = issue_leaf(ground.ca, name, "client", NOW, YEAR)
                write_file(tmp_path, "tls.crt", pair.certificate)
                write_file(tmp_path, "tls.key", pair.key)
                await read(client)
        async with asking(tmp_path, server.url, ca=SECRET) as client:
            said = await failure(client)
    assert names == ["first", "second"]
    assert said.startswith(f"the connection to {server.url} was lost: ")


@in_loop
async def test_no_tls_where_there_should_be(ground: Ground, tmp_path: Path) -> None:
    async with Server(answers()) as server:
        url = f"https://127.0.0.1:{server.port}"
        async with asking(tmp_path, url, ca=SECRET) as client:
            assert (await failure(client)).startswith(f"{url} does not complete the TLS handshake: ")


@in_loop
async def test_a_connection_is_used_again(ground: Ground, tmp_path: Path) -> None:
    peers = set[object]()

    async def who(request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        peers.add(request.transport.get_extra_info("peername"))
        return web.Response(body=GOOD)

    async with Server(who, serving(ground, HOSTS)) as server, asking(tmp_path, server.url, ca=SECRET) as client:
        for _ in range(3):
            await read(client)
    assert len(peers) == 1
