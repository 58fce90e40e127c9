"""Tuning of the C library's heap, of Python's garbage collector, and of what connections keep.

By default the C library returns the end of its heap to the kernel after each large call and allocates it again in the
next one. The kernel clears those pages, which takes a third of the time of such a call.
"""

import ctypes
import gc
import linecache
from asyncio import selector_events, sslproto
from contextlib import suppress
from functools import wraps
from typing import Any, Final

_TRIM_THRESHOLD: Final = -1
_TOP_PAD: Final = -2
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
_TRIM_BYTES: Final = 64 << 20
_PAD_BYTES: Final = 8 << 20
_MMAP_BYTES: Final = 32 << 20
_TLS_BYTES: Final = 64 << 10
_THRESHOLD_0: Final = 2_000
_THRESHOLD_1: Final = 2
_THRESHOLD_2: Final = 1 << 30


def keep_heap() -> None:
    """Make the C library keep some of its heap, and have one for all threads, if it is glibc.

    Only one of them runs at a time; heaps of their own, of 64 MiB each, would only be more to be fragmented.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # not glibc
        return
    options = (_TRIM_THRESHOLD, _TRIM_BYTES), (_TOP_PAD, _PAD_BYTES), (_MMAP_THRESHOLD, _MMAP_BYTES), (_ARENA_MAX, 1)
    for what, size in options:
        set_option(what, size)


def tune_connections() -> None:
    """Make asyncio's connections small, and free them when they end."""
    keep_small_tls_buffers()
    free_ended_connections()


def keep_small_tls_buffers() -> None:
    """Make asyncio keep 64 KiB for each new TLS connection in place of 256: a leader has a dozen more than others.

    It is no documented setting: where a release of Python has none, its connections are as large as it makes them.
    """
    if hasattr(sslproto.SSLProtocol, "max_size"):
        sslproto.SSLProtocol.max_size = _TLS_BYTES


def free_ended_connections() -> None:
    """Make asyncio forget a connection when it ends: it keeps a method of itself, so that only the collector frees it.

    One that was open at a freeze would be kept for hours, 2 KiB each. As with buffers: where a release of Python has
    no such part, it stays as it is.
    """
    transport: Any = getattr(selector_events, "_SelectorSocketTransport", None)
    end = getattr(transport, "_call_connection_lost", None)
    if end is None or hasattr(end, "__wrapped__"):
        return

    @wraps(end)
    def end_and_forget(self: Any, error: Exception | None) -> None:
        try:
            end(self, error)
        finally:
            self._read_ready_cb = None

    transport._call_connection_lost = end_and_forget  # noqa: SLF001


def give_back() -> None:
    """Give free memory within the C library's heap back to the kernel: 0.1 s for 100 MiB.

    The engine allocates while policies are compiled, and frees most of it, between objects that stay.
    """
    with suppress(AttributeError, OSError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


def collect_in_small_steps() -> None:
    """Make the collector walk only the newest objects: it takes a microsecond for each."""
    gc.set_threshold(_THRESHOLD_0, _THRESHOLD_1, _THRESHOLD_2)


def tidy_up(most: int) -> None:
    """Collect the objects since the last freeze, and freeze them once they are more than `most`: calls wait meanwhile.

    If they are more than twice as many, they are frozen only. Frozen objects in reference cycles are not freed before
    `tidy_up_all`; so this is called often. Source lines that tracebacks were written with are forgotten: while the API
    server is away, they become several MiB.
    """
    linecache.clearcache()
    number = len(gc.get_objects())
    if number <= 2 * most:
        gc.collect()
    if number > most:
        gc.freeze()


def tidy_up_all() -> None:
    """Collect everything, including frozen objects: a third of a second in a large cluster."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
