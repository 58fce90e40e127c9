"""Hostile Prometheus server, a program with nothing but Python: what a query is called says what its reply is.

Its argument is JSON: `port`, `nodes` (names that the good values are of), and `cores` (those it may run on, so that it
takes no time of the process that is attacked). It never ends. `/asked` counts the queries of each kind that were asked.
"""

import gzip
import json
import os
import socket
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

GOOD = "good"
"""Kind of the queries that are answered well; a query is called KIND or KIND_NUMBER."""
_BIG_BYTES = 15 << 20
_HELD_S = 60.0
_PART = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"status":"success",'
_HEAD = b'{"status":"success","data":{"resultType":"vector","result":['


def _vector(series: list[str]) -> bytes:
    return _HEAD + ",".join(series).encode() + b"]}}"


def _series(label: str, value: float) -> str:
    return f'{{"metric":{{"node":"{label}"}},"value":[{time.time():.3f},"{value}"]}}'


def _foreign() -> Iterator[str]:
    """Series of nodes that do not exist, each of another one."""
    number = 0
    while True:
        yield _series(f"none-{number}", 0.5)
        number += 1


@cache
def _big() -> bytes:
    """Body of almost the greatest size, in series of other nodes."""
    each = len(next(_foreign())) + 8
    return _vector(list(islice(_foreign(), _BIG_BYTES // each)))


@cache
def _blanks() -> bytes:
    """The same with white space where a server puts none."""
    text = _big()[: _BIG_BYTES * 2 // 3].decode()
    return (
        (text[: text.rindex(',{"metric"')] + "]}}")
        .replace('"result":', '"result" : ')
        .replace(',{"m', ' ,\n { "m')
        .encode()
    )


@cache
def _bomb() -> bytes:
    """White space without end, packed."""
    packer = zlib.compressobj(wbits=31)
    parts = [packer.compress(part) for part in (_HEAD, *[b" " * (1 << 20)] * 512)]
    return b"".join([*parts, packer.flush()])


@cache
def _members() -> bytes:
    """A packed body, and many more behind it."""
    one = gzip.compress(_vector([_series("none", 0.5)]))
    return one * (_BIG_BYTES // len(one))


_BODIES: Mapping[str, tuple[Callable[[], bytes], Mapping[str, str]]] = {
    "big": (_big, {}),
    "blanks": (_blanks, {}),
    "bomb": (_bomb, {"Content-Encoding": "gzip"}),
    "members": (_members, {"Content-Encoding": "gzip"}),
}
KINDS = (GOOD, "tables", *_BODIES, "hang", "poison")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    nodes: tuple[str, ...] = ()
    requests: ClassVar[Counter[str]] = Counter()

    def do_GET(self) -> None:
        """Answer as the query is called."""
        address = urlsplit(self.path)
        if address.path == "/asked":
            self._send(json.dumps(self.requests).encode(), {})
            return
        query = parse_qs(address.query).get("query", [GOOD])[0]
        kind = query.partition("_")[0]
        with _lock:
            self.requests[kind] += 1
        with suppress(OSError):
            self._answer(kind)

    def _answer(self, kind: str) -> None:
        if kind == "hang":
            time.sleep(_HELD_S)
            self.close_connection = True
            return
        if kind in _BODIES:
            body, headers = _BODIES[kind]
            self._send(body(), headers)
            return
        self._send(_vector([_series(name, 0.5) for name in self.nodes]), {})
        if kind == "poison":  # after the reply, the beginning of one that nothing asked for
            self.wfile.flush()
            threading.Timer(0.5, self._poison).start()

    def _poison(self) -> None:
        with suppress(OSError, ValueError):
            self.connection.sendall(_PART)

    def _send(self, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(200)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    address_family = socket.AF_INET

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: the client hangs up on what it does not want."""


_lock = threading.Lock()


def main(port: int, nodes: list[str], cores: list[int]) -> None:
    """Serve until killed."""
    if cores:
        os.sched_setaffinity(0, cores)
    _Handler.nodes = tuple(nodes)
    for body, _ in _BODIES.values():
        body()
    _Server(("127.0.0.1", port), _Handler).serve_forever()


if __name__ == "__main__":
    main(**json.loads(sys.stdin.read()))
