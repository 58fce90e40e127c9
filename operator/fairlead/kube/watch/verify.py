"""Whether what is held is what there is: metadata alone is listed and compared, twice.

What is under way when one looks is no difference: only what differs in the same way both times is.
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
    client: Client, where: ObjectRef, query: Mapping[str, str], held: Mapping[Key, ObjectVersion], clock: Clock
) -> set[Key]:
    """The objects that are held otherwise than they are; `held` is looked at while it changes."""
    first = await _look(client, where, query, held)
    if not first:
        return set()
    await clock.sleep(_APART_S)
    second = await _look(client, where, query, held)
    return {key for key, differs in second.items() if first.get(key) == differs}


async def _look(
    client: Client, where: ObjectRef, query: Mapping[str, str], held: Mapping[Key, ObjectVersion]
) -> Differences:
    found: Differences = {}
    there: set[Key] = set()
    async for page in client.pages(where, _decoder.decode, query=query, accept=_ACCEPT):
        for key, stamp in map(identify, page.items or ()):
            there.add(key)
            if held.get(key) != stamp:
                found[key] = held.get(key), stamp
        await asyncio.sleep(0)
    found.update({key: (stamp, None) for key, stamp in held.items() if key not in there})
    return found
