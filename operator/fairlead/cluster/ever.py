"""The schedulers that were ever managed: their last policy may have gone, and they may still call."""

from typing import Final

import msgspec

from fairlead.cluster.client import Client
from fairlead.cluster.held import Key
from fairlead.cluster.policy_objects import Metadata
from fairlead.cluster.reflector import Reflector
from fairlead.cluster.resources import Resource, Where

NAME: Final = "fairlead-schedulers"
GONE: Final = "gone since "
"""What is said of one of which nothing is left begins so."""
CONFIG_MAPS: Final = Resource("", "v1", "configmaps")


class _ConfigMap(msgspec.Struct, frozen=True):
    metadata: Metadata = Metadata()
    data: dict[str, str] = {}


def is_gone(said: str) -> bool:
    """Whether nothing is left of one of which this is said."""
    return said.startswith(GONE)


class EverManaged:
    """What the leader's ConfigMap says."""

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()
        """Those of which something may be there."""

    def begin(self) -> None:
        """A list begins."""

    def end(self) -> None:
        """A list is complete."""

    def put(self, item: _ConfigMap, /) -> None:
        """It came or became different."""
        self.names = frozenset(name for name, said in item.data.items() if not is_gone(said))

    def remove(self, _: Key, /) -> None:
        """Somebody has deleted it: who could call goes on."""


def follow(client: Client, namespace: str, ever: EverManaged) -> Reflector[_ConfigMap]:
    """Keeps it told."""
    query = {"fieldSelector": f"metadata.name={NAME}"}
    decode = msgspec.json.Decoder(_ConfigMap).decode
    return Reflector(client, Where(CONFIG_MAPS, namespace), decode=decode, sink=ever, query=query)
