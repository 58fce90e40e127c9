"""A registry in the node's own network, with what a release publishes.

The node's container runtime and Helm pull from it. There, containerd takes an address of the loopback without TLS.

An image that the kubelet has pulled may be used only by pods whose own pull would be allowed, under whatever name, even
if it was loaded onto the node before. So the images here are others than those that are loaded: their configurations
have a label more.
"""

import io
import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from release.image import push_archives
from release.publish import Published

from release import publish, registry
from testbed.fixtures import Cluster
from testbed.sandbox import Sandbox

_ORGANIZATION = "fairlead-dev"


@dataclass(frozen=True)
class Mirror:
    """The registry, and where it has what was published."""

    address: str
    published: Published
    inside: tuple[str, ...]
    """The command to put before another so that it reaches the registry."""
    log: Path

    def asked_for(self, path: str) -> bool:
        """Return whether a program got this path."""
        return f"GET {path}" in self.log.read_text()


def _labelled(archive: Path, folder: Path) -> Path:
    """A copy of a docker archive with an image of another ID."""
    target = Path(tempfile.mkdtemp(dir=folder), archive.name)
    with tarfile.open(archive) as old, tarfile.open(target, "w") as new:
        index = old.extractfile("manifest.json")
        assert index is not None
        configurations = {one["Config"] for one in json.load(index)}
        for member in old:
            file = old.extractfile(member)
            if member.name in configurations and file is not None:
                image = json.load(file)
                labels = image.setdefault("config", {}).get("Labels") or {}
                image["config"]["Labels"] = labels | {"registry": "mirror"}
                data = json.dumps(image).encode()
                member.size, file = len(data), io.BytesIO(data)
            new.addfile(member, file)
    return target


def main(folder: Path, chart: Path, images: Mapping[str, Path], others: Mapping[str, Path]) -> None:
    """Publish and serve until standard input ends; the first line of output says where everything is."""
    with registry.serve(folder) as address:
        with tempfile.TemporaryDirectory(dir=folder) as copies:
            labelled = {platform: _labelled(archive, Path(copies)) for platform, archive in images.items()}
            made = publish.publish(labelled, chart, f"{address}/{_ORGANIZATION}", plain_http=True)
            for name, archive in others.items():
                push_archives({"": _labelled(archive, Path(copies))}, f"{address}/{name}", plain_http=True)
        print(json.dumps({"address": address, "published": asdict(made)}), flush=True)
        sys.stdin.read()


@contextmanager
def mirrored(
    cluster: Cluster, folder: Path, chart: Path, images: Mapping[str, Path], others: Mapping[str, Path]
) -> Iterator[Mirror]:
    """Serve a chart, the operator's images by platform, and others by name and tag, from a folder."""
    inside = tuple(Sandbox(cluster.folder).enter_network())
    archives = [json.dumps({key: str(one) for key, one in of.items()}) for of in (images, others)]
    told = [str(folder), str(chart), *archives]
    checkout = Path(__file__).parents[3]
    path = ":".join(str(checkout / one) for one in ("", "operator", "scripts", "tests"))
    with (
        (folder / "published").open("w") as log,
        subprocess.Popen(
            [*inside, "env", f"PYTHONPATH={path}", sys.executable, "-m", __name__, *told],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as started,
    ):
        try:
            assert started.stdin is not None
            assert started.stdout is not None
            lines = (line for line in started.stdout if line.startswith("{"))  # crane prints references, too
            said = next(lines, "")
            assert said, (folder / "published").read_text()
            found = json.loads(said)
            yield Mirror(found["address"], Published(**found["published"]), inside, folder / "log")
        finally:
            started.communicate(timeout=20)


if __name__ == "__main__":
    _images, _others = ({key: Path(one) for key, one in json.loads(given).items()} for given in sys.argv[3:])
    main(Path(sys.argv[1]), Path(sys.argv[2]), _images, _others)
