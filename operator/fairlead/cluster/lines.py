"""Lines out of chunks; pure. What watches send may be as long as an object, and comes in pieces."""

from typing import Final

LINE_BYTES_MAX: Final = 32 << 20


class LongLineError(ValueError):
    """A line without end."""


class Lines:
    """Put chunks in, take whole lines out. What is left when the stream ends is half a line, and nobody's."""

    def __init__(self, longest: int = LINE_BYTES_MAX) -> None:
        self._longest = longest
        self._parts: list[bytes] = []  # joined once, when the line ends: a long line costs no more than its length
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that end in this chunk."""
        *ended, rest = chunk.split(b"\n")
        if ended and self._parts:
            ended[0] = b"".join([*self._parts, ended[0]])
            self._parts.clear()
            self._size = 0
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
        if self._size > self._longest or any(len(line) > self._longest for line in ended):
            raise LongLineError(f"a line is longer than {self._longest} bytes")
        return [line for line in ended if line]
