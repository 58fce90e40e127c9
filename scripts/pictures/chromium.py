"""Screenshots by headless Chromium. Each carries the hash of what it shows, so that a test sees when it is outdated."""

import hashlib
import shutil
import struct
import subprocess
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pictures.subjects import Subject
from testbed.errors import ClusterError
from testbed.packages import Need

CHROMIUM: Final = Need("a picture", {"chromium": "chromium"})
_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_KEY: Final = b"Source\x00"
_DARK, _LIGHT = 0, 1
_PATIENCE_S: Final = 120
_SCRIPTS_MS: Final = 3000
"""Time, as the page sees it, for its scripts."""


def draw(subject: Subject, folder: Path) -> None:
    """Draw one picture. Raises ClusterError."""
    with tempfile.TemporaryDirectory() as temporary:
        folder_of_page = Path(temporary, "page")
        folder_of_page.mkdir()
        page = subject.write(folder_of_page)
        picture = Path(temporary, subject.file)
        _take(page, picture, subject, Path(temporary, "profile"))
        (folder / subject.file).write_bytes(_with_hash(picture.read_bytes(), hash_of(subject)))


def hash_of(subject: Subject) -> str:
    """Return the hash of what a picture of the subject shows now."""
    return hashlib.sha256(subject.source().encode()).hexdigest()


def hash_in(picture: bytes) -> str:
    """Return the hash of what a picture shows, or nothing if it has none."""
    found = [data.removeprefix(_KEY) for kind, data in _chunks(picture) if kind == b"tEXt" and data.startswith(_KEY)]
    return found[0].decode() if found else ""


def _take(page: Path, picture: Path, subject: Subject, profile: Path) -> None:
    width, height = subject.size()
    command = [
        shutil.which("chromium") or "chromium",
        "--headless",
        "--no-sandbox",  # root has none; the pages are the project's own
        "--disable-gpu",
        "--hide-scrollbars",
        f"--user-data-dir={profile}",
        f"--window-size={width},{height}",
        f"--blink-settings=preferredColorScheme={_DARK if subject.is_dark else _LIGHT}",
        f"--virtual-time-budget={_SCRIPTS_MS}",
        f"--screenshot={picture}",
        page.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PATIENCE_S)
    if done.returncode or not picture.exists():
        raise ClusterError(f"{command[0]} took no picture: {done.stderr.strip()[-500:]}")


def _with_hash(picture: bytes, value: str) -> bytes:
    end = picture.rindex(_END)
    text = _chunk(b"tEXt", _KEY + value.encode())
    return picture[:end] + text + picture[end:]


def _chunks(picture: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = len(_SIGNATURE)
    while place < len(picture):
        (length,) = struct.unpack(">I", picture[place : place + 4])
        yield picture[place + 4 : place + 8], picture[place + 8 : place + 8 + length]
        place += length + 12


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


_END: Final = _chunk(b"IEND", b"")
