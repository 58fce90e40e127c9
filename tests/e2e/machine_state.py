"""What a cluster could leave behind on this machine, as something that can be compared."""

import os
import subprocess
from pathlib import Path

from testbed import cache, process, sandbox
from testbed.sandbox import Sandbox

_PLACES = ("/run", "/var/lib", "/var/log", "/etc", "/opt")
_WORDS = ("containerd", "kubelet", "kube-", "cni", "etcd", "fairlead", "coredns", "kwok")
_SYSCTLS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward")


def look(own: Path) -> dict[str, list[str]]:
    """By kind, everything that is there now, but for what belongs to clusters other than the one in that folder."""
    others = [Sandbox(path).link for path in cache.clusters().glob("*") if path != own]
    return {
        kind: [line for line in lines if not any(link in line for link in others)]
        for kind, lines in _everything(own).items()
    }


def _everything(own: Path) -> dict[str, list[str]]:
    ours = {
        "processes": sorted(one.name() for one in process.all_of(own)),
        "files": sorted(_files()),
        "folder": sorted(str(path) for path in own.glob("**/*")),
    }
    return ours | (_of_the_kernel() if sandbox.is_possible() else {})


def _of_the_kernel() -> dict[str, list[str]]:
    """What only root could have changed, and can see."""
    return {
        "mounts": sorted(line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()),
        "links": sorted(path.name for path in Path("/sys/class/net").iterdir()),
        "routes": _lines("ip", "route", "show", "table", "all"),
        "namespaces": _lines("ip", "netns", "list"),
        "firewall rules": _lines("nft", "list", "ruleset"),
        "control groups": sorted(path for path, _, _ in os.walk("/sys/fs/cgroup") if "fairlead" in path),
        "settings": [f"{name}={Path('/proc/sys', name).read_text().strip()}" for name in _SYSCTLS],
    }


def _lines(*command: str) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def _files() -> set[str]:
    found = set()
    for place in _PLACES:
        for folder, folders, files in os.walk(place):
            if Path(folder) == cache.root():
                folders.clear()
                continue
            found |= {f"{folder}/{name}" for name in (*folders, *files) if any(word in name for word in _WORDS)}
    return found
