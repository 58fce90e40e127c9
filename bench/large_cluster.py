"""A real API server with many nodes and pods: they are written into its etcd, ten times as fast as through the API.

Nothing else runs: no controller ends pods whose nodes have no kubelet, and no kwok keeps a processor busy.
"""

import json
import signal
import sys
from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
import urllib3

from bench import objects
from testbed import layout as layouts
from testbed import process
from testbed.api import Api, wait_for
from testbed.providers import Local

NODES, PODS = "minions", "pods"
"""Kinds, as etcd has them."""
_PATHS: Final = {NODES: "/api/v1/nodes", PODS: "/api/v1/pods"}
_AT_ONCE: Final = 100
"""Objects of a transaction; etcd allows 128."""
_WRITERS: Final = 2
_CAUGHT_UP_S: Final = 300.0


class _Named(msgspec.Struct):
    name: str
    namespace: str = ""


class _Object(msgspec.Struct):
    metadata: _Named


_named: Final = msgspec.json.Decoder(_Object)


@dataclass(slots=True, eq=False)
class LargeCluster:
    """An API server without controllers, whose nodes and pods become more."""

    api: Api
    kubeconfig: Path
    apiserver_pid: int
    _etcd: str
    _pool: urllib3.PoolManager = field(default_factory=lambda: urllib3.PoolManager(maxsize=_WRITERS, timeout=60))
    nodes: int = 0
    pods: int = 0

    def grow(self, nodes: int, pods: int) -> None:
        """Have so many nodes, and so many pods of other schedulers on them."""
        self.wait_until_known(NODES, self.write(NODES, islice(objects.nodes(nodes), self.nodes, None)))
        self.wait_until_known(PODS, self.write(PODS, islice(objects.pods(pods, nodes), self.pods, None)))
        self.nodes, self.pods = nodes, pods

    def write(self, kind: str, items: Iterable[bytes]) -> int:
        """Write objects past the API server, which learns of them as of any change; return the last revision."""
        pending = iter(items)
        batches = iter(lambda: list(islice(pending, _AT_ONCE)), [])
        with ThreadPoolExecutor(_WRITERS) as writers:
            revision = 0
            while some := list(islice(batches, 20 * _WRITERS)):
                revision = max([revision, *writers.map(lambda batch: self.write_at_once(kind, batch), some)])
        return revision

    def write_at_once(self, kind: str, items: Sequence[bytes]) -> int:
        """Write some objects in one transaction; return its revision."""
        operations = [
            {"requestPut": {"key": _text(_key(kind, item)), "value": _text(_stored(kind, item))}} for item in items
        ]
        body = msgspec.json.encode({"success": operations})
        reply = self._pool.request("POST", f"{self._etcd}/v3/kv/txn", body=body)
        if reply.status != 200:
            raise RuntimeError(f"etcd refuses a transaction: {reply.data.decode()[:300]}")
        return int(json.loads(reply.data)["header"]["revision"])

    def wait_until_known(self, kind: str, revision: int) -> None:
        """Return when the API server's own cache has what was written."""

        def version() -> int:
            # of a list that may be old a limit is ignored: ask for one that there is not
            found = self.api.get(_PATHS[kind], resourceVersion="0", fieldSelector="metadata.name=none")
            return int(found["metadata"]["resourceVersion"])

        what = f"the API server to know its {kind}"
        wait_for(what, lambda: version() >= revision, timeout_s=_CAUGHT_UP_S, every_s=0.5, progress=version)


@contextmanager
def large_cluster_running(name: str) -> Iterator[LargeCluster]:
    """Run an API server without nodes, and take it down at the end, also after SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    provider = Local(name, node=False)
    try:
        provider.up()
        layout = layouts.load(name)
        if layout is None:
            raise RuntimeError(f"the cluster {name} is lost")
        running = process.running(layout.folder)
        process.kill(running[one] for one in ("kube-controller-manager", "kube-scheduler"))
        with closing(Api(layout.kubeconfig)) as api:
            etcd = f"http://127.0.0.1:{layout.etcd_port}"
            yield LargeCluster(api, layout.kubeconfig, running["kube-apiserver"].pid, etcd)
    finally:
        provider.down()


def _key(kind: str, item: bytes) -> bytes:
    metadata = _named.decode(item).metadata
    path = "/".join(filter(None, ("/registry", kind, metadata.namespace, metadata.name)))
    return path.encode()


def _stored(kind: str, item: bytes) -> bytes:
    """Return the object with its kind, which lists leave out and etcd has."""
    return b'{"apiVersion":"v1","kind":"%b",%b' % (b"Node" if kind == NODES else b"Pod", item[1:])


def _text(value: bytes) -> str:
    return b64encode(value).decode()
