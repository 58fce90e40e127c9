"""Ledgers of groups: how they are called for, watched, and deleted once nothing in them holds."""

import asyncio
import json
from contextlib import suppress

from aiohttp import web

from fairlead.grants.entry import LedgerEntry, NewerEntry, UnreadableEntry
from fairlead.grants.ledger import OF_GROUPS, OF_NODES, create_body, decode_ledger
from fairlead.groups.group import Group, group_hash
from fairlead.kube.http.client import Client
from fairlead.mirror.mirror import Mirror
from fairlead.webhook.binding.device_grants import DeviceGrants
from fairlead.webhook.domains.group_domains import GroupDomains
from scripted.loop import in_loop
from scripted.server import Server
from support.policy import policy

RACKS = policy(filters=[{"name": "r", "topology": {"levels": ["rack"], "require": "rack"}}])
ENTRY = LedgerEntry("ml/w-0", "5", "p", order=3, domain={"block": "1", "rack": "a"})
NAME = f"fairlead-groups-{group_hash(Group('fairlead', 'ml', 'train'))}"


def ledger(version: str = "7", **entries: LedgerEntry) -> dict[str, object]:
    body = create_body("ml/train", entries, OF_GROUPS)
    body["metadata"] |= {"uid": "u", "resourceVersion": version, "namespace": "ops"}
    return body


def test_a_ledger_of_a_group_is_what_was_written() -> None:
    found = decode_ledger(json.loads(json.dumps(ledger(uid=ENTRY))), OF_GROUPS)
    assert (found.subject, found.entries, found.marked) == ("ml/train", {"uid": ENTRY}, True)
    assert ledger()["metadata"]["name"] == NAME  # type: ignore[index]


def test_an_entry_of_one_kind_is_unreadable_in_the_other() -> None:
    nodes = create_body("n", {"a": LedgerEntry("ml/p", "1", "p", {})})
    nodes["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    assert isinstance(decode_ledger(nodes, OF_GROUPS).all["a"], UnreadableEntry)
    assert isinstance(decode_ledger(ledger(a=ENTRY), OF_NODES).all["a"], UnreadableEntry)


def test_an_entry_of_a_newer_version_tells_its_pod() -> None:
    body = ledger()
    body["data"] = {"a": json.dumps({"v": 2, "pod": "ml/p", "rv": "9"}), "b": "{"}
    found = decode_ledger(body, OF_GROUPS)
    assert found.newer == {"a": NewerEntry(2, "ml/p", "9")}
    assert found.unreadable.keys() == {"b"}


@in_loop
async def test_ledgers_are_watched_from_the_first_policy_and_deleted_once_nothing_holds() -> None:
    calls, deleted = list[str](), asyncio.Event()

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        path, query = request.path, request.query
        if request.method == "DELETE":
            calls.append(f"{path} {json.loads(await request.text())['preconditions']}")
            deleted.set()
            return web.json_response({})
        if path.endswith("/configmaps") and query.get("watch"):
            calls.append(f"watch {query['labelSelector']}")
            await asyncio.Event().wait()
        if path.endswith("/configmaps"):
            return web.json_response({"metadata": {"resourceVersion": "9"}, "items": [ledger(w=ENTRY)]})
        return web.json_response({"kind": "Status", "code": 404}, status=404)

    async with Server(answer) as server, Client(server.login()) as client:
        domains = GroupDomains(client, "ops", DeviceGrants(client, Mirror(lambda: 0), "ops", list))
        running = asyncio.ensure_future(domains.run())
        await domains.follow([policy()])
        assert (domains.reflectors, calls) == ({}, [])
        await domains.follow([RACKS])
        assert [*domains.reflectors] == ["domains"]
        assert domains.views.ledger("ml/train") is not None
        assert domains.views.domain_of("ml/train") is None, "nobody has seen its pod"
        await domains.tend()
        assert deleted.is_set()
        assert f"/api/v1/namespaces/ops/configmaps/{NAME} {{'uid': 'u', 'resourceVersion': '7'}}" in calls
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
