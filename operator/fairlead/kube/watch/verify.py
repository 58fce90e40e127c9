"""Consistency check of a store: lists metadata only and compares it with the store, twice.

A change in flight is not a difference: only objects that differ in the same way both times are.
"""

import asyncio
from collections.abc import Mapping
from typing import Final

import msgspec

from fairlead.kube.http.client import Client, Clock
from fairlead.kube.resources import ObjectRef, Page
from fairlead.kube.watch.store import Key, ObjectVersion, PartialObject, identify

_ACCEPT: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_APART_S: Final = 30.0
_decoder: Final = msgspec.json.Decoder(Page[PartialObject])
Differences = dict[Key, tuple[ObjectVersion | None, ObjectVersion | None]]


async def differences(
    client: Client, where: ObjectRef, query: Mapping[str, str], stored: Mapping[Key, ObjectVersion], clock: Clock
) -> set[Key]:
    """Return the objects whose versions in `stored` differ from the API server; `stored` may change meanwhile."""
    first = await _look(client, where, query, stored)
    if not first:
        return set()
    await clock.sleep(_APART_S)
    second = await _look(client, where, query, stored)
    return {key for key, differs in second.items() if first.get(key) == differs}


async def _look(
    client: Client, where: ObjectRef, query: Mapping[str, str], stored: Mapping[Key, ObjectVersion]
) -> Differences:
    found: Differences = {}
    listed: set[Key] = set()
    async for page in client.pages(where, _decoder.decode, query=query, accept=_ACCEPT):
        for key, version in map(identify, page.items or ()):
            listed.add(key)
            if stored.get(key) != version:
                found[key] = stored.get(key), version
        await asyncio.sleep(0)
    found.update({key: (version, None) for key, version in stored.items() if key not in listed})
    return found
