"""A proxy before the API server that holds back part of what is sent to it, also when the sender has given up."""

import asyncio
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

_LATE = 0.05
"""Share of the chunks that are held back."""
_LATE_S = 3.0


@contextmanager
def late_packets(port: int, seed: int) -> Iterator[int]:
    """Proxy for a port of loopback; yield its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="late packets", daemon=True)
    thread.start()
    proxy = _Proxy(port, random.Random(seed))  # noqa: S311  a test
    try:
        yield asyncio.run_coroutine_threadsafe(proxy.start(), loop).result()
    finally:
        asyncio.run_coroutine_threadsafe(proxy.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def through(kubeconfig: Path, port: int, file: Path) -> Path:
    """The same API server, through a port of ours."""
    config: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())
    for one in config["clusters"]:
        one["cluster"]["server"] = f"https://127.0.0.1:{port}"
    file.write_text(yaml.safe_dump(config))
    file.chmod(0o600)
    return file


class _Proxy:
    def __init__(self, port: int, chance: random.Random) -> None:
        self._port, self._chance = port, chance
        self._tasks = set[asyncio.Task[None]]()

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        its_reader, its_writer = await asyncio.open_connection("127.0.0.1", self._port)
        for task in (self._forward(reader, its_writer, _LATE), self._forward(its_reader, writer, 0.0)):
            made = asyncio.get_running_loop().create_task(task)
            self._tasks.add(made)
            made.add_done_callback(self._tasks.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, late: float) -> None:
        try:
            while chunk := await reader.read(65_536):
                if self._chance.random() < late:
                    await asyncio.sleep(self._chance.uniform(0, _LATE_S))
                writer.write(chunk)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()
