"""Runs in a pod, with nothing but Python: all that somebody can do to ports that he has no right to.

Its only argument is JSON: `targets`, addresses of pods, and how many connections of each kind it has at once. Each
second it prints as JSON what became of them so far. It never ends.
"""

import asyncio
import itertools
import json
import ssl
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress

ADMISSION, PROBES, WEBHOOK = 9443, 8080, 8443
_PAUSE_S = 3.0
"""Before a silent connection that was ended comes again: the network between us is not what is flooded."""
_LOST = OSError, EOFError, ssl.SSLError, asyncio.IncompleteReadError


def _policy(spec: object) -> bytes:
    kind = {"group": "fairlead.dev", "version": "v1alpha1", "kind": "SchedulerExtenderPolicy"}
    one = {"apiVersion": "fairlead.dev/v1alpha1", "kind": kind["kind"], "metadata": {"name": "x"}, "spec": spec}
    asked = {"uid": "x", "kind": kind, "operation": "CREATE", "object": one}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}).encode()


def _everywhere(expression: str) -> bytes:
    """In all the places where one may stand."""

    def rules(prefix: str, count: int) -> list[object]:
        return [{"name": f"{prefix}{at}", "expression": expression} for at in range(count)]

    annotations = [{"key": f"fairlead.dev/a{at}", "expression": expression} for at in range(16)]
    spec = {"match": {"conditions": rules("c", 16)}, "variables": rules("v", 32), "filters": rules("f", 32)}
    more = {"scores": rules("s", 32), "preemption": {"protect": rules("p", 16)}}
    return _policy({**spec, **more, "binding": {"annotations": annotations}})


def bodies() -> Mapping[str, bytes]:
    """The worst ones."""
    blanks, grows = " " * 2_040, "'" + "a" * 900 + "'" + ".replace('a','aaaaaaaaaaaaaaaaaaaa')" * 28 + ".size()>0"
    chain = "cel.bind(x,'aaaaaaaa'," + "cel.bind(x,x+x+x+x+x," * 24 + "x" + ")" * 25 + ".size()>0"
    return {
        "blanks": _everywhere(f"f({blanks}a{blanks}+ ;"),
        "texts that grow": _everywhere(grows),
        "names in each other": _everywhere(chain),
        "ranges": _everywhere("||".join(["lists.range(1000000).distinct().size()<0"] * 90)),
        "patterns": _everywhere("node.metadata.name.matches(r'" + r"\pL{1000}" * 400 + "')"),
        "brackets": _everywhere("(" * 2_040 + "true" + ")" * 2_040),
        "macros": _everywhere("[1].exists(x," * 28 + "true" + ")" * 28),
        "unknown fields": _policy({f"x{at}": 1 for at in range(60_000)}),
        "some unknown fields": _policy({"filters": [{f"x{at}": 1 for at in range(99)}] * 32}),
        "deep": _policy("here").replace(b'"here"', b"[" * 1_000_000 + b"]" * 1_000_000),
        "deep objects": _policy("here").replace(b'"here"', b'{"a":' * 200_000 + b"1" + b"}" * 200_000),
        "a long name": _policy({"filters": [{"name": "x" * 1_400_000, "expression": "x" * 1_400_000}]}),
        "escapes": _policy({"schedulerName": '\\"' * 700_000}),
        "no JSON": b"[" * 3_000_000,
        "too large": b" " * (9 << 20),
    }


class Flood:
    """Flood of connections, and their outcomes."""

    def __init__(self, targets: list[str]) -> None:
        self.targets = targets
        self.counts = Counter[str]()
        self.open = self.most = 0
        self._tls = ssl.create_default_context()
        self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE
        self._turn = itertools.count()
        self.bodies: Iterator[tuple[str, bytes]] = itertools.cycle(())

    async def for_ever(self, once: Callable[[str], Awaitable[str]]) -> None:
        """One after the other."""
        while True:
            target = self.targets[next(self._turn) % len(self.targets)]
            said = "ended"
            try:
                async with asyncio.timeout(30):
                    said = await once(target)
            except TimeoutError:
                said = "30 s"
            except _LOST:
                await asyncio.sleep(0.01)
            self.counts[f"{once.__name__}: {said}"] += 1

    async def body(self, target: str) -> str:
        """The worst bodies in turn."""
        name, body = next(self.bodies)
        reader, writer = await asyncio.open_connection(target, ADMISSION, ssl=self._tls)
        try:
            writer.write(_head(f"Content-Length: {len(body)}") + body)
            answer = (await reader.readline()).split()
            return f"{name}, {answer[1].decode()}" if len(answer) > 1 else "ended"
        finally:
            writer.transport.abort()

    async def chunks(self, target: str) -> str:
        """A body that does not say how long it is."""
        reader, writer = await asyncio.open_connection(target, ADMISSION, ssl=self._tls)
        try:
            writer.write(_head("Transfer-Encoding: chunked"))
            for _ in range(100):
                writer.write(b"40000\r\n" + b"[" * 0x40000 + b"\r\n")
                await writer.drain()
            words = (await reader.readline()).split()
            return words[1].decode() if len(words) > 1 else "ended"
        finally:
            writer.transport.abort()

    async def slow(self, target: str) -> str:
        """A body, a byte at a time."""
        reader, writer = await asyncio.open_connection(target, ADMISSION, ssl=self._tls)
        try:
            writer.write(_head("Content-Length: 1000000"))
            answer = asyncio.ensure_future(reader.readline())
            while not answer.done():
                writer.write(b"[")
                await asyncio.wait([answer], timeout=0.2)
            words = answer.result().split()
            return words[1].decode() if len(words) > 1 else "ended"
        finally:
            writer.transport.abort()

    async def handshake(self, target: str) -> str:
        """TLS and nothing else, on both ports in turn; the schedulers' wants a certificate."""
        port = (ADMISSION, WEBHOOK)[next(self._turn) % 2]
        _, writer = await asyncio.open_connection(target, port, ssl=self._tls)
        writer.transport.abort()
        return f"{port}"

    async def half(self, target: str) -> str:
        """TLS that is begun."""
        reader, writer = await asyncio.open_connection(target, (ADMISSION, WEBHOOK)[next(self._turn) % 2])
        try:
            writer.write(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
            await reader.read()
            return "ended"
        finally:
            writer.transport.abort()

    async def metrics(self, target: str) -> str:
        """Metrics that need no certificate."""
        reader, writer = await asyncio.open_connection(target, PROBES)
        try:
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            return (await reader.read())[9:12].decode() or "ended"
        finally:
            writer.transport.abort()

    async def idle(self, number: int) -> None:
        """One that says nothing; on the admission port some shake hands first."""
        port = (ADMISSION, PROBES, WEBHOOK)[number % 3]
        secured = self._tls if port == ADMISSION and number % 2 else None
        while True:
            for target in self.targets:
                try:
                    reader, writer = await asyncio.open_connection(target, port, ssl=secured)
                except _LOST:
                    self.counts[f"idle: {port} refused"] += 1
                else:
                    self.open += 1
                    self.most = max(self.most, self.open)
                    with suppress(*_LOST):
                        await reader.read()
                    self.open -= 1
                    self.counts[f"idle: {port} ended"] += 1
                    writer.transport.abort()
                await asyncio.sleep(_PAUSE_S)

    async def tell(self) -> None:
        """Each second."""
        while True:
            print(json.dumps({"open": self.open, "most": self.most, "counts": self.counts}), flush=True)
            await asyncio.sleep(1)


def _head(header: str) -> bytes:
    return f"POST /validate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{header}\r\n\r\n".encode()


async def _main(targets: list[str], idle: int, **kinds: int) -> None:
    flood = Flood(targets)
    if "body" in kinds:
        flood.bodies = itertools.cycle(bodies().items())
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(flood.tell())
        for kind, count in kinds.items():
            for _ in range(count):
                tasks.create_task(flood.for_ever(getattr(flood, kind)))
        for number in range(idle):
            tasks.create_task(flood.idle(number))
            if number % 50 == 0:
                await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(_main(**json.loads(sys.argv[1])))
