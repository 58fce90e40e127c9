"""The namespaces that the real node and its control plane live in.

One process holds all of them: its network, its mounts and its processes end with it, so that nothing can be left
over, however it dies. What it leaves are control groups, which outlive processes; and those carry the cluster's name.
A link of two ends joins it to this machine: there is no route beyond it, no masquerading and no firewall rule here.
"""

import contextlib
import functools
import hashlib
import ipaddress
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from testbed import process
from testbed.errors import ClusterError, sentence

_NAME = "sandbox"
_NETWORKS = ipaddress.IPv4Network("10.89.0.0/16")
_CGROUPS = Path("/sys/fs/cgroup")
# What the kubelet wants of the kernel. It would set this for the whole machine; instead it is shown files that
# say so already.
SYSCTLS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
_READY = "/run/sandbox-is-ready"


@dataclass(frozen=True, slots=True)
class Sandbox:
    """The sandbox of a cluster, up or not."""

    cluster: Path

    @property
    def link(self) -> str:
        """The end of the link on this machine: a name that fits into 15 characters and is this cluster's alone."""
        return f"fl{hashlib.sha256(str(self.cluster).encode()).hexdigest()[:10]}"

    @property
    def cgroup(self) -> str:
        """The control group of everything that the kubelet runs."""
        return f"fairlead-{self.link}"

    def holder(self) -> psutil.Process | None:
        """The process that holds the namespaces, which is process 1 in them."""
        found = process.find(self.cluster, _NAME)
        return next((child for child in found.children() if _is_first(child.pid)), None) if found else None

    def is_up(self) -> bool:
        """Tell whether it is there, and was not abandoned half-made."""
        holder = self.holder()
        return holder is not None and self._inside("test", "-e", _READY).returncode == 0

    def enter(self) -> list[str]:
        """The command to put before another so that it runs inside."""
        return self._enter("--net", "--mount", "--uts", "--pid")

    def enter_network(self) -> list[str]:
        """The command to put before another so that it runs where pods are reached, with this machine's files."""
        return self._enter("--net")

    def _enter(self, *namespaces: str) -> list[str]:
        holder = self.holder()
        if holder is None:
            raise ClusterError("the node's namespaces are gone", cure="`python -m testbed up` makes them anew")
        return ["nsenter", f"--target={holder.pid}", *namespaces, "--"]

    def up(self, network: ipaddress.IPv4Network, pause: Path, hostname: str) -> None:
        """Make it, unless it is there: the first address of the network is this machine's, the second the sandbox's."""
        if self.is_up():
            return
        self.down()
        _make_cgroup(self.cgroup)
        command = [
            "unshare",
            "--net",
            "--mount",
            "--uts",
            "--pid",
            "--fork",
            "--kill-child",
            "--propagation=private",
            "--mount-proc",
            str(pause),
            "pause",
        ]
        process.start(self.cluster, process.Component(_NAME, command))
        end = time.monotonic() + 5
        while self.holder() is None:
            if time.monotonic() > end:
                raise ClusterError(
                    "the node's namespaces could not be made",
                    log=process.log_of(self.cluster, _NAME),
                    cure="this needs root with CAP_SYS_ADMIN; `up --no-node` does without",
                )
            time.sleep(0.02)
        self._join(network)
        self._furnish(hostname)

    def down(self) -> None:
        """End everything inside, and what outlives it."""
        if holder := self.holder():
            process.kill([holder])
        process.kill(one for name, one in process.running(self.cluster).items() if name == _NAME)
        if Path("/sys/class/net", self.link).exists():
            subprocess.run(["ip", "link", "delete", self.link], check=False, capture_output=True)
        _remove_cgroup(self.cgroup)

    def _join(self, network: ipaddress.IPv4Network) -> None:
        here, there, *_ = network.hosts()
        holder = self.holder()
        if holder is None:
            raise ClusterError("the node's namespaces vanished", log=process.log_of(self.cluster, _NAME))
        _run("ip", "link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
        _run("ip", "address", "add", f"{here}/{network.prefixlen}", "dev", self.link)
        _run("ip", "link", "set", self.link, "up")
        for line in (
            f"address add {there}/{network.prefixlen} dev eth0",
            "link set eth0 up",
            "link set lo up",
            f"route add default via {here}",
        ):
            _run(*self.enter(), "ip", *line.split())

    def _furnish(self, hostname: str) -> None:
        """Give it directories of its own where programs expect theirs at fixed places."""
        folder = self.cluster / "node"
        lines = ["set -e", f"hostname {hostname}", "mount --make-rshared /"]
        for target in ("lib", "log"):
            (folder / target).mkdir(parents=True, exist_ok=True)
            lines.append(f"mount --bind '{folder}/{target}' /var/{target}")
        lines.append("mount -t tmpfs -o mode=755 tmpfs /run")
        lines.append("mkdir -p /run/sysctl")
        for number, (name, value) in enumerate(SYSCTLS.items()):
            lines.append(
                f'[ ! -e /proc/sys/{name} ] || [ "$(cat /proc/sys/{name})" = {value} ] || '
                f"{{ echo {value} > /run/sysctl/{number}; mount --bind /run/sysctl/{number} /proc/sys/{name}; }}"
            )
        lines += ["echo 1 > /proc/sys/net/ipv4/ip_forward", f"touch {_READY}"]
        _run(*self.enter(), "/bin/sh", "-c", "\n".join(lines))

    def _inside(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*self.enter(), *command], capture_output=True, text=True, check=False)


def free_network() -> ipaddress.IPv4Network:
    """A network that no address or route of this machine overlaps."""
    taken = _networks()
    for candidate in _NETWORKS.subnets(new_prefix=24):
        if not any(candidate.overlaps(one) for one in taken):
            return candidate
    raise ClusterError(f"every network of {_NETWORKS} is in use here", cure="take down clusters you do not need")


def is_network_free(network: str) -> bool:
    """Tell whether that network is unused."""
    return not any(ipaddress.IPv4Network(network).overlaps(one) for one in _networks())


def _networks() -> list[ipaddress.IPv4Network]:
    answer = subprocess.run(
        ["ip", "-json", "-4", "route", "show", "table", "all"], capture_output=True, text=True, check=True
    )
    targets = [str(route.get("dst", "default")) for route in json.loads(answer.stdout or "[]")]
    return [ipaddress.IPv4Network(target, strict=False) for target in targets if target not in ("default", "0.0.0.0/0")]


def _is_first(pid: int) -> bool:
    """Tell whether the process is process 1 of a namespace of its own."""
    try:
        line = next(one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("NSpid:"))
    except (OSError, StopIteration):
        return False
    return len(line.split()) > 2 and line.split()[-1] == "1"


def _controllers() -> list[Path]:
    """The roots of the control group trees: one on version 2, one for each controller on version 1."""
    if (_CGROUPS / "cgroup.controllers").exists():
        return [_CGROUPS]
    # some of them are links to one another, such as cpu and cpu,cpuacct
    return sorted({path.resolve() for path in _CGROUPS.iterdir() if (path / "cgroup.procs").exists()})


def _make_cgroup(name: str) -> None:
    for tree in _controllers():
        group = tree / name
        group.mkdir(exist_ok=True)
        for file in ("cpuset.cpus", "cpuset.mems"):  # a new group of version 1 has none, and so could hold nothing
            if (group / file).exists() and (tree / file).exists() and not (group / file).read_text().strip():
                (group / file).write_text((tree / file).read_text())
        if tree == _CGROUPS:
            available = (group / "cgroup.controllers").read_text().split()
            (group / "cgroup.subtree_control").write_text(" ".join(f"+{controller}" for controller in available))


def _remove_cgroup(name: str) -> None:
    """Remove a tree of control groups, which may take its dead a moment to leave."""
    if not _CGROUPS.exists():
        return
    for tree in _controllers():
        for folder, _, _ in os.walk(tree / name, topdown=False):
            for attempt in range(100):
                with contextlib.suppress(FileNotFoundError):
                    try:
                        Path(folder).rmdir()
                    except OSError:
                        if attempt == 99:
                            raise ClusterError(
                                f"the control group {folder} is still in use", cure=f"see {folder}/cgroup.procs"
                            ) from None
                        time.sleep(0.05)
                        continue
                break


def _run(*command: str) -> None:
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise ClusterError(
            f"`{' '.join(command)}` failed: {answer.stderr.strip() or answer.stdout.strip()}",
            cure="`python -m testbed down`, then `up` again",
        )


def is_possible() -> bool:
    """Tell whether this machine lets us have a sandbox."""
    return not obstacle()


@functools.cache
def obstacle() -> str:
    """Reason why a sandbox cannot be had on this machine; empty when it can."""
    if sys.platform != "linux":
        return "this is not Linux"
    if os.geteuid():
        return "this is not root"
    if missing := [program for program in ("unshare", "nsenter") if not shutil.which(program)]:
        return f"{sentence(missing)} cannot be found (package util-linux)"
    answer = subprocess.run(
        ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--mount-proc", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if answer.returncode == 0 else answer.stderr.strip() or "unshare failed"
