"""Names in the cluster, for completion: what can be read quickly with the user's permissions, and never an error."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from fairlead.cli.inputs.explain_arguments import POD_KINDS
from fairlead.cli.inputs.operator_survey import select_measured
from fairlead.cli.inputs.shadow_counts import policy_in_shadow
from fairlead.kube.access.login import log_in
from fairlead.kube.http.client import Client
from fairlead.kube.resources import NODES, PODS, POLICIES, ObjectRef, Page, Resource, decode_object
from fairlead.simulation.workloads import kind_spelt

WITHIN_S: Final = 2.0
"""Time after which the names that were read are all that are offered."""
_METADATA: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
_NAMESPACES: Final = ObjectRef(Resource("", "v1", "namespaces"))
_PLAIN: Final = re.compile(r"[\w./:@+=-]+", re.ASCII)
Given = Mapping[str, str]
"""Values of options by their names in the namespace of argparse."""
Reader = Callable[[Client, Given, Sequence[str]], AsyncIterator[str]]


def offer_names(what: str, options: Given, placed: Sequence[str], last: str) -> list[str]:
    """Return names of objects for an argument or an option, after these options and arguments; [] if it takes none."""
    if what not in _READERS or options.get("snapshot", "live") != "live":
        return []
    if what != "pod":
        return _names(_READERS[what], options, placed)
    kind, slash, _ = last.rpartition("/")
    if len(placed) > 1 or (placed and slash):
        return []
    spelt = placed[0] if placed else kind
    if (workload := kind_spelt(spelt)) is not None:
        names = _names(_reader_of(Resource(workload.group, "v1", workload.plural)), options, placed)
        return [f"{kind}/{name}" for name in names] if slash else names
    if (spelt or "pod") not in POD_KINDS:
        return []
    names = _names(_READERS[what], options, placed)
    with_kind = [f"{kind or 'pod'}/{name}" for name in names] if last and not placed else []
    return with_kind if slash else names + with_kind


def _names(read: Reader, options: Given, placed: Sequence[str]) -> list[str]:
    found = list[str]()

    async def collect() -> None:
        file = options.get("kubeconfig")
        access = log_in(Path(file) if file else None, options.get("context", ""), use_proxy=True)
        async with asyncio.timeout(WITHIN_S), Client(access, deadline_s=WITHIN_S, tries=1) as client:
            async for name in read(client, options, placed):
                found.append(name)

    try:
        asyncio.run(collect())
    except Exception:  # noqa: BLE001 - an error would be written into the line that is typed
        return found
    return found


def _reader_of(resource: Resource) -> Reader:
    """Return a reader of the objects in the namespace of the options."""

    async def read(client: Client, options: Given, _: Sequence[str]) -> AsyncIterator[str]:
        async for name in _listed(client, ObjectRef(resource, options.get("namespace") or client.login.namespace)):
            yield name

    return read


async def _nodes(client: Client, _: Given, __: Sequence[str]) -> AsyncIterator[str]:
    async for name in _listed(client, NODES):
        yield name


async def _namespaces(client: Client, _: Given, __: Sequence[str]) -> AsyncIterator[str]:
    async for name in _listed(client, _NAMESPACES):
        yield name


async def _measuring(client: Client, _: Given, __: Sequence[str]) -> AsyncIterator[str]:
    """Yield the policies that measure something."""
    async for page in client.pages(POLICIES, _policies):
        for one in page.items or ():
            if select_measured(one):
                yield one["metadata"]["name"]


async def _shadowed(client: Client, _: Given, __: Sequence[str]) -> AsyncIterator[str]:
    """Yield the policies that have something in shadow."""
    async for page in client.pages(POLICIES, _policies):
        for one in page.items or ():
            if policy_in_shadow(one).has_shadow:
                yield one["metadata"]["name"]


async def _groups(client: Client, _: Given, __: Sequence[str]) -> AsyncIterator[str]:
    """Yield the groups of pods, but those whose name would mean something to the shell that it is written into."""
    # Imported here, as nothing else that is completed needs policies.
    from fairlead.cli.inputs.cluster_reader import LiveObjects, read_pods, read_policies
    from fairlead.cli.inputs.live_policies import compiled_of
    from fairlead.cli.inputs.snapshot_groups import groups_in
    from fairlead.policy.evaluate.matching import policy_set

    live = LiveObjects()
    snapshot, _none = await asyncio.gather(read_pods(client), read_policies(client, live))
    groups = groups_in(snapshot, policy_set(compiled_of(live.policies)), {}, time.time_ns()).groups
    for name in dict.fromkeys(one.name for one in groups):
        if _PLAIN.fullmatch(name):
            yield name


async def _entries(client: Client, _: Given, placed: Sequence[str]) -> AsyncIterator[str]:
    policy = await client.get(POLICIES.named("", placed[0]), decode_object)
    for entry in select_measured(policy):
        yield entry["name"]


async def _listed(client: Client, at: ObjectRef) -> AsyncIterator[str]:
    async for page in client.pages(at, _objects, accept=_METADATA):
        for one in page.items or ():
            yield one.metadata.name


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""


class _Named(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


_objects: Final = msgspec.json.Decoder(Page[_Named]).decode
_policies: Final = msgspec.json.Decoder(Page[dict[str, Any]]).decode
_READERS: Final[Mapping[str, Reader]] = {
    "pod": _reader_of(PODS.resource),
    "node": _nodes,
    "namespace": _namespaces,
    "policy": _measuring,
    "shadowed": _shadowed,
    "entry": _entries,
    "group": _groups,
}
"""By the names of arguments and options in the namespace of argparse."""
