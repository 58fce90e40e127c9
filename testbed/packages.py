"""Packages of the operating system that a real node and the building of images need, and how to get them.

Programs are looked for, never packages: a machine with Docker's own containerd.io has all that is needed, and Debian's
containerd would replace it.
"""

import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed import cache
from testbed.errors import ClusterError, sentence
from testbed.node_config import PLUGIN_FOLDERS
from testbed.phases import say


@dataclass(frozen=True, slots=True)
class Need:
    """Programs and plugins, each with its Debian package, which Ubuntu calls the same."""

    what: str
    packages: Mapping[str, str]
    otherwise: str = ""
    """What to do without them."""


_PROGRAMS = {
    "containerd": "containerd",
    "containerd-shim-runc-v2": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "nft": "nftables",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "mount": "mount",
    "umount": "mount",
}
_PLUGINS = dict.fromkeys(("bridge", "host-local", "loopback", "portmap"), "containernetworking-plugins")
NODE = Need("a real node", _PROGRAMS | _PLUGINS, "`up --no-node` does without")
IMAGE = Need(
    "an image of the operator",
    {"buildah": "buildah", "mmdebstrap": "mmdebstrap", "mount": "mount", "unshare": "util-linux"},
)

# What a package starts its services with. Covered by /bin/true in a mount namespace of the installation's own, nothing
# is started and, unlike with a policy-rc.d, nothing can be left behind.
_STARTERS = ("/usr/bin/deb-systemd-invoke", "/usr/sbin/invoke-rc.d")
_QUIETLY = 'for one in $STARTERS; do mount --bind /bin/true "$one" || exit 1; done; exec "$@"'
_SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")  # where an ordinary user's PATH does not look


def ensure(need: Need) -> None:
    """Install what is missing, where we may."""
    missing = find_missing(need, _find)
    if not missing:
        return
    distribution = _distribution()
    if os.geteuid() or not is_debian(distribution):
        raise refusal(need, missing, distribution)
    with cache.locked("packages", doing="installing packages"):
        if missing := find_missing(need, _find):
            _install(need, missing)


def unpacked(package: str) -> Path:
    """The files of a package, fetched into the cache on the first call; nothing is installed."""
    home = home_of(package)
    with cache.locked(f"package-{package}", doing=f"fetching the package {package}"):
        if not home.exists():
            _fetch(package, home)
    return home


def home_of(package: str) -> Path:
    """The folder of an unpacked package, which may not be there yet."""
    return cache.root() / "packages" / package


def find_missing(need: Need, find: Callable[[str], object]) -> list[str]:
    """The programs that are not there."""
    return [name for name in need.packages if not find(name)]


def packages_of(need: Need, missing: Iterable[str]) -> list[str]:
    """The packages that bring these programs."""
    return sorted({need.packages[name] for name in missing})


def install_command(packages: Iterable[str]) -> list[str]:
    """Command that installs packages and removes none."""
    return ["apt-get", "install", "-y", "--no-install-recommends", "--no-remove", *packages]


def is_debian(distribution: Mapping[str, str]) -> bool:
    """Tell whether it is Debian, Ubuntu or made from them."""
    return bool({"debian", "ubuntu"} & {distribution.get("ID", ""), *distribution.get("ID_LIKE", "").split()})


def refusal(need: Need, missing: Sequence[str], distribution: Mapping[str, str]) -> ClusterError:
    """Message for a machine on which nothing may be installed."""
    packages = packages_of(need, missing)
    if is_debian(distribution):
        cure = f"sudo {' '.join(install_command(packages))}"
    else:
        cure = f"install what has them here (on Debian: {', '.join(packages)})"
        cure += f"; or {need.otherwise}" if need.otherwise else ""
    return ClusterError(f"{need.what} needs {sentence(missing)}, not found here", cure=cure)


def _install(need: Need, missing: Sequence[str]) -> None:
    packages = packages_of(need, missing)
    command = install_command(packages)
    log = cache.root() / "logs" / "packages.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    say(f"installing {sentence(missing)}, starting no services: {' '.join(command)} (log: {log})")
    log.write_text("")
    # Its lists may be old, or none; and an installation that was interrupted has to be ended before another.
    again = (["dpkg", "--configure", "-a"], ["apt-get", "update"], command)
    if _run(command, log) and any(_run(one, log) for one in again):
        raise ClusterError(
            f"`{' '.join(command)}` failed",
            log=log,
            cure=f"run it by hand and see{f', or {need.otherwise}' if need.otherwise else ''}",
        )
    if still := find_missing(need, _find):
        raise ClusterError(f"{sentence(packages)} are installed, but there is still no {sentence(still)}", log=log)


def _fetch(package: str, home: Path) -> None:
    say(f"fetching the package {package}, to unpack it in {home}")
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as folder:
        Path(folder).chmod(0o755)  # apt-get downloads as a user of its own where it can
        download = ["apt-get", "download", "--quiet", package]
        if _run_in(folder, download).returncode:  # its lists may be old, or none
            _run_in(folder, ["apt-get", "update", "--quiet"])
            if (done := _run_in(folder, download)).returncode:
                raise ClusterError(f"`{' '.join(download)}` failed: {done.stderr}", cure="run `apt-get update` as root")
        (file,) = Path(folder).glob("*.deb")
        if (done := _run_in(folder, ["dpkg-deb", "--extract", file.name, "all"])).returncode:
            raise ClusterError(f"{file.name} cannot be unpacked: {done.stderr}")
        Path(folder, "all").rename(home)


def _run_in(folder: str, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def _run(command: Sequence[str], log: Path) -> int:
    """Run it where it cannot start services; its exit status."""
    enter = (
        ["unshare", "--mount", "--propagation=private", "/bin/sh", "-c", _QUIETLY, "sh"]
        if shutil.which("unshare")
        else []
    )
    environment = {
        **os.environ,
        "DEBIAN_FRONTEND": "noninteractive",
        "STARTERS": " ".join(path for path in _STARTERS if Path(path).exists()),
    }
    with log.open("a") as output:
        return subprocess.run(
            [*enter, *command], stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, check=False
        ).returncode


def _find(name: str) -> str | None:
    folders = PLUGIN_FOLDERS if name in _PLUGINS else (*os.environ.get("PATH", "").split(os.pathsep), *_SYSTEM_FOLDERS)
    return shutil.which(name, path=os.pathsep.join(folders))


def _distribution() -> Mapping[str, str]:
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}
