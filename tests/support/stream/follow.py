"""Reads what is appended to a log that goes on in a new file once it is long."""

import os
from collections.abc import Iterator
from pathlib import Path


class Follow:
    """From where the log ends now."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._file = log.open("rb")
        self._file.seek(0, os.SEEK_END)
        self._rest = b""

    def lines(self) -> Iterator[str]:
        """The whole lines that have come since."""
        while True:
            moved = self._has_moved()  # before the end is read: nothing is appended to it any more
            for part in self._file:
                self._rest += part
                if self._rest.endswith(b"\n"):
                    yield self._rest.decode()
                    self._rest = b""
            if not moved:
                return
            self._file.close()
            self._file = self._log.open("rb")

    def close(self) -> None:
        """Read no more."""
        self._file.close()

    def _has_moved(self) -> bool:
        try:
            return self._log.stat().st_ino != os.fstat(self._file.fileno()).st_ino
        except FileNotFoundError:
            return False  # between its old name and its successor
