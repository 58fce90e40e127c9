"""The whole of `fairlead serve` but for its process: from files and an API server to answers."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter_ns
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fairlead.kube.errors import AccessError, RequestError
from fairlead.kube.resources import NODES
from fairlead.kube.watch import reflector, verify
from fairlead.pki.issuing import issue_leaf
from fairlead.policy.evaluate.matching import policy_set
from fairlead.process.settings import Address, AllowedCallers, Settings
from fairlead.process.standalone import ListedCallers, StandaloneReplica
from fairlead.process.tasks import listen
from fairlead.webhook.extender import state as world
from scripted.loop import in_loop
from support.policy import SECOND, pod, policy
from support.process.standalone import BAD, GOOD, OTHER, POLICY, World, node, running
from support.webhook import body
from support.webhook.tls import HOSTS, NOW, YEAR

BIND = json.dumps({"PodName": "x", "PodNamespace": "ml", "PodUID": "u-x", "Node": "a"}).encode()


def failing(error: Exception) -> Callable[..., Awaitable[None]]:
    async def fails(*_: object) -> None:
        raise error

    return fails


def kept(there: World) -> list[str]:
    return [one["data"]["metadata"]["name"] for one in there.objects["controllerrevisions"]]


async def names(connection: Any) -> Any:
    return json.loads((await connection.call("/filter", body(["a", "b"]))).body)["NodeNames"]


@in_loop
async def test_it_becomes_ready_and_answers_by_the_files(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        await one.ready()
        connection = await one.connect()
        assert await names(connection) == ["a", "b"]
        assert "serves" in await one.served(GOOD)
        assert await names(connection) == ["a"]
        await one.served(OTHER)
        assert await names(connection) == ["b"]
        status, text = await one.probe("/readyz")
        assert (status, "[+] policies: generation " in text, text.splitlines()[-1]) == (200, True, "ready")
        assert await one.probe("/livez") == (200, "ok\n")
        assert json.loads((await connection.call("/bind", BIND)).body) == {"Error": ""}
        assert [made["target"]["name"] for made in one.apiserver.bindings] == ["a"]
        looker = await one.connect("looker")
        assert [(await looker.call(path, body(["a"]))).status for path in ("/filter", "/bind")] == [200, 403]
        (one.folder / "p.yaml").unlink()
        await one.app.policies.reload()
        await one.until(lambda: not one.core.policies.states)


def test_how_long_a_caller_waits_for_binds_follows_from_the_policies_that_serve() -> None:
    reloader: Any = SimpleNamespace(schedulers=frozenset({"gpu"}), state=None)
    known = ListedCallers({"any": None, "one": {"web": frozenset({"bind"})}}, reloader)

    def waits() -> list[float | None]:
        found = [known.caller(name, "bind") for name in ("any", "one")]
        return [None if one is None else one.bind_timeout_s for one in found]

    assert waits() == [None, None]
    gang = {"name": "g", "group": "pod.metadata.name", "size": "2", "holdFor": "45s"}
    reloader.state = SimpleNamespace(policies=policy_set([policy(schedulerName="gpu", binding={"gang": [gang]})]))
    assert waits() == [65, None]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"filters": {"f": "true"}}, [False, False, False]),
        ({"filters": {"f": "true"}, "failurePolicy": "Ignore"}, [True, True, False]),
        (
            {"preemption": {"protect": [{"name": "n", "expression": "true"}]}, "failurePolicy": "Ignore"},
            [True, True, False],
        ),
        ({"scores": {"s": "1.0"}, "failurePolicy": "Ignore"}, [False, False, False]),
        ({"filters": {"f": "true"}, "failurePolicy": "Ignore", "mode": "Shadow"}, [False, False, False]),
    ],
)
def test_a_caller_also_calls_the_entry_ignore_while_policies_serve_that_need_it(
    spec: dict[str, Any], expected: list[bool]
) -> None:
    state = SimpleNamespace(policies=policy_set([policy(schedulerName="gpu", **spec)]))
    reloader: Any = SimpleNamespace(schedulers=frozenset({"gpu"}), state=state)
    filtering: AllowedCallers = {name: frozenset({"filter"}) for name in ("gpu", "web")}
    listed = {"any": None, "gpu": {"gpu": filtering["gpu"]}, "web": {"web": filtering["web"]}}
    known = ListedCallers(listed, reloader)

    def ignore_entries() -> list[bool]:
        found = [known.caller(name, "filter") for name in listed]
        return [one is not None and one.ignore_entry for one in found]

    assert ignore_entries() == expected
    reloader.state = None
    assert ignore_entries() == [False] * 3


@in_loop
async def test_what_does_not_compile_or_cannot_be_read_never_replaces_what_serves(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        await one.ready()
        connection = await one.connect()
        await one.served(GOOD)
        assert "does not compile, generation" in await one.served(BAD)
        assert await names(connection) == ["a"]
        (one.folder / "p.yaml").write_text("{")
        await one.app.policies.reload()
        assert await names(connection) == ["a"]
        assert "p.yaml: is not YAML" in (await one.probe("/readyz"))[1]
        await one.until(lambda: len(one.apiserver.objects.get("controllerrevisions", ())) == 1)
    kept = {"controllerrevisions": one.apiserver.objects["controllerrevisions"], "nodes": [node("a"), node("b")]}
    for content in ("{", None):
        async with running(tmp_path, World({**kept})) as again:  # a restart
            await again.ready()
            assert await names(await again.connect()) == ["a"]
            if content is None:
                continue
            again.write(BAD)
    async with running(tmp_path, World({"nodes": [node("a"), node("b")]})) as bare:
        await bare.ready()
        assert await names(await bare.connect()) == [], "nothing was kept: its pods are refused"


@in_loop
async def test_what_was_kept_of_policies_that_went_meanwhile_goes_too(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        await one.ready()
        await one.served(GOOD)
        await one.until(lambda: len(one.apiserver.objects.get("controllerrevisions", ())) == 1)
    there, twice = one.apiserver, POLICY.replace("name: p", "name: q") % GOOD
    # while a file cannot be read, nobody knows what went; what is there twice is known
    for contents, want in ((["{"], 1), ([twice, twice], 0)):
        (tmp_path / "policies" / "p.yaml").unlink()
        for name, content in zip(("p.yaml", "q.yaml"), contents, strict=False):
            (tmp_path / "policies" / name).write_text(content)
        async with running(tmp_path, there) as again:
            await again.ready()
            assert again.app.core.policies.states.keys() == ({"p"} if want else {"q"})
            if not want:
                await again.until(lambda: kept(there) == ["q"])
        assert len(kept(there)) == 1


@in_loop
async def test_a_new_file_takes_no_room_from_a_policy_that_serves_whatever_its_name(tmp_path: Path) -> None:
    there: World | None = None
    for is_again in (False, True):
        async with running(tmp_path, there) as one:
            one.core.policies.set_max_policies(1)
            await one.ready()
            if not is_again:
                assert "serves" in await one.served(GOOD)
                await one.until(lambda: len(one.apiserver.objects.get("controllerrevisions", ())) == 1)
                (one.folder / "a.yaml").write_text(POLICY.replace("name: p", "name: a") % GOOD)
                await one.app.policies.reload()
            await one.until(lambda: one.core.policies.states.keys() == {"a", "p"})
            states = one.core.policies.states
            assert (states["p"].reason, states["a"].reason) == ("Compiled", "NothingServes")
            assert kept(one.apiserver) == ["p"]
            there = one.apiserver


@in_loop
async def test_where_nothing_can_be_kept_that_is_said(tmp_path: Path) -> None:
    async with running(tmp_path, World({}, {"controllerrevisions"})) as one:
        await one.ready()
        status, text = await one.probe("/readyz")
        assert (status, "kept in memory only: list controllerrevisions" in text) == (200, True)


@in_loop
async def test_it_is_not_ready_before_everything_is_listed(tmp_path: Path) -> None:
    async with running(tmp_path, World({}, {"nodes"})) as one:
        await one.until(lambda: bool(one.core.mirror_feed.reflectors["nodes"].state.last_error))
        status, text = await one.probe("/readyz")
        assert status == 503
        assert "[-] nodes: list nodes: 403 Forbidden: no rights" in text
        assert (await (await one.connect()).call("/filter", body(["a"]))).status == 503


@in_loop
async def test_what_is_held_otherwise_than_it_is_is_counted_told_and_healed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(verify, "_APART_S", 0)
    async with running(tmp_path) as one:
        await one.ready()
        connection = await one.connect()
        assert json.loads((await connection.call("/filter", body(["c"]))).body)["NodeNames"] == ["c"], "nobody filters"
        await one.served("true")
        one.apiserver.objects["nodes"] = [node("a"), node("c")]  # and no watch has said so
        asked = body(["a", "b", "c"])
        assert json.loads((await connection.call("/filter", asked)).body)["NodeNames"] == ["a", "b"]
        for _ in range(2):
            await one.app.replica.verify()
            await one.until(lambda: one.core.mirror.nodes.slots.keys() == {"a", "c"})
        reply = json.loads((await connection.call("/filter", asked)).body)
        assert reply["FailedAndUnresolvableNodes"] == {"b": "node is not known yet"}
        metrics = (await one.probe("/metrics"))[1]
        assert 'fairlead_mirror_differences_total{kind="nodes"} 2' in metrics
        assert 'fairlead_mirror_differences_total{kind="pods"} 0' in metrics
        assert 'fairlead_webhook_unknown_nodes_total{scheduler="fairlead"} 2' in metrics
        (line,) = [record for record in caplog.records if record.getMessage() == "reflector.differs"]
        assert vars(line)["objects"] == [("", "b"), ("", "c")]
        caplog.set_level(logging.INFO, "fairlead.process.replica")
        refused = RequestError("list", NODES, "no rights", status=403)
        for error in (refused, AccessError("config", "exec", "the program has failed", "run it by hand")):
            monkeypatch.setattr(reflector, "differences", failing(error))
            await one.app.replica.verify()
            assert str(error) in [vars(record).get("error") for record in caplog.records]


@in_loop
async def test_certificates_are_followed_and_bad_ones_are_not(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        await one.ready()
        kept = await one.connect()
        before = one.app.replica.certificates.tls.expires["server"]
        one.ground.write("server", issue_leaf(one.ground.ca, "fairlead", "server", NOW, YEAR / 2, HOSTS))
        await one.app.replica.refresh_certificates()
        assert one.app.replica.certificates.tls.expires["server"] < before
        (one.ground.folder / "server.key").write_bytes(b"nonsense")
        await one.app.replica.refresh_certificates()
        assert "cannot be used together" in (await one.probe("/readyz"))[1]
        assert await names(kept) == await names(await one.connect()) == ["a", "b"]


@in_loop
async def test_rules_that_cannot_decide_are_told(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        await one.ready()
        await one.served("node.metadata.labels['gpu'] == 'x'")
        assert await names(await one.connect()) == []
        one.core.add_rule_errors()
        assert "[+] rule: p/f: 2 errors, last: " in (await one.probe("/readyz"))[1]
        families = text_string_to_metric_families((await one.probe("/metrics"))[1])
        found = {(each.name, *each.labels.values()): each.value for family in families for each in family.samples}
        assert found["fairlead_rule_errors_total", "p", "f"] == 2
        assert found["fairlead_policy_state", "p", "Compiled"] == 1
        assert found["fairlead_mirror_objects", "nodes"] == 2
        assert found["fairlead_certificate_expiration_timestamp_seconds", "server"] > NOW.timestamp()
        assert {"fairlead_build_info", "fairlead_policy_set_info"} <= {key[0] for key in found}


@in_loop
async def test_a_clock_that_was_ahead_and_is_put_right_is_believed(tmp_path: Path) -> None:
    at_s = 1_900_000_000
    annotated = node("a")
    annotated["metadata"]["annotations"] = {"example.com/load": "0.5", "example.com/time": str(at_s)}
    data = "{name: load, nodeAnnotation: {key: example.com/load, timeKey: example.com/time}, maxAge: 60s}"
    async with running(tmp_path, World({"nodes": [annotated]})) as one:
        one.core.now.clock = lambda: (at_s + 7200) * SECOND
        await one.ready()
        text = POLICY.replace("spec:", f"spec:\n  data: [{data}]") % "data.load < 1.0"
        (one.folder / "p.yaml").write_text(text)
        await one.app.policies.reload()
        await one.until(lambda: bool(one.core.reloader.state and one.core.reloader.state.policies.policies))
        connection = await one.connect()
        assert await names(connection) == [], "stale"
        one.core.now.clock = lambda: (at_s + 10) * SECOND
        assert await names(connection) == ["a"]


@in_loop
async def test_what_goes_wrong_in_idle_time_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> bool:
        raise RuntimeError

    async with running(tmp_path) as one:
        await one.ready()
        monkeypatch.setattr(world.ServingState, "precompute", fails)
        await one.served(GOOD)
        await one.until(lambda: any(record.getMessage() == "precompute.fault" for record in caplog.records))
        assert await names(await one.connect()) == ["a"]


@in_loop
async def test_a_policy_that_is_too_slow_is_told_until_its_next_generation(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        await one.ready()
        await one.served(GOOD)

        async def told() -> list[bool]:
            text, metrics = (await one.probe("/readyz"))[1], (await one.probe("/metrics"))[1]
            state = 'fairlead_policy_state{policy="p",reason="TooSlow"} 1'
            return ["p: TooSlow: its failurePolicy replaces its filters for all pods" in text, state in metrics]

        assert one.core.reloader.state is not None
        (policy,) = one.core.reloader.state.policies.policies
        for namespace, switched in (("ml", None), ("ml", "class"), ("web", None), ("web", "all")):
            assert await told() == [False, False]
            asked = pod(namespace=namespace)
            assert (
                one.core.reloader.circuit_breaker.record_timeout(policy, "filters", asked, perf_counter_ns())
                == switched
            )
            if switched == "class":
                assert "p: TooSlow: its failurePolicy replaces its filters for " in (await one.probe("/readyz"))[1]
                told_of = 'fairlead_policy_open_circuits{part="filters",policy="p"}'
                assert told_of in (await one.probe("/metrics"))[1]
        assert await told() == [True, True]
        await one.served(OTHER)
        await one.until(lambda: one.core.reloader.state.policies.policies != (policy,))  # type: ignore[union-attr]
        assert await told() == [False, False]


@in_loop
async def test_policies_that_write_one_annotation_are_both_told(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        await one.ready()
        for name in ("p", "q"):
            text = POLICY.replace("name: p", f"name: {name}").partition("  filters")[0]
            rule = {"key": "fairlead.dev/class", "expression": f"'{name}'"}
            (one.folder / f"{name}.yaml").write_text(f"{text}  binding: {json.dumps({'annotations': [rule]})}")
        await one.app.policies.reload()
        await one.until(lambda: one.core.mirror.unplaced("ml", "x") is not None)
        await one.until(lambda: len(one.core.reloader.state.policies.policies) == 2)  # type: ignore[union-attr]
        assert json.loads((await (await one.connect()).call("/bind", BIND)).body) == {"Error": ""}
        assert one.apiserver.bindings[-1]["metadata"]["annotations"] == {"fairlead.dev/class": "p"}
        text = (await one.probe("/readyz"))[1]
        assert "[+] policy: q: Conflict: 1 pods have fairlead.dev/class from p, which comes first\n" in text
        assert "[+] policy: p: Conflict: q also writes fairlead.dev/class, and comes later\n" in text
        assert 'fairlead_policy_warnings_total{policy="q",reason="Conflict"} 1' in (await one.probe("/metrics"))[1]


@in_loop
async def test_told_to_stop_it_is_not_ready_and_goes_on_answering(tmp_path: Path) -> None:
    async with running(tmp_path, drain_s=0.3) as one:
        await one.ready()
        kept = await one.connect()
        await names(kept)
        one.stop.set()
        await one.until(lambda: one.app.replica.parts.server.draining)
        status, text = await one.probe("/readyz")
        assert (status, "[-] serving: stopping" in text) == (503, True)
        reply = await kept.call("/filter", body(["a"]))
        assert (reply.status, reply.headers["connection"]) == (200, "close")
        await one.task


@in_loop
async def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    async with running(tmp_path) as one:
        taken = Address("127.0.0.1", one.app.replica.port)
        settings = one.core.settings
        for other in ("listen", "probes"):
            changed = {name: getattr(settings, name) for name in settings.__dataclass_fields__} | {other: taken}
            app = StandaloneReplica(Settings(**changed), one.core.mirror_feed.client)
            with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{taken.port}: "):
                await app.replica.run(asyncio.Event())


@in_loop
async def test_a_host_that_is_none_is_named() -> None:
    async def start(host: str | None, port: int) -> int:
        server = await asyncio.get_running_loop().create_server(asyncio.Protocol, host, port)
        return len(server.sockets)

    with pytest.raises(OSError, match=r"cannot listen on 127\.0\.0\.\.1:0: ") as error:
        await listen(start, Address("127.0.0..1", 0))
    assert error.value.strerror
