"""Nodes by the labels of series: their names and addresses, with or without a port."""

from typing import Final

from fairlead.policy.nodes.node_table import Nodes

_TYPES: Final = ("InternalIP", "Hostname")
_SPELLINGS: Final = 4  # of a node, by several exporters


class NodeNames:
    """Nodes by name and by address. Make one for all polls of a moment: labels repeat, and addresses change later."""

    def __init__(self, nodes: Nodes) -> None:
        self._names = nodes.slots.keys()
        self._nodes = nodes
        self._addresses: dict[str, str | None] | None = None
        self._known: dict[str, str] = {}

    def __call__(self, label: str) -> str | None:
        """Return the name of the node that a label names; None if it names none, or several."""
        if label in self._names:
            return label
        if (known := self._known.get(label)) is not None:
            return known
        found = self._look_up(label)
        # What names no node is not kept, nor are many spellings of one that does: others choose the labels.
        if found is not None and len(self._known) < _SPELLINGS * len(self._names):
            self._known[label] = found
        return found

    def _look_up(self, label: str) -> str | None:
        addresses = self._addresses
        if addresses is None:
            addresses = self._addresses = _by_address(self._nodes)
        if ":" not in label:
            return addresses.get(label)
        host = _without_port(label)
        return host if host in self._names else addresses.get(host)


def _by_address(nodes: Nodes) -> dict[str, str | None]:
    """Return the nodes by address; None for an address that several have."""
    found: dict[str, str | None] = {}
    for view in nodes.views:
        if view is not None:
            name = view.name
            for one in view.node.status.addresses:
                if one.type in _TYPES and found.setdefault(one.address, name) != name:
                    found[one.address] = None
    return found


def _without_port(label: str) -> str:
    """Return the host of HOST:PORT or [HOST]:PORT; anything else as it is."""
    if label.startswith("["):
        host, bracket, port = label[1:].partition("]")
        return host if bracket and (not port or _is_port(port)) else label
    host, _, port = label.rpartition(":")
    return host if host and ":" not in host and port.isdecimal() else label


def _is_port(text: str) -> bool:
    return text[0] == ":" and text[1:].isdecimal()
