"""What is hidden from the collector, and what is not."""

import asyncio
import gc
import linecache
import weakref
from asyncio import selector_events, sslproto

import psutil
import pytest

from fairlead.process.gc_tuning import (
    collect_in_small_steps,
    free_ended_connections,
    give_back,
    keep_small_tls_buffers,
    tidy_up,
    tidy_up_all,
    tune_connections,
)
from scripted.loop import run_to_its_end


class Connection:
    """Refers to itself, as those of asyncio do."""

    def __init__(self) -> None:
        self.read = self.reads

    def reads(self) -> None:
        pass


@pytest.mark.parametrize(("most", "freed"), [(10**9, True), (0, False)])
def test_what_goes_later_is_freed_at_once_unless_there_is_much(most: int, freed: bool) -> None:
    one = Connection()
    seen = weakref.ref(one)
    try:
        tidy_up(most)
        del one
        tidy_up(most)
        assert (seen() is None) is freed
        tidy_up_all()
        assert seen() is None
    finally:
        gc.unfreeze()


def test_what_is_gone_already_is_freed_before_the_rest_is_frozen() -> None:
    gc.collect()
    gc.freeze()
    try:
        seen = weakref.ref(Connection())
        kept = [[at] for at in range(1_000)]
        tidy_up(900)
        assert seen() is None
        assert len(gc.get_objects()) < 900
        assert len(kept) == 1_000
    finally:
        gc.unfreeze()


def test_source_lines_of_tracebacks_are_forgotten() -> None:
    try:
        assert linecache.getlines(__file__)
        tidy_up(0)
        assert __file__ not in linecache.cache
    finally:
        gc.unfreeze()


def test_the_collector_never_walks_much_at_once() -> None:
    before, walked = gc.get_threshold(), list[int]()

    def told(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            walked.append(sum(len(gc.get_objects(generation=one)) for one in range(info["generation"] + 1)))

    gc.collect()
    gc.freeze()
    try:
        collect_in_small_steps()
        gc.callbacks.append(told)
        kept = [[at] for at in range(100_000)]
    finally:
        gc.callbacks.remove(told)
        gc.set_threshold(*before)
        gc.unfreeze()
    assert len(kept) == 100_000
    assert len(walked) > 10
    assert max(walked) <= 10_000


def test_free_memory_between_what_stays_goes_back_to_the_kernel() -> None:
    stays, goes = list[bytearray](), list[bytearray]()
    for _ in range(400):
        goes.append(bytearray(100_000))
        stays.append(bytearray(1_000))
    before = psutil.Process().memory_info().rss
    goes.clear()
    give_back()
    assert before - psutil.Process().memory_info().rss > 20_000_000
    assert len(stays) == 400


def test_a_tls_connection_keeps_64_kib(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sslproto.SSLProtocol.max_size >= 64 << 10, "each connection has a buffer of this size"
    monkeypatch.setattr(sslproto.SSLProtocol, "max_size", 256 << 10)
    keep_small_tls_buffers()
    assert sslproto.SSLProtocol.max_size == 64 << 10


def test_a_python_without_that_setting_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sslproto.SSLProtocol, "max_size")
    keep_small_tls_buffers()
    assert not hasattr(sslproto.SSLProtocol, "max_size")


class Echo(asyncio.Protocol):
    """Protocol that sends back what it gets, and notes its transports."""

    def __init__(self, seen: list[weakref.ref[asyncio.BaseTransport]]) -> None:
        self._seen = seen

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._seen.append(weakref.ref(transport))
        self._write = transport.write

    def data_received(self, data: bytes) -> None:
        self._write(data)

    def connection_lost(self, _error: Exception | None) -> None:
        del self._write


def test_a_connection_that_has_ended_is_freed_without_the_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = selector_events._SelectorSocketTransport  # type: ignore[attr-defined]
    monkeypatch.setattr(kind, "_call_connection_lost", kind._call_connection_lost)  # to be put back, as the next
    monkeypatch.setattr(sslproto.SSLProtocol, "max_size", sslproto.SSLProtocol.max_size)
    tune_connections()
    tune_connections()
    seen = list[weakref.ref[asyncio.BaseTransport]]()

    async def talk() -> None:
        server = await asyncio.get_running_loop().create_server(lambda: Echo(seen), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        seen.append(weakref.ref(writer.transport))
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        writer.close()
        await writer.wait_closed()
        server.close()
        await server.wait_closed()

    gc.disable()
    try:
        run_to_its_end(talk())
        assert [one() for one in seen] == [None, None]
    finally:
        gc.enable()


def test_a_python_that_ends_connections_in_another_way_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(selector_events, "_SelectorSocketTransport")
    free_ended_connections()
