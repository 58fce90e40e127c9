"""Policies wait for annotations of placed pods that enforced rules read, and for no others."""

import asyncio
from contextlib import suppress

from fairlead.kube.http.client import Client
from fairlead.mirror.mirror import Mirror
from fairlead.webhook.serving.mirror_feed import MirrorFeed
from scripted.loop import in_loop
from scripted.server import Server
from scripted.steps import page, watch

ENFORCED, SHADOW = "example.org/enforced", "example.org/shadow"


@in_loop
async def test_only_annotations_that_enforced_rules_read_are_waited_for() -> None:
    async with Server(watch(then="hold"), script=[page(version=1)]) as server, Client(server.login()) as client:
        feed = MirrorFeed(client, Mirror(lambda: 0))
        await feed.set_interest([], ["fairlead"])
        await feed.set_interest([], ["fairlead"], [SHADOW])  # returns, though nothing lists pods
        assert not feed.has_annotations(frozenset({SHADOW}))
        waiting = asyncio.create_task(feed.set_interest([ENFORCED], ["fairlead"], [SHADOW]))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not waiting.done()
        listing = asyncio.create_task(feed.reflectors["pods"].run())
        await waiting
        assert feed.has_annotations(frozenset({ENFORCED, SHADOW}))
        listing.cancel()
        with suppress(asyncio.CancelledError):
            await listing
