"""Entries of device shares that one pod can be granted together."""

from fairlead.api.devices import DeviceShare


class Taken:
    """Names, resources and records of the entries that a pod is granted: a later entry has none of them.

    Gpushare's annotations have room for one device, so that a second entry would overwrite the first.
    """

    __slots__ = ("_gpushare", "_names", "_resources")

    def __init__(self) -> None:
        self._names, self._resources = set[str](), set[str]()
        self._gpushare = False

    def take(self, entry: DeviceShare) -> bool:
        """Add an entry; return False, and add nothing, if an earlier one keeps it out."""
        for_gpushare = entry.record == "Gpushare"
        if entry.name in self._names or not self._resources.isdisjoint(entry.resources):
            return False
        if for_gpushare and self._gpushare:
            return False
        self._names.add(entry.name)
        self._resources.update(entry.resources)
        self._gpushare = self._gpushare or for_gpushare
        return True
