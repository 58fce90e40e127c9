"""ConfigMaps: all of a namespace in one watch, of which the data of some are kept."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from fairlead.kube.http.client import Client, Clock
from fairlead.kube.resources import ObjectRef, Resource
from fairlead.kube.watch.reflector import Reflector
from fairlead.kube.watch.store import Meta, Sink, partial_object

_PAGE: Final = 20  # each may have a MiB
CONFIG_MAPS: Final = ObjectRef(Resource("", "v1", "configmaps"))


class ConfigMap(msgspec.Struct, frozen=True):
    """A ConfigMap, named as in the API."""

    metadata: Meta = Meta()
    data: Mapping[str, str] = {}
    binaryData: Mapping[str, msgspec.Raw] = {}  # noqa: N815


_decode: Final = msgspec.json.Decoder(ConfigMap).decode


def follow_config_maps(
    client: Client,
    namespace: str,
    is_wanted: Callable[[str], bool],
    sink: Sink[ConfigMap],
    *,
    clock: Clock | None = None,
) -> Reflector[ConfigMap]:
    """Return a reflector of all ConfigMaps of a namespace; those whose name is not wanted come without their data."""

    def decode(raw: msgspec.Raw) -> ConfigMap:
        meta = partial_object.decode(raw).metadata
        return _decode(raw) if is_wanted(meta.name) else ConfigMap(meta)

    where = ObjectRef(CONFIG_MAPS.resource, namespace)
    return Reflector(client, where, decode=decode, sink=sink, clock=clock, page=_PAGE)
