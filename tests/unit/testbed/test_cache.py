import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testbed import cache

_CHECKOUT = Path(__file__).parents[3]
_HOLDER = "from testbed import cache\nwith cache.locked('one', doing='holding'): print('held', flush=True); input()"


@contextmanager
def _another_process_holds_it() -> Iterator["subprocess.Popen[str]"]:
    environment = os.environ | {"PYTHONPATH": str(_CHECKOUT)}
    command = [sys.executable, "-c", _HOLDER]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        try:
            yield holder
        finally:
            holder.kill()


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("FAIRLEAD_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert cache.root() == Path("/home/me/.cache/fairlead")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/me")
    assert cache.root() == Path("/var/cache/me/fairlead")
    monkeypatch.setenv("FAIRLEAD_CACHE", "/here")
    assert cache.root() == Path("/here")


def test_a_lock_that_another_process_holds_cannot_be_had(own_cache: Path) -> None:
    with _another_process_holds_it():
        with cache.locked("one", doing="holding", wait=False) as had:
            assert not had
        with cache.locked("two", doing="holding", wait=False) as had:
            assert had


def test_a_lock_is_free_once_its_holder_was_killed(own_cache: Path) -> None:
    with _another_process_holds_it() as holder:
        holder.kill()
        holder.wait()
        with cache.locked("one", doing="holding", wait=False) as had:
            assert had


def test_who_waits_gets_the_lock_when_it_is_given_back(own_cache: Path) -> None:
    had = threading.Event()

    def wait() -> None:
        with cache.locked("one", doing="holding"):
            had.set()

    with cache.locked("one", doing="holding"):
        waiter = threading.Thread(target=wait)
        waiter.start()
        assert not had.wait(0.15)
    assert had.wait(5)
    waiter.join()


def test_a_lock_is_given_back_after_a_failure(own_cache: Path) -> None:
    with pytest.raises(ValueError, match="inside"), cache.locked("one", doing="holding"):
        raise ValueError("inside")
    with cache.locked("one", doing="holding", wait=False) as had:
        assert had


def test_a_file_is_written_whole_with_its_mode_and_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    cache.write(path, "one", mode=0o600)
    cache.write(path, b"two", mode=0o600)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"two", 0o600)
    assert [*path.parent.iterdir()] == [path]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    cache.write(path, "old")

    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(Path, "chmod", fail)
    with pytest.raises(OSError, match="no space left"):
        cache.write(path, "new")
    assert path.read_text() == "old"
    assert [*tmp_path.iterdir()] == [path]
