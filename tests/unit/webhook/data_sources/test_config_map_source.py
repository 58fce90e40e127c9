"""ConfigMaps as they come, change, break and go; which of them are watched; and what is said of each."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from fairlead.kube.http.client import Client
from fairlead.kube.watch.config_maps import ConfigMap, follow_config_maps
from fairlead.kube.watch.store import EventSink, Meta
from fairlead.policy.nodes.polls import ConfigMapPoll
from fairlead.webhook.data_sources.config_map_source import ConfigMapSource, DocumentState, NamedConfigMap
from fairlead.webhook.data_sources.config_map_values import ValuesDocument
from scripted.clock import Wound
from scripted.loop import in_loop, run_to_its_end
from scripted.server import Server, Step
from scripted.steps import answer, line, page, refuse, watch

PATH = "/api/v1/namespaces/here/configmaps"
KEY = "values.json"
PRICES, OTHERS = ConfigMapPoll("prices", KEY, None), ConfigMapPoll("others", KEY, None)
WHERE = "ConfigMap here/prices"
_EXAMPLE = 'a document such as {"at": "2026-01-31T08:00:00Z", "values": {"node-1": 0.4}}'


def text(value: float) -> str:
    return json.dumps({"values": {"a": value}})


def document(value: float) -> ValuesDocument:
    return ValuesDocument(None, {"a": value}, frozenset())


def config_map(data: Mapping[str, str], *, version: int = 1, name: str = "prices") -> dict[str, Any]:
    meta = {"name": name, "namespace": "here", "uid": f"u-{name}", "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {**data}}


class Held:
    """One ConfigMap without an API server."""

    def __init__(self, *keys: str) -> None:
        self.changes = 0
        self.sink = NamedConfigMap(WHERE, self._count)
        self.sink.want(frozenset(keys or (KEY,)))

    def put(self, binary: dict[str, msgspec.Raw] | None = None, **data: str) -> None:
        self.sink.put(
            ConfigMap(Meta("prices", "here"), {key.replace("_", "."): one for key, one in data.items()}, binary or {})
        )

    def remove(self) -> None:
        self.sink.remove(("here", "prices"))

    def _count(self) -> None:
        self.changes += 1


def test_a_document_is_read_and_read_again_when_it_changes() -> None:
    held = Held()
    assert held.sink.state(KEY) == DocumentState(None, "", is_answered=False)
    held.put(values_json=text(1))
    assert held.sink.state(KEY) == DocumentState(document(1), "", is_answered=True)
    held.put(values_json=text(2))
    assert (held.sink.state(KEY).document, held.changes) == (document(2), 2)


def test_another_version_with_the_same_document_is_no_change() -> None:
    held = Held()
    held.put(values_json=text(1))
    held.put(values_json=f" {text(1)} ", notes="for people")
    assert held.changes == 1


_BROKEN: dict[str, tuple[Callable[[Held], None], str]] = {
    "cut off": (
        lambda held: held.put(values_json="{"),
        f"{WHERE}, key {KEY}: the document is not a JSON object (Input data was truncated): write {_EXAMPLE}",
    ),
    "another key": (
        lambda held: held.put(prices_json=text(1), notes=""),
        f"{WHERE} has no key {KEY}: add the key, or name another one in configMap.key",
    ),
    "no key": (
        lambda held: held.put(),
        f"{WHERE} has no key {KEY}: add the key, or name another one in configMap.key",
    ),
    "binary": (
        lambda held: held.put({KEY: msgspec.Raw(b'"eyJ9"')}),
        f"{WHERE}: the key {KEY} is in binaryData, which is not read: write it under data, in UTF-8",
    ),
    "gone": (
        Held.remove,
        f"{WHERE} was deleted, and its last values are kept with their time: create it again",
    ),
}


@pytest.mark.parametrize(("spoil", "said"), _BROKEN.values(), ids=_BROKEN)
def test_what_cannot_be_read_keeps_the_last_one_and_is_named(spoil: Callable[[Held], None], said: str) -> None:
    held = Held()
    held.put(values_json=text(1))
    spoil(held)
    spoil(held)
    assert held.sink.state(KEY) == DocumentState(document(1), said, is_answered=True)
    held.put(values_json=text(1))
    assert (held.sink.state(KEY).error, held.changes) == ("", 3)


@pytest.mark.parametrize("spoil", [one for one, _ in list(_BROKEN.values())[:-1]], ids=list(_BROKEN)[:-1])
def test_what_never_could_be_read_has_no_document(spoil: Callable[[Held], None]) -> None:
    held = Held()
    spoil(held)
    found = held.sink.state(KEY)
    assert (found.document, found.is_answered, held.changes) == (None, True, 1)


def test_one_that_does_not_exist_is_named_once_the_list_has_ended() -> None:
    held = Held()
    held.sink.begin()
    assert held.changes == 0
    held.sink.end()
    said = f"{WHERE} does not exist: create it with the key {KEY} and {_EXAMPLE}"
    assert held.sink.state(KEY) == DocumentState(None, said, is_answered=True)


def test_one_that_a_list_no_longer_names_was_deleted() -> None:
    held = Held()
    held.put(values_json=text(1))
    held.sink.end()
    assert held.sink.state(KEY).error == ""
    held.remove()
    held.sink.end()
    assert held.sink.state(KEY).error.startswith(f"{WHERE} was deleted")


def test_each_key_has_a_document_of_its_own() -> None:
    held = Held("a", "b")
    held.put(a=text(1), b="[]")
    assert held.sink.state("a") == DocumentState(document(1), "", is_answered=True)
    assert "key b: the document is not a JSON object" in held.sink.state("b").error
    assert held.sink.want(frozenset("ac")) is True
    assert held.sink.want(frozenset("c")) is False
    assert {key: held.sink.state(key).is_answered for key in "abc"} == {"a": False, "b": False, "c": False}


class World:
    """The ConfigMaps of a namespace; each watch goes on until it is closed."""

    def __init__(self, *objects: dict[str, Any]) -> None:
        self.objects = objects
        self.listed = self.watches = self.ended = 0
        self.events: list[bytes] = []

    def handle(self) -> Step:
        async def step(request: Any) -> Any:
            if "watch" not in request.query:
                self.listed += 1
                return await page(*self.objects, version=5)(request)
            self.watches += 1
            events, self.events = self.events, []
            try:
                return await watch(*events, then="hold")(request)
            finally:
                self.ended += 1

        return step


class Following:
    """A source that runs, and a way to wait for what it says."""

    def __init__(self, client: Client) -> None:
        self.changed: list[str] = []
        self._told = asyncio.Event()
        self.source = ConfigMapSource(client, "here", self._tell, clock=Wound().clock)

    async def until(self, wanted: Callable[[], bool]) -> None:
        while not wanted():
            self._told.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._told.wait(), 0.01)

    def value(self, poll: ConfigMapPoll) -> float | None:
        found = self.source.state(poll).document
        return None if found is None else found.values["a"]

    def _tell(self, name: str) -> None:
        self.changed.append(name)
        self._told.set()


@asynccontextmanager
async def following(server: Server) -> AsyncIterator[Following]:
    async with Client(server.login()) as client:
        one = Following(client)
        running = asyncio.create_task(one.source.run())
        yield one
        assert not running.done()
        running.cancel()
        await asyncio.wait({running})
        assert running.cancelled()


@in_loop
async def test_all_are_in_one_watch_whatever_their_number_and_only_the_named_ones_are_kept() -> None:
    """Ten policies may name 160: each was a connection to the API server, of every replica."""
    strangers = [config_map({KEY: "x" * 1000}, name=f"stranger-{number}") for number in range(50)]
    names = [f"prices-{number}" for number in range(160)]
    world = World(*strangers, *(config_map({KEY: text(number)}, name=name) for number, name in enumerate(names)))
    polls = [replace(PRICES, config_map=name) for name in names]
    async with Server(handler=world.handle()) as server, following(server) as one:
        assert one.source.state(polls[0]) == DocumentState(None, "", is_answered=False)
        assert one.source.reflectors == {}
        one.source.want([*polls, OTHERS, replace(polls[0], key_label="zone")])
        await one.until(lambda: one.source.state(OTHERS).is_answered and world.watches == 1)
        assert [one.value(poll) for poll in polls] == [*range(160)]
        assert one.source.state(OTHERS).error.startswith("ConfigMap here/others does not exist: create it")
        assert {seen.path for seen in server.seen} == {PATH}
        assert sorted(one.changed) == sorted([*names, "others"])
        assert (world.listed, world.watches) == (1, 1)
        assert {*one.source._named.by_name} == {*names, "others"}


def test_the_data_of_others_are_not_decoded() -> None:
    async def decoded() -> list[ConfigMap]:
        put = list[ConfigMap]()

        class Putting(EventSink):
            def put(self, item: ConfigMap, /) -> None:
                put.append(item)

            def remove(self, key: object, /) -> None:
                raise AssertionError

        world = World(config_map({KEY: text(1)}), config_map({KEY: text(2)}, name="secret"))
        async with Server(handler=world.handle()) as server, Client(server.login()) as client:
            one = follow_config_maps(client, "here", "prices".__eq__, Putting())
            running = asyncio.create_task(one.run())
            await one.wait_until_listed()
            running.cancel()
            await asyncio.wait({running})
        return put

    found = {item.metadata.name: item.data for item in run_to_its_end(decoded())}
    assert found == {"prices": {KEY: text(1)}, "secret": {}}


@in_loop
async def test_the_watch_tells_of_changes_and_of_the_end() -> None:
    world = World(config_map({KEY: text(1)}))
    world.events = [
        line("MODIFIED", config_map({KEY: text(2)}, version=6)),
        line("MODIFIED", config_map({KEY: text(9)}, name="stranger", version=7)),
        line("MODIFIED", config_map({KEY: "{"}, version=8)),
        line("DELETED", config_map({KEY: "{"}, version=9)),
    ]
    async with Server(handler=world.handle()) as server, following(server) as one:
        one.source.want([PRICES])
        await one.until(lambda: "was deleted" in one.source.state(PRICES).error)
        assert (one.value(PRICES), one.changed) == (2, ["prices"] * 4)


@in_loop
async def test_one_that_no_policy_names_any_more_is_forgotten_and_without_any_there_is_no_watch() -> None:
    world = World(config_map({KEY: text(1)}), config_map({KEY: text(2)}, name="others"))
    async with Server(handler=world.handle()) as server, following(server) as one:
        one.source.want([PRICES])
        await one.until(lambda: world.watches == 1)
        one.source.want([OTHERS])
        await one.until(lambda: one.value(OTHERS) == 2)
        assert one.source.state(PRICES) == DocumentState(None, "", is_answered=False)
        one.source.want([PRICES, OTHERS])
        assert one.value(OTHERS) == 2
        await one.until(lambda: one.value(PRICES) == 1)
        await one.until(lambda: world.watches == world.ended + 1)
        one.source.want([])
        await one.until(lambda: world.watches == world.ended)
        assert one.source.reflectors == {}
        listed = world.listed
        one.source.want([PRICES])
        await one.until(lambda: one.value(PRICES) == 1)
        assert world.listed == listed + 1


@in_loop
async def test_one_that_is_named_while_the_others_are_listed_is_not_taken_for_missing() -> None:
    world = World(config_map({KEY: text(1)}), config_map({KEY: text(2)}, name="others"))
    begun, go_on = asyncio.Event(), asyncio.Event()
    errors = list[str]()

    async def handle(request: Any) -> Any:
        found = await world.handle()(request) if world.listed else None
        if found is None:
            world.listed += 1
            begun.set()
            await go_on.wait()
            return await page(config_map({KEY: text(1)}), version=5)(request)
        return found

    async with Server(handler=handle) as server, following(server) as one:
        one.source.want([PRICES])
        await begun.wait()
        one.source.want([PRICES, OTHERS])
        go_on.set()

        def is_there() -> bool:
            errors.append(one.source.state(OTHERS).error)
            return one.value(OTHERS) == 2

        await one.until(is_there)
        assert {*errors} == {""}
        assert one.changed == ["prices", "others"]


@in_loop
async def test_a_policy_that_stays_keeps_its_watch_and_its_values() -> None:
    world = World(config_map({KEY: text(1)}))
    async with Server(handler=world.handle()) as server, following(server) as one:
        one.source.want([PRICES])
        await one.until(lambda: world.watches == 1)
        one.source.want([PRICES, replace(PRICES, key_label="zone")])
        assert one.value(PRICES) == 1
        (reflector,) = one.source.reflectors.values()
        await reflector.wait_until_listed()
        assert ([*reflector.state.relists.values()], one.changed) == ([1], ["prices"])


@in_loop
async def test_another_key_of_a_watched_one_is_read() -> None:
    world = World(config_map({KEY: text(1), "more": text(2)}))
    more = replace(PRICES, key="more")
    async with Server(handler=world.handle()) as server, following(server) as one:
        one.source.want([PRICES])
        await one.until(lambda: world.watches == 1)
        one.source.want([PRICES, more])
        assert not one.source.state(more).is_answered
        await one.until(lambda: one.value(more) == 2)
        assert one.value(PRICES) == 1


@in_loop
async def test_a_missing_permission_is_named_until_it_is_there() -> None:
    forbidden = (
        'configmaps is forbidden: User "u" cannot list resource "configmaps" in API group "" in the namespace "here"'
    )
    allowed = asyncio.Event()
    world = World(config_map({KEY: text(1)}))

    async def handle(request: Any) -> Any:
        return await (world.handle() if allowed.is_set() else refuse(403, "Forbidden", forbidden))(request)

    async with Server(handler=handle) as server, following(server) as one:
        one.source.want([PRICES])
        await one.until(lambda: bool(one.source.state(PRICES).error))
        assert one.source.state(PRICES) == DocumentState(
            None,
            f"list configmaps here: 403 Forbidden: {forbidden}; a Role in here or a ClusterRole of that user lacks the"
            ' rule {apiGroups: [""], resources: [configmaps], verbs: [list]}',
            is_answered=False,
        )
        allowed.set()
        await one.until(lambda: one.value(PRICES) == 1)
        await one.until(lambda: not one.source.state(PRICES).error)  # once all of the page is taken in


@in_loop
async def test_an_api_server_that_is_away_for_a_moment_is_no_error() -> None:
    """The watch is resumed by itself; only what was never read is not there."""
    world = World(config_map({KEY: text(1)}))
    down = asyncio.Event()

    async def handle(request: Any) -> Any:
        if down.is_set():
            return await answer("", 502)(request)
        if "watch" in request.query:
            world.watches += 1
            down.set()
            return await watch()(request)
        return await world.handle()(request)

    async with Server(handler=handle) as server, following(server) as one:
        one.source.want([PRICES, OTHERS])
        await one.until(lambda: one.source.reflectors["ConfigMaps"].state.last_error != "")
        assert one.source.state(PRICES) == DocumentState(document(1), "", is_answered=True)
