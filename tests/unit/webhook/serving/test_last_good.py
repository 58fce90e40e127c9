"""What is kept of good generations, by several who do not know of each other."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from fairlead.documents import FORMAT
from fairlead.webhook.serving.last_good import LABEL, REFUSALS, LastGoodStore, good_of, revision_of
from fairlead.webhook.serving.policy_status import CompiledGeneration


class Api:
    """ControllerRevisions in memory."""

    def __init__(self) -> None:
        self.held: dict[str, dict[str, Any]] = {}
        self.calls: list[str] = []
        self.broken: OSError | None = None
        self.idle = asyncio.Event()

    async def list(self, selector: str) -> Sequence[Mapping[str, Any]]:
        await self._asked(f"list {selector}")
        label, _, value = selector.partition("=")
        return [one for one in self.held.values() if one["metadata"]["labels"].get(label) == value]

    async def create(self, obj: Mapping[str, Any]) -> bool:
        name = obj["metadata"]["name"]
        await self._asked("create")
        if name in self.held:
            return False
        self.held[name] = {**obj, "metadata": {**obj["metadata"], "uid": f"uid-{name}"}}
        return True

    async def delete(self, name: str, uid: str) -> None:
        await self._asked("delete")
        if self.held.get(name, {}).get("metadata", {}).get("uid") == uid:
            del self.held[name]

    async def _asked(self, what: str) -> None:
        self.calls.append(what)
        await asyncio.sleep(0)
        if self.broken:
            raise self.broken


def good(generation: str, uid: str = "u", name: str = "p") -> CompiledGeneration:
    metadata = {"name": name, "uid": uid, "generation": int(generation), "labels": {}}
    return CompiledGeneration(name, uid, generation, {"kind": "X", "metadata": metadata, "spec": {}})


def of_file(generation: str) -> CompiledGeneration:
    return CompiledGeneration("p", "", generation, {"kind": "X", "metadata": {"name": "p"}, "spec": {}})


def written(*steps: CompiledGeneration | str, api: Api | None = None, source: str = "files") -> Api:
    """What is there after these were kept, or forgotten, one after the other."""

    async def story() -> Api:
        held = api or Api()
        revisions = LastGoodStore(held, source)
        writer = asyncio.ensure_future(revisions.run())
        for step in steps:
            if isinstance(step, str):
                revisions.forget(step)
            else:
                revisions.keep(step)
            while revisions._waiting or revisions._wake.is_set():
                await asyncio.sleep(0)
            for _ in range(20):  # the calls that are still under way give way once each
                await asyncio.sleep(0)
        writer.cancel()
        return held

    return asyncio.run(story())


def generations(api: Api) -> list[str]:
    found = asyncio.run(LastGoodStore(api, "files").load()) or {}
    return [f"{one.name}/{one.uid}/{one.generation}" for one in found.values()]


def test_the_newest_generation_is_kept_and_the_older_ones_are_gone() -> None:
    api = written(good("1"), good("2"), good("1", name="q"))
    assert sorted(generations(api)) == ["p/u/2", "q/u/1"]
    assert len(api.held) == 2
    (one,) = (one for one in api.held.values() if one["revision"] == 2)
    assert one["data"] == {"kind": "X", "metadata": {"name": "p", "uid": "u", "generation": 2}, "spec": {}}


def test_who_is_late_deletes_nothing_newer() -> None:
    api = written(good("5"))
    written(good("4"), api=api)
    assert generations(api) == ["p/u/5"]
    assert len(api.held) == 1, "its own is gone: no edit may follow that deletes it"


def test_generations_that_two_replicas_write_at_once_leave_the_newest() -> None:
    async def story(api: Api, turns: int) -> None:
        early, late = LastGoodStore(api, "files"), LastGoodStore(api, "files")
        writers = [asyncio.ensure_future(one.run()) for one in (early, late)]
        late.keep(good("4"))
        for _ in range(turns):
            await asyncio.sleep(0)
        early.keep(good("5"))
        for _ in range(40):
            await asyncio.sleep(0)
        for writer in writers:
            writer.cancel()

    for turns in range(8):
        asyncio.run(story(api := Api(), turns))
        assert (generations(api), len(api.held)) == (["p/u/5"], 1), turns


def test_a_policy_made_anew_begins_again_and_a_deleted_one_is_forgotten() -> None:
    api = written(good("5"), good("1", uid="other"))
    assert generations(api) == ["p/other/1"]
    written("p", api=api)
    assert generations(api) == []


def test_generations_of_files_have_no_order() -> None:
    for last in ("01ab", "0012"):
        assert generations(written(of_file("fe12"), of_file("999999999999"), of_file(last))) == [f"p//{last}"]


def test_policies_of_files_and_those_of_the_api_server_know_nothing_of_each_other() -> None:
    api = written(good("5"), source="cluster")
    written(of_file("fe12"), api=api)
    assert (generations(api), len(api.held)) == (["p//fe12"], 2)
    written("p", api=api)
    assert [one["revision"] for one in api.held.values()] == [5]


def test_what_is_written_twice_is_there_once() -> None:
    api = written(good("1"), good("1"))
    assert len(api.held) == 1


def test_where_nothing_can_be_kept_that_is_said_once_and_forgotten_when_it_heals() -> None:
    async def story() -> list[tuple[str, str]]:
        api = Api()
        revisions = LastGoodStore(api, "files")
        writer = asyncio.ensure_future(revisions.run())
        faults = []
        for broken in (OSError("no room"), PermissionError("no rights"), None):
            api.broken = broken
            revisions.keep(good("1"))
            for _ in range(30):
                await asyncio.sleep(0)
            faults.append((revisions.fault, revisions.missing_permission))
        writer.cancel()
        return faults

    assert asyncio.run(story()) == [("no room", ""), ("no rights", "no rights"), ("", "")]


def test_who_may_not_read_what_is_kept_is_not_believed_at_once() -> None:
    api = written(good("1"))
    api.broken = PermissionError("no rights")

    async def story() -> list[object]:
        heals, lacks = LastGoodStore(api, "files"), LastGoodStore(api, "files")
        said: list[object] = [await one.load() for one in (heals, *[lacks] * REFUSALS)]
        api.broken = None
        return [*said, [*(await heals.load() or ())], heals.fault]

    assert asyncio.run(story()) == [*[None] * REFUSALS, {}, [("p", "u")], ""]


STORED = revision_of(good("1"), 1, "files")
EDITED: dict[str, object] = {
    "no data": None,
    "data of another kind": [STORED["data"]],
    "no metadata": {"spec": {}},
    "metadata of another kind": STORED["data"] | {"metadata": 5},
    "no metadata any more": STORED["data"] | {"metadata": None},
    "the name of another policy": STORED["data"] | {"metadata": {"name": "q", "uid": "u"}},
    "the UID of another policy": STORED["data"] | {"metadata": {"name": "p", "uid": "v"}},
    "a name of another kind": STORED["data"] | {"metadata": {"name": ["p"], "uid": "u"}},
}


def test_stored_generations_are_read_back() -> None:
    found = good_of(STORED).value
    assert found is not None
    assert (found.name, found.uid, found.generation) == ("p", "u", "1")
    assert good_of(revision_of(of_file("1"), 1, "files")).value is not None


@pytest.mark.parametrize("data", EDITED.values(), ids=EDITED)
def test_revisions_that_were_edited_are_passed_over(data: object) -> None:
    found = good_of(STORED | {"data": data})
    assert found.value is None
    assert "it is left alone: restore it" in found.fault


def test_revision_of_a_newer_version_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    api = written(good("1"))
    [newer] = [*api.held.values()]
    newer["metadata"]["annotations"][FORMAT] = "2"
    written(good("2"), "p", api=api)
    assert [*api.held.values()] == [newer], "neither superseded nor deleted"
    assert asyncio.run(LastGoodStore(api, "files").load()) == {}
    assert [one.message for one in caplog.records] == ["last_good.left_alone"]
    assert "has format '2', and this version of Fairlead reads 1 at most" in caplog.records[0].__dict__["error"]


def test_policy_that_is_too_large_to_store_is_reported() -> None:
    async def story() -> tuple[str, int]:
        api = Api()
        revisions = LastGoodStore(api, "files")
        writer = asyncio.ensure_future(revisions.run())
        one = good("1")
        revisions.keep(CompiledGeneration("p", "u", "1", {**one.obj, "spec": "x" * 1_500_000}))
        while not revisions.fault:
            await asyncio.sleep(0)
        writer.cancel()
        return revisions.fault.partition(":")[0], api.calls.count("create")

    assert asyncio.run(story()) == ("policy p", 0)


def test_what_others_have_labelled_so_is_passed_over() -> None:
    api = Api()
    api.held["x"] = {"metadata": {"name": "x", "labels": {LABEL: "files"}}, "revision": 9, "data": {"spec": {}}}
    assert generations(api) == []
