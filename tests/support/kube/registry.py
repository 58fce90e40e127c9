"""A registry of images that the node pulls from: what a cluster behind a mirror has instead of the internet.

It runs in the node's own network, where containerd takes an address of the loopback without TLS. Only reads are served,
of images in docker archives, under whatever path they are asked for.

An image that the kubelet has pulled may be used only by pods whose own pull would be allowed, under whatever name, even
if it was loaded onto the node before. So the images here are others than those that are loaded: their configurations
have a label more.
"""

import hashlib
import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from testbed.fixtures import Cluster
from testbed.sandbox import Sandbox

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _labelled(config: bytes) -> bytes:
    """A configuration of the same image with another ID."""
    image = json.loads(config)
    labels = image.setdefault("config", {}).get("Labels") or {}
    image["config"]["Labels"] = labels | {"registry": "mirror"}
    return json.dumps(image).encode()


def _read(archive: Path, blobs: dict[str, bytes]) -> dict[str, bytes]:
    """Manifests of an archive by name and tag, such as kube-scheduler:v1; their blobs are added."""
    found = {}
    with tarfile.open(archive) as tar:

        def blob(name: str, kind: str) -> dict[str, Any]:
            file = tar.extractfile(name)
            assert file is not None
            data = file.read()
            if kind == "config.v1+json":
                data = _labelled(data)
            blobs[_digest(data)] = data
            return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": _digest(data), "size": len(data)}

        index = tar.extractfile("manifest.json")
        assert index is not None
        for one in json.load(index):
            made = {
                "schemaVersion": 2,
                "mediaType": _MANIFEST,
                "config": blob(one["Config"], "config.v1+json"),
                "layers": [blob(layer, "layer.v1.tar") for layer in one["Layers"]],
            }
            for tag in one["RepoTags"]:
                found[tag.rpartition("/")[2]] = json.dumps(made).encode()
    return found


class _Handler(BaseHTTPRequestHandler):
    manifests: dict[str, bytes]
    blobs: dict[str, bytes]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer as the distribution's API does."""
        path, _, reference = self.path.partition("?")[0].rpartition("/")
        image = path.removesuffix("/manifests").removesuffix("/blobs").rpartition("/")[2]
        if path.endswith("/blobs"):
            data, kind = self.blobs.get(reference), "application/octet-stream"
        else:
            by_digest = {_digest(one): one for one in self.manifests.values()}
            data, kind = by_digest.get(reference) or self.manifests.get(f"{image}:{reference}"), _MANIFEST
        if self.path == "/v2/":
            data = b"{}"
        self.send_response(404 if data is None else 200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data or b"")))
        if data is not None:
            self.send_header("Docker-Content-Digest", _digest(data))
        self.end_headers()
        if self.command == "GET" and data:
            self.wfile.write(data)

    do_HEAD = do_GET  # noqa: N815 - the name is the server's


def main(archives: list[str]) -> None:
    """Serve these archives; the first line of output is the port."""
    for one in archives:
        _Handler.manifests |= _read(Path(one), _Handler.blobs)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


@contextmanager
def registry(cluster: Cluster, *archives: Path) -> Iterator[str]:
    """The registry's address on the node."""
    holder = Sandbox(cluster.folder).holder()
    assert holder is not None, "the cluster has no node of its own"
    command = ["nsenter", f"--target={holder.pid}", "--net", "--", sys.executable, "-m", __name__]
    folder = str(Path(__file__).parents[2])
    environment = {"PYTHONPATH": f"{folder}:{Path(folder).parent}"}
    with subprocess.Popen(
        [*command, *map(str, archives)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as started:
        try:
            assert started.stdout is not None
            port = started.stdout.readline().strip()
            assert port, "the registry does not start"
            yield f"127.0.0.1:{port}"
        finally:
            started.kill()


if __name__ == "__main__":
    _Handler.manifests, _Handler.blobs = {}, {}
    main(sys.argv[1:])
