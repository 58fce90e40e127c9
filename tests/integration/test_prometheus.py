"""A real Prometheus, asked as the operator asks it."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import urllib3

from fairlead.api.parse import parse_params
from fairlead.pki.issuing import issue_leaf
from fairlead.policy.nodes.polls import PollError, PrometheusPoll, Reading
from fairlead.render.prometheus_settings import PrometheusServer
from fairlead.webhook.data_sources.node_names import NodeNames
from fairlead.webhook.data_sources.prometheus_client import PrometheusClient
from support.webhook.exporter import exporting
from support.webhook.polled import nodes
from support.webhook.tls import HOSTS, NOW, YEAR, Ground
from testbed import cache, prometheus
from testbed.api import wait_for

TEXT = """
load{node="a"} 0.25
load{node="b"} 0.75
broken{node="a"} NaN
zones{node="a",zone="x"} 1
zones{node="a",zone="y"} 2
zones{node="b",zone="x"} 3
"""
AGE_S = 60
PASSWORD = "hunter2"
HASH = "$2b$04$6VOMO/omAm2MssYVNo49gupQ/cIj3132dl74KifsQTTLIPa5aU0Iy"
NODES = NodeNames(nodes({"a": {"InternalIP": ["127.0.0.1"]}, "b": {"InternalIP": ["10.0.0.2"]}}))
POLL = PrometheusPoll("default", "load", "node", None, 15)


def asked(folder: Path, poll: PrometheusPoll, **fields: Any) -> Reading:
    async def ask() -> Reading:
        async with PrometheusClient(folder, time.time_ns) as client:
            client.set_servers([parse_params({"name": "default", **fields}, PrometheusServer)])
            return await client.read(poll, AGE_S, NODES)

    return asyncio.run(ask())


@dataclass
class Scene:
    """A server, and an exporter that can be stopped."""

    folder: Path
    url: str
    exporter: ExitStack = field(default_factory=ExitStack)

    def read(self, query: str = "load", label: str = "node", times: str | None = None) -> Reading:
        """Ask it."""
        return asked(self.folder, PrometheusPoll("default", query, label, times, 15), url=self.url)

    def failure(self, query: str) -> str:
        """Ask it for what it does not answer."""
        with pytest.raises(PollError) as failed:
            self.read(query)
        return str(failed.value)


@pytest.fixture(scope="module")
def scene(prometheus_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("prometheus")
    with ExitStack() as exporter:
        port = exporter.enter_context(exporting(TEXT))
        with prometheus.running(folder, [f"127.0.0.1:{port}"]) as server:
            made = Scene(folder, f"http://127.0.0.1:{server.port}", exporter)
            wait_for("values", lambda: made.read().values == {"a": 0.25, "b": 0.75})
            yield made


def test_values_appear_with_the_moment_they_were_asked_for(scene: Scene) -> None:
    before = time.time_ns()
    found = scene.read()
    assert (found.values, found.note) == ({"a": 0.25, "b": 0.75}, "")
    assert isinstance(found.times, int)
    assert before <= found.times <= time.time_ns()


def test_a_node_is_named_by_the_address_that_is_scraped(scene: Scene) -> None:
    assert scene.read("up", "instance").values == {"a": 1.0}


def test_a_long_query_gives_the_same(scene: Scene) -> None:
    assert scene.read(" or ".join(["load"] * 400)).values == {"a": 0.25, "b": 0.75}


def test_a_time_query_gives_the_moment_of_the_scrape(scene: Scene) -> None:
    before = time.time_ns()
    found = scene.read(times="timestamp(load)")
    assert isinstance(found.times, dict)
    assert found.values == {"a": 0.25, "b": 0.75}
    assert all(before - 60 * 10**9 < at <= time.time_ns() for at in found.times.values())


def test_what_is_no_number_and_what_has_several(scene: Scene) -> None:
    assert scene.read("broken").no_number == {"a"}
    assert scene.read("load / 0").no_number == {"a", "b"}
    assert scene.read("zones").several == {"a"}
    assert scene.read("zones").values == {"b": 3.0}
    assert scene.read("max by (node) (zones)").values == {"a": 2.0, "b": 3.0}


def test_who_names_no_node_is_told_what_does(scene: Scene) -> None:
    found = scene.read("up")
    assert found.values == {}
    assert found.note.startswith("of 1 series none names a node by label node; they have instance (127.0.0.1:")
    assert found.note.endswith("), job: set nodeLabel to instance")
    assert scene.read("sum(load)").note.endswith("in the query by node, such as max by (node) (...)")
    assert scene.read("nothing").note == "the query gives no series"


@pytest.mark.parametrize(
    ("query", "kind"), [("scalar(load)", "scalar"), ("1", "scalar"), ('"x"', "string"), ("load[1m]", "matrix")]
)
def test_what_is_no_vector_is_a_failed_poll(query: str, kind: str, scene: Scene) -> None:
    assert scene.failure(query).startswith(f"the query gives a {kind}, not a vector: write one that gives one value")


def test_the_servers_own_message_is_shown(scene: Scene) -> None:
    said = scene.failure("sum(")
    assert said.startswith(f'{scene.url} answers 400 Bad Request: bad_data: invalid parameter "query": ')
    assert said.endswith("unclosed left parenthesis")
    said = scene.failure("load * on(node) zones")
    assert said.startswith(f"{scene.url} answers 422 Unprocessable Entity: execution: ")
    assert "found duplicate series for the match group" in said


def test_the_server_gives_up_by_itself_when_it_was_told_so(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.webhook.data_sources.prometheus_client._SERVER_PART", 0.001)
    said = scene.failure("count_over_time(vector(1)[5d:1s]) or load")  # it looks at the time between the two
    assert said.startswith(f"{scene.url} answers 503 Service Unavailable: timeout: query timed out")


def test_a_path_that_is_not_the_servers(scene: Scene) -> None:
    with pytest.raises(
        PollError, match="answers 404 Not Found: there is no API of Prometheus; the url in the settings"
    ):
        asked(scene.folder, POLL, url=f"{scene.url}/elsewhere")


def test_the_node_of_an_exporter_that_is_killed_is_not_named(prometheus_program: Path, tmp_path: Path) -> None:
    with ExitStack() as exporter, exporting('load{node="b"} 0.5\n') as other:
        port = exporter.enter_context(exporting('load{node="a"} 0.97\n'))
        with prometheus.running(tmp_path, [f"127.0.0.1:{port}", f"127.0.0.1:{other}"]) as server:
            scene = Scene(tmp_path, f"http://127.0.0.1:{server.port}")
            wait_for("both", lambda: scene.read().values == {"a": 0.97, "b": 0.5})
            exporter.close()
            killed = time.time_ns()
            found = wait_for("one to be absent", lambda: one if (one := scene.read()).values == {"b": 0.5} else None)
            assert (found.several, found.no_number, found.note) == (frozenset(), frozenset(), "")
            # a range still has its last value, and a time query says how old that is
            last = ("last_over_time(load[5m])", "node", "max_over_time(timestamp(load)[5m:1s])")
            both = wait_for("both again", lambda: one if len((one := scene.read(*last)).values) == 2 else None)
            assert both.values == {"a": 0.97, "b": 0.5}
            assert _times(both)["a"] <= killed
            wait_for("a newer one of b", lambda: _times(scene.read(*last))["b"] > killed)
            assert _times(scene.read(*last))["a"] == _times(both)["a"]


def test_what_is_older_than_the_greatest_age_is_left_out_by_servers_that_can(
    prometheus_program: Path, tmp_path: Path
) -> None:
    """The exporter has timestamps of its own, so nothing else says that the value is old."""
    sampled = time.time_ns() - 2 * AGE_S * 10**9
    with (
        exporting(f'load{{node="a"}} 0.97 {sampled // 10**6}\nload{{node="b"}} 0.5\n') as port,
        prometheus.running(tmp_path, [f"127.0.0.1:{port}"]) as server,
    ):
        scene = Scene(tmp_path, f"http://127.0.0.1:{server.port}")
        both = {"a": 0.97, "b": 0.5}
        wait_for("both", lambda: scene.read("last_over_time(load[10m])").values == both)
        build = urllib3.request("GET", f"{scene.url}/api/v1/status/buildinfo").json()["data"]
        honours = tuple(map(int, build["version"].split("+")[0].split(".")[:2])) >= (2, 43)
        assert scene.read().values == ({"b": 0.5} if honours else both)
        if not honours:  # which is why the guide asks for a time query
            assert _times(scene.read(times="timestamp(load)"))["a"] == pytest.approx(sampled, abs=10**7)


def _times(found: Reading) -> dict[str, int]:
    assert isinstance(found.times, dict)
    return found.times


def test_tls_a_password_and_a_client_certificate(prometheus_program: Path, tmp_path: Path) -> None:
    ground, files = Ground(tmp_path), tmp_path / "prometheus" / "default"
    files.mkdir(parents=True)
    ground.write("server", issue_leaf(ground.ca, "prometheus", "server", NOW, YEAR, HOSTS))
    pair = issue_leaf(ground.ca, "fairlead", "client", NOW, YEAR)
    (tmp_path / "ca.crt").write_bytes(ground.ca.certificate)
    contents = {"ca.crt": ground.ca.certificate, "tls.crt": pair.certificate, "tls.key": pair.key}
    for name, content in (contents | {"username": b"me", "password": PASSWORD.encode()}).items():
        (files / name).write_bytes(content)
    web = {
        "tls_server_config": {
            "cert_file": str(tmp_path / "server.crt"),
            "key_file": str(tmp_path / "server.key"),
            "client_ca_file": str(tmp_path / "ca.crt"),
            "client_auth_type": "RequireAndVerifyClientCert",
        },
        "basic_auth_users": {"me": HASH},
    }
    secret = {"secret": "s"}
    fields: dict[str, Any] = {
        "ca": {"secret": "s", "key": "k"},
        "basicAuth": secret,
        "clientCertificate": secret,
    }
    with prometheus.running(tmp_path, [], web=web) as server:
        url, poll = f"https://127.0.0.1:{server.port}", replace(POLL, query="vector(1)")
        assert asked(tmp_path, poll, url=url, **fields).note.startswith("of 1 series none names a node by label node;")
        without = {name: value for name, value in fields.items() if name != "clientCertificate"}
        with pytest.raises(PollError, match=f"the connection to {url} was lost: "):
            asked(tmp_path, poll, url=url, **without)
        cache.write(files / "password", "another")
        with pytest.raises(PollError, match="answers 401 Unauthorized: the credentials are missing or refused; check"):
            asked(tmp_path, poll, url=url, **fields)
        cache.write(files / "ca.crt", pair.certificate)
        with pytest.raises(PollError, match=f"{url} is not trusted: "):
            asked(tmp_path, poll, url=url, **fields)
