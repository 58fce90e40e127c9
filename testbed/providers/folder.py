"""The folder of a cluster, the same for every provider: who raised it, a lock, logs and programs."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from testbed import build, cache, process
from testbed.errors import ClusterError
from testbed.layout import folder_of
from testbed.providers.protocol import Part
from testbed.versions import KUBERNETES, program


def raised_by(cluster: str) -> str | None:
    """The name of the provider that raised the cluster, or was about to."""
    try:
        return _marker(cluster).read_text().strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None


def check(cluster: str, provider: str) -> None:
    """Refuse a cluster that another provider raised, which alone knows how to take it down."""
    there = raised_by(cluster)
    if there not in (None, provider):
        raise ClusterError(
            f"the cluster {cluster} was raised by {there}, not {provider}",
            cure=f"`python -m testbed --provider {there} down` first, or give this one another --name",
        )


def claim(cluster: str, provider: str) -> None:
    """Say who raises the cluster, before anything is started: what a start leaves when it is cut off is found again."""
    cache.write(_marker(cluster), f"{provider}\n")


@contextmanager
def held(cluster: str, provider: str) -> Iterator[None]:
    """Have the cluster to oneself."""
    with cache.locked(f"cluster-{cluster}", doing=f"working on the cluster {cluster}"):
        check(cluster, provider)
        yield


def remove(folder: Path) -> None:
    """Remove what the cluster kept. Its processes have to be gone, or they would write there again."""
    if folder.parent != cache.clusters():
        raise ValueError(f"{folder} is no folder of a cluster")
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        raise ClusterError(f"{folder} cannot be removed", cure="see what is in it and whose it is")


def logs(folder: Path) -> dict[str, str]:
    """Logs of the processes that the testbed started, by name."""
    return {path.stem: path.read_text(errors="replace") for path in sorted((folder / "logs").glob("*.log"))}


def pod_logs(folder: Path) -> dict[str, str]:
    """Logs of containers on the real node, as `pods/NAMESPACE_POD/CONTAINER/RESTART`."""
    found = sorted((folder / "node" / "log" / "pods").glob("*/*/*.log"))
    names = (f"pods/{path.parts[-3].rpartition('_')[0]}/{path.parts[-2]}/{path.stem}" for path in found)
    return {name: path.read_text(errors="replace") for name, path in zip(names, found, strict=True)}


def processes(folder: Path) -> list[Part]:
    """The processes that the testbed started for a cluster that it does not consist of."""
    return [part(name, one) for name, one in sorted(process.running(folder).items())]


def part(name: str, found: psutil.Process) -> Part:
    """A process as a part of its cluster."""
    return Part(name, process.state(found), f"process {found.pid}")


def programs(kubernetes: str) -> Sequence[Path]:
    """The folders of kubectl and helm, which are there when this returns."""
    paths = build.build([program("kubectl", kubernetes), program("helm")])
    return [path.parent for path in paths.values()]


def nearest(version: str) -> str:
    """The version we can build that suits a server of another: of its minor version, else the newest."""
    minor = version.removeprefix("v").split(".")[:2]
    return next((one for one in KUBERNETES if one.split(".")[:2] == minor), KUBERNETES[0])


def _marker(cluster: str) -> Path:
    return folder_of(cluster) / "provider"
