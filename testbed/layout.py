"""Ports and folders of a local cluster: decided once, and kept so that a restart finds them the same."""

import dataclasses
import ipaddress
import itertools
import json
import random
import re
import socket
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from testbed import cache
from testbed.errors import ClusterError

_NAME = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_PORTS = range(21000, 29000)  # below the range that outgoing connections take theirs from


@dataclass(frozen=True, slots=True)
class Layout:
    """The facts about one local cluster that outlive its processes."""

    name: str
    kubernetes: str
    network: str = ""  # of the sandbox; empty: no sandbox, everything listens on loopback
    api_port: int = 6443
    etcd_port: int = 2379
    etcd_peer_port: int = 2380
    manager_port: int = 10257
    gates: bool = False
    """Whether it has Kubernetes' own groups of pods, which are off by default."""

    @property
    def folder(self) -> Path:
        """Folder of all that this cluster keeps."""
        return folder_of(self.name)

    @property
    def has_node(self) -> bool:
        """Tell whether the cluster has a sandbox with a real node."""
        return bool(self.network)

    @property
    def host(self) -> str:
        """The address that the API server is reached at."""
        return str(ipaddress.ip_network(self.network)[2]) if self.network else "127.0.0.1"

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return f"https://{self.host}:{self.api_port}"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.folder / "kubeconfig"

    @property
    def audit_log(self) -> Path:
        """Audit log of the API server; once it is long it goes on in a new file, and older ones stand beside it."""
        return self.folder / "audit" / "audit.log"

    def save(self) -> None:
        """Keep it."""
        cache.write(self.folder / "layout.json", json.dumps(dataclasses.asdict(self), indent=2))


def folder_of(name: str) -> Path:
    """The folder of the cluster of that name, which `down` removes: so a name must not lead anywhere else."""
    if not re.fullmatch(_NAME, name):
        raise ClusterError(
            f"{name!r} cannot be the name of a cluster",
            cure="use up to 63 small letters, digits and hyphens, with a letter or digit at each end",
        )
    return cache.clusters() / name


def load(name: str) -> Layout | None:
    """The layout of the cluster of that name, if there is one."""
    try:
        return Layout(**json.loads((folder_of(name) / "layout.json").read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def with_free_ports(layout: Layout) -> Layout:
    """The same on ports of loopback that nothing listens on and no other cluster was given."""
    api, etcd, peer, manager = free_ports(4, taken={port for other in _others(layout.name) for port in _ports(other)})
    return dataclasses.replace(layout, api_port=api, etcd_port=etcd, etcd_peer_port=peer, manager_port=manager)


def free_ports(count: int, *, taken: Collection[int] = ()) -> list[int]:
    """Ports of loopback that nothing listens on. Drawn by lot, so that two who look at once seldom find the same."""
    drawn = random.SystemRandom().sample(_PORTS, len(_PORTS))
    free = list(itertools.islice((port for port in drawn if port not in taken and is_free(port)), count))
    if len(free) < count:
        raise ClusterError(
            f"no {count} free ports between {_PORTS.start} and {_PORTS.stop}", cure="take down clusters you do not need"
        )
    return free


def is_free(port: int) -> bool:
    """Tell whether one could listen on that port of loopback now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _others(name: str) -> list[Layout]:
    if not cache.clusters().exists():
        return []
    names = [path.name for path in cache.clusters().iterdir() if path.name != name]
    return [other for other in map(load, names) if other and not other.has_node]


def _ports(layout: Layout) -> tuple[int, ...]:
    return layout.api_port, layout.etcd_port, layout.etcd_peer_port, layout.manager_port
