"""The cache outside the checkout, which two runs can share.

Locks are `flock`s: the kernel drops them with the process that held them, so that none can ever be stale.
"""

import fcntl
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SAY_AFTER_S = 1.0


def root() -> Path:
    """The cache: `FAIRLEAD_CACHE`, else `fairlead` in the user's cache directory."""
    if own := os.environ.get("FAIRLEAD_CACHE"):
        return Path(own).absolute()
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").absolute() / "fairlead"


def binaries() -> Path:
    """Programs, one folder for each name and version."""
    return root() / "bin"


def clusters() -> Path:
    """The clusters that are up, one folder each; `down` removes it."""
    return root() / "clusters"


@contextmanager
def locked(name: str, *, doing: str, wait: bool = True) -> Iterator[bool]:
    """Hold the lock of that name. Without `wait`, yields whether it could be had.

    `doing` is what another holder is doing, for the line that is printed when this one has to wait.
    """
    path = root() / "locks" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        began = time.monotonic()
        said = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not wait:
                    yield False
                    return
                if not said and time.monotonic() - began > _SAY_AFTER_S:
                    print(f"waiting for another process that is {doing} ({path})", file=sys.stderr, flush=True)
                    said = True
                time.sleep(0.1)
        yield True


def write(path: Path, data: bytes | str, *, mode: int = 0o644) -> None:
    """Write a file so that nobody, also after a crash, ever sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data if isinstance(data, bytes) else data.encode())
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
