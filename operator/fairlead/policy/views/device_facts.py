"""Devices of a node: the pods that have or want them, and which ones are unhealthy."""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from fairlead.grants.device_usage import PodGrant
from fairlead.strategies.facts import Nominated, Unknown

UnhealthySource = tuple[str, str, str]
"""ConfigMaps of unhealthy devices: their namespace, the beginning of their names, and the key."""
NOT_READ: Final = Unknown("the list of unhealthy devices", "is not read")


class NodeDevices(NamedTuple):
    """Facts about the devices of a node that come neither from the node nor from the pods on it."""

    granted: tuple[PodGrant, ...] = ()
    """Entries of the node's ledger that are not over."""
    nominated: tuple[Nominated, ...] = ()
    """Unplaced pods that are nominated to the node."""
    unhealthy: Mapping[UnhealthySource, str] = {}
    """Texts in ConfigMaps of unhealthy devices, by source."""

    def without(self, uids: Collection[str]) -> "NodeDevices":
        """Return the devices without what pods of these UIDs were granted."""
        if not self.granted:
            return self
        return self._replace(granted=tuple(one for one in self.granted if one.uid not in uids))

    def unhealthy_text(self, source: UnhealthySource) -> str | Unknown:
        """Return the text of a ConfigMap; empty if it was read and there is none."""
        return self.unhealthy.get(source, NOT_READ)


NO_DEVICES: Final = NodeDevices()
