"""ConfigMaps: watched one by one, by name."""

from collections.abc import Mapping
from typing import Final

import msgspec

from fairlead.kube.http.client import Client, Clock
from fairlead.kube.resources import ObjectRef, Resource
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.store import Meta, Sink

CONFIG_MAPS: Final = ObjectRef(Resource("", "v1", "configmaps"))


class ConfigMap(msgspec.Struct, frozen=True):
    """A ConfigMap, named as in the API."""

    metadata: Meta = Meta()
    data: Mapping[str, str] = {}
    binaryData: Mapping[str, msgspec.Raw] = {}  # noqa: N815


_decode: Final = msgspec.json.Decoder(ConfigMap).decode


def follow_config_map(
    client: Client, namespace: str, name: str, sink: Sink[ConfigMap], *, clock: Clock | None = None
) -> Reflector[ConfigMap]:
    """Return a reflector of one ConfigMap. A Role with its resourceName suffices."""
    where = ObjectRef(CONFIG_MAPS.resource, namespace)
    query = {"fieldSelector": f"metadata.name={name}"}
    return Reflector(client, where, decode=_decode, sink=sink, query=query, clock=clock)
